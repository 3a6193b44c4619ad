/**
 * @file core.h
 * What the files of the common transport layer share. Backends do not include it: they see backend.h.
 */
#ifndef DMG_TRANSPORT_CORE_H
#define DMG_TRANSPORT_CORE_H

#include "transport/backend.h"
#include "transport/shared_page.h"

#include <pthread.h>

/** "I am alive": a client's monitor sends it, the server answers. */
#define DMG_MESSAGE_TYPE_LEASE 1

/** Find a transport string's backend and take its parameters apart; unknown backends and keys are errors that list the
 * known. */
dmg_status dmg_transport_parse(const char *transport, const dmg_backend **backend,
                               dmg_transport_parameters *parameters);

/** What the server knows of a client. It stays while channels are open, or while it may come back over new ones, so
 * that one that lost its lease is refused. */
typedef struct dmg_server_client {
    uint64_t id;
    uint64_t heard_ns; /**< a stamp of the server's watch */
    uint32_t channels;
    bool is_gone;
    bool has_lost_lease;    /**< is gone since it was silent, not since a channel of it ended */
    bool is_reported;       /**< on_client_gone was called */
    bool is_lost;           /**< is gone, and may still reach the segment by itself */
    bool is_broken;         /**< the backend has closed its connections: it may come back with new ones */
    dmg_process process;    /**< pid 0: not known */
    int process_descriptor; /**< a pidfd while it is lost, or -1 */
    dmg_status why;
    char *refusal; /**< why its last channel was one too many, or NULL */
} dmg_server_client;

struct dmg_server {
    dmg_backend_server *lower; /**< the backend's side; NULL before it is made */
    dmg_server_options options;
    char *transport;
    char *bind;
    char *path;
    atomic_bool is_stopped;
    dmg_counters counters;
    dmg_server_client *clients;
    uint32_t client_count;
    uint32_t client_capacity;
    uint32_t lost_count;
    uint32_t broken_count;             /**< remembered clients whose connections broke */
    uint64_t next_look_ns;             /**< at lost clients, on the real clock */
    bool has_gone_clients;             /**< some client is gone and has to be reported or forgotten */
    bool has_unknown_clients;          /**< there was no memory for one */
    bool refuses_some;                 /**< some client is gone or not known: requests have to be looked up */
    dmg_watch watch;                   /**< looks once a round of the serve loop */
    dmg_shared_page_offer shared_page; /**< no descriptor until a client asks */
};

struct dmg_client {
    dmg_backend_client *lower; /**< what channels are opened over: the backend's side, or what was put around it */
    char **addresses;
    uint32_t node_count;
    uint64_t peer_timeout_ns;
    uint64_t id;
    dmg_capabilities capabilities;
    dmg_node *nodes;
    pthread_mutex_t death_lock;
    _Atomic uint32_t deaths; /**< raised after a node was marked dead; channels compare it with what they saw */
    dmg_channel *monitor_channel;
    pthread_t monitor;
    bool has_monitor;
    atomic_bool monitor_is_stopped;
};

struct dmg_channel {
    dmg_backend_channel *lower;
    const dmg_channel_operations *operations; /**< of `lower` */
    dmg_client *client;
    const dmg_node *nodes;
    uint32_t node_count;
    uint32_t unrung; /**< operations posted since the last ring */
    uint32_t deaths_seen;
    bool *is_failed;           /**< by node: fail_node was called */
    dmg_node_traffic *traffic; /**< by node */
    uint64_t round_since_ns;   /**< when the round's first operation was posted, if the round is timed */
    uint32_t rounds_begun;
    bool round_is_timed;
    const dmg_completion *round; /**< whose operation was posted last; NULL when something was waited for since */
    bool has_used_mapped;        /**< mapped spans that were used and not waited for yet */
    dmg_purpose purpose;
    dmg_counters counters;
    const dmg_completion *refused; /**< whose operation was refused last, and why */
    char refusal[192];
};

/** Start and stop the thread that keeps the leases. */
dmg_status dmg_monitor_start(dmg_client *client);
void dmg_monitor_stop(dmg_client *client);

#endif
