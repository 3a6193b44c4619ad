#include "core/base/memory_room.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_BYTES 512

/* ---- numbers in files of the kernel ---- */

/* The sum of the values that stand behind any of the keys, at the beginning of a line; false when there is none. */
static bool sum_of(const char *path, const char *const *keys, uint64_t unit, uint64_t *sum)
{
    FILE *file = fopen(path, "re");
    bool is_found = false;
    char line[LINE_BYTES];
    *sum = 0;
    while (file && fgets(line, sizeof line, file)) {
        for (const char *const *key = keys; *key; key++) {
            size_t length = strlen(*key);
            uint64_t value;
            if (strncmp(line, *key, length) == 0 && (line[length] == ' ' || line[length] == ':') &&
                sscanf(line + length + 1, "%" SCNu64, &value) == 1) {
                *sum += value * unit;
                is_found = true;
            }
        }
    }
    if (file) {
        fclose(file);
    }
    return is_found;
}

/* False also for "max". */
static bool read_number(const char *path, uint64_t *value)
{
    FILE *file = fopen(path, "re");
    bool is_found = file && fscanf(file, "%" SCNu64, value) == 1;
    if (file) {
        fclose(file);
    }
    return is_found;
}

/* ---- the machine ---- */

static void note_available(dmg_memory_room *room, uint64_t bytes, const char *limiter)
{
    if (bytes < room->available_bytes) {
        room->available_bytes = bytes;
        snprintf(room->limiter, sizeof room->limiter, "%.191s", limiter);
    }
}

static void note_total(dmg_memory_room *room, uint64_t bytes, const char *limiter)
{
    if (bytes < room->total_bytes) {
        room->total_bytes = bytes;
        snprintf(room->total_limiter, sizeof room->total_limiter, "%.191s", limiter);
    }
}

static void look_at_machine(const char *root, dmg_memory_room *room)
{
    static const char *const keys[] = {"MemAvailable", "SwapFree", NULL};
    static const char *const total_keys[] = {"MemTotal", "SwapTotal", NULL};
    char path[PATH_MAX];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    if (sum_of(path, keys, 1024, &bytes)) {
        note_available(room, bytes, "this machine");
    }
    if (sum_of(path, total_keys, 1024, &bytes)) {
        note_total(room, bytes, "this machine");
    }
}

void dmg_memory_room_read_node(const char *root, int node, dmg_memory_room *room)
{
    static const char *const names[] = {"MemFree", "Active(file)", "Inactive(file)", "SReclaimable"};
    enum { NAMES = sizeof names / sizeof names[0] };
    char texts[NAMES][48];
    const char *keys[NAMES + 1] = {NULL};
    for (int name = 0; name < NAMES; name++) {
        snprintf(texts[name], sizeof texts[name], "Node %d %s", node, names[name]);
        keys[name] = texts[name];
    }
    char path[PATH_MAX];
    char name[32], total[48];
    snprintf(name, sizeof name, "NUMA node %d", node);
    snprintf(total, sizeof total, "Node %d MemTotal", node);
    const char *const total_keys[] = {total, NULL};
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/meminfo", root, node);
    *room = (dmg_memory_room){.available_bytes = UINT64_MAX, .total_bytes = UINT64_MAX};
    snprintf(room->limiter, sizeof room->limiter, "%s", name);
    uint64_t bytes;
    if (sum_of(path, keys, 1024, &bytes)) {
        note_available(room, bytes, name);
    }
    if (sum_of(path, total_keys, 1024, &bytes)) {
        note_total(room, bytes, name);
    }
}

/* ---- control groups ---- */

/* The files of a version, and what of a group's usage the kernel takes back before it kills: pages of files. */
typedef struct group_version {
    const char *mount;
    const char *limit;
    const char *usage;
    const char *const *reclaimable;
    const char *events; /* where its kills are counted */
} group_version;

static const char *const reclaimable_1[] = {"total_inactive_file", "total_active_file", NULL};
static const char *const reclaimable_2[] = {"inactive_file", "active_file", "slab_reclaimable", NULL};
static const group_version version_1 = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                        reclaimable_1, "memory.oom_control"};
static const group_version version_2 = {"sys/fs/cgroup", "memory.max", "memory.current", reclaimable_2,
                                        "memory.events"};

