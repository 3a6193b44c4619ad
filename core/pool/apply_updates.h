/**
 * @file apply_updates.h
 * The memory node's part of redistribution by value (ValRD): applying updates to attributes in its own segment (DMG,
 * section 4.3.1).
 */
#ifndef DMG_CORE_POOL_APPLY_UPDATES_H
#define DMG_CORE_POOL_APPLY_UPDATES_H

#include "core/pool/protocol.h"

/** Where the memory ends that a message's attributes and activation bits lie in. */
typedef struct dmg_update_bounds {
    uint64_t attributes_end;
    uint64_t activation_end;
} dmg_update_bounds;

/**
 * Apply the updates of one message, whose payload is not trusted. Compute nodes may update the same words by CPU
 * atomics at the same time where memory is coherent; elsewhere their words are acquired from `server` first, and
 * released. DMG_ERR_PROTOCOL when the message's size contradicts its count, an offset is not aligned,
 * or an index leads beyond the bounds; the updates before that one have been applied then.
 */
dmg_status dmg_apply_updates(dmg_server *server, void *segment, const dmg_update_bounds *bounds,
                             const dmg_pool_update_request *request, size_t request_bytes,
                             dmg_pool_update_reply *reply);

#endif
