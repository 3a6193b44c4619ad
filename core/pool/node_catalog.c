/* The messages about the catalog, which node 0 keeps. */
#include "core/pool/node_state.h"

#include "core/base/error.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <string.h>

dmg_status dmg_node_handle_catalog_put(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_put_request *asked = request->payload;
    if (asked->bytes > DMG_CATALOG_VALUE_BYTES || request->bytes - sizeof *asked != asked->bytes) {
        return dmg_error(DMG_ERR_PROTOCOL, "a catalog entry says that its value has %llu bytes, and %zu came",
                         (unsigned long long)asked->bytes, request->bytes - sizeof *asked);
    }
    dmg_status status = dmg_node_check_name(asked->name, sizeof asked->name, "a catalog entry");
    if (status == DMG_OK) {
        status = dmg_node_check_job(node, asked->job, request->client);
    }
    const dmg_catalog_owner owner = {.job = asked->job,
                                     .client = request->client,
                                     .owner = dmg_node_rights_owner_of(&node->rights, request->client)};
    if (status == DMG_OK &&
        dmg_catalog_count_of(node->catalog, &owner) >= DMG_CATALOG_ENTRIES_MAX / DMG_NODE_SHARE_OF_ONE) {
        status = dmg_error(DMG_ERR_LIMIT, "nobody has more than %d entries in the catalog: remove some",
                           DMG_CATALOG_ENTRIES_MAX / DMG_NODE_SHARE_OF_ONE);
    }
    if (status == DMG_OK) {
        status = dmg_catalog_insert(node->catalog, &owner, asked->name, asked + 1, asked->bytes);
    }
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_DEBUG, "catalog_put", "client=%016" PRIx64 " job=%" PRIu64 " name=\"%s\"", request->client,
                asked->job, asked->name);
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

dmg_status dmg_node_handle_catalog_get(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_name_request *asked = request->payload;
    const void *value;
    size_t bytes;
    dmg_status status = dmg_node_check_name(asked->name, sizeof asked->name, "a catalog entry");
    if (status == DMG_OK) {
        status = dmg_catalog_find(node->catalog, asked->name, &value, &bytes);
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, value, bytes);
}

/* Remove an entry for a client that may do so. */
static dmg_status erase_entry(dmg_memory_node *node, const char *name, uint64_t client)
{
    const dmg_catalog_owner *owner;
    dmg_status status = dmg_catalog_owner_of(node->catalog, name, &owner);
    if (status == DMG_OK) {
        status = dmg_node_rights_check_entry(&node->rights, owner, client);
    }
    if (status == DMG_OK) {
        status = dmg_catalog_erase(node->catalog, name);
    }
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_DEBUG, "catalog_removed", "client=%016" PRIx64 " name=\"%s\"", client, name);
    }
    return status;
}

dmg_status dmg_node_handle_catalog_remove(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_name_request *asked = request->payload;
    dmg_status status = dmg_node_check_name(asked->name, sizeof asked->name, "a catalog entry");
    if (status == DMG_OK) {
        status = erase_entry(node, asked->name, request->client);
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

static dmg_status check_two_names(const dmg_catalog_two_names_request *asked, bool may_be_empty)
{
    dmg_status status = dmg_node_check_name(asked->prefix, sizeof asked->prefix, "a catalog entry");
    if (status == DMG_OK && !(may_be_empty && asked->name[0] == '\0')) {
        status = dmg_node_check_name(asked->name, sizeof asked->name, "a catalog entry");
    }
    return status;
}

dmg_status dmg_node_handle_catalog_next(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_two_names_request *asked = request->payload;
    dmg_status status = check_two_names(asked, true);
    if (status != DMG_OK) {
        return status;
    }
    const char *name = dmg_catalog_next_name(node->catalog, asked->prefix, asked->name);
    return dmg_node_answer(node, request, name, name != NULL ? strlen(name) : 0);
}

dmg_status dmg_node_handle_catalog_remove_unused(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_two_names_request *asked = request->payload;
    dmg_status status = check_two_names(asked, false);
    const char *user = status == DMG_OK ? dmg_catalog_next_name(node->catalog, asked->prefix, "") : NULL;
    if (user != NULL) {
        status = dmg_error(DMG_ERR_EXISTS, "the catalog entry \"%s\" is in use: there is \"%s\"", asked->name, user);
    }
    if (status == DMG_OK) {
        status = erase_entry(node, asked->name, request->client);
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}
