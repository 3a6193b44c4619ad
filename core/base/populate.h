/**
 * @file populate.h
 * Taking all pages of a mapping from the kernel, by several threads: one takes about a second a GiB.
 */
#ifndef DMG_CORE_BASE_POPULATE_H
#define DMG_CORE_BASE_POPULATE_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Have every page of [start, start + bytes) there, writable; contents stay. With `zeroes` all bytes are written with 0
 * instead. Up to 16 threads, as many as this process may use CPUs; a machine that grants none of them leaves it to the
 * caller.
 *
 * @param start      of a page
 * @param populated  NULL, or raised by the bytes that are there, while it runs
 * @return DMG_OK; DMG_ERR_MEMORY when the kernel refuses, also where a touch would end the process
 */
dmg_status dmg_populate(void *start, uint64_t bytes, bool zeroes, _Atomic uint64_t *populated);

/**
 * The same in this thread, and only where the kernel tells instead of ending the process (since 5.14).
 *
 * @return 0, or an errno value: EINVAL where the kernel or the mapping does not know of it
 */
int dmg_populate_by_advice(void *start, uint64_t bytes);

#endif
