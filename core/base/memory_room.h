/**
 * @file memory_room.h
 * How much memory this process may still take: of the machine, of its control groups, of its address space.
 *
 * Memory is promised by the kernel long before it is there, and who touches too much is killed. So what is going to be
 * touched is asked for first.
 */
#ifndef DMG_CORE_BASE_MEMORY_ROOM_H
#define DMG_CORE_BASE_MEMORY_ROOM_H

#include <stdint.h>

typedef struct dmg_memory_room {
    uint64_t available_bytes; /**< UINT64_MAX: nobody says */
    char limiter[192];        /**< whose number that is, for people: "this machine", "the control group /jobs/7" */
    uint64_t total_bytes;     /**< what there is in all, used or not; UINT64_MAX: nobody says */
    char total_limiter[192];
} dmg_memory_room;

/**
 * What can be touched before the kernel has to kill somebody: available memory and free swap space of the machine, or
 * what the tightest control group (version 1 or 2) around this process leaves, whichever is less. Others may take it at
 * the same time. The total is the machine's memory and swap space, or the lowest limit of these groups: more can never
 * be there at once. `root` is "" for this machine, or a folder that holds proc and sys, for tests. Thread-safe.
 */
void dmg_memory_room_read(const char *root, dmg_memory_room *room);

/** The same for memory that has to lie on one NUMA node: what of the node is free, or holds pages of files; and what it
 * has. */
void dmg_memory_room_read_node(const char *root, int node, dmg_memory_room *room);

/** Processes that the kernel has killed for lack of memory so far: on this machine, and of this process's control
 * group. 0 where nobody counts. */
typedef struct dmg_memory_kills {
    uint64_t machine;
    uint64_t group;
} dmg_memory_kills;

/** `root` as above. Thread-safe. */
void dmg_memory_kills_read(const char *root, dmg_memory_kills *kills);
/** What was short between two such counts, as a clause for people; NULL: nobody was killed for that. */
const char *dmg_memory_kills_between(const dmg_memory_kills *before, const dmg_memory_kills *now);
/** What has been short since then, as a clause for people; NULL: nobody was killed for that. */
const char *dmg_memory_kills_since(const dmg_memory_kills *before);

/**
 * How many bytes this process may still map under its limit of address space (`ulimit -v`), which is put into
 * `*limit_bytes`; UINT64_MAX and UINT64_MAX without a limit. Thread-safe.
 */
uint64_t dmg_address_space_left(uint64_t *limit_bytes);

#endif
