/**
 * @file leftovers.h
 * Files in memory that processes of ours left, since they were killed: found and removed, and nobody else's.
 *
 * A file is removed only when it belongs to this user and no process has it open or mapped. The kernel tells: it grants
 * a write lease on no other file. While the lease is held, whoever else wants to remove or use the file is refused, so
 * two that clean at a time do not take away what the next one has made under the same name.
 */
#ifndef DMG_TRANSPORT_LEFTOVERS_H
#define DMG_TRANSPORT_LEFTOVERS_H

#include "transport/transport.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What else a file must be like. */
typedef struct dmg_leftover_kind {
    mode_t mode;         /**< exactly these permission bits; 0: any */
    uint64_t unit_bytes; /**< the file's size is a multiple of this; 0: any */
    uint64_t since_s;    /**< changed since then (CLOCK_REALTIME) */
} dmg_leftover_kind;

/** Remove a file when it is left over. False when it is not, or cannot be removed. `bytes` gets what its pages took. */
bool dmg_leftover_remove(const char *path, const dmg_leftover_kind *kind, uint64_t *bytes);

#endif
