/**
 * @file card.c
 * Cards, their memory and their queue pairs, by UCX's lower layer.
 */
#include "transport/ucx/card.h"
#include "core/base/error.h"
#include "transport/ucx/api.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How large what belongs to a port is. Reads, writes and messages are copied through buffers of UCX that the card knows
   already: the program's own memory need not be pinned, UCX need not watch what becomes of it, and an operation that is
   given up writes nowhere. Only as many buffers are taken as are ever used at once. Where nobody sends messages the
   queue for them is as short as it may be. "": UCX's own size. */
typedef struct use_options {
    const char *piece_bytes;
    const char *buffers;
    const char *buffers_at_once;
    const char *send_queue;
    const char *completions;
    const char *receive_queue;
} use_options;

static const use_options options_of_uses[] = {
    [DMG_UCX_PORT_POSTS] = {"16k", "512", "64", "", "", "16"},
    [DMG_UCX_PORT_SERVES] = {"", "16", "16", "16", "64", "16"},
    [DMG_UCX_PORT_TALKS] = {"32k", "512", "32", "", "", "256"},
};

struct dmg_ucx_card {
    uct_component_h component;
    uct_md_h domain;
    size_t key_bytes;
    char transport[16];
    char device[64]; /**< with its port, as in "mlx5_0:1" */
    char gid[8];
    char retries[8];
    char retry_time[24];
    pthread_mutex_t mutex; /**< UCX expects one thread at a time to open and close what belongs to a device */
};

/* ---- configuration ---- */

typedef struct option {
    const char *name;
    const char *value;
} option;

static ucs_status_t set_options(void *config, const option *options, size_t count)
{
    ucs_status_t status = UCS_OK;
    for (size_t i = 0; i < count && status == UCS_OK; i++) {
        if (options[i].value[0] != '\0') {
            status = uct_config_modify(config, options[i].name, options[i].value);
        }
        if (status != UCS_OK) {
            dmg_error(DMG_ERR_INTERNAL, "setting %s=%s of UCX: %s", options[i].name, options[i].value,
                      ucs_status_string(status));
        }
    }
    return status;
}

static ucs_status_t read_port_config(const dmg_ucx_card *card, dmg_ucx_port_use use, uct_iface_config_t **config)
{
    /* UCX's default of 7 retries is "for ever" to soft-RoCE: a dead peer would never be reported. */
    const use_options *sizes = &options_of_uses[use];
    const option options[] = {
        {"GID_INDEX", card->gid},
        {"RC_RETRY_COUNT", card->retries},
        {"RC_TIMEOUT", card->retry_time},
        {"RC_RX_QUEUE_LEN", sizes->receive_queue},
        {"RC_SEG_SIZE", sizes->piece_bytes},
        {"RC_TX_MAX_BUFS", sizes->buffers},
        {"RC_TX_BUFS_GROW", sizes->buffers_at_once},
        {"RC_TX_QUEUE_LEN", sizes->send_queue},
        {"RC_TX_CQ_LEN", sizes->completions},
    };
    ucs_status_t status = uct_md_iface_config_read(card->domain, card->transport, NULL, NULL, config);
    if (status != UCS_OK) {
        dmg_error(DMG_ERR_UNSUPPORTED, "reading UCX's configuration: %s", ucs_status_string(status));
        return status;
    }
    status = set_options(*config, options, sizeof(options) / sizeof(options[0]));
    if (status != UCS_OK) {
        uct_config_release(*config);
    }
    return status;
}

/* ---- cards ---- */

/** Take a domain when one of its devices is what is looked for. */
static bool has_device(uct_md_h domain, const char *devices, dmg_ucx_card *card)
{
    uct_tl_resource_desc_t *resources;
    unsigned count;
    bool is_found = false;
    if (uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK) {
        return false;
    }
    for (unsigned i = 0; i < count && !is_found; i++) {
        is_found = strcmp(resources[i].tl_name, card->transport) == 0 &&
                   (devices[0] == '\0' || dmg_ucx_list_has(devices, resources[i].dev_name));
        if (is_found) {
            snprintf(card->device, sizeof(card->device), "%s", resources[i].dev_name);
        }
    }
    uct_release_tl_resource_list(resources);
    return is_found;
}

/** UCX's cache of registered memory hooks into munmap and madvise of the whole process: nothing here needs it. */
static ucs_status_t open_domain(uct_component_h component, const char *name, uct_md_h *domain)
{
    static const option options[] = {{"REG_METHODS", "direct"}};
    uct_md_config_t *config;
    ucs_status_t status = uct_md_config_read(component, NULL, NULL, &config);
    if (status == UCS_OK) {
        status = set_options(config, options, 1);
        if (status == UCS_OK) {
            status = uct_md_open(component, name, config, domain);
        }
        uct_config_release(config);
    }
    return status;
}

