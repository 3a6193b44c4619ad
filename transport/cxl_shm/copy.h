/**
 * @file copy.h
 * Copies between private memory and the pool, which other processes read and write at the same time.
 *
 * An aligned word of 4 or 8 bytes that is copied alone, or as a part of an aligned run of words, is read or written as
 * a whole: that is what an attribute needs that others update by compare-and-swap meanwhile.
 */
#ifndef DMG_TRANSPORT_CXL_SHM_COPY_H
#define DMG_TRANSPORT_CXL_SHM_COPY_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/*
 * Short runs are as fast word by word as by memcpy. Long ones go to memcpy, which moves words whole on every machine
 * that we build for; the language does not promise that, so a build that checks for data races copies all by atomics.
 */
#if defined(__SANITIZE_THREAD__)
#define DMG_SHM_WORDWISE_BYTES UINT64_MAX
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DMG_SHM_WORDWISE_BYTES UINT64_MAX
#endif
#endif
#ifndef DMG_SHM_WORDWISE_BYTES
#define DMG_SHM_WORDWISE_BYTES UINT64_C(256)
#endif

static inline void dmg_shm_copy_from_pool(void *to, const void *pool, uint64_t bytes)
{
    uint64_t done = 0;
    if (bytes <= DMG_SHM_WORDWISE_BYTES) {
        char *out = to;
        const char *in = pool;
        if ((uintptr_t)in % 8 == 0) {
            for (; bytes - done >= 8; done += 8) {
                uint64_t word = atomic_load_explicit((const _Atomic uint64_t *)(in + done), memory_order_acquire);
                memcpy(out + done, &word, sizeof word);
            }
        }
        if ((uintptr_t)in % 4 == 0) {
            for (; bytes - done >= 4; done += 4) {
                uint32_t word = atomic_load_explicit((const _Atomic uint32_t *)(in + done), memory_order_acquire);
                memcpy(out + done, &word, sizeof word);
            }
        }
        for (; done < bytes; done++) {
            out[done] = atomic_load_explicit((const _Atomic char *)(in + done), memory_order_acquire);
        }
    } else {
        memcpy(to, pool, bytes);
    }
}

static inline void dmg_shm_copy_to_pool(void *pool, const void *from, uint64_t bytes)
{
    uint64_t done = 0;
    if (bytes <= DMG_SHM_WORDWISE_BYTES) {
        char *out = pool;
        const char *in = from;
        if ((uintptr_t)out % 8 == 0) {
            for (; bytes - done >= 8; done += 8) {
                uint64_t word;
                memcpy(&word, in + done, sizeof word);
                atomic_store_explicit((_Atomic uint64_t *)(out + done), word, memory_order_release);
            }
        }
        if ((uintptr_t)out % 4 == 0) {
            for (; bytes - done >= 4; done += 4) {
                uint32_t word;
                memcpy(&word, in + done, sizeof word);
                atomic_store_explicit((_Atomic uint32_t *)(out + done), word, memory_order_release);
            }
        }
        for (; done < bytes; done++) {
            atomic_store_explicit((_Atomic char *)(out + done), in[done], memory_order_release);
        }
    } else {
        memcpy(pool, from, bytes);
    }
}

#endif
