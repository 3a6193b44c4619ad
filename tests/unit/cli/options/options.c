/* The options table: parsing, ranges, and what is refused. */
#include "unit/support/suite.h"

#include "cli/options/options.h"

#include <string.h>

static const dmg_option_id allowed[] = {DMG_OPTION_MNS,     DMG_OPTION_CACHE,  DMG_OPTION_PEER_TIMEOUT,
                                        DMG_OPTION_DAMPING, DMG_OPTION_VERIFY, DMG_OPTION_DIRECTION,
                                        DMG_OPTION_SOURCE,  DMG_OPTION_OUTPUT, DMG_OPTION_THREADS,
                                        DMG_OPTION_UPDATES, DMG_OPTION_COUNT};

#define ARGUMENTS_MAX 8

static dmg_status parse(dmg_settings *settings, const char *const *words)
{
    char *arguments[ARGUMENTS_MAX];
    int count = 0;
    while (words[count] && count < ARGUMENTS_MAX) {
        arguments[count] = (char *)(uintptr_t)words[count];
        count++;
    }
    return dmg_options_parse(allowed, count, arguments, settings);
}

#define PARSE(settings, ...) parse(settings, (const char *const[]){__VA_ARGS__, NULL})

static void sizes_take_suffixes_of_powers_of_1024(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},           {"4096", 4096},
                {"1K", 1024},       {"1k", 1024},
                {"64M", 64 << 20},  {"1.5G", 3ull << 29},
                {"2T", 2ull << 40}, {"16MiB", 16 << 20},
                {"512B", 512},      {"18446744073709551615", UINT64_MAX}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 1;
        CU_ASSERT_EQUAL(dmg_parse_size(good[i].text, &bytes), DMG_OK);
        CU_ASSERT_EQUAL(bytes, good[i].bytes);
    }
}

static void what_is_no_size_is_refused(void)
{
    static const char *const bad[] = {
        "", "K", "-1", "+1", " 1", "1 K", "1KK", "much", "1E3", "16777216T", "18446744073709551616", "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes;
        CU_ASSERT_EQUAL(dmg_parse_size(bad[i], &bytes), DMG_ERR_ARGUMENT);
        CU_ASSERT(strlen(dmg_error_message()) > 0);
    }
}

static void times_need_a_unit(void)
{
    uint64_t duration_ns = 0;
    CU_ASSERT_EQUAL(dmg_parse_time("5s", &duration_ns), DMG_OK);
    CU_ASSERT_EQUAL(duration_ns, 5000000000u);
    CU_ASSERT_EQUAL(dmg_parse_time("1500ms", &duration_ns), DMG_OK);
    CU_ASSERT_EQUAL(duration_ns, 1500000000u);
    CU_ASSERT_EQUAL(dmg_parse_time("0.25s", &duration_ns), DMG_OK);
    CU_ASSERT_EQUAL(duration_ns, 250000000u);
    /* As it is written and as it is typed; there are two letters that look like a µ. */
    static const char *const micros[] = {"15us", "15\u00b5s", "15\u03bcs"};
    for (size_t i = 0; i < sizeof micros / sizeof micros[0]; i++) {
        CU_ASSERT_EQUAL(dmg_parse_time(micros[i], &duration_ns), DMG_OK);
        CU_ASSERT_EQUAL(duration_ns, 15000u);
    }
    static const char *const bad[] = {"5", "s", "-5s", "5 s", "5sec", "", "99999999999999s"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(dmg_parse_time(bad[i], &duration_ns), DMG_ERR_ARGUMENT);
    }
}

static void numbers_are_digits_alone(void)
{
    uint64_t number = 0;
    CU_ASSERT_EQUAL(dmg_parse_number("18446744073709551615", &number), DMG_OK);
    CU_ASSERT_EQUAL(number, UINT64_MAX);
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1.0", "18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(dmg_parse_number(bad[i], &number), DMG_ERR_ARGUMENT);
    }
}

static void values_stand_behind_an_equals_sign_or_follow(void)
{
    dmg_settings settings;
    CU_ASSERT_EQUAL(PARSE(&settings, "--mns=3", "first", "--cache", "64M", "--direction=pull", "second"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_number(&settings, DMG_OPTION_MNS), 3);
    CU_ASSERT_EQUAL(dmg_number(&settings, DMG_OPTION_CACHE), 64 << 20);
    CU_ASSERT_EQUAL(dmg_number(&settings, DMG_OPTION_DIRECTION), 2);
    CU_ASSERT_EQUAL(settings.positional_count, 2);
    CU_ASSERT_STRING_EQUAL(settings.positionals[1], "second");
}

static void defaults_are_values_but_not_given(void)
{
    dmg_settings settings;
    CU_ASSERT_EQUAL(PARSE(&settings, "--verify"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_number(&settings, DMG_OPTION_MNS), 1);
    CU_ASSERT(dmg_has(&settings, DMG_OPTION_MNS));
    CU_ASSERT_FALSE(settings.values[DMG_OPTION_MNS].is_given);
    CU_ASSERT_FALSE(dmg_has(&settings, DMG_OPTION_THREADS));
    CU_ASSERT_EQUAL(dmg_number(&settings, DMG_OPTION_PEER_TIMEOUT), 5000000000u);
    CU_ASSERT(dmg_flag(&settings, DMG_OPTION_VERIFY));
}

static void two_dashes_end_the_options(void)
{
    dmg_settings settings;
    CU_ASSERT_EQUAL(PARSE(&settings, "--", "--verify", "-"), DMG_OK);
    CU_ASSERT_FALSE(dmg_flag(&settings, DMG_OPTION_VERIFY));
    CU_ASSERT_EQUAL(settings.positional_count, 2);
    CU_ASSERT_EQUAL(PARSE(&settings, "--output", "-"), DMG_OK);
    CU_ASSERT_STRING_EQUAL(dmg_value_text(&settings, DMG_OPTION_OUTPUT), "-");
}

static void misuse_is_refused_in_one_sentence(void)
{
    static const char *const bad[][3] = {{"--cns=1"},
                                         {"--verify=yes"},
                                         {"--mns"},
                                         {"--mns="},
                                         {"--mns", "0"},
                                         {"--mns", "17"},
                                         {"--damping=1.5"},
                                         {"--damping=-0.1"},
                                         {"--damping=nan"},
                                         {"--direction=up"},
                                         {"--direction="},
                                         {"-v"},
                                         {"--peer-timeout=1ms"},
                                         {"--source=-1"},
                                         {"--cache", "100"},
                                         {"--output="}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dmg_settings settings;
        CU_ASSERT_EQUAL(parse(&settings, bad[i]), DMG_ERR_ARGUMENT);
        CU_ASSERT_PTR_NULL(strchr(dmg_error_message(), '\n'));
    }
}

static void a_near_miss_is_named(void)
{
    dmg_settings settings;
    CU_ASSERT_EQUAL(PARSE(&settings, "--thread=2"), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "--threads"));
    CU_ASSERT_EQUAL(PARSE(&settings, "--quite-another-thing"), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "--help"));
}

