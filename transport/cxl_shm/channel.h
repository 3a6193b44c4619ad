/**
 * @file channel.h
 * A channel of a client, for client.c and one_sided.c.
 */
#ifndef DMG_TRANSPORT_CXL_SHM_CHANNEL_H
#define DMG_TRANSPORT_CXL_SHM_CHANNEL_H

#include "transport/cxl_shm/shm.h"

#include <poll.h>

/**
 * What is invalidated as a whole before it is read where it is mapped. With pages of 4 KiB, a breadth-first search on a
 * Kronecker graph of scale 18 invalidated half as much again, and took longer by that.
 */
#define DMG_SHM_BLOCK_BYTES 512

/** What a process knows of a mapped block that is read, since the last dmg_client_acquire. */
enum { DMG_SHM_BLOCK_IS_OLD, DMG_SHM_BLOCK_IS_TAKEN, DMG_SHM_BLOCK_IS_FRESH };

/** Mapped memory of a node, with what lies behind its segment. */
typedef struct dmg_shm_mapping {
    char *pointer;
    uint64_t bytes;
    bool is_network; /**< the control areas are in it */
} dmg_shm_mapping;

/** A client: what its channels need to connect. */
typedef struct dmg_shm_client {
    dmg_backend_client base;
    dmg_client *client;
    dmg_shm_coherence coherence;
    dmg_node *nodes;
    dmg_shm_view *views;       /**< of the nodes' segments */
    _Atomic uint8_t **blocks;  /**< states of each node's blocks; with software coherence */
    _Atomic uint64_t channels; /**< opened so far */
    uint32_t node_count;
    char (*paths)[96]; /**< of the nodes' memory on this host, as the transport string says; empty: as the node says */
    dmg_shm_mapping *mappings;
    char (*addresses)[DMG_ADDRESS_STRING_BYTES];
    dmg_shm_greeter greeter;
} dmg_shm_client;

/** An operation that a message carries. */
typedef struct dmg_shm_flying {
    dmg_completion *completion; /* NULL: the slot is free */
    dmg_call *call;             /* of dmg_post_call */
    uint64_t *observed;         /* of an atomic operation */
} dmg_shm_flying;

/** A channel's side of one memory node. */
typedef struct dmg_shm_peer {
    dmg_shm_control *control;
    bool is_in_mapping; /* the control area is a part of the client's mapping */
    dmg_shm_side side;
    dmg_shm_line line; /* closed: the node is dead */
    bool is_unrung;
    uint32_t free_count;
    uint8_t free_slots[DMG_SHM_SLOTS]; /* a stack: the warmest slot is used again first */
    dmg_shm_flying flying[DMG_SHM_SLOTS];
} dmg_shm_peer;

typedef struct dmg_shm_channel {
    dmg_backend_channel base;
    dmg_shm_client *client;
    dmg_channel *channel;
    dmg_node *nodes;
    dmg_shm_agent agent;
    bool is_unrung;
    dmg_shm_peer *peers;
    struct pollfd *watched;
    _Alignas(8) char payload[DMG_MESSAGE_BYTES_MAX]; /* of the answer that is being taken */
} dmg_shm_channel;

/** Send a message; the operation ends with its answer, or at once when the node is dead. */
void dmg_shm_post_message(dmg_shm_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                          const dmg_shm_flying *flying);

#endif
