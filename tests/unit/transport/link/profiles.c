/* Link profiles: the ones that come along, and files of users. */
#include "transport/link.h"
#include "unit/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void)
{
    strcpy(folder, "/tmp/dmgraph-links-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static int remove_folder(void)
{
    unsetenv("DMGRAPH_LINKS");
    return rmdir(folder);
}

#define LATENCIES                                                                                                      \
    "read_latency_ns = 10 | a\nwrite_latency_ns = 20 | b\natomic_latency_ns = 30 | c\nmessage_latency_ns = 40 | d\n"

/* Load a profile with this text. */
static dmg_status load_text(const char *text, dmg_link_profile *profile)
{
    char path[128];
    snprintf(path, sizeof path, "%s/mine.link", folder);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    dmg_status status = dmg_link_profile_load(path, profile);
    unlink(path);
    return status;
}

static void every_number_that_comes_along_has_its_source(void)
{
    setenv("DMGRAPH_LINKS", LINK_FOLDER, 1);
    dmg_link_profile *profiles;
    size_t count;
    CU_ASSERT_EQUAL_FATAL(dmg_link_profiles_list(&profiles, &count), DMG_OK);
    CU_ASSERT_EQUAL(count, 10);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_NOT_EQUAL(profiles[i].title[0], '\0');
        CU_ASSERT_NOT_EQUAL(profiles[i].coherence[0], '\0');
        CU_ASSERT_TRUE(i == 0 || strcmp(profiles[i - 1].settings.name, profiles[i].settings.name) < 0);
        for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
            CU_ASSERT_EQUAL(profiles[i].is_given[cell], profiles[i].provenance[cell][0] != '\0');
            CU_ASSERT_TRUE(profiles[i].is_given[cell] || profiles[i].settings.cells[cell] == 0);
        }
    }
    free(profiles);
}

static void profiles_are_found_by_name(void)
{
    setenv("DMGRAPH_LINKS", "/nonexistent:" LINK_FOLDER, 1);
    dmg_link_profile profile;
    CU_ASSERT_EQUAL_FATAL(dmg_link_profile_load("polar-rdma", &profile), DMG_OK);
    CU_ASSERT_STRING_EQUAL(profile.settings.name, "polar-rdma");
    CU_ASSERT_EQUAL(profile.settings.cells[DMG_LINK_READ_LATENCY], 4550);
    CU_ASSERT_EQUAL(profile.settings.cells[DMG_LINK_CHANNEL_RATE], 3);
    CU_ASSERT_EQUAL(profile.settings.line_bytes, 1);
    CU_ASSERT_EQUAL_FATAL(dmg_link_profile_load("cxl2-switch", &profile), DMG_OK);
    CU_ASSERT_EQUAL(profile.settings.cells[DMG_LINK_ATOMIC_LATENCY], 0);
    CU_ASSERT_TRUE(profile.is_given[DMG_LINK_ATOMIC_LATENCY]);
    CU_ASSERT_EQUAL(profile.settings.line_bytes, 64);
    CU_ASSERT_EQUAL(dmg_link_profile_load("no-such-link", &profile), DMG_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "polar-cxl"));
}

static void files_of_users_are_read(void)
{
    dmg_link_profile profile;
    CU_ASSERT_EQUAL_FATAL(load_text("# mine\ntitle = My link\n\n line_bytes=64\n" LATENCIES
                                    "read_bandwidth_gbs = 12.5 | measured, on a Tuesday\n",
                                    &profile),
                          DMG_OK);
    CU_ASSERT_STRING_EQUAL(profile.settings.name, "mine");
    CU_ASSERT_STRING_EQUAL(profile.title, "My link");
    CU_ASSERT_EQUAL(profile.settings.cells[DMG_LINK_MESSAGE_LATENCY], 40);
    CU_ASSERT_EQUAL(profile.settings.cells[DMG_LINK_READ_BANDWIDTH], 12.5);
    CU_ASSERT_STRING_EQUAL(profile.provenance[DMG_LINK_READ_BANDWIDTH], "measured, on a Tuesday");
    CU_ASSERT_FALSE(profile.is_given[DMG_LINK_READ_RATE]);
}

static void wrong_lines_are_named(void)
{
    static const struct {
        const char *text;
        const char *said;
    } wrong[] = {{LATENCIES "nonsense\n", ":5:"},
                 {LATENCIES "speed = 9 | x\n", ":5:"},
                 {LATENCIES "read_rate_mops = 9\n", ":5:"},
                 {LATENCIES "read_rate_mops = 9 |\n", ":5:"},
                 {LATENCIES "read_rate_mops = fast | x\n", ":5:"},
                 {LATENCIES "read_rate_mops = 9x | x\n", ":5:"},
                 {LATENCIES "read_rate_mops = -9 | x\n", ":5:"},
                 {LATENCIES "read_rate_mops = 0 | x\n", ":5:"},
                 {LATENCIES "read_rate_mops = nan | x\n", ":5:"},
                 {LATENCIES "read_latency_ns = 10 | twice\n", ":5:"},
                 {LATENCIES "line_bytes = 1.5\n", ":5:"},
                 {LATENCIES "line_bytes = 48\n", "line_bytes"},
                 {LATENCIES "read_rate_mops = 1e300 | x\n", "read_rate_mops"},
                 {"read_latency_ns = none | x\n", ":1:"},
                 {"read_latency_ns = 10 | x\n", "write_latency_ns"},
                 {"", "read_latency_ns"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dmg_link_profile profile;
        CU_ASSERT_EQUAL(load_text(wrong[i].text, &profile), DMG_ERR_FORMAT);
        CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), wrong[i].said));
    }
}

static void long_and_binary_files_are_refused(void)
{
    static char text[8192];
    dmg_link_profile profile;
    memset(text, 'x', sizeof text - 1);
    CU_ASSERT_EQUAL(load_text(text, &profile), DMG_ERR_FORMAT);
    memset(text, '\n', sizeof text - 1);
    CU_ASSERT_EQUAL(load_text(text, &profile), DMG_ERR_FORMAT);
    memset(text, '\xff', sizeof text - 1);
    CU_ASSERT_EQUAL(load_text(text, &profile), DMG_ERR_FORMAT);
    CU_ASSERT_EQUAL(dmg_link_profile_load("/nonexistent/x.link", &profile), DMG_ERR_NOT_FOUND);
}

static const dmg_test tests[] = {DMG_TEST(every_number_that_comes_along_has_its_source),
                                 DMG_TEST(profiles_are_found_by_name),
                                 DMG_TEST(files_of_users_are_read),
                                 DMG_TEST(wrong_lines_are_named),
                                 DMG_TEST(long_and_binary_files_are_refused),
                                 {NULL, NULL}};

int main(int argc, char **argv)
{
    return dmg_suite_add("profiles", make_folder, remove_folder, tests) ? 1 : dmg_suites_run(argc, argv);
}
