#include "cli/pool/graph.h"

#include "cli/base/text.h"
#include "cli/pool/holdings.h"

#include <inttypes.h>

dmg_status dmg_pool_graphs(dmg_channel *channel, dmg_pool_graph_visit visit, void *context)
{
    char name[DMG_GRAPH_NAME_BYTES] = "";
    for (;;) {
        dmg_graph_entry entry;
        dmg_pool_owner owner;
        dmg_status status = dmg_graph_next(channel, name);
        if (status != DMG_OK || name[0] == '\0') {
            return status;
        }
        status = dmg_graph_look_up(channel, name, &entry);
        if (status == DMG_OK) {
            status = dmg_graph_owner(channel, &entry, &owner);
        }
        if (status == DMG_OK) {
            visit(context, name, &entry, &owner);
        } else if (status != DMG_ERR_NOT_FOUND) {
            return status;
        }
    }
}

static const char *weights_name(const dmg_graph_store *store)
{
    return store->weight_kind == DMG_WEIGHT_INT32     ? "int32"
           : store->weight_kind == DMG_WEIGHT_FLOAT32 ? "float32"
                                                      : "none";
}

static const char *lists_name(const dmg_graph_store *store)
{
    return !store->is_directed               ? "undirected"
           : store->has_out && store->has_in ? "both directions"
           : store->has_out                  ? "along the arcs"
                                             : "against the arcs";
}

json_t *dmg_graph_entry_json(const char *name, const dmg_graph_entry *entry, const dmg_pool_owner *owner)
{
    const dmg_graph_store *store = &entry->store;
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(name));
    json_object_set_new(object, "file", dmg_json_text(entry->source));
    json_object_set_new(object, "directed", json_boolean(store->is_directed));
    json_object_set_new(object, "weights", json_string(weights_name(store)));
    json_object_set_new(object, "lists", json_string(lists_name(store)));
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"vertices", store->vertex_count},
                  {"arcs", store->arc_count},
                  {"loops", entry->loop_arcs},
                  {"repeats", entry->repeated_arcs},
                  {"partitions", store->shape.partition_count},
                  {"pool_bytes", entry->pool_bytes},
                  {"loaded", entry->loaded_s}};
    for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++) {
        json_object_set_new(object, counts[index].name, json_integer((json_int_t)counts[index].value));
    }
    if (owner) {
        json_object_set_new(object, "owner", dmg_pool_owner_json(owner));
    }
    return object;
}

void dmg_graph_entry_print_headings(FILE *to, int indent)
{
    fprintf(to, "%*s%-16s %14s %16s  %-16s %-8s %10s %10s  %-32s  %s\n", indent, "", "graph", "vertices", "arcs",
            "lists", "weights", "partitions", "memory", "owner", "loaded from");
}

void dmg_graph_entry_print(FILE *to, int indent, const char *name, const dmg_graph_entry *entry,
                           const dmg_pool_owner *owner)
{
    const dmg_graph_store *store = &entry->store;
    fprintf(to, "%*s%-16s %14s %16s  %-16s %-8s %10" PRIu32 " %10s  %-32s  %s\n", indent, "", name,
            dmg_text_count(store->vertex_count).text, dmg_text_count(store->arc_count).text, lists_name(store),
            weights_name(store), store->shape.partition_count, dmg_text_bytes(entry->pool_bytes).text,
            dmg_owner_print(owner).text, entry->source);
}
