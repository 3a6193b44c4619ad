/**
 * @file command.h
 * The subcommands: one file each, a row in the table of main.c.
 */
#ifndef DMG_CLI_OPTIONS_COMMAND_H
#define DMG_CLI_OPTIONS_COMMAND_H

#include "cli/options/options.h"

typedef struct dmg_command {
    const char *name;      /**< may be two words: "info graph" */
    const char *arguments; /**< "ALGORITHM GRAPH" */
    uint32_t argument_count;
    uint32_t optional_count;      /**< arguments that may follow those */
    const char *summary;          /**< one line, for the list of subcommands */
    const char *details;          /**< for its own help; may be NULL */
    void (*print_more)(FILE *to); /**< behind the options of its own help; may be NULL */
    bool is_internal;             /**< not listed */
    const dmg_option_id *options;
    /** Do it; returns the exit code. */
    int (*run)(dmg_settings *settings);
} dmg_command;

extern const dmg_command dmg_command_run;
extern const dmg_command dmg_command_pool_start;
extern const dmg_command dmg_command_pool_list;
extern const dmg_command dmg_command_pool_status;
extern const dmg_command dmg_command_pool_stop;
extern const dmg_command dmg_command_pool_clean;
extern const dmg_command dmg_command_load;
extern const dmg_command dmg_command_unload;
extern const dmg_command dmg_command_list;
extern const dmg_command dmg_command_convert;
extern const dmg_command dmg_command_generate_kron;
extern const dmg_command dmg_command_info_graph;
extern const dmg_command dmg_command_info_transports;
extern const dmg_command dmg_command_info_links;
extern const dmg_command dmg_command_perf;
extern const dmg_command dmg_command_compare;
extern const dmg_command dmg_command_predict;
extern const dmg_command dmg_command_memory_node;
extern const dmg_command dmg_command_pool_keeper;
extern const dmg_command dmg_command_compute_node;

#endif
