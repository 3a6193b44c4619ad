/**
 * @file ucx.h
 * What the files of the UCX backend share: settings, contexts, frames, the segment (notes on UCX's behaviour stand
 * where they matter). The backend as a whole is described in backend.c.
 */
#ifndef DMG_TRANSPORT_UCX_UCX_H
#define DMG_TRANSPORT_UCX_UCX_H

#include "transport/backend.h"
#include "transport/stream/stream.h"
#include "transport/ucx/api.h"
#include "transport/ucx/wire.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* ---- settings: the transport string's parameters, checked ---- */

typedef enum dmg_ucx_data {
    DMG_UCX_DATA_AUTO,
    DMG_UCX_DATA_MESSAGE,       /**< by message to the memory node */
    DMG_UCX_DATA_SHARED_MEMORY, /**< one-sided, done by the caller's CPU, complete when posted */
    DMG_UCX_DATA_NIC,           /**< one-sided, done by the network card */
} dmg_ucx_data;

/** Which end of a connection: a machine may have a network card for each. */
typedef enum dmg_ucx_side { DMG_UCX_SIDE_COMPUTE, DMG_UCX_SIDE_MEMORY } dmg_ucx_side;

typedef struct dmg_ucx_settings {
    char messages[96];                /**< "socket", or UCX transports, separated by commas */
    bool are_messages_ucx;            /**< UCX transports */
    bool are_messages_card;           /**< one of them, with queue pairs made by us: card.h */
    bool has_tcp_messages;            /**< tcp is among them */
    bool has_open_messages;           /**< others are that take packets from everybody on the RDMA network */
    bool trusts_network;              /**< what UCX opens may be open to others than this host */
    dmg_stream_protection protection; /**< of streams over TCP */
    dmg_ucx_data data;
    char data_transports[96]; /**< UCX transports of the one-sided lane; "" with AUTO and MESSAGE */
    char rdma_devices[96];    /**< of this side, as UCX names them ("mlx5_0:1"), separated by commas, or "" */
    char interfaces[96];      /**< network interfaces for tcp, or "" */
    bool has_port;
    uint16_t port;       /**< 0: any */
    char gid[8];         /**< index in the device's table of GIDs, or "": UCX's choice */
    char retries[8];     /**< sendings of an unanswered packet before its peer counts as dead */
    char retry_time[24]; /**< how long each waits, in UCX's words, or "": UCX's choice */
} dmg_ucx_settings;

/** Check the parameters. DMG_ERR_ARGUMENT or DMG_ERR_UNSUPPORTED with the reason. */
dmg_status dmg_ucx_settings_parse(const dmg_transport_parameters *parameters, dmg_ucx_side side,
                                  dmg_ucx_settings *settings);
/** True when a list, separated by commas, has this word. */
bool dmg_ucx_list_has(const char *list, const char *word);
/** What a list of UCX transports for data can do, or DMG_UCX_DATA_AUTO when it has no one-sided lane. */
dmg_ucx_data dmg_ucx_data_kind(const char *transports);
/** rc endpoints made from workers' addresses are wired up over ud: name it, as help only, where rc stands alone. */
void dmg_ucx_add_auxiliary_transport(char *transports, size_t capacity);

/* ---- addresses.c ---- */

/**
 * Where a memory node listens: DMG_ERR_ARGUMENT, or the text for dmg_listener_options in `text`; "" for a fresh name on
 * this host.
 */
dmg_status dmg_ucx_bind_text(const dmg_ucx_settings *settings, const char *bind, char *text, size_t capacity);
/** The address of a listener as others use it: where it listens at all of this machine's, one that others can reach. */
dmg_status dmg_ucx_public_address(const char *listening, char *text, size_t capacity);
/**
 * Keep UCX's tcp to the loopback interface when all is on this host, and refuse it elsewhere, unless the network is
 * trusted. `interface` gets where it is to stay when the settings name none; "": anywhere.
 */
dmg_status dmg_ucx_confine_tcp(const dmg_ucx_settings *settings, const dmg_stream_address *address, const char *text,
                               bool is_local, char *interface, size_t interface_bytes);

