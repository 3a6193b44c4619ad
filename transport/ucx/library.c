/**
 * @file library.c
 * UCX as this backend wants it: its process-wide settings, contexts and workers.
 *
 * Every decision is made through UCX's configuration interface, a context at a time, never through the environment. Of
 * the user's own UCX_ variables those reach UCX that environment.c lets pass; what the transport string says, and what
 * safety needs, is set on top.
 */
#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/memory_room.h"
#include "transport/ucx/api.h"
#include "transport/ucx/ucx.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a worker may map: a process that has less of its address space left is short of it. */
#define WORKER_ADDRESS_BYTES (UINT64_C(64) << 20)

/** UCX prints to stdout by itself; a library must not. Its warnings mostly tell of dead peers, which we report in our
 * own words. */
static ucs_log_func_rc_t forward_log(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                                     const ucs_log_component_config_t *component, const char *format, va_list arguments)
{
    (void)file, (void)line, (void)component;
    char text[400];
    vsnprintf(text, sizeof(text), format, arguments);
    dmg_log(level <= UCS_LOG_LEVEL_ERROR ? DMG_LOG_INFO : DMG_LOG_DEBUG, "ucx", "function=%s text=\"%s\"", function,
            text);
    return UCS_LOG_FUNC_RC_STOP;
}

void dmg_ucx_library_prepare(void)
{
    /* UCX's constructor has put handlers on these signals, unless the user's environment said no. */
    if (dmg_ucx.global_opts->handle_errors != 0) {
        static const int signals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
            ucs_debug_disable_signal(signals[i]);
        }
        ucs_global_opts_set_value("HANDLE_ERRORS", "none");
    }
    ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
    /* No memory of a GPU comes by here, so UCX need not hook into munmap and madvise of the whole process. */
    ucs_global_opts_set_value("MEMTYPE_CACHE", "n");
    ucs_log_push_handler(forward_log);
}

/* Options of a context. UCX's transports know their own by the name without the transport's: a name with it
   ("TCP_TX_SEG_SIZE") is an environment variable's, and would be passed over with a warning. */
typedef struct option {
    const char *name;
    const char *value;
} option;

#define OPTIONS_MAX 12
typedef struct option_list {
    option entries[OPTIONS_MAX];
    size_t count;
} option_list;

static void add(option_list *options, const char *name, const char *value)
{
    if (value[0] != '\0' && options->count < OPTIONS_MAX) {
        options->entries[options->count++] = (option){name, value};
    }
}

/** One word of the list begins so. */
static bool has_prefix(const char *list, const char *prefix)
{
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/** What RDMA devices need, whatever goes over them. */
static void add_rdma_options(option_list *options, const dmg_ucx_settings *settings, const char *transports)
{
    add(options, "GID_INDEX", settings->gid);
    if (has_prefix(transports, "rc") || has_prefix(transports, "dc")) {
        /* UCX's default of 7 is "for ever" to soft-RoCE: a dead peer would never be reported. */
        add(options, "RC_RETRY_COUNT", settings->retries);
        add(options, "RC_TIMEOUT", settings->retry_time);
        /* A worker pins this many buffers from its start; UCX's 4095 of them are more than a compute node has peers
         * for. */
        add(options, "RC_RX_QUEUE_LEN", "256");
    }
    if (has_prefix(transports, "ud")) {
        /* soft-RoCE leaves a field of UD packets zero that UCX would check (openucx pull request 10209). */
        add(options, "UD_ETH_DGID_CHECK", "n");
        add(options, "UD_RX_QUEUE_LEN", "512");
    }
}

/* ---- calls that may not return ---- */

/** A call of UCX hangs in this process, and may hold UCX's locks: nothing is given back to UCX any more. */
static atomic_bool is_stuck;

/** What a step that makes a context or a worker needs and gives; on the heap, since it may go on for ever. */
typedef struct making {
    const ucp_config_t *config;
    ucp_params_t parameters;
    ucp_context_h context;
    ucp_worker_h worker;
    ucs_status_t status;
} making;

static void make_context(void *argument)
{
    making *made = argument;
    made->status = dmg_ucx_init(&made->parameters, made->config, &made->context);
}

static void make_worker(void *argument)
{
    making *made = argument;
    /* A request that a dead peer left behind is ours to forget, not UCX's to complain about. */
    const ucp_worker_params_t parameters = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
        .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
    };
    made->status = ucp_worker_create(made->context, &parameters, &made->worker);
}