static bool find_in_component(uct_component_h component, const char *devices, dmg_ucx_card *card)
{
    uct_md_resource_desc_t names[64];
    uct_component_attr_t attributes = {.field_mask =
                                           UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    if (uct_component_query(component, &attributes) != UCS_OK || strcmp(attributes.name, "ib") != 0 ||
        attributes.md_resource_count > sizeof(names) / sizeof(names[0])) {
        return false;
    }
    unsigned count = attributes.md_resource_count;
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = names;
    if (count == 0 || uct_component_query(component, &attributes) != UCS_OK) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        uct_md_h domain;
        if (open_domain(component, names[i].md_name, &domain) != UCS_OK) {
            continue;
        }
        if (has_device(domain, devices, card)) {
            card->component = component;
            card->domain = domain;
            return true;
        }
        uct_md_close(domain);
    }
    return false;
}

/** What opening a card needs and gives; on the heap, since it may go on for ever. */
typedef struct opening {
    char devices[96];
    dmg_ucx_card *card;
    bool is_open;
} opening;

static void open_step(void *argument)
{
    opening *made = argument;
    uct_component_h *components;
    unsigned count;
    if (uct_query_components(&components, &count) != UCS_OK) {
        return;
    }
    for (unsigned i = 0; i < count && !made->is_open; i++) {
        made->is_open = find_in_component(components[i], made->devices, made->card);
    }
    uct_release_component_list(components);
}

static dmg_status check_card(dmg_ucx_card *card)
{
    uct_md_attr_t attributes;
    ucs_status_t status = uct_md_query(card->domain, &attributes);
    if (status != UCS_OK || attributes.rkey_packed_size > DMG_UCX_CARD_KEY_BYTES) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "%s over %s: its keys are of a kind that is not known", card->transport,
                         card->device);
    }
    card->key_bytes = attributes.rkey_packed_size;
    return DMG_OK;
}

static dmg_ucx_card *make_card(const dmg_ucx_settings *settings, const char *transport)
{
    dmg_ucx_card *card = calloc(1, sizeof(*card));
    if (card != NULL) {
        snprintf(card->transport, sizeof(card->transport), "%s", transport);
        memcpy(card->gid, settings->gid, sizeof(card->gid));
        memcpy(card->retries, settings->retries, sizeof(card->retries));
        memcpy(card->retry_time, settings->retry_time, sizeof(card->retry_time));
        pthread_mutex_init(&card->mutex, NULL);
    }
    return card;
}

dmg_status dmg_ucx_card_open(const dmg_ucx_settings *settings, const char *transport, dmg_ucx_card **card)
{
    *card = NULL;
    dmg_status status = dmg_ucx_load_checked();
    if (status != DMG_OK) {
        return status;
    }
    opening *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        made->card = make_card(settings, transport);
    }
    if (made == NULL || made->card == NULL) {
        free(made);
        return dmg_error(DMG_ERR_MEMORY, "opening %s: out of memory", transport);
    }
    snprintf(made->devices, sizeof(made->devices), "%s", settings->rdma_devices);
    status = dmg_ucx_run_bounded("opening an RDMA device", DMG_UCX_DEVICE_LIMIT_NS, open_step, made);
    if (status == DMG_ERR_IO) {
        return status; /* UCX goes on with it */
    }
    if (status == DMG_OK && !made->is_open) {
        status = dmg_error(
            DMG_ERR_UNSUPPORTED, "no device %s%s%s: `dmgraph info transports` shows what this machine has",
            settings->rdma_devices, settings->rdma_devices[0] != '\0' ? " that is up and has " : "with ", transport);
    }
    if (status == DMG_OK) {
        status = check_card(made->card);
    }
    if (status == DMG_OK) {
        *card = made->card;
    } else {
        dmg_ucx_card_close(made->card);
    }
    free(made);
    return status;
}

void dmg_ucx_card_close(dmg_ucx_card *card)
{
    if (card == NULL) {
        return;
    }
    if (card->domain != NULL) {
        uct_md_close(card->domain);
    }
    pthread_mutex_destroy(&card->mutex);
    free(card);
}

const char *dmg_ucx_card_device(const dmg_ucx_card *card)
{
    return card->device;
}

/* ---- memory ---- */

dmg_status dmg_ucx_card_register(dmg_ucx_card *card, void *start, uint64_t bytes, dmg_ucx_card_memory *memory)
{
    ucs_status_t status = uct_md_mem_reg(card->domain, start, bytes, UCT_MD_MEM_ACCESS_RMA, &memory->handle);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_MEMORY,
                         "pinning %llu bytes for %s: %s: is `ulimit -l` large enough? (--log-level info shows what UCX "
                         "says)",
                         (unsigned long long)bytes, card->device, ucs_status_string(status));
    }
    memory->card = card;
    return DMG_OK;
}

