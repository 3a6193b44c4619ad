/**
 * @file card.h
 * A network card's queue pairs, made of numbers that both ends have told each other over a connection of ours.
 *
 * UCX's upper layer (UCP) makes connections over RDMA in two ways: by a listener, which obeys whoever reaches it, or by
 * packets between queues of unreliable datagrams, which take them from anybody who knows a constant, and end the
 * process when such a queue fails. So this uses its lower layer (UCT): either end makes a reliable queue pair, which
 * takes packets from one peer alone, and tells its number and address. Nothing listens. Whose a queue pair is, is known
 * from its birth, and to close it cuts its peer off.
 */
#ifndef DMG_TRANSPORT_UCX_CARD_H
#define DMG_TRANSPORT_UCX_CARD_H

#include "transport/ucx/api.h"
#include "transport/ucx/ucx.h"
#include "transport/ucx/wire.h"

/** A card that is open. Any thread may use it. */
typedef struct dmg_ucx_card dmg_ucx_card;

/** Memory that a card reaches. */
typedef struct dmg_ucx_card_memory {
    dmg_ucx_card *card;
    uct_mem_h handle;
} dmg_ucx_card_memory;

/** Called when a queue pair broke; it may not be closed in there. */
typedef void (*dmg_ucx_port_broken)(void *context, uct_ep_h endpoint);

/** A card's queues for one thread at a time; does not move while it is open. */
typedef struct dmg_ucx_port {
    dmg_ucx_card *card;
    dmg_ucx_port_broken broken;
    void *context;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h interface;
    size_t read_bytes_max; /**< of one read */
    size_t write_bytes_max;
    size_t short_bytes_max; /**< of a write that is part of its descriptor */
    size_t message_bytes_max;
} dmg_ucx_port;

/** What the two ends of a port are for. */
typedef enum dmg_ucx_port_use {
    DMG_UCX_PORT_POSTS,  /**< one-sided operations are posted here */
    DMG_UCX_PORT_SERVES, /**< the card answers them; no thread looks after it */
    DMG_UCX_PORT_TALKS,  /**< messages */
} dmg_ucx_port_use;

/**
 * Open the first device of the settings that is up and has this transport, or of all devices when they name none.
 *
 * @param transport  "rc_verbs" or "rc_mlx5"
 * @return DMG_ERR_UNSUPPORTED when there is none, DMG_ERR_IO when it does not answer
 */
dmg_status dmg_ucx_card_open(const dmg_ucx_settings *settings, const char *transport, dmg_ucx_card **card);
/** All ports of it are closed, and its memory is forgotten. NULL is allowed. */
void dmg_ucx_card_close(dmg_ucx_card *card);
const char *dmg_ucx_card_device(const dmg_ucx_card *card);

/** Let clients of this card read and write the memory, all of which becomes pinned. */
dmg_status dmg_ucx_card_register(dmg_ucx_card *card, void *start, uint64_t bytes, dmg_ucx_card_memory *memory);
/** Nothing of it is reached any more. Zeroed memory is allowed. */
void dmg_ucx_card_forget(dmg_ucx_card_memory *memory);

/** `*port` is zeroed before; on an error nothing is left of it. `broken` may be NULL. */
dmg_status dmg_ucx_port_open(dmg_ucx_card *card, dmg_ucx_port_use use, dmg_ucx_port_broken broken, void *context,
                             dmg_ucx_port *port);
/** All its endpoints are closed. When it returns the card has no queue of it any more. A zeroed port is allowed. */
void dmg_ucx_port_close(dmg_ucx_port *port);
/** A queue pair that has no peer yet, and its address. */
dmg_status dmg_ucx_port_endpoint(dmg_ucx_port *port, uct_ep_h *endpoint, dmg_ucx_card_address *address);
/** Join it to a peer's: from then on it takes packets of this one alone. */
dmg_status dmg_ucx_port_connect(dmg_ucx_port *port, uct_ep_h endpoint, const dmg_ucx_card_address *peer);

/** The memory's key for clients, in at most DMG_UCX_CARD_KEY_BYTES bytes. */
dmg_status dmg_ucx_card_pack_key(const dmg_ucx_card_memory *memory, uint8_t key[DMG_UCX_CARD_KEY_BYTES],
                                 uint32_t *key_bytes);
dmg_status dmg_ucx_card_unpack_key(dmg_ucx_card *card, const uint8_t key[DMG_UCX_CARD_KEY_BYTES], uint32_t key_bytes,
                                   uct_rkey_bundle_t *unpacked);
void dmg_ucx_card_release_key(dmg_ucx_card *card, uct_rkey_bundle_t *unpacked);

#endif