/** Runs the step; `*made` becomes NULL when it is left to a step that hangs. */
static dmg_status make(const char *what, uint64_t limit_ns, void (*step)(void *argument), making **made)
{
    dmg_status status = dmg_ucx_run_bounded(what, limit_ns, step, *made);
    if (status == DMG_ERR_IO) {
        atomic_store(&is_stuck, true);
        *made = NULL;
    }
    return status;
}

/* ---- contexts and workers ---- */

static dmg_status init_context(const ucp_config_t *config, uint64_t features, making **made)
{
    *made = calloc(1, sizeof(**made));
    if (*made == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening UCX: out of memory");
    }
    (*made)->config = config;
    (*made)->parameters = (ucp_params_t){
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME,
        .features = features,
        .mt_workers_shared = 1,
        .name = "dmgraph",
    };
    return make("opening UCX", DMG_UCX_DEVICE_LIMIT_NS, make_context, made);
}

static dmg_status open_context(const option_list *options, uint64_t features, const char *transports,
                               const char *devices, ucp_context_h *context)
{
    dmg_status is_safe = dmg_ucx_load_checked();
    if (is_safe != DMG_OK) {
        return is_safe;
    }
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "reading UCX's configuration: %s: check the UCX_ environment variables",
                         ucs_status_string(status));
    }
    for (size_t i = 0; i < options->count && status == UCS_OK; i++) {
        status = ucp_config_modify(config, options->entries[i].name, options->entries[i].value);
    }
    if (status == UCS_OK) {
        status = ucp_config_modify(config, "TLS", transports);
    }
    if (status == UCS_OK) {
        status = ucp_config_modify(config, "NET_DEVICES", devices[0] != '\0' ? devices : "all");
    }
    if (status == UCS_OK) {
        making *made;
        dmg_status is_made = init_context(config, features, &made);
        if (is_made == DMG_ERR_IO) {
            return is_made; /* UCX goes on reading the configuration */
        }
        if (is_made != DMG_OK) {
            free(made);
            ucp_config_release(config);
            return is_made;
        }
        status = made->status;
        *context = status == UCS_OK ? made->context : NULL;
        free(made);
    }
    ucp_config_release(config);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "opening UCX with the transports %s on %s: %s: `ucx_info -d` lists what this machine has",
                         transports, devices[0] ? devices : "every device", ucs_status_string(status));
    }
    return DMG_OK;
}

/** The devices of a context: UCX leaves out of a list of several what a transport cannot use. */
static void join_devices(const char *rdma_devices, const char *interfaces, char *devices, size_t capacity)
{
    const char *comma = rdma_devices[0] != '\0' && interfaces[0] != '\0' ? "," : "";
    snprintf(devices, capacity, "%s%s%s", rdma_devices, comma, interfaces);
}