void dmg_ucx_card_forget(dmg_ucx_card_memory *memory)
{
    if (memory->card != NULL) {
        uct_md_mem_dereg(memory->card->domain, memory->handle);
        memory->card = NULL;
    }
}

dmg_status dmg_ucx_card_pack_key(const dmg_ucx_card_memory *memory, uint8_t key[DMG_UCX_CARD_KEY_BYTES],
                                 uint32_t *key_bytes)
{
    ucs_status_t status = uct_md_mkey_pack(memory->card->domain, memory->handle, key);
    *key_bytes = (uint32_t)memory->card->key_bytes;
    return status == UCS_OK ? DMG_OK
                            : dmg_error(DMG_ERR_UNSUPPORTED, "giving out a key of memory on %s: %s",
                                        memory->card->device, ucs_status_string(status));
}

dmg_status dmg_ucx_card_unpack_key(dmg_ucx_card *card, const uint8_t key[DMG_UCX_CARD_KEY_BYTES], uint32_t key_bytes,
                                   uct_rkey_bundle_t *unpacked)
{
    ucs_status_t status = UCS_ERR_INVALID_PARAM;
    if (key_bytes == card->key_bytes) {
        status = uct_rkey_unpack(card->component, key, unpacked);
    }
    return status == UCS_OK ? DMG_OK
                            : dmg_error(DMG_ERR_UNSUPPORTED, "the key of memory behind %s: %s", card->device,
                                        ucs_status_string(status));
}

void dmg_ucx_card_release_key(dmg_ucx_card *card, uct_rkey_bundle_t *unpacked)
{
    uct_rkey_release(card->component, unpacked);
}

/* ---- ports ---- */

static ucs_status_t on_error(void *argument, uct_ep_h endpoint, ucs_status_t status)
{
    (void)status;
    const dmg_ucx_port *port = argument;
    if (port->broken != NULL) {
        port->broken(port->context, endpoint);
    }
    return UCS_OK; /* else UCX ends the process */
}

static ucs_status_t open_interface(dmg_ucx_port *port, dmg_ucx_port_use use)
{
    uct_iface_config_t *config;
    ucs_status_t status = read_port_config(port->card, use, &config);
    if (status != UCS_OK) {
        return status;
    }
    const uct_iface_params_t parameters = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER | UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS | UCT_IFACE_PARAM_FIELD_FEATURES,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = port->card->transport, .dev_name = port->card->device},
        .err_handler = on_error,
        .err_handler_arg = port,
        .features = use == DMG_UCX_PORT_TALKS ? UCT_IFACE_FEATURE_AM : UCT_IFACE_FEATURE_PUT | UCT_IFACE_FEATURE_GET,
    };
    status = uct_iface_open(port->card->domain, port->worker, &parameters, config, &port->interface);
    uct_config_release(config);
    return status;
}

static dmg_status look_at_interface(dmg_ucx_port *port)
{
    uct_iface_attr_t attributes;
    const uint64_t needed =
        UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_AM_BCOPY;
    const uint64_t wakes = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    if (uct_iface_query(port->interface, &attributes) != UCS_OK || (attributes.cap.flags & needed) != needed ||
        (attributes.cap.event_flags & wakes) != wakes ||
        attributes.device_addr_len > sizeof(((dmg_ucx_card_address *)0)->device) ||
        attributes.ep_addr_len > sizeof(((dmg_ucx_card_address *)0)->endpoint)) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "%s over %s has no one-sided reads and writes, or cannot wake a thread",
                         port->card->transport, port->card->device);
    }
    port->read_bytes_max = attributes.cap.get.max_bcopy;
    port->write_bytes_max = attributes.cap.put.max_bcopy;
    port->short_bytes_max = attributes.cap.flags & UCT_IFACE_FLAG_PUT_SHORT ? attributes.cap.put.max_short : 0;
    port->message_bytes_max = attributes.cap.am.max_bcopy;
    return DMG_OK;
}

