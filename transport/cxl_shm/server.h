/**
 * @file server.h
 * The memory-node side, for server.c, connections.c and node_memory.c.
 */
#ifndef DMG_TRANSPORT_CXL_SHM_SERVER_H
#define DMG_TRANSPORT_CXL_SHM_SERVER_H

#include "transport/cxl_shm/shm.h"
#include "transport/stream/listener.h"

#include <sys/epoll.h>

#define DMG_SHM_CHANNELS_MAX   4096
#define DMG_SHM_EVENT_LISTENER UINT64_MAX /**< as dmg_shm_server_watch tells apart what it watches */
#define DMG_SHM_EVENT_WAKE     (UINT64_MAX - 1)

typedef enum dmg_shm_channel_state {
    DMG_SHM_CHANNEL_FREE,
    DMG_SHM_CHANNEL_GREETED, /**< has proved itself, and has not said what it wants */
    DMG_SHM_CHANNEL_OPEN
} dmg_shm_channel_state;

typedef struct dmg_shm_server_channel {
    dmg_shm_channel_state state;
    bool is_broken; /**< to be closed when it is safe */
    dmg_shm_line line;
    uint64_t generation; /**< raised when the place is used again, so that old reply tokens miss */
    uint64_t client;
    uint64_t greeted_ns;
    dmg_shm_control *control;
    uint32_t area; /**< over TCP: the control area behind the segment, from 1 on; 0: none */
    dmg_shm_side side;
    uint64_t busy_slots; /**< taken and not answered */
    uint32_t slot_uses[DMG_SHM_SLOTS];
} dmg_shm_server_channel;

typedef struct dmg_shm_acquired_span {
    uint64_t offset;
    uint64_t bytes;
} dmg_shm_acquired_span;

typedef struct dmg_shm_server {
    dmg_backend_server base;
    dmg_server *server;
    uint16_t node;
    dmg_shm_coherence coherence;
    dmg_shm_agent agent;
    dmg_shm_segment segment;
    dmg_shm_view view;   /**< of the segment */
    bool is_network;     /**< clients connect by TCP */
    uint64_t identity;   /**< of the memory, when they do */
    uint32_t area_count; /**< control areas behind the segment */
    bool area_is_used[DMG_SHM_AREAS_MAX];
    dmg_shm_acquired_span *acquired; /**< to be fetched when the acquisition ends */
    uint32_t acquired_count;
    uint32_t acquired_capacity;
    char path[96];                    /**< of the segment, from the transport string; empty: none */
    dmg_stream_protection protection; /**< over TCP */
    dmg_listener *listener;
    int epoll;
    int wake;
    dmg_shm_server_channel *channels;
    uint32_t channel_count; /**< places in use or used before */
    uint32_t channel_capacity;
    uint32_t greeted_count; /**< of channels in that state */
    uint32_t broken_count;
    uint32_t rounds; /**< of progress since the last look at the sockets */
    _Alignas(8) char payload[DMG_MESSAGE_BYTES_MAX];
} dmg_shm_server;

/* ---- connections.c ---- */

/** Have a descriptor watched, or (EPOLL_CTL_MOD) for other events; `data` is the number of a channel or
 * DMG_SHM_EVENT_*. */
bool dmg_shm_server_watch(dmg_shm_server *server, int operation, int descriptor, uint32_t events, uint64_t data);
/** Accept, greet and hear what has ended, for at most so long. Returns how many events it handled. */
uint32_t dmg_shm_server_watch_sockets(dmg_shm_server *server, int timeout_ms);
/** The channel's place is free afterwards. Of one that was open the layer above is told, with the reason. */
void dmg_shm_server_close_channel(dmg_shm_server *server, dmg_shm_server_channel *channel, dmg_status why);

/* ---- node_memory.c ---- */

/** Where the identity of the memory lies, and then the control areas, when clients connect by TCP. */
char *dmg_shm_server_behind_segment(const dmg_shm_server *server);
/** Write back what was written outside the line cache, before others know of it. */
void dmg_shm_server_publish_raw(dmg_shm_server *server, void *start, uint64_t bytes);
/** True when the request was for the backend itself (what compute nodes leave to the node without coherence), and is
 * answered. */
bool dmg_shm_server_serve_one_sided(dmg_shm_server *server, const dmg_request *request);

#endif