dmg_status dmg_ucx_message_context(const dmg_ucx_settings *settings, const char *interface, int family,
                                   ucp_context_h *context)
{
    char transports[sizeof(settings->messages) + 32];
    char devices[200] = "";
    option_list options = {0};
    snprintf(transports, sizeof(transports), "%s", settings->messages);
    dmg_ucx_add_auxiliary_transport(transports, sizeof(transports));
    /* UCX's cache of registered memory hooks into munmap and madvise of the whole process: only large messages of
       cards would need it. */
    add(&options, "RCACHE_ENABLE", "n");
    if (settings->has_tcp_messages) {
        /* A frame is one segment, so UCX never gathers the fragments of a peer. */
        add(&options, "TX_SEG_SIZE", "32k");
        add(&options, "RX_SEG_SIZE", "64k");
        add(&options, "AF_PRIO", family == AF_INET6 ? "inet6,inet" : "inet,inet6");
    }
    if (strcmp(transports, "tcp") == 0) {
        join_devices("", settings->interfaces[0] != '\0' ? settings->interfaces : interface, devices, sizeof(devices));
    } else {
        add_rdma_options(&options, settings, transports);
        if (has_prefix(transports, "rc") || has_prefix(transports, "dc")) {
            add(&options, "RC_SEG_SIZE", "32k");
        }
        join_devices(settings->rdma_devices, settings->has_tcp_messages ? settings->interfaces : "", devices,
                     sizeof(devices));
    }
    return open_context(&options, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP, transports, devices, context);
}

dmg_status dmg_ucx_data_context(const char *transport, ucp_context_h *context)
{
    option_list options = {0};
    /* Only memory of the transport's own has a one-sided key: rather fail than get other memory. */
    char allocator[64];
    snprintf(allocator, sizeof(allocator), "md:%.48s", transport);
    add(&options, "ALLOC_PRIO", allocator);
    add(&options, "RCACHE_ENABLE", "n");
    /* Queues for messages, which never go this way: as many as UCX makes them take 4 MiB of /dev/shm a worker. */
    add(&options, "MM_FIFO_SIZE", "16");
    add(&options, "MM_RX_BUFS_GROW", "16");
    return open_context(&options, UCP_FEATURE_RMA | UCP_FEATURE_AMO64, transport, "", context);
}

dmg_status dmg_ucx_worker_within(ucp_context_h context, uint64_t limit_ns, ucp_worker_h *worker)
{
    making *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "creating a UCX worker: out of memory");
    }
    made->context = context;
    dmg_status status = DMG_OK;
    if (limit_ns == 0) {
        make_worker(made);
    } else {
        status = make("creating a UCX worker", limit_ns, make_worker, &made);
    }
    uint64_t limit_bytes;
    if (status == DMG_OK && made->status != UCS_OK && dmg_address_space_left(&limit_bytes) < WORKER_ADDRESS_BYTES) {
        status =
            dmg_error(DMG_ERR_MEMORY,
                      "creating a UCX worker: %s: this process may map %llu MiB (`ulimit -v`), and has nearly done "
                      "so: raise the limit",
                      ucs_status_string(made->status), (unsigned long long)(limit_bytes >> 20));
    } else if (status == DMG_OK && made->status != UCS_OK) {
        status = dmg_error(DMG_ERR_UNSUPPORTED, "creating a UCX worker: %s: is the limit of open files reached?",
                           ucs_status_string(made->status));
    }
    if (status == DMG_OK) {
        *worker = made->worker;
    }
    free(made);
    return status;
}

dmg_status dmg_ucx_worker(ucp_context_h context, ucp_worker_h *worker)
{
    return dmg_ucx_worker_within(context, DMG_UCX_DEVICE_LIMIT_NS, worker);
}

void dmg_ucx_close_context(ucp_context_h context)
{
    if (!atomic_load(&is_stuck)) {
        ucp_cleanup(context);
    }
}

void dmg_ucx_close_now(ucp_worker_h worker, ucp_ep_h endpoint, unsigned flags, uint64_t limit_ns)
{
    ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = flags};
    void *request = ucp_ep_close_nbx(endpoint, &parameters);
    if (!UCS_PTR_IS_PTR(request)) {
        return;
    }
    uint64_t end_ns = dmg_now_ns() + limit_ns;
    dmg_backoff backoff = {0};
    while (ucp_request_check_status(request) == UCS_INPROGRESS && dmg_now_ns() < end_ns) {
        if (ucp_worker_progress(worker) == 0) {
            dmg_backoff_wait(&backoff);
        }
    }
    ucp_request_free(request);
}