/* ---- devices.c: RDMA devices, as the kernel lists them ---- */

/** True when a device of this name, without its port, exists. */
bool dmg_ucx_is_rdma_device(const char *name);

/* ---- environment.c: which of the user's UCX_ variables reach UCX ---- */

/** For a program at its start, while it has one thread: take the variables that may not pass out of the environment. */
void dmg_ucx_environment_clean(void);
/** Log a warning that names what was taken out, once a process. */
void dmg_ucx_environment_announce(void);
/** And that what these parameters ask for is open to others. */
void dmg_ucx_announce(const dmg_transport_parameters *parameters);
/** Load UCX (api.h); DMG_ERR_ARGUMENT when something that may not pass reaches it all the same: in a library, or by a
 * file ucx.conf. */
dmg_status dmg_ucx_load_checked(void);

/* ---- bounded.c ---- */

/** How long a process waits for its own device before it gives up. What is lost at a peer is found earlier, by leases.
 */
#define DMG_UCX_DEVICE_LIMIT_NS UINT64_C(60000000000)

/** How long something has been waited for. Zero it; time in which this process itself was stopped does not count. */
typedef struct dmg_ucx_patience {
    uint64_t looked_ns;
    uint64_t waited_ns;
} dmg_ucx_patience;

/** False once it has been waited for DMG_UCX_DEVICE_LIMIT_NS. To be called every second at least. */
bool dmg_ucx_is_patient(dmg_ucx_patience *patience);

/**
 * Run a step of which nobody knows whether it returns, in a thread of its own.
 *
 * @param what  what is being done, for the error
 * @return DMG_OK when it has returned; DMG_ERR_IO after the limit: then it goes on, with its argument, for ever;
 * DMG_ERR_MEMORY when it was not started
 */
dmg_status dmg_ucx_run_bounded(const char *what, uint64_t limit_ns, void (*step)(void *argument), void *argument);

/* ---- the library and its contexts ---- */

/** Settings of UCX that are one a process: no signal handlers, its log lines go to dmg_log. Once, after it was loaded.
 */
void dmg_ucx_library_prepare(void);
/**
 * A context for messages. `interface`: where tcp is to stay, when the settings name none; "": anywhere. `family`:
 * AF_INET or AF_INET6, of the memory node's address; tcp connects from addresses of the same kind.
 */
dmg_status dmg_ucx_message_context(const dmg_ucx_settings *settings, const char *interface, int family,
                                   ucp_context_h *context);
/** A context for one-sided operations in shared memory over this transport. */
dmg_status dmg_ucx_data_context(const char *transport, ucp_context_h *context);
/** A worker that one thread at a time uses. DMG_ERR_IO when UCX does not make it in DMG_UCX_DEVICE_LIMIT_NS. */
dmg_status dmg_ucx_worker(ucp_context_h context, ucp_worker_h *worker);
/** The same with a limit of the caller's; 0 for none, where there is no device and no port to wait for: it saves a
 * thread.
 */
dmg_status dmg_ucx_worker_within(ucp_context_h context, uint64_t limit_ns, ucp_worker_h *worker);
/** Give a context back, unless a call of UCX hangs that may hold its locks. */
void dmg_ucx_close_context(ucp_context_h context);
/** Close an endpoint at once, and wait at most `limit_ns` for UCX to be done with it. */
void dmg_ucx_close_now(ucp_worker_h worker, ucp_ep_h endpoint, unsigned flags, uint64_t limit_ns);

/* ---- the segment ---- */

typedef struct dmg_ucx_segment {
    uint8_t *start;
    uint64_t bytes;
    ucp_context_h context; /**< that the memory is registered with, or NULL */
    ucp_mem_h handle;
    void *mapping; /**< private memory, when there is no context */
    uint64_t mapping_bytes;
    dmg_placement placement;
} dmg_ucx_segment;

/** UCX gives one-sided keys to memory that it allocated itself, at any page: the segment is cut from more. */
#define DMG_UCX_SEGMENT_ALIGNMENT (UINT64_C(2) << 20)

/** Memory that UCX allocates so that it has one-sided lanes (context not NULL), or private memory, for a card or for
 * service by message. */
