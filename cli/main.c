/*
 * dmgraph: graph analytics on disaggregated memory.
 *
 * This file finds the subcommand, parses its options and prints help; the subcommands are in files of their own.
 */
#include "cli/base/exit_code.h"
#include "cli/base/standard_output.h"
#include "cli/launcher/node_control.h"
#include "cli/options/command.h"
#include "cli/pool/file.h"
#include "core/base/descriptors.h"
#include "core/base/error.h"
#include "transport/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const dmg_command *const commands[] = {&dmg_command_run,
                                              &dmg_command_pool_start,
                                              &dmg_command_pool_list,
                                              &dmg_command_pool_status,
                                              &dmg_command_pool_stop,
                                              &dmg_command_pool_clean,
                                              &dmg_command_load,
                                              &dmg_command_unload,
                                              &dmg_command_list,
                                              &dmg_command_convert,
                                              &dmg_command_generate_kron,
                                              &dmg_command_info_graph,
                                              &dmg_command_info_transports,
                                              &dmg_command_info_links,
                                              &dmg_command_perf,
                                              &dmg_command_compare,
                                              &dmg_command_predict,
                                              &dmg_command_memory_node,
                                              &dmg_command_pool_keeper,
                                              &dmg_command_compute_node,
                                              NULL};

static int usage_error(void)
{
    return dmg_exit_with_error(DMG_ERR_ARGUMENT);
}

/** How many words of a command's name stand at the start of the arguments, when all of them do; else 0. */
static int matching_words(const dmg_command *command, int count, char *const *arguments)
{
    const char *space = strchr(command->name, ' ');
    if (!space) {
        return count >= 1 && strcmp(arguments[0], command->name) == 0 ? 1 : 0;
    }
    size_t length = (size_t)(space - command->name);
    return count >= 2 && strlen(arguments[0]) == length && memcmp(arguments[0], command->name, length) == 0 &&
                   strcmp(arguments[1], space + 1) == 0
               ? 2
               : 0;
}

/** Whether this word is the first of a command with a name of two words. */
static bool is_first_word(const dmg_command *command, const char *word)
{
    const char *space = strchr(command->name, ' ');
    return space && strlen(word) == (size_t)(space - command->name) && memcmp(command->name, word, strlen(word)) == 0;
}

static void print_command_help(const dmg_command *command, dmg_option_audience audience)
{
    printf("usage: dmgraph %s%s%s [OPTIONS]\n\n%s\n", command->name, *command->arguments ? " " : "", command->arguments,
           command->summary);
    if (command->details) {
        printf("\n%s", command->details);
    }
    printf("\noptions:\n");
    uint32_t left_out = dmg_options_print(stdout, command->options, audience);
    if (left_out > 0) {
        printf("\n%" PRIu32 " more options are for experiments: --help-all shows them.\n", left_out);
    }
    if (command->print_more) {
        command->print_more(stdout);
    }
}

static int print_help(void)
{
    printf("dmgraph %s: graph analytics on disaggregated memory\n\nusage: dmgraph COMMAND [ARGUMENTS] "
           "[OPTIONS]\n\ncommands:\n",
           DMGRAPH_VERSION);
    for (const dmg_command *const *command = commands; *command; command++) {
        if (!(*command)->is_internal) {
            char left[64];
            snprintf(left, sizeof left, "%s %s", (*command)->name, (*command)->arguments);
            printf("  %-28s %s\n", left, (*command)->summary);
        }
    }
    printf("  %-28s %s\n  %-28s %s\n\n", "help [COMMAND]", "print this, or a command's options", "version",
           "print the version");
    printf("Example: dmgraph run bfs graph.el.gz --source 0 --mns 2 --cns 2 --output answer.txt\n");
    return DMG_EXIT_OK;
}

/** Help on all commands whose names begin with these words. Returns false when there is none. */
static bool print_help_on(int count, char *const *words, dmg_option_audience audience)
{
    bool has_printed = false;
    for (const dmg_command *const *command = commands; *command; command++) {
        if (matching_words(*command, count, words) ||
            (is_first_word(*command, words[0]) && (count == 1 || words[1][0] == '-'))) {
            if (has_printed) {
                putchar('\n');
            }
            print_command_help(*command, audience);
            has_printed = true;
        }
    }
    return has_printed;
}

