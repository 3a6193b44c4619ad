/**
 * @file index_entry.h
 * The vertex index: one fixed-size entry a vertex, with its edges in place, or with where they are (DMG, section 4.2.1
 * and Fig. 10).
 *
 *     in place       degree:4  edge edge edge ...
 *     out of place   degree:4  address:8  length length ...      one length a partition, 1 to 4 bytes each
 *
 * The scheme is chosen by what fits, so the degree tells which it is. A length's first two bits (the low ones of its
 * first byte) are its size in bytes less one, the rest its value. When the lengths do not fit, the first is the
 * sentinel of four 0xff bytes, and they stand as 4-byte numbers in front of the list, padded to 8 bytes: the list's
 * *header*.
 *
 * An edge is a destination, or a destination and a weight, four bytes each. Lists ascend by destination, so that the
 * edges of one partition (an *edge segment*) are contiguous.
 */
#ifndef DMG_CORE_STORE_INDEX_ENTRY_H
#define DMG_CORE_STORE_INDEX_ENTRY_H

#include "core/base/limits.h"
#include "core/base/read_once.h"
#include "transport/address.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DMG_INDEX_ENTRY_BYTES_DEFAULT 32
#define DMG_INDEX_ENTRY_BYTES_MAX     128
/** Where the lengths begin in an out-of-place entry. */
#define DMG_INDEX_LENGTHS_AT 12
/** The largest length that an entry keeps: 30 bits of ones in 4 bytes would read as the sentinel. */
#define DMG_INDEX_LENGTH_MAX ((UINT32_C(1) << 30) - 2)

/** What all entries of one index have in common. */
typedef struct dmg_index_shape {
    uint32_t entry_bytes;         /**< 16, 32, 64 or 128 */
    uint32_t edge_bytes;          /**< 4, or 8 with weights */
    uint32_t partition_count;     /**< 1 to DMG_PARTITIONS_MAX */
    uint32_t in_place_degree_max; /**< (entry_bytes - 4) / edge_bytes, or 0 when no edges are in place */
} dmg_index_shape;

static inline dmg_index_shape dmg_index_shape_make(uint32_t entry_bytes, bool is_weighted, uint32_t partition_count)
{
    uint32_t edge_bytes = is_weighted ? 8 : 4;
    return (dmg_index_shape){entry_bytes, edge_bytes, partition_count, (entry_bytes - 4) / edge_bytes};
}

static inline uint32_t dmg_index_entry_degree(const uint8_t *entry)
{
    return dmg_read_once_32(entry);
}

static inline bool dmg_index_entry_is_in_place(const dmg_index_shape *shape, const uint8_t *entry)
{
    return dmg_index_entry_degree(entry) <= shape->in_place_degree_max;
}

/** The edges of an in-place entry; 4-byte aligned when the entry is. */
static inline const uint8_t *dmg_index_entry_edges(const uint8_t *entry)
{
    return entry + 4;
}

/** Where an out-of-place list begins (with its header, when it has one). */
static inline dmg_address dmg_index_entry_list(const uint8_t *entry)
{
    return dmg_read_once_64(entry + 4);
}

static inline bool dmg_index_entry_has_list_header(const uint8_t *entry)
{
    uint32_t first;
    memcpy(&first, entry + DMG_INDEX_LENGTHS_AT, sizeof first);
    return first == UINT32_MAX;
}

/** Bytes of the header of a list whose lengths do not fit into the entry. */
static inline uint64_t dmg_list_header_bytes(const dmg_index_shape *shape)
{
    return ((uint64_t)shape->partition_count * 4 + 7) & ~UINT64_C(7);
}

/** Where the edges of an out-of-place list begin. */
static inline dmg_address dmg_index_entry_first_edge(const dmg_index_shape *shape, const uint8_t *entry)
{
    return dmg_index_entry_list(entry) + (dmg_index_entry_has_list_header(entry) ? dmg_list_header_bytes(shape) : 0);
}