dmg_status dmg_ucx_port_open(dmg_ucx_card *card, dmg_ucx_port_use use, dmg_ucx_port_broken broken, void *context,
                             dmg_ucx_port *port)
{
    *port = (dmg_ucx_port){.card = card, .broken = broken, .context = context};
    pthread_mutex_lock(&card->mutex);
    ucs_status_t status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &port->async);
    if (status == UCS_OK) {
        status = uct_worker_create(port->async, UCS_THREAD_MODE_SINGLE, &port->worker);
    } else {
        port->async = NULL;
    }
    if (status == UCS_OK) {
        status = open_interface(port, use);
    } else {
        port->worker = NULL;
    }
    pthread_mutex_unlock(&card->mutex);
    dmg_status is_open = DMG_OK;
    if (status != UCS_OK) {
        port->interface = NULL;
        is_open = dmg_error(DMG_ERR_UNSUPPORTED,
                            "opening queues of %s: %s: is the limit of open files or of pinned memory (`ulimit -l`) "
                            "reached? (--log-level info shows what UCX says)",
                            card->device, ucs_status_string(status));
    } else {
        is_open = look_at_interface(port);
    }
    if (is_open != DMG_OK) {
        dmg_ucx_port_close(port);
    } else if (use != DMG_UCX_PORT_SERVES) {
        uct_iface_progress_enable(port->interface, use == DMG_UCX_PORT_TALKS ? UCT_PROGRESS_SEND | UCT_PROGRESS_RECV
                                                                             : UCT_PROGRESS_SEND);
    }
    return is_open;
}

void dmg_ucx_port_close(dmg_ucx_port *port)
{
    if (port->card == NULL) {
        return;
    }
    pthread_mutex_lock(&port->card->mutex);
    if (port->interface != NULL) {
        uct_iface_close(port->interface);
    }
    if (port->worker != NULL) {
        uct_worker_destroy(port->worker);
    }
    if (port->async != NULL) {
        ucs_async_context_destroy(port->async);
    }
    pthread_mutex_unlock(&port->card->mutex);
    *port = (dmg_ucx_port){0};
}

static ucs_status_t get_addresses(dmg_ucx_port *port, uct_ep_h endpoint, dmg_ucx_card_address *address)
{
    uct_iface_attr_t attributes;
    ucs_status_t status = uct_iface_query(port->interface, &attributes);
    memset(address, 0, sizeof(*address));
    if (status == UCS_OK) {
        address->device_bytes = (uint32_t)attributes.device_addr_len;
        address->endpoint_bytes = (uint32_t)attributes.ep_addr_len;
        status = uct_iface_get_device_address(port->interface, (uct_device_addr_t *)address->device);
    }
    return status == UCS_OK ? uct_ep_get_address(endpoint, (uct_ep_addr_t *)address->endpoint) : status;
}

dmg_status dmg_ucx_port_endpoint(dmg_ucx_port *port, uct_ep_h *endpoint, dmg_ucx_card_address *address)
{
    const uct_ep_params_t parameters = {.field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = port->interface};
    pthread_mutex_lock(&port->card->mutex);
    ucs_status_t status = uct_ep_create(&parameters, endpoint);
    if (status == UCS_OK) {
        status = get_addresses(port, *endpoint, address);
        if (status != UCS_OK) {
            uct_ep_destroy(*endpoint);
        }
    }
    pthread_mutex_unlock(&port->card->mutex);
    if (status != UCS_OK) {
        *endpoint = NULL;
        return dmg_error(DMG_ERR_UNSUPPORTED, "making a queue pair on %s: %s", port->card->device,
                         ucs_status_string(status));
    }
    return DMG_OK;
}

/** UCX takes an address apart without looking for its end, and ends the process at what it does not expect: only an
 * address that looks as this card's own, zeros behind, is shown to it. */
static bool is_like_ours(dmg_ucx_port *port, const dmg_ucx_card_address *own, const dmg_ucx_card_address *peer)
{
    return peer->device_bytes == own->device_bytes && peer->endpoint_bytes == own->endpoint_bytes &&
           peer->device[0] == own->device[0] &&
           uct_iface_is_reachable(port->interface, (const uct_device_addr_t *)peer->device, NULL);
}

dmg_status dmg_ucx_port_connect(dmg_ucx_port *port, uct_ep_h endpoint, const dmg_ucx_card_address *peer)
{
    dmg_ucx_card_address own;
    ucs_status_t status = get_addresses(port, endpoint, &own);
    if (status == UCS_OK && !is_like_ours(port, &own, peer)) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "the devices at the two ends (%s here) are not of one network: check device= and, for RoCE, "
                         "gid=",
                         port->card->device);
    }
    if (status == UCS_OK) {
        pthread_mutex_lock(&port->card->mutex);
        status = uct_ep_connect_to_ep(endpoint, (const uct_device_addr_t *)peer->device,
                                      (const uct_ep_addr_t *)peer->endpoint);
        pthread_mutex_unlock(&port->card->mutex);
    }
    return status == UCS_OK ? DMG_OK
                            : dmg_error(DMG_ERR_UNSUPPORTED, "joining queue pairs on %s: %s", port->card->device,
                                        ucs_status_string(status));
}