static void old_words_mean_the_new_ones_and_are_shown_as_these(void)
{
    static const char *const words[][2] = {
        {"value", "valrd-node"}, {"owner", "valrd-owner"}, {"valrd-owner", "valrd-owner"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        dmg_settings settings;
        CU_ASSERT_EQUAL_FATAL(PARSE(&settings, "--updates", words[i][0]), DMG_OK);
        CU_ASSERT_STRING_EQUAL(settings.values[DMG_OPTION_UPDATES].text, words[i][1]);
    }
    dmg_settings settings;
    CU_ASSERT_EQUAL(PARSE(&settings, "--updates", "neither"), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NULL(strstr(dmg_error_message(), "owner|")); /* what is proposed is new */
}

static void lists_of_sizes_are_taken_apart(void)
{
    uint64_t sizes[3] = {0};
    uint32_t count = 0;
    CU_ASSERT_EQUAL(dmg_parse_sizes("4K", sizes, 3, &count), DMG_OK);
    CU_ASSERT_EQUAL(count, 1);
    CU_ASSERT_EQUAL(dmg_parse_sizes("1,2K,3M", sizes, 3, &count), DMG_OK);
    CU_ASSERT_EQUAL(count, 3);
    CU_ASSERT(sizes[0] == 1 && sizes[1] == 2048 && sizes[2] == 3 << 20);
    static const char *const bad[] = {
        "", ",", "1,", ",1", "1,,2", "1,x", "1,2,3,4", "1 ,2", "000000000000000000000000000000000000001"};
    for (size_t index = 0; index < sizeof bad / sizeof bad[0]; index++) {
        CU_ASSERT_EQUAL(dmg_parse_sizes(bad[index], sizes, 3, &count), DMG_ERR_ARGUMENT);
    }
}

static void every_option_stands_in_the_table(void)
{
    for (int id = 0; id < DMG_OPTION_COUNT; id++) {
        const dmg_option *option = dmg_option_get((dmg_option_id)id);
        CU_ASSERT_PTR_NOT_NULL_FATAL(option->name);
        CU_ASSERT_PTR_NOT_NULL(option->help);
        CU_ASSERT_EQUAL(option->type == DMG_TYPE_FLAG, !option->placeholder && !option->choices);
        for (int other = 0; other < id; other++) {
            /* One name may stand for a number in one command and for a list in another, but for no two of a kind. */
            const dmg_option *before = dmg_option_get((dmg_option_id)other);
            CU_ASSERT_TRUE(strcmp(option->name, before->name) != 0 || option->type != before->type);
        }
    }
}

static void the_echo_has_every_allowed_option(void)
{
    dmg_settings settings;
    CU_ASSERT_EQUAL(PARSE(&settings, "--peer-timeout=1500ms", "--source=18446744073709551615"), DMG_OK);
    json_t *echo = dmg_options_json(allowed, &settings);
    CU_ASSERT_EQUAL(json_object_size(echo), sizeof allowed / sizeof allowed[0] - 1);
    CU_ASSERT_EQUAL(json_real_value(json_object_get(echo, "peer-timeout")), 1.5);
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(echo, "mns")), 1);
    CU_ASSERT(json_is_null(json_object_get(echo, "cache")));
    CU_ASSERT(json_is_false(json_object_get(echo, "verify")));
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(echo, "source")), "18446744073709551615");
    json_decref(echo);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {DMG_TEST(sizes_take_suffixes_of_powers_of_1024),
                                     DMG_TEST(what_is_no_size_is_refused),
                                     DMG_TEST(times_need_a_unit),
                                     DMG_TEST(numbers_are_digits_alone),
                                     DMG_TEST(values_stand_behind_an_equals_sign_or_follow),
                                     DMG_TEST(defaults_are_values_but_not_given),
                                     DMG_TEST(two_dashes_end_the_options),
                                     DMG_TEST(misuse_is_refused_in_one_sentence),
                                     DMG_TEST(a_near_miss_is_named),
                                     DMG_TEST(old_words_mean_the_new_ones_and_are_shown_as_these),
                                     DMG_TEST(lists_of_sizes_are_taken_apart),
                                     DMG_TEST(every_option_stands_in_the_table),
                                     DMG_TEST(the_echo_has_every_allowed_option),
                                     {NULL, NULL}};
    if (dmg_suite_add("options", NULL, NULL, tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