dmg_status dmg_ucx_segment_create(const dmg_segment_options *options, ucp_context_h context, const char *transports,
                                  dmg_ucx_segment *segment);
void dmg_ucx_segment_destroy(dmg_ucx_segment *segment);
/** dmg_server_give_back; false for memory that a card has registered, whose pages are its own. */
bool dmg_ucx_segment_give_back(const dmg_ucx_segment *segment, const char *transports, uint64_t offset, uint64_t bytes);

/* ---- segment_modes.c ---- */

/**
 * Take from other users what UCX has allowed them of the shared memory that this process has made over these transports
 * so far. DMG_ERR_IO when that cannot be done, or comes too late.
 */
dmg_status dmg_ucx_close_to_others(const char *transports);

/* ---- demand.c: what a segment takes, before it is made ---- */

/** What making a segment over these transports ("" by message) would take. */
dmg_status dmg_ucx_demand_of(const dmg_segment_options *options, const char *transports, dmg_segment_demand *demand);

/** dmg_transport_count_descriptors. */
dmg_status dmg_ucx_descriptors(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors);
/** After UCX has failed with shared memory: `status`, or the reason when one of the system's limits is reached now. */
dmg_status dmg_ucx_explain(const char *transports, uint64_t bytes, dmg_status status);
/** dmg_ucx_worker for one-sided operations over these transports, with the reason. */
dmg_status dmg_ucx_data_worker(ucp_context_h context, const char *transports, ucp_worker_h *worker);

/* ---- helpers.c: threads beside UCX, while it allocates ---- */

typedef struct dmg_ucx_helpers dmg_ucx_helpers;
/**
 * UCX writes zeros to all of a new file in /dev/shm, in one thread. Find that file among the open ones of this process,
 * and take its pages by several threads meanwhile, so that UCX finds them there. NULL when that is not to be: UCX does
 * without.
 */
dmg_ucx_helpers *dmg_ucx_helpers_start(uint64_t bytes, _Atomic uint64_t *populated);
/** UCX has allocated, or has not. NULL is allowed. */
void dmg_ucx_helpers_stop(dmg_ucx_helpers *helpers);

/* ---- server.c ---- */

dmg_status dmg_ucx_segment_demand(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                  dmg_segment_demand *demand);
extern const dmg_server_operations dmg_ucx_server_operations;
extern const dmg_client_operations dmg_ucx_client_operations;
extern const dmg_channel_operations dmg_ucx_channel_operations;

dmg_placement dmg_ucx_server_placement(dmg_backend_server *base);
bool dmg_ucx_server_is_reachable(dmg_backend_server *base);
bool dmg_ucx_server_fence(dmg_backend_server *base, uint64_t client);
dmg_status dmg_ucx_server_create(dmg_server *server, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, dmg_backend_server **made);
void dmg_ucx_server_destroy(dmg_backend_server *base);
const char *dmg_ucx_server_address(dmg_backend_server *base);
void *dmg_ucx_server_segment(dmg_backend_server *base, uint64_t *bytes);
void dmg_ucx_server_break_client(dmg_backend_server *base, uint64_t client, const char *why);
bool dmg_ucx_server_give_back(dmg_backend_server *base, uint64_t offset, uint64_t bytes);
bool dmg_ucx_server_is_in_files(dmg_backend_server *base);
uint32_t dmg_ucx_server_progress(dmg_backend_server *base);
void dmg_ucx_server_sleep(dmg_backend_server *base, uint64_t timeout_ns);
void dmg_ucx_server_wake(dmg_backend_server *base);
void dmg_ucx_server_reply(dmg_backend_server *base, uint64_t reply_token, dmg_status status, const void *payload,
                          size_t bytes);

/* ---- process.c ---- */

/** dmg_transport_sweep: files of UCX's shared memory. */
void dmg_ucx_sweep(uint64_t since_s, dmg_transport_removed removed, void *context);

/* ---- describe.c ---- */

dmg_status dmg_ucx_describe(dmg_transport_info *infos, size_t capacity, size_t *count);
/** True when this machine has an RDMA device that UCX can use. */
bool dmg_ucx_has_rdma_device(void);

#endif
