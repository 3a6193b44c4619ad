#include "unit/api/session_support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char dmg_test_small_graph[] = "# a small graph\n10 20 1\n10 30 4\n20 30 2\n30 40 1\n50 60 7\n";

static const char *transport;

dmg_scratch_file dmg_file_with(const char *text)
{
    dmg_scratch_file file = {.path = "/tmp/dmgraph-session-XXXXXX"};
    int descriptor = mkstemp(file.path);
    CU_ASSERT_TRUE_FATAL(descriptor >= 0);
    size_t length = strlen(text);
    CU_ASSERT_EQUAL_FATAL(write(descriptor, text, length), (ssize_t)length);
    close(descriptor);
    return file;
}

void dmg_remove_file(const dmg_scratch_file *file)
{
    unlink(file->path);
}

dmg_scratch_file dmg_random_file(unsigned long long seed)
{
    size_t capacity = 400000;
    char *text = malloc(capacity);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t used = 0;
    uint64_t state = seed | 1;
    for (int arc = 0; arc < 9000; arc++) {
        uint64_t drawn[3];
        for (int i = 0; i < 3; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            drawn[i] = state >> 33;
        }
        uint64_t source = arc % 9 == 0 ? 3 : drawn[0] % 1500 * 7;
        used += (size_t)snprintf(text + used, capacity - used, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", source,
                                 drawn[1] % 1500 * 7, drawn[2] % 100);
    }
    dmg_scratch_file file = dmg_file_with(text);
    free(text);
    return file;
}

void dmg_expect_at(int line, dmg_status status, dmg_status expected, const char *words)
{
    if (status != expected || (words && !strstr(dmg_error_message(), words))) {
        printf("\n    line %d: %s, wanted %s: %s\n", line, dmg_status_name(status), dmg_status_name(expected),
               status == DMG_OK ? "" : dmg_error_message());
        CU_FAIL("a call ended otherwise than it should");
    }
}
static int use_cxl_shm(void)
{
    transport = "cxl_shm";
    return 0;
}

static int use_ucx(void)
{
    transport = "ucx";
    return 0;
}

int dmg_session_suites_add(const char *name, const dmg_test *tests)
{
    char over_cxl_shm[64];
    char over_ucx[64];
    snprintf(over_cxl_shm, sizeof over_cxl_shm, "%s over cxl_shm", name);
    snprintf(over_ucx, sizeof over_ucx, "%s over ucx", name);
    return dmg_suite_add(over_cxl_shm, use_cxl_shm, NULL, tests) || dmg_suite_add(over_ucx, use_ucx, NULL, tests);
}

const char *dmg_session_transport(void)
{
    return transport;
}
