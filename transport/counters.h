/**
 * @file counters.h
 * What went over the interconnect: operations and bytes by kind, sizes, rings, time waited. Always on.
 *
 * Each channel has its own counters, written by its one thread; they are added up for reports.
 */
#ifndef DMG_TRANSPORT_COUNTERS_H
#define DMG_TRANSPORT_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dmg_operation_kind {
    DMG_OPERATION_READ,
    DMG_OPERATION_WRITE,
    DMG_OPERATION_CAS,
    DMG_OPERATION_FAA,
    DMG_OPERATION_MESSAGE,
    DMG_OPERATION_KINDS
} dmg_operation_kind;

/** What the layers above use an operation for, as they say (dmg_channel_set_purpose). */
typedef enum dmg_purpose {
    DMG_PURPOSE_OTHER,   /**< loading, barriers, the catalog, results */
    DMG_PURPOSE_STREAMS, /**< activation bits and attributes, read and written in sequence */
    DMG_PURPOSE_INDEX,   /**< entries of the vertex index */
    DMG_PURPOSE_LISTS,   /**< out-of-place edge lists */
    DMG_PURPOSE_UPDATES, /**< updates that leave a partition */
    DMG_PURPOSES
} dmg_purpose;

/** Bucket i of a size histogram counts operations of 2^(i-1) < bytes <= 2^i; the last one has all larger ones. */
#define DMG_SIZE_BUCKETS 32

/** serial_parts of a round that nothing overlaps. */
#define DMG_ROUND_PARTS 1024

/** The operations of one purpose, of all kinds together: counts of 64 bits only. */
typedef struct dmg_purpose_counters {
    uint64_t operations;
    uint64_t bytes;
    uint64_t mapped_spans;
    uint64_t mapped_bytes;
    uint64_t sizes[DMG_SIZE_BUCKETS]; /**< of operations and of mapped spans */
} dmg_purpose_counters;

/** Counts of 64 bits, and nothing else: they are added and subtracted as an array of them. */
typedef struct dmg_counters {
    uint64_t operations[DMG_OPERATION_KINDS];
    uint64_t bytes[DMG_OPERATION_KINDS];
    uint64_t sizes[DMG_SIZE_BUCKETS]; /**< of reads and writes */
    /**
     * Dependent rounds, by the kind of their first operation: operations of one completion that were posted together,
     * when nothing of it was pending. However slow a link is, a round has its latency once.
     */
    uint64_t rounds[DMG_OPERATION_KINDS];
    /** The rounds, in parts of DMG_ROUND_PARTS, when those that were in flight together count once. */
    uint64_t serial_parts[DMG_OPERATION_KINDS];
    uint64_t rings;        /**< doorbells: times that posted operations were handed to the link */
    uint64_t mapped_spans; /**< spans reached by loads and stores, without an operation (LOAD_STORE) */
    uint64_t mapped_bytes;
    uint64_t mapped_sizes[DMG_SIZE_BUCKETS]; /**< of mapped spans */
    uint64_t
        lost_swaps; /**< compare-and-swaps, posted or by this CPU, that another update forestalled, and were repeated */
    uint64_t mapped_lines;   /**< cache lines of mapped spans */
    uint64_t mapped_atomics; /**< atomics by this CPU on words of the pool */
    uint64_t mapped_waits; /**< times that spans were needed before going on: spans that are read together count once */
    uint64_t lines_written_back; /**< cache lines of the pool, where software keeps hosts coherent */
    uint64_t lines_invalidated;
    uint64_t message_lines;   /**< lines written back or invalidated for messages: looking for them invalidates too, so
                                 this is not exact */
    uint64_t waits;           /**< times that dmg_wait found something pending: depends on how fast the link is */
    uint64_t wait_ns;         /**< time in dmg_wait, and waiting for an emulated link in mapped accesses */
    uint64_t message_wait_ns; /**< time in dmg_wait for messages: what a memory node took to answer, and its way */
    uint64_t post_ns; /**< from a round's first post until the thread went on to wait or to something else; sampled */
    uint64_t modelled_ns; /**< time of an emulated link that was accounted for, not spent (link.h) */
    dmg_purpose_counters purposes[DMG_PURPOSES];
} dmg_counters;

static inline uint32_t dmg_size_bucket(uint64_t bytes)
{
    uint32_t bucket = bytes <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(bytes - 1);
    return bucket < DMG_SIZE_BUCKETS ? bucket : DMG_SIZE_BUCKETS - 1;
}

static inline void dmg_counters_count(dmg_counters *counters, dmg_operation_kind kind, uint64_t bytes)
{
    counters->operations[kind]++;
    counters->bytes[kind] += bytes;
    if (kind == DMG_OPERATION_READ || kind == DMG_OPERATION_WRITE) {
        counters->sizes[dmg_size_bucket(bytes)]++;
    }
}

/** A mapped span that is used, by loads or stores. */
static inline void dmg_counters_count_mapped(dmg_counters *counters, uint64_t bytes)
{
    counters->mapped_spans++;
    counters->mapped_bytes += bytes;
    counters->mapped_sizes[dmg_size_bucket(bytes)]++;
}

/** What went to one memory node. Mapped spans count as reads. */
typedef struct dmg_node_traffic {
    uint64_t operations;
    uint64_t read_bytes;
    uint64_t write_bytes;
} dmg_node_traffic;

/** An operation's, or a span's, share in the counters of its purpose. */
static inline void dmg_counters_count_purpose(dmg_counters *counters, dmg_purpose purpose, bool is_mapped,
                                              uint64_t bytes)
{
    dmg_purpose_counters *counter = &counters->purposes[purpose];
    counter->operations += !is_mapped;
    counter->bytes += is_mapped ? 0 : bytes;
    counter->mapped_spans += is_mapped;
    counter->mapped_bytes += is_mapped ? bytes : 0;
    counter->sizes[dmg_size_bucket(bytes)]++;
}

/** sum += more. */
void dmg_counters_add(dmg_counters *sum, const dmg_counters *more);
/** sum -= part, each count at least 0. */
void dmg_counters_subtract(dmg_counters *sum, const dmg_counters *part);
/** "read", "write", "cas", "faa", "message". */
const char *dmg_operation_kind_name(dmg_operation_kind kind);
/** "other", "streams", "index", "lists", "updates". */
const char *dmg_purpose_name(dmg_purpose purpose);

#endif
