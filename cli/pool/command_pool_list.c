/* dmgraph pool list: all pools of this user, also those whose files are not in the folder of pools. */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/launcher/work_step.h"
#include "cli/options/command.h"
#include "cli/pool/search.h"
#include "core/base/error.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REMARK_BYTES (PATH_MAX + 256)

typedef struct pool_list {
    bool is_json;
    json_t *pools;
    uint64_t count;
} pool_list;

static void remark_on(const dmg_pool_file *pool, uint32_t alive, const char *folder, bool has_files, char *remark)
{
    remark[0] = '\0';
    if (alive == 0) {
        snprintf(remark, REMARK_BYTES, "dead: 'dmgraph pool clean' removes it");
    } else if (folder && !has_files) {
        snprintf(remark, REMARK_BYTES, "its files went away with %s: 'dmgraph pool stop %s' ends it", folder,
                 pool->name);
    } else if (folder) {
        snprintf(remark, REMARK_BYTES, "its files are in %s", folder);
    } else if (alive < pool->node_count) {
        snprintf(remark, REMARK_BYTES, "'dmgraph pool status %s' says what died", pool->name);
    }
}

/** `folder` is NULL for the one of this program. */
static void show(pool_list *list, const dmg_pool_file *pool, const char *folder, bool has_files)
{
    char remark[REMARK_BYTES];
    uint32_t alive = dmg_pool_alive_count(pool);
    remark_on(pool, alive, folder, has_files, remark);
    if (list->is_json) {
        char here[PATH_MAX];
        dmg_pool_folder_path(here, sizeof here);
        json_t *pids = json_array();
        for (uint32_t node = 0; node < pool->node_count; node++) {
            json_array_append_new(pids, json_integer(pool->nodes[node].process.pid));
        }
        json_array_append_new(list->pools,
                              json_pack("{s:s, s:o, s:I, s:o, s:I, s:I, s:o, s:b}", "pool", pool->name, "transport",
                                        dmg_json_text(pool->transport), "created", (json_int_t)pool->created_s, "pids",
                                        pids, "memory_nodes", (json_int_t)pool->node_count, "alive", (json_int_t)alive,
                                        "folder", dmg_json_text(folder ? folder : here), "has_files", (int)has_files));
        return;
    }
    if (list->count++ == 0) {
        printf("%-32s %5s %5s  %-19s  %-9s  %s\n", "pool", "nodes", "alive", "started", "pid", "transport");
    }
    printf("%-32s %5" PRIu32 " %5" PRIu32 "  %-19s  %-9d  %s\n", pool->name, pool->node_count, alive,
           dmg_text_time(pool->created_s).text, pool->nodes[0].process.pid, pool->transport);
    if (*remark) {
        printf("    %s\n", remark);
    }
}

static void show_unreadable(pool_list *list, const char *name)
{
    if (list->is_json) {
        json_array_append_new(list->pools,
                              json_pack("{s:s, s:o}", "pool", name, "error", dmg_json_text(dmg_error_message())));
        return;
    }
    list->count++;
    printf("%-32s cannot be read: %s\n", name, dmg_error_message());
}

static dmg_status list_folder(pool_list *list)
{
    int folder = -1;
    dmg_status status = dmg_pool_folder_open(false, &folder);
    if (status != DMG_OK) {
        return status == DMG_ERR_NOT_FOUND ? DMG_OK : status; /* there never was a pool */
    }
    DIR *files = fdopendir(folder);
    if (!files) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "reading the folder of pools");
        close(folder);
        return status;
    }
    for (struct dirent *file = readdir(files); file; file = readdir(files)) {
        char name[DMG_POOL_NAME_BYTES];
        dmg_pool_file pool;
        if (!dmg_pool_file_is(file->d_name, name)) {
            continue;
        }
        if (dmg_pool_file_read(folder, name, &pool) == DMG_OK) {
            show(list, &pool, NULL, true);
        } else {
            show_unreadable(list, name);
        }
    }
    closedir(files);
    return DMG_OK;
}

static dmg_status list_pools(void *context)
{
    pool_list *list = context;
    dmg_pool_found *found = NULL;
    uint32_t count = 0;
    dmg_status status = list_folder(list);
    if (status == DMG_OK) {
        status = dmg_pool_search(&found, &count);
    }
    for (uint32_t i = 0; i < count; i++) {
        show(list, &found[i].record.pool, found[i].record.folder, found[i].has_files);
    }
    free(found);
    if (status == DMG_OK && list->is_json) {
        dmg_json_print(json_incref(list->pools));
    } else if (status == DMG_OK && list->count == 0) {
        printf("there is no pool\n");
    }
    return status;
}

static int run(dmg_settings *settings)
{
    pool_list list = {.is_json = dmg_flag(settings, DMG_OPTION_JSON), .pools = json_array()};
    int code = dmg_work_step_run(list_pools, &list);
    json_decref(list.pools);
    return code;
}

static const dmg_option_id options[] = {DMG_OPTION_JSON, DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP, DMG_OPTION_HELP_ALL,
                                        DMG_OPTION_COUNT};

const dmg_command dmg_command_pool_list = {
    .name = "pool list",
    .arguments = "",
    .summary = "name all pools of this user, also those whose files have gone with their folder",
    .options = options,
    .run = run};
