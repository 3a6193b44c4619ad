/**
 * @file describe.c
 * What UCX finds on this machine, and what this backend would use it for.
 */
#include "transport/ucx/api.h"
#include "transport/ucx/ucx.h"

#include <stdio.h>
#include <string.h>

typedef void (*resource_visitor)(const uct_tl_resource_desc_t *resource, void *argument);

static void visit_md(uct_component_h component, const char *md_name, resource_visitor visit, void *argument)
{
    uct_md_config_t *config;
    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK) {
        return;
    }
    uct_md_h md;
    ucs_status_t status = uct_md_open(component, md_name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return;
    }
    uct_tl_resource_desc_t *resources;
    unsigned count;
    if (uct_md_query_tl_resources(md, &resources, &count) == UCS_OK) {
        for (unsigned i = 0; i < count; i++) {
            visit(&resources[i], argument);
        }
        uct_release_tl_resource_list(resources);
    }
    uct_md_close(md);
}

static void visit_component(uct_component_h component, resource_visitor visit, void *argument)
{
    uct_component_attr_t attributes = {.field_mask =
                                           UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    if (uct_component_query(component, &attributes) != UCS_OK || attributes.md_resource_count == 0 ||
        attributes.md_resource_count > 64) {
        return;
    }
    uct_md_resource_desc_t resources[64];
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attributes.md_resources = resources;
    if (uct_component_query(component, &attributes) != UCS_OK) {
        return;
    }
    for (unsigned i = 0; i < attributes.md_resource_count; i++) {
        visit_md(component, resources[i].md_name, visit, argument);
    }
}

/** Call `visit` with every transport on every device that UCX finds. */
static void visit_resources(resource_visitor visit, void *argument)
{
    if (dmg_ucx_load() != DMG_OK) {
        return;
    }
    uct_component_h *components;
    unsigned count;
    if (uct_query_components(&components, &count) != UCS_OK) {
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        visit_component(components[i], visit, argument);
    }
    uct_release_component_list(components);
}

/* ---- what each is good for ---- */

typedef struct transport_usage {
    const char *prefix; /**< of the transport's name */
    bool is_available;
    uint32_t flags;
    dmg_atomics_executor atomics;
    const char *reason;
} transport_usage;

#define BY_MESSAGE DMG_CAPABILITY_MN_COMPUTE
#define ONE_SIDED  (DMG_CAPABILITY_ONE_SIDED | DMG_CAPABILITY_MN_COMPUTE)

static const transport_usage usages[] = {
    {"tcp", true, BY_MESSAGE, DMG_ATOMICS_MEMORY_NODE,
     "messages, by messages=tcp: it opens a port in every node, compute nodes too, and writes there whatever anybody "
     "asks it to; beyond loopback only with --trust-network"},
    {"posix", true, ONE_SIDED, DMG_ATOMICS_CALLER_CPU,
     "one-sided data between processes of this machine (the default there); never messages: a killed sender can wedge "
     "its rings"},
    {"sysv", true, ONE_SIDED, DMG_ATOMICS_CALLER_CPU,
     "as posix, and with hugepages: chosen when --page-size asks for them, or by data=sysv"},
    {"rc_", true, ONE_SIDED, DMG_ATOMICS_MEMORY_NODE,
     "one-sided reads and writes by the network card (the default between machines), messages by messages=; atomics by "
     "the memory node. Queue pairs of two ends that know each other: nothing is open to others"},
    {"dc_", true, BY_MESSAGE, DMG_ATOMICS_MEMORY_NODE,
     "messages, by messages= and only with --trust-network: it takes packets from anybody on the RDMA network"},
    {"ud_", true, BY_MESSAGE, DMG_ATOMICS_MEMORY_NODE,
     "messages, by messages= and only with --trust-network: it takes packets from anybody on the RDMA network"},
    {"self", false, 0, DMG_ATOMICS_MEMORY_NODE, "not used: it reaches only the process itself"},
    {"cma", false, 0, DMG_ATOMICS_MEMORY_NODE, "not used: it has no small one-sided operations and no atomics"},
    {"knem", false, 0, DMG_ATOMICS_MEMORY_NODE, "not used: it has no small one-sided operations and no atomics"},
    {"", false, 0, DMG_ATOMICS_MEMORY_NODE, "not used: dmgraph does not know this transport of UCX"},
};

typedef struct gathered_infos {
    dmg_transport_info *infos;
    size_t capacity;
    size_t count;
    bool has_rdma;
} gathered_infos;

static void add(gathered_infos *gathering, const char *device, const transport_usage *usage)
{
    if (gathering->count == gathering->capacity) {
        return;
    }
    dmg_transport_info *info = &gathering->infos[gathering->count++];
    memset(info, 0, sizeof(*info));
    snprintf(info->backend, sizeof(info->backend), "ucx");
    snprintf(info->device, sizeof(info->device), "%s", device);
    info->is_available = usage->is_available;
    info->is_default = strcmp(device, "posix") == 0 || strcmp(device, "socket") == 0;
    info->flags = usage->flags;
    info->atomics = usage->atomics;
    snprintf(info->reason, sizeof(info->reason), "%s", usage->reason);
}

static void gather(const uct_tl_resource_desc_t *resource, void *argument)
{
    gathered_infos *gathering = argument;
    const transport_usage *usage = usages;
    while (strncmp(resource->tl_name, usage->prefix, strlen(usage->prefix)) != 0) {
        usage++;
    }
    gathering->has_rdma |= strncmp(resource->tl_name, "rc_", 3) == 0;
    char device[64];
    if (resource->dev_type == UCT_DEVICE_TYPE_NET) {
        snprintf(device, sizeof(device), "%.20s/%.40s", resource->tl_name, resource->dev_name);
    } else {
        snprintf(device, sizeof(device), "%.20s", resource->tl_name);
    }
    add(gathering, device, usage);
}

dmg_status dmg_ucx_describe(dmg_transport_info *infos, size_t capacity, size_t *count)
{
    gathered_infos gathering = {.infos = infos, .capacity = capacity};
    static const transport_usage streams = {
        "socket", true, BY_MESSAGE, DMG_ATOMICS_MEMORY_NODE,
        "messages (the default), and data by message: dmgraph's own sockets, at which only who knows the pool's secret "
        "is served; on one machine no port is opened, else the memory nodes' --bind"};
    add(&gathering, "socket", &streams);
    visit_resources(gather, &gathering);
    if (!gathering.has_rdma) {
        static const transport_usage none = {
            "rc", false, 0, DMG_ATOMICS_MEMORY_NODE,
            "no RDMA device: UCX finds no InfiniBand or RoCE card (`ibv_devices` lists them)"};
        add(&gathering, "rc", &none);
    }
    *count = gathering.count;
    return DMG_OK;
}

bool dmg_ucx_has_rdma_device(void)
{
    gathered_infos gathering = {0};
    visit_resources(gather, &gathering);
    return gathering.has_rdma;
}
