/**
 * @file pool_call.h
 * One request to a memory node and its answer, as the client side of this layer sends them.
 */
#ifndef DMG_CORE_POOL_POOL_CALL_H
#define DMG_CORE_POOL_POOL_CALL_H

#include "transport/transport.h"

/**
 * Send and wait. `reply_bytes` is the capacity of `reply` going in and the size of the answer coming out.
 * DMG_ERR_ARGUMENT for a node that is not in the pool.
 */
dmg_status dmg_pool_call(dmg_channel *channel, uint16_t node, uint32_t type, const void *request, size_t bytes,
                         void *reply, size_t *reply_bytes);

/** The same for an answer of exactly this size; another one is DMG_ERR_PROTOCOL. */
dmg_status dmg_pool_call_exact(dmg_channel *channel, uint16_t node, uint32_t type, const void *request, size_t bytes,
                               void *reply, size_t reply_bytes);

/** Copy a name into a field of a request. DMG_ERR_ARGUMENT when it is NULL, empty or too long. */
dmg_status dmg_pool_name_copy(char *field, size_t capacity, const char *name, const char *of);

#endif