/** Bytes that a length takes in an entry, when it is at most DMG_INDEX_LENGTH_MAX. */
static inline uint32_t dmg_index_length_bytes(uint32_t length)
{
    return length < (UINT32_C(1) << 6) ? 1 : length < (UINT32_C(1) << 14) ? 2 : length < (UINT32_C(1) << 22) ? 3 : 4;
}

/**
 * Fill an in-place entry. `edges` are shape->edge_bytes each, `degree` is at most in_place_degree_max. All bytes of the
 * entry are set.
 */
void dmg_index_entry_set_in_place(const dmg_index_shape *shape, uint32_t degree, const void *edges, uint8_t *entry);

/**
 * Fill an out-of-place entry from the lengths of all segments, which add up to the degree. Returns true when the
 * lengths fit; when it returns false the caller must put them in front of the list.
 */
bool dmg_index_entry_set_out_of_place(const dmg_index_shape *shape, uint32_t degree, dmg_address list,
                                      const uint32_t *lengths, uint8_t *entry);

/** True when these lengths fit into an entry (so nothing stands in front of the list). */
bool dmg_index_lengths_fit(const dmg_index_shape *shape, const uint32_t *lengths);

/** dmg_index_entry_segments without its short cuts. */
bool dmg_index_entry_segments_walk(const dmg_index_shape *shape, const uint8_t *entry, const uint32_t *header,
                                   uint32_t first, uint32_t last, uint64_t *edges_before, uint64_t *edges);

/** The low `count` bytes of a word, 0 <= count <= 8. */
static inline uint64_t dmg_low_bytes(uint64_t word, uint32_t count)
{
    return count == 0 ? 0 : word & (UINT64_MAX >> (64 - 8 * count));
}

/** Sum of the eight bytes of a word: pairs of them, then the pairs by a multiplication. */
static inline uint64_t dmg_sum_of_bytes(uint64_t word)
{
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
    return (((word & even) + ((word >> 8) & even)) * UINT64_C(0x0001000100010001)) >> 48;
}

/**
 * Segment lengths of an out-of-place entry: the edges before partition `first`, and the edges of partitions [first,
 * last), with first <= last <= partition_count. `header` is the list's, or NULL; it is needed
 * only when the lengths are there. False when the lengths contradict the degree, or are needed and not given; a true
 * result never reaches beyond the degree that the entry had then: where it lies in the pool, it may change.
 * Thread-safe; no remote access.
 *
 * Most lengths take one byte (DMG, Fig. 23). Up to eight of those are added up without a loop: 6 ns instead of 12 (2
 * partitions) to 21 (8 partitions), on a 2-core VM.
 */
static inline bool dmg_index_entry_segments(const dmg_index_shape *shape, const uint8_t *entry, const uint32_t *header,
                                            uint32_t first, uint32_t last, uint64_t *edges_before, uint64_t *edges)
{
    if (shape->partition_count == 1) {
        uint64_t degree = dmg_index_entry_degree(entry);
        *edges_before = first == 0 ? 0 : degree;
        *edges = first == 0 && last == 1 ? degree : 0;
        return true;
    }
    if (shape->partition_count <= 8 && shape->entry_bytes >= DMG_INDEX_LENGTHS_AT + 8) {
        uint64_t word = dmg_low_bytes(dmg_read_once_64(entry + DMG_INDEX_LENGTHS_AT), shape->partition_count);
        if ((word & UINT64_C(0x0303030303030303)) == 0) {
            uint64_t lengths = word >> 2;
            *edges_before = dmg_sum_of_bytes(dmg_low_bytes(lengths, first));
            *edges = dmg_sum_of_bytes(dmg_low_bytes(lengths, last)) - *edges_before;
            return dmg_sum_of_bytes(lengths) == dmg_index_entry_degree(entry);
        }
    }
    return dmg_index_entry_segments_walk(shape, entry, header, first, last, edges_before, edges);
}

#endif
