#include "cli/pool/search.h"

#include "cli/launcher/node_control.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** How long the keeper may take to note an end. */
#define NOTE_NS  UINT64_C(1000000000)
#define PAUSE_NS 2000000

/* ---- one process ---- */

static bool is_memory_node(int process)
{
    static const char arguments[] = "dmgraph\0memory-node\0--control-fd=3";
    char text[sizeof arguments + 1];
    struct stat facts;
    int file = openat(process, "cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file >= 0 ? read(file, text, sizeof text) : -1;
    if (file >= 0) {
        close(file);
    }
    return bytes == (ssize_t)sizeof arguments && memcmp(text, arguments, sizeof arguments) == 0 &&
           fstat(process, &facts) == 0 && facts.st_uid == geteuid();
}

/** The record that this process has open; -1 when it has none. */
static int open_record(int process)
{
    static const char kind[] = "/memfd:dmgraph-pool:";
    char path[32];
    char target[sizeof kind];
    snprintf(path, sizeof path, "fd/%d", DMG_CHILD_FILE);
    ssize_t bytes = readlinkat(process, path, target, sizeof target);
    if (bytes != (ssize_t)sizeof target || memcmp(target, kind, sizeof kind - 1) != 0) {
        return -1;
    }
    return openat(process, path, O_RDONLY | O_CLOEXEC);
}

/** The descriptor stays with this very process: what is read through it later is never another's. */
static int open_process(int pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/** The pool of which this process is a node. */
static bool read_pool(int pid, dmg_pool_record *record)
{
    int process = open_process(pid);
    int file = process >= 0 && is_memory_node(process) ? open_record(process) : -1;
    bool is_node = false;
    if (file >= 0 && dmg_pool_record_read(file, record) == DMG_OK) {
        for (uint32_t node = 0; node < record->pool.node_count; node++) {
            const dmg_process *named = &record->pool.nodes[node].process;
            is_node = is_node || (named->pid == pid && dmg_process_is_alive(named));
        }
    }
    if (file >= 0) {
        close(file);
    }
    if (process >= 0) {
        close(process);
    }
    return is_node;
}

/* ---- all of them ---- */

static bool has_files(const dmg_pool_record *record)
{
    int folder;
    dmg_pool_file file;
    if (dmg_pool_folder_open_path(record->folder, &folder) != DMG_OK) {
        return false;
    }
    bool is_there = dmg_pool_file_read(folder, record->pool.name, &file) == DMG_OK &&
                    memcmp(file.token, record->pool.token, sizeof file.token) == 0;
    close(folder);
    return is_there;
}

/** Whether a pool that is not in this program's folder is its business. */
static bool is_within_reach(const dmg_pool_record *record, bool is_there)
{
    char usual[2][64];
    char here[PATH_MAX];
    snprintf(usual[0], sizeof usual[0], "/run/user/%u/dmgraph", (unsigned int)geteuid());
    snprintf(usual[1], sizeof usual[1], "/tmp/dmgraph-%u", (unsigned int)geteuid());
    dmg_pool_folder_path(here, sizeof here);
    if (strcmp(record->folder, here) == 0) {
        return !is_there;
    }
    return strcmp(here, usual[0]) == 0 || strcmp(here, usual[1]) == 0;
}

static bool is_among(const dmg_pool_found *pools, uint32_t count, const dmg_pool_record *record)
{
    bool is_known = false;
    for (uint32_t i = 0; i < count; i++) {
        is_known = is_known || memcmp(pools[i].record.pool.token, record->pool.token, sizeof record->pool.token) == 0;
    }
    return is_known;
}

static dmg_status add(dmg_pool_found **pools, uint32_t *count, const dmg_pool_record *record)
{
    bool is_there = has_files(record);
    if (is_among(*pools, *count, record) || !is_within_reach(record, is_there)) {
        return DMG_OK;
    }
    dmg_pool_found *more = realloc(*pools, (*count + (size_t)1) * sizeof **pools);
    if (!more) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a list of pools");
    }
    more[*count] = (dmg_pool_found){.record = *record, .has_files = is_there};
    *pools = more;
    (*count)++;
    return DMG_OK;
}

dmg_status dmg_pool_search(dmg_pool_found **pools, uint32_t *count)
{
    *pools = NULL;
    *count = 0;
    DIR *processes = opendir("/proc");
    if (!processes) {
        return dmg_error_errno(DMG_ERR_IO, errno, "looking for pools among the processes in /proc");
    }
    dmg_status status = DMG_OK;
    for (struct dirent *entry = readdir(processes); entry && status == DMG_OK; entry = readdir(processes)) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        dmg_pool_record record;
        if (pid > 1 && pid <= INT_MAX && !*end && read_pool((int)pid, &record)) {
            status = add(pools, count, &record);
        }
    }
    closedir(processes);
    if (status != DMG_OK) {
        free(*pools);
        *pools = NULL;
        *count = 0;
    }
    return status;
}