static void look_at_group(const char *root, const group_version *version, const char *group, dmg_memory_room *room)
{
    char path[PATH_MAX];
    uint64_t limit, usage, reclaimable;
    snprintf(path, sizeof path, "%s/%s%s/%s", root, version->mount, group, version->limit);
    bool has_limit = read_number(path, &limit);
    snprintf(path, sizeof path, "%s/%s%s/%s", root, version->mount, group, version->usage);
    if (!has_limit || !read_number(path, &usage)) {
        return;
    }
    snprintf(path, sizeof path, "%s/%s%s/memory.stat", root, version->mount, group);
    if (!sum_of(path, version->reclaimable, 1, &reclaimable)) {
        reclaimable = 0;
    }
    uint64_t kept = usage > reclaimable ? usage - reclaimable : 0;
    uint64_t left = limit > kept ? limit - kept : 0;
    snprintf(path, sizeof path, "the control group %s", *group ? group : "/");
    note_available(room, left, path);
    note_total(room, limit, path);
}

/* The group and all groups around it: the limit of each holds. Folders that a container does not show say nothing. */
static void look_at_groups(const char *root, const group_version *version, char *group, dmg_memory_room *room)
{
    for (;;) {
        size_t length = strlen(group);
        while (length > 0 && group[length - 1] == '/') {
            group[--length] = '\0';
        }
        look_at_group(root, version, group, room);
        char *slash = strrchr(group, '/');
        if (!slash) {
            return;
        }
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup is "NUMBER:CONTROLLERS:GROUP"; version 2 has no controllers. NULL: it is not about
 * memory.
 */
static const group_version *memory_group(char *line, char **memory_group)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) {
        return NULL;
    }
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    controllers++;
    bool is_memory = false;
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',') {
        is_memory = is_memory || (strcspn(at, ",") == 6 && strncmp(at, "memory", 6) == 0);
    }
    *memory_group = group;
    return is_memory ? &version_1 : !*controllers ? &version_2 : NULL;
}

void dmg_memory_room_read(const char *root, dmg_memory_room *room)
{
    char path[PATH_MAX];
    char line[PATH_MAX];
    char *group;
    *room = (dmg_memory_room){.available_bytes = UINT64_MAX,
                              .limiter = "this machine",
                              .total_bytes = UINT64_MAX,
                              .total_limiter = "this machine"};
    look_at_machine(root, room);
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const group_version *version = memory_group(line, &group);
        if (version) {
            look_at_groups(root, version, group, room);
        }
    }
    if (file) {
        fclose(file);
    }
}

/* ---- kills for lack of memory ---- */

void dmg_memory_kills_read(const char *root, dmg_memory_kills *kills)
{
    static const char *const keys[] = {"oom_kill", NULL};
    char path[PATH_MAX];
    char line[PATH_MAX];
    char *group;
    *kills = (dmg_memory_kills){0};
    snprintf(path, sizeof path, "%s/proc/vmstat", root);
    (void)sum_of(path, keys, 1, &kills->machine);
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        const group_version *version = memory_group(line, &group);
        char events[PATH_MAX];
        uint64_t count;
        if (version) {
            snprintf(events, sizeof events, "%s/%s%s/%s", root, version->mount, group, version->events);
            kills->group += sum_of(events, keys, 1, &count) ? count : 0;
        }
    }
    if (file) {
        fclose(file);
    }
}

const char *dmg_memory_kills_between(const dmg_memory_kills *before, const dmg_memory_kills *now)
{
    if (now->group > before->group) {
        return "the control group's limit of memory was reached, and the kernel killed a process for it";
    }
    return now->machine > before->machine ? "the machine ran out of memory, and the kernel killed a process for it"
                                          : NULL;
}

const char *dmg_memory_kills_since(const dmg_memory_kills *before)
{
    dmg_memory_kills now;
    dmg_memory_kills_read("", &now);
    return dmg_memory_kills_between(before, &now);
}

/* ---- address space ---- */

uint64_t dmg_address_space_left(uint64_t *limit_bytes)
{
    struct rlimit limit;
    uint64_t pages = 0;
    *limit_bytes = UINT64_MAX;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !read_number("/proc/self/statm", &pages)) {
        return UINT64_MAX;
    }
    *limit_bytes = limit.rlim_cur;
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}
