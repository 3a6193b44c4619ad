/**
 * @file combine.h
 * How an update combines with the attribute that is there.
 *
 * An attribute has 4 or 8 bytes. Remote memory is updated by 8-byte words alone, since RDMA hardware offers no more: an
 * attribute of 4 bytes is changed through the aligned word that holds it.
 */
#ifndef DMG_CORE_POOL_COMBINE_H
#define DMG_CORE_POOL_COMBINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum dmg_combine {
    DMG_COMBINE_MIN_UINT32,
    DMG_COMBINE_MIN_UINT64,
    DMG_COMBINE_ADD_DOUBLE /**< the 8 bytes of a double */
} dmg_combine;

static inline uint32_t dmg_combine_bytes(dmg_combine combine)
{
    return combine == DMG_COMBINE_MIN_UINT32 ? 4 : 8;
}

static inline double dmg_bits_to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t dmg_double_to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/** The word after an update to the attribute in it; `half` picks the upper four bytes of a word with two attributes. */
static inline uint64_t dmg_combine_word(dmg_combine combine, uint64_t word, bool half, uint64_t update)
{
    switch (combine) {
    case DMG_COMBINE_MIN_UINT32: {
        uint32_t shift = half ? 32 : 0;
        uint32_t old = (uint32_t)(word >> shift);
        return (uint32_t)update < old ? (word & ~(UINT64_C(0xffffffff) << shift)) | (update << shift) : word;
    }
    case DMG_COMBINE_MIN_UINT64:
        return update < word ? update : word;
    case DMG_COMBINE_ADD_DOUBLE:
        return dmg_double_to_bits(dmg_bits_to_double(word) + dmg_bits_to_double(update));
    }
    return word;
}

/**
 * Update an attribute in a word that others update at the same time by CPU atomics. True when the attribute fell or
 * grew, which a repeated update does not do. `*swaps` counts the compare-and-swaps: with one that succeeds, one less
 * were lost.
 */
static inline bool dmg_combine_atomically(dmg_combine combine, _Atomic uint64_t *word, bool half, uint64_t update,
                                          uint64_t *swaps)
{
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    for (;;) {
        uint64_t desired = dmg_combine_word(combine, seen, half, update);
        if (desired == seen) {
            return false;
        }
        ++*swaps;
        if (atomic_compare_exchange_weak_explicit(word, &seen, desired, memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
}

/** Set a bit of such a word. True when it was clear. Most are set already: a store would take the line from its
 * readers, so look first. */
static inline bool dmg_set_bit_atomically(_Atomic uint64_t *word, uint32_t index)
{
    uint64_t bit = UINT64_C(1) << (index % 64);
    return (atomic_load_explicit(word, memory_order_relaxed) & bit) == 0 &&
           (atomic_fetch_or_explicit(word, bit, memory_order_relaxed) & bit) == 0;
}

#endif