/* ---- one pool ---- */

/** With this thread's error, when there is none, as it was. */
static dmg_status find_by_processes(const char *name, dmg_pool_found *pool)
{
    dmg_kept_error kept = {0};
    dmg_pool_found *pools;
    uint32_t count;
    uint32_t matches = 0;
    dmg_error_keep(&kept, DMG_ERR_NOT_FOUND);
    dmg_status status = dmg_pool_search(&pools, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(pools[i].record.pool.name, name) == 0) {
            *pool = pools[i];
            matches++;
        }
    }
    free(pools);
    if (status == DMG_OK && matches > 1) {
        status = dmg_error(DMG_ERR_ARGUMENT,
                           "there are %" PRIu32 " pools '%s' whose files are not here: 'dmgraph pool list' names their "
                           "folders and processes",
                           matches, name);
    }
    return status == DMG_OK && matches == 0 ? dmg_error_restore(&kept) : status;
}

dmg_status dmg_pool_find(const char *name, dmg_pool_found *pool)
{
    dmg_pool_folder_path(pool->record.folder, sizeof pool->record.folder);
    pool->has_files = true;
    dmg_status status = dmg_pool_file_find(name, &pool->record.pool);
    return status == DMG_ERR_NOT_FOUND ? find_by_processes(name, pool) : status;
}

dmg_status dmg_pool_find_file(const char *name, dmg_pool_file *file)
{
    dmg_pool_found *pool = malloc(sizeof *pool);
    dmg_status status = pool ? dmg_pool_find(name, pool) : dmg_error(DMG_ERR_MEMORY, "no memory to find a pool");
    if (status == DMG_OK) {
        *file = pool->record.pool;
    }
    free(pool);
    return status;
}

/* ---- the end of a node ---- */

static bool read_end_in_folder(const dmg_pool_file *pool, const dmg_process *process, dmg_pool_end *end)
{
    int folder = -1;
    int ends = -1;
    bool is_found = dmg_pool_folder_open(false, &folder) == DMG_OK &&
                    dmg_pool_ends_open(folder, pool->name, false, &ends) == DMG_OK &&
                    dmg_pool_end_read(ends, process, end);
    if (ends >= 0) {
        close(ends);
    }
    if (folder >= 0) {
        close(folder);
    }
    return is_found;
}

static bool read_end_of_others(const dmg_pool_file *pool, const dmg_process *process, dmg_pool_end *end)
{
    bool is_found = false;
    for (uint32_t node = 0; node < pool->node_count && !is_found; node++) {
        int other = open_process(pool->nodes[node].process.pid);
        int record = other >= 0 && is_memory_node(other) && dmg_process_is_alive(&pool->nodes[node].process)
                         ? open_record(other)
                         : -1;
        is_found = record >= 0 && dmg_pool_end_read(record, process, end);
        if (record >= 0) {
            close(record);
        }
        if (other >= 0) {
            close(other);
        }
    }
    return is_found;
}

bool dmg_pool_end_find(const dmg_pool_file *pool, uint32_t node, dmg_pool_end *end)
{
    const dmg_process *process = &pool->nodes[node].process;
    if (dmg_process_is_alive(process)) {
        return false;
    }
    /* The keeper puts the end down before the process is forgotten. */
    uint64_t deadline_ns = dmg_now_ns() + NOTE_NS;
    while (dmg_process_awaits_parent(process) && dmg_now_ns() < deadline_ns) {
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return read_end_in_folder(pool, process, end) || read_end_of_others(pool, process, end);
}
