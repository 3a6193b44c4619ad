/**
 * @file read_once.h
 * Reading words that another process may change at any moment.
 *
 * What lies in the pool is looked at before it is used, and both must see the same value. A compiler may read memory a
 * second time rather than keep a value in a register; not these.
 */
#ifndef DMG_CORE_BASE_READ_ONCE_H
#define DMG_CORE_BASE_READ_ONCE_H

#include <stdint.h>
#include <string.h>

static inline uint32_t dmg_read_once_32(const void *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    __asm__("" : "+r"(value)); /* from here on the compiler does not know that it is what memory has */
    return value;
}

static inline uint64_t dmg_read_once_64(const void *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    __asm__("" : "+r"(value));
    return value;
}

#endif
