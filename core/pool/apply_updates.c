#include "core/pool/apply_updates.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/pool/combine.h"

#include <string.h>

#define CACHE_LINE_BYTES 64

static _Atomic uint64_t *word_at(void *segment, uint64_t offset)
{
    return (_Atomic uint64_t *)(void *)((char *)segment + offset);
}

static dmg_status check(const dmg_pool_update_request *request, size_t request_bytes)
{
    if (request->combine > DMG_COMBINE_ADD_DOUBLE) {
        return dmg_error(DMG_ERR_PROTOCOL, "updates that combine by operator %u are unknown here", request->combine);
    }
    uint64_t update_bytes = 4 + dmg_combine_bytes((dmg_combine)request->combine);
    if (request_bytes - sizeof *request != request->count * update_bytes) {
        return dmg_error(DMG_ERR_PROTOCOL, "a message of %u updates of %llu bytes has %zu bytes of them",
                         request->count, (unsigned long long)update_bytes, request_bytes - sizeof *request);
    }
    if (request->attributes % 64 != 0 || request->activation % 8 != 0) {
        return dmg_error(DMG_ERR_PROTOCOL,
                         "a message of updates has attributes or activation bits that are not aligned");
    }
    return DMG_OK;
}

/* Where an update's words lie in the segment; false when one lies out of bounds. */
static bool locate(const dmg_pool_update_request *request, uint32_t index, const dmg_update_bounds *bounds,
                   uint64_t *attribute, uint64_t *activation)
{
    uint64_t in_attributes = (uint64_t)index * dmg_combine_bytes((dmg_combine)request->combine) & ~UINT64_C(7);
    uint64_t in_activation = (uint64_t)index / 64 * 8;
    *attribute = request->attributes + in_attributes;
    *activation = request->activation + in_activation;
    return request->attributes <= bounds->attributes_end &&
           dmg_range_is_inside(in_attributes, 8, bounds->attributes_end - request->attributes) &&
           request->activation <= bounds->activation_end &&
           dmg_range_is_inside(in_activation, 8, bounds->activation_end - request->activation);
}

/* All words of the message, at once: the fence between acquiring and reading is paid once. */
static void acquire_words(dmg_server *server, const dmg_update_bounds *bounds, const dmg_pool_update_request *request)
{
    const uint32_t update_bytes = 4 + dmg_combine_bytes((dmg_combine)request->combine);
    const uint8_t *update = (const uint8_t *)(request + 1);
    uint64_t last_line = UINT64_MAX; /* of the bitmap: neighbours in a list are often neighbours there */
    for (uint32_t i = 0; i < request->count; i++, update += update_bytes) {
        uint32_t index;
        uint64_t attribute;
        uint64_t activation;
        memcpy(&index, update, sizeof index);
        if (locate(request, index, bounds, &attribute, &activation)) {
            dmg_server_acquire(server, attribute, 8);
            if (request->activation != 0 && activation / CACHE_LINE_BYTES != last_line) {
                last_line = activation / CACHE_LINE_BYTES;
                dmg_server_acquire(server, activation, 8);
            }
        }
    }
    dmg_server_acquire_wait(server);
}

dmg_status dmg_apply_updates(dmg_server *server, void *segment, const dmg_update_bounds *bounds,
                             const dmg_pool_update_request *request, size_t request_bytes, dmg_pool_update_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    dmg_status status = check(request, request_bytes);
    if (status != DMG_OK) {
        return status;
    }
    if (!dmg_server_is_coherent(server)) {
        acquire_words(server, bounds, request);
    }
    const dmg_combine combine = (dmg_combine)request->combine;
    const uint32_t attribute_bytes = dmg_combine_bytes(combine);
    const uint8_t *update = (const uint8_t *)(request + 1);
    uint64_t swaps = 0;
    for (uint32_t i = 0; i < request->count; i++, update += 4 + attribute_bytes) {
        uint32_t index;
        uint64_t value = 0;
        memcpy(&index, update, sizeof index);
        memcpy(&value, update + 4, attribute_bytes);
        uint64_t attribute;
        uint64_t activation;
        if (!locate(request, index, bounds, &attribute, &activation)) {
            return dmg_error(DMG_ERR_PROTOCOL, "update %u of a message leads out of the memory of its attributes", i);
        }
        bool half = attribute_bytes == 4 && index % 2 != 0;
        if (!dmg_combine_atomically(combine, word_at(segment, attribute), half, value, &swaps)) {
            continue;
        }
        reply->applied++;
        dmg_server_release(server, attribute, 8);
        if (request->activation != 0 && dmg_set_bit_atomically(word_at(segment, activation), index)) {
            reply->activated++;
            dmg_server_release(server, activation, 8);
        }
    }
    return DMG_OK;
}
