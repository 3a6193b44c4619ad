/**
 * @file coherence.h
 * Software coherence: what a process does with shared memory that no hardware keeps coherent between hosts.
 *
 * With `coherence=none` each process stands for a host with a cache of its own. Memory that others read is published by
 * storing, writing back each line, and a fence; memory that others wrote is read by invalidating each line, a fence,
 * and loading. What a span is used for (dmg_shm_use) together with the step names a *site*: tests leave out one site at
 * a time and see that something fails.
 *
 * In tests, with a *line cache* (devices.h), the loads and stores of a process go through a private copy of the memory,
 * so that a forgotten write-back or invalidation shows on a machine whose hardware would hide it.
 *
 * A dmg_shm_view is a piece of mapped memory, shared by the threads of a process; a dmg_shm_agent belongs to one
 * thread at a time, since fences order the work of one thread.
 */
#ifndef DMG_TRANSPORT_CXL_SHM_COHERENCE_H
#define DMG_TRANSPORT_CXL_SHM_COHERENCE_H

#include "transport/backend.h"

#define DMG_SHM_CACHE_LINE_BYTES 64

/** What a span is used for. */
typedef enum dmg_shm_use {
    DMG_SHM_DATA_WRITE,    /**< whole lines that a compute node writes */
    DMG_SHM_DATA_READ,     /**< what a compute node copies out of the pool */
    DMG_SHM_MAPPED,        /**< what it loads from the mapped segment */
    DMG_SHM_PAYLOAD_WRITE, /**< of a message */
    DMG_SHM_PAYLOAD_READ,
    DMG_SHM_ENTRY_WRITE, /**< the line of a queue that says that there is a message */
    DMG_SHM_ENTRY_READ,
    DMG_SHM_ASLEEP_WRITE, /**< the line that says that its writer sleeps */
    DMG_SHM_ASLEEP_READ,
    DMG_SHM_NODE_WRITE, /**< what a memory node's program writes in its segment */
    DMG_SHM_NODE_READ,  /**< what it reads there */
    DMG_SHM_USES
} dmg_shm_use;

/** The two steps of a use: lines written back or invalidated, and the fence. */
typedef enum dmg_shm_step { DMG_SHM_LINES, DMG_SHM_FENCE, DMG_SHM_STEPS } dmg_shm_step;

/** Sites count on after those of the uses. */
enum {
    /** Lines that a write covers in part are written by the memory node alone, whose lines they are. */
    DMG_SHM_SITE_SHARED_LINES = DMG_SHM_USES * DMG_SHM_STEPS,
    /** Atomic operations are executed by the memory node alone. */
    DMG_SHM_SITE_ATOMICS,
    DMG_SHM_SITES,
    DMG_SHM_SITE_NONE = DMG_SHM_SITES
};

/** What a transport string says of coherence. */
typedef struct dmg_shm_coherence {
    bool is_software;
    bool has_line_cache;
    uint64_t seed;     /**< of the line cache */
    uint32_t left_out; /**< a site, or DMG_SHM_SITE_NONE */
} dmg_shm_coherence;

/** DMG_ERR_ARGUMENT for what makes no sense; DMG_ERR_UNSUPPORTED where the processor cannot write lines back. */
dmg_status dmg_shm_coherence_parse(const dmg_transport_parameters *parameters, dmg_shm_coherence *coherence);
/** What writes lines back and invalidates them on this processor, for people; NULL when nothing does. */
const char *dmg_shm_flush_instructions(void);

/** A test's (devices.h). */
typedef struct dmg_shm_line_cache dmg_shm_line_cache;

/** A piece of shared memory as this process sees it. */
typedef struct dmg_shm_view {
    char *memory; /**< the mapping */
    uint64_t bytes;
    dmg_shm_line_cache *cache; /**< NULL: that of the processor */
} dmg_shm_view;

/** Make a view of mapped memory, which stays the caller's. */
dmg_status dmg_shm_view_open(const dmg_shm_coherence *coherence, void *memory, uint64_t bytes, dmg_shm_view *view);
/** A zeroed one is allowed. */
void dmg_shm_view_close(dmg_shm_view *view);
/** Where this process loads and stores: the memory, or the line cache. */
char *dmg_shm_view_pointer(const dmg_shm_view *view);

/** A line that was asked to be written back or invalidated, before the fence. */
typedef struct dmg_shm_pending {
    dmg_shm_line_cache *cache;
    uint64_t line;
    bool is_invalidation;
} dmg_shm_pending;

/** What one thread does to shared memory. */
typedef struct dmg_shm_agent {
    dmg_shm_coherence coherence;
    dmg_counters *counters;
    uint64_t random;          /* the rest is for line caches */
    dmg_shm_pending *pending; /* since the last fence */
    uint32_t pending_count;
    uint32_t pending_capacity;
} dmg_shm_agent;

/** `number` tells the agents of a process apart. */
void dmg_shm_agent_open(const dmg_shm_coherence *coherence, dmg_counters *counters, uint64_t number,
                        dmg_shm_agent *agent);
void dmg_shm_agent_close(dmg_shm_agent *agent);
/** Before a view is closed: nothing of it is pending any more. */
void dmg_shm_agent_forget(dmg_shm_agent *agent, const dmg_shm_view *view);

/*
 * The steps one by one. All offsets are inside the view. Only with software coherence.
 */
void dmg_shm_store(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, const void *from, uint64_t bytes);
void dmg_shm_load(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, void *to, uint64_t bytes);
/** Ask for the span's lines to be written back, or invalidated; done when the fence is. */
void dmg_shm_write_back(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes,
                        dmg_shm_use use);
void dmg_shm_invalidate(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes,
                        dmg_shm_use use);
void dmg_shm_store_fence(dmg_shm_agent *agent, dmg_shm_use use);
void dmg_shm_load_fence(dmg_shm_agent *agent, dmg_shm_use use);
/** Before a mapped span is read: a line cache fetches what it does not have. */
void dmg_shm_fetch(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes);
/** After a mapped span was written, before it is written back: a line cache cannot see it. */
void dmg_shm_mark_written(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes);

/** Store, write back, fence. */
static inline void dmg_shm_write(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, const void *from,
                                 uint64_t bytes, dmg_shm_use use)
{
    dmg_shm_store(agent, view, offset, from, bytes);
    dmg_shm_write_back(agent, view, offset, bytes, use);
    dmg_shm_store_fence(agent, use);
}

/** Invalidate, fence, load. */
static inline void dmg_shm_read(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, void *to,
                                uint64_t bytes, dmg_shm_use use)
{
    dmg_shm_invalidate(agent, view, offset, bytes, use);
    dmg_shm_load_fence(agent, use);
    dmg_shm_load(agent, view, offset, to, bytes);
}

#endif
