/**
 * @file link.h
 * The link model: any backend slowed down to the latency, bandwidth and operation rate of a named link (design.md,
 * section 4).
 *
 * It stands between a client's channels and their backend, with the same interface, and does not exist when it is off.
 * A memory node has one link; all clients of all processes share it, through clocks in memory that the memory node
 * hands out. So the memory nodes must run on the same machine. What comes out of it is to be labelled "emulated link",
 * always: dmg_capabilities.chosen says so.
 *
 * What is modelled. An operation departs when the link has served what was posted before it, and ends a latency later.
 * Operations of one channel to one node end in their order. A message costs the latency on top of what the memory node
 * took to answer. A mapped span that is used is charged when its user says so. What is not: data moves at the post, so
 * that others may see a write before it has ended.
 *
 * A latency may have tails. Then one operation in a hundred takes what the profile says for the 99th percentile, and
 * one in a thousand what it says for the 99.9th; which ones is drawn from a fixed sequence, the same in every run.
 *
 * A waiting thread spins, since no timer is as fine as a link. Where that would take more cores than there are, the
 * model *accounts* instead: nothing waits, every channel has a clock of its own that runs ahead, and what it ran ahead
 * is reported as modelled time.
 */
#ifndef DMG_TRANSPORT_LINK_H
#define DMG_TRANSPORT_LINK_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The cells of a profile. Latencies in nanoseconds, bandwidths in GB/s (10^9 bytes), rates in Mops; 0: no such limit.
 */
typedef enum dmg_link_cell {
    DMG_LINK_READ_LATENCY,
    DMG_LINK_WRITE_LATENCY,
    DMG_LINK_ATOMIC_LATENCY,  /**< 0: the link has no atomics; each costs a software lock: a read and a write */
    DMG_LINK_MESSAGE_LATENCY, /**< a request and its answer, without the handler */
    DMG_LINK_READ_BANDWIDTH,
    DMG_LINK_WRITE_BANDWIDTH,
    DMG_LINK_CHANNEL_READ_BANDWIDTH, /**< of one connection: a thread's channel to one node */
    DMG_LINK_CHANNEL_WRITE_BANDWIDTH,
    DMG_LINK_READ_RATE,  /**< operations of a whole NIC, were they all reads */
    DMG_LINK_WRITE_RATE, /**< were they all writes, messages or atomics */
    DMG_LINK_CHANNEL_RATE,
    DMG_LINK_ATOMIC_RATE,
    DMG_LINK_CHANNEL_ATOMIC_RATE,
    DMG_LINK_READ_P99, /**< tails: what one read in a hundred takes at least; 0: as all of them */
    DMG_LINK_READ_P999,
    DMG_LINK_WRITE_P99,
    DMG_LINK_WRITE_P999,
    DMG_LINK_CELLS
} dmg_link_cell;

/** "read_latency_ns", "channel_rate_mops" ...: the key in a profile's file. */
const char *dmg_link_cell_name(dmg_link_cell cell);

typedef enum dmg_link_mode {
    DMG_LINK_AUTO,   /**< spin where there are cores for it */
    DMG_LINK_SPIN,   /**< wait out the link's time */
    DMG_LINK_ACCOUNT /**< wait for nothing, and report the modelled time */
} dmg_link_mode;

#define DMG_LINK_NAME_BYTES 64

typedef struct dmg_link_settings {
    char name[DMG_LINK_NAME_BYTES]; /**< for people */
    double cells[DMG_LINK_CELLS];
    uint32_t line_bytes; /**< what the link moves at least: 64 for loads and stores, 1 for a network */
    dmg_link_mode mode;
    uint32_t
        spinners; /**< threads of all processes that may wait at once; 0: not known, this process's cores suffice */
} dmg_link_settings;

/** DMG_ERR_ARGUMENT, naming the cell, when a number is negative, not finite, or beyond what the clocks can hold. */
dmg_status dmg_link_settings_check(const dmg_link_settings *settings);

/** "auto", "spin", "account". */
const char *dmg_link_mode_name(dmg_link_mode mode);

/** True where the link has no atomics across compute nodes, and each takes a software lock. */
bool dmg_link_locks_atomics(const dmg_link_settings *settings);

/** What latency an atomic operation has: that of the cell, or of a software lock. */
double dmg_link_atomic_latency_ns(const dmg_link_settings *settings);

/** What is asked of a link: operations, and the bytes of each direction. */
typedef struct dmg_link_amounts {
    double reads;
    double writes; /**< with messages */
    double atomics;
    double read_bytes, write_bytes;
} dmg_link_amounts;

/** The time that an operation rate takes, and bandwidth: each the longer of what goes side by side. */
typedef struct dmg_link_limits {
    double operations_ns;
    double bytes_ns;
} dmg_link_limits;

/**
 * How long one memory node's link is busy with what is asked of it: the longer of both is a bound that waiting cannot
 * beat, whatever the overlap. Where the link has no limit, no time.
 */
dmg_link_limits dmg_link_limits_of(const dmg_link_settings *settings, const dmg_link_amounts *asked);

/* ---- profiles ---- */

#define DMG_LINK_TEXT_BYTES 256

/** A named link, and where each number comes from. */
typedef struct dmg_link_profile {
    dmg_link_settings settings;
    char title[DMG_LINK_TEXT_BYTES];
    char coherence[DMG_LINK_TEXT_BYTES]; /**< who may use atomics across hosts */
    char provenance[DMG_LINK_CELLS][DMG_LINK_TEXT_BYTES];
    bool is_given[DMG_LINK_CELLS]; /**< a cell that is not has no limit; the latencies must be given, "none" for the
                                      atomic one counts */
    char path[4096];
} dmg_link_profile;

/**
 * Read a profile: lines "KEY = VALUE | PROVENANCE", comments behind '#'. Every cell needs its provenance.
 *
 * @param name_or_path  a path when it has a slash or ends in ".link"; else the name of a file NAME.link in the
 * directories below
 * @return DMG_OK; DMG_ERR_NOT_FOUND, listing the profiles that there are; DMG_ERR_FORMAT with the file's line;
 * DMG_ERR_IO
 */
dmg_status dmg_link_profile_load(const char *name_or_path, dmg_link_profile *profile);

/**
 * All profiles of the directories, sorted by name; the first of a name counts. Directories: those of the environment's
 * DMGRAPH_LINKS (colons between them), then ../share/dmgraph/links beside the running program. `*profiles` is freed by
 * the caller with free().
 */
dmg_status dmg_link_profiles_list(dmg_link_profile **profiles, size_t *count);

#endif
