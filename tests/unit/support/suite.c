#include "unit/support/suite.h"

#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int dmg_suite_add(const char *name, int (*set_up)(void), int (*tear_down)(void), const dmg_test *tests)
{
    if (!CU_registry_initialized() && CU_initialize_registry() != CUE_SUCCESS) {
        return 1;
    }
    CU_pSuite suite = CU_add_suite(name, set_up, tear_down);
    if (!suite) {
        return 1;
    }
    for (const dmg_test *test = tests; test->name; test++) {
        if (!CU_add_test(suite, test->name, test->run)) {
            return 1;
        }
    }
    return 0;
}

int dmg_suites_run(int argc, char **argv)
{
    CU_basic_set_mode(CU_BRM_VERBOSE);
    if (argc > 1) {
        CU_pSuite suite = CU_get_suite(argv[1]);
        if (!suite) {
            fprintf(stderr, "no suite is called %s\n", argv[1]);
            return 2;
        }
        CU_pTest test = argc > 2 ? CU_get_test_by_name(argv[2], suite) : NULL;
        if (argc > 2 && !test) {
            fprintf(stderr, "no test of the suite %s is called %s\n", argv[1], argv[2]);
            return 2;
        }
        if (test) {
            CU_basic_run_test(suite, test);
        } else {
            CU_basic_run_suite(suite);
        }
    } else {
        CU_basic_run_tests();
    }
    unsigned int failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    unsigned int run = CU_get_number_of_tests_run();
    CU_cleanup_registry();
    return failed == 0 && run > 0 ? 0 : 1;
}

unsigned long long dmg_test_seed(void)
{
    const char *given = getenv("DMGRAPH_TEST_SEED");
    unsigned long long seed = given ? strtoull(given, NULL, 10) : (unsigned long long)time(NULL);
    printf("\n    seed %llu (DMGRAPH_TEST_SEED repeats it)\n", seed);
    return seed;
}