static int run_command(const dmg_command *command, int count, char *const *arguments)
{
    dmg_settings settings;
    dmg_status status = dmg_options_parse(command->options, count, arguments, &settings);
    if (status == DMG_OK && (dmg_flag(&settings, DMG_OPTION_HELP) || dmg_flag(&settings, DMG_OPTION_HELP_ALL))) {
        print_command_help(command, dmg_flag(&settings, DMG_OPTION_HELP_ALL) ? DMG_FOR_RESEARCH : DMG_FOR_USERS);
        return DMG_EXIT_OK;
    }
    uint32_t most_arguments = command->argument_count + command->optional_count;
    if (status == DMG_OK &&
        (settings.positional_count < command->argument_count || settings.positional_count > most_arguments)) {
        status = settings.positional_count < command->argument_count
                     ? dmg_error(DMG_ERR_ARGUMENT, "an argument is missing: dmgraph %s %s", command->name,
                                 command->arguments)
                     : dmg_error(DMG_ERR_ARGUMENT, "'%s' is one argument too many: dmgraph %s %s",
                                 settings.positionals[most_arguments], command->name, command->arguments);
    }
    if (status != DMG_OK) {
        dmg_error_prefix(status, "%s", command->name);
        return usage_error();
    }
    dmg_log_to_stderr("dmgraph", dmg_has(&settings, DMG_OPTION_LOG_LEVEL) ? dmg_number(&settings, DMG_OPTION_LOG_LEVEL)
                                                                          : UINT64_MAX);
    char trusting[DMG_TRANSPORT_TEXT_BYTES];
    const char *transport = dmg_value_text(&settings, DMG_OPTION_TRANSPORT);
    if (transport && dmg_flag(&settings, DMG_OPTION_TRUST_NETWORK)) {
        status = dmg_transport_trust(transport, trusting, sizeof trusting);
        if (status != DMG_OK) {
            dmg_error_prefix(status, "%s: --trust-network", command->name);
            return usage_error();
        }
        settings.values[DMG_OPTION_TRANSPORT].text = transport = trusting;
    }
    if (transport) {
        dmg_transport_announce(transport);
    }
    int code = command->run(&settings);
    /* What a node could not log is no failure of the node. */
    return code == DMG_EXIT_OK && !command->is_internal && ferror(stderr) ? DMG_EXIT_IO : code;
}

static int refuse_unknown(int count, char *const *words)
{
    for (const dmg_command *const *command = commands; *command; command++) {
        if (is_first_word(*command, words[0])) {
            if (count == 1) {
                dmg_error(DMG_ERR_ARGUMENT, "%s: say of what; 'dmgraph help %s' tells", words[0], words[0]);
            } else {
                dmg_error(DMG_ERR_ARGUMENT, "%s: there is no '%s'; 'dmgraph help %s' tells what there is", words[0],
                          words[1], words[0]);
            }
            return usage_error();
        }
    }
    dmg_error(DMG_ERR_ARGUMENT, "there is no command '%s'; 'dmgraph help' lists them", words[0]);
    return usage_error();
}

static bool is_word(const char *word, const char *plain, const char *dashed)
{
    return strcmp(word, plain) == 0 || strcmp(word, dashed) == 0;
}

static int dispatch(int count, char *const *words)
{
    if (count == 0) {
        dmg_error(DMG_ERR_ARGUMENT, "a command is missing; 'dmgraph help' lists them");
        return usage_error();
    }
    if (is_word(words[0], "version", "--version")) {
        printf("dmgraph %s\n", DMGRAPH_VERSION);
        return DMG_EXIT_OK;
    }
    if (is_word(words[0], "help", "--help") || strcmp(words[0], "-h") == 0) {
        if (count == 1) {
            return print_help();
        }
        return print_help_on(count - 1, words + 1, DMG_FOR_USERS) ? DMG_EXIT_OK : refuse_unknown(count - 1, words + 1);
    }
    for (const dmg_command *const *command = commands; *command; command++) {
        int matched = matching_words(*command, count, words);
        if (matched) {
            return run_command(*command, count - matched, words + matched);
        }
    }
    if (count == 2 && is_word(words[1], "-h", "--help") && print_help_on(count, words, DMG_FOR_USERS)) {
        return DMG_EXIT_OK;
    }
    if (count == 2 && strcmp(words[1], "--help-all") == 0 && print_help_on(count, words, DMG_FOR_RESEARCH)) {
        return DMG_EXIT_OK;
    }
    return refuse_unknown(count, words);
}

/** What was printed must have arrived. A command that failed has said more, and keeps its code. */
static int conclude(int code)
{
    dmg_status status = dmg_standard_output_flush();
    if (status != DMG_OK) {
        int failed = dmg_exit_with_error(status);
        return code == DMG_EXIT_OK ? failed : code;
    }
    return code;
}

int main(int argc, char **argv)
{
    /* The usual soft limit is there for programs that use select. */
    dmg_descriptors_raise_limit();
    dmg_transport_prepare();
    dmg_status status = dmg_standard_output_prepare();
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    return conclude(dispatch(argc > 0 ? argc - 1 : 0, argv + 1));
}
