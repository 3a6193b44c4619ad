#include "unit/core/store/check.h"

#include "unit/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

static void *allocate(uint64_t bytes)
{
    void *memory = calloc(bytes > 0 ? bytes : 1, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    return memory;
}

void dmg_test_require(dmg_status status)
{
    if (status != DMG_OK) {
        printf("%s: %s\n", dmg_status_name(status), dmg_error_message());
    }
    CU_ASSERT_EQUAL_FATAL(status, DMG_OK);
}

void *dmg_test_read_array(dmg_channel *channel, const dmg_range_array *array, uint64_t count)
{
    void *memory = allocate(count * array->element_bytes);
    dmg_completion completion = {0};
    if (count > 0) {
        dmg_range_array_post_read(channel, array, 0, count, memory, &completion);
    }
    dmg_test_require(dmg_wait(channel, &completion));
    return memory;
}

static bool edges_are(const uint8_t *edges, uint32_t edge_bytes, const dmg_adjacency *adjacency, uint64_t at,
                      uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(edges + i * edge_bytes, &adjacency->destinations[at + i], 4) != 0 ||
            (edge_bytes == 8 && memcmp(edges + i * edge_bytes + 4, &adjacency->weights[at + i], 4) != 0)) {
            return false;
        }
    }
    return true;
}

static uint64_t front_bytes_of(const dmg_index_shape *shape, const uint8_t *entry)
{
    return dmg_index_entry_has_list_header(entry) ? dmg_list_header_bytes(shape) : 0;
}

/** Bytes of an out-of-place list with what stands in front of it; 0 when the edges are in place. */
static uint64_t list_bytes_of(const dmg_index_shape *shape, const uint8_t *entry)
{
    return dmg_index_entry_is_in_place(shape, entry)
               ? 0
               : front_bytes_of(shape, entry) + (uint64_t)dmg_index_entry_degree(entry) * shape->edge_bytes;
}

/** What was read of an out-of-place list, `front` bytes of lengths included, against the graph. */
static void check_out_of_place(dmg_channel *channel, const dmg_graph_store *store, const dmg_adjacency *adjacency,
                               uint64_t at, const uint8_t *entry, const uint8_t *list, bool reads_a_segment)
{
    const dmg_index_shape *shape = &store->shape;
    uint64_t header_bytes = front_bytes_of(shape, entry);
    const uint32_t *front = header_bytes > 0 ? (const uint32_t *)(const void *)list : NULL;
    uint64_t done = 0;
    CU_ASSERT_EQUAL(dmg_index_entry_list(entry) % (front || shape->edge_bytes == 8 ? 8 : 4), 0);
    for (uint32_t p = 0; p < shape->partition_count; p++) {
        uint64_t before = 0;
        uint64_t edges = 0;
        CU_ASSERT_TRUE_FATAL(dmg_index_entry_segments(shape, entry, front, p, p + 1, &before, &edges));
        CU_ASSERT_EQUAL(before, done);
        done += edges;
        for (uint64_t i = before; i < before + edges; i++) {
            uint32_t to = adjacency->destinations[at + i];
            if (to < store->partition_first[p] || to >= store->partition_first[p + 1]) {
                CU_FAIL("an edge lies in the segment of another partition");
            }
        }
        if (!edges_are(list + header_bytes + before * shape->edge_bytes, shape->edge_bytes, adjacency, at + before,
                       edges)) {
            CU_FAIL("a segment has other edges");
        }
        if (reads_a_segment && edges > 0) {
            uint8_t *segment = allocate(edges * shape->edge_bytes);
            dmg_test_require(dmg_read(channel, dmg_index_entry_first_edge(shape, entry) + before * shape->edge_bytes,
                                      segment, edges * shape->edge_bytes));
            CU_ASSERT_TRUE(edges_are(segment, shape->edge_bytes, adjacency, at + before, edges));
            free(segment);
            reads_a_segment = false;
        }
    }
    CU_ASSERT_EQUAL(done, dmg_index_entry_degree(entry));
}

/** Read all out-of-place lists, the reads of all in flight at once: one after another in one block, each at a multiple
 * of 8. */
static uint8_t *read_lists(dmg_channel *channel, const dmg_graph_store *store, const uint8_t *entries)
{
    uint8_t *lists = NULL;
    dmg_completion completion = {0};
    for (int is_posting = 0; is_posting <= 1; is_posting++) {
        uint64_t end = 0;
        for (uint64_t v = 0; v < store->vertex_count; v++) {
            const uint8_t *entry = entries + v * store->shape.entry_bytes;
            uint64_t bytes = list_bytes_of(&store->shape, entry);
            if (is_posting && bytes > 0) {
                dmg_post_read(channel, dmg_index_entry_list(entry), lists + end, bytes, &completion);
            }
            end += (bytes + 7) / 8 * 8;
        }
        lists = is_posting ? lists : allocate(end);
    }
    dmg_test_require(dmg_wait(channel, &completion));
    return lists;
}

static void check_direction(dmg_channel *channel, const dmg_graph_store *store, const dmg_range_array *index,
                            const dmg_adjacency *adjacency)
{
    uint8_t *entries = dmg_test_read_array(channel, index, store->vertex_count);
    for (uint64_t v = 0; v < store->vertex_count; v++) {
        const uint8_t *entry = entries + v * store->shape.entry_bytes;
        if (dmg_index_entry_degree(entry) != adjacency->offsets[v + 1] - adjacency->offsets[v]) {
            CU_FAIL_FATAL("a degree differs");
        }
    }
    uint8_t *lists = read_lists(channel, store, entries);
    uint64_t end = 0;
    for (uint64_t v = 0; v < store->vertex_count; v++) {
        const uint8_t *entry = entries + v * store->shape.entry_bytes;
        uint64_t at = adjacency->offsets[v];
        uint64_t bytes = list_bytes_of(&store->shape, entry);
        if (bytes > 0) {
            check_out_of_place(channel, store, adjacency, at, entry, lists + end, v % 16 == 0);
        } else if (!edges_are(dmg_index_entry_edges(entry), store->shape.edge_bytes, adjacency, at,
                              dmg_index_entry_degree(entry))) {
            CU_FAIL("in-place edges differ");
        }
        end += (bytes + 7) / 8 * 8;
    }
    free(lists);
    free(entries);
}

void dmg_test_store_check(dmg_channel *channel, const dmg_graph_store *store, const dmg_graph *graph)
{
    dmg_test_require(dmg_graph_store_check(store, sizeof *store, dmg_channel_client(channel)));
    if (store->has_out) {
        CU_ASSERT_PTR_EQUAL(dmg_graph_store_index(store, false), &store->out_index);
        check_direction(channel, store, dmg_graph_store_index(store, false), &graph->out);
    }
    if (store->has_in || !store->is_directed) {
        check_direction(channel, store, dmg_graph_store_index(store, true), dmg_graph_in(graph));
    }
    uint32_t *degrees = dmg_test_read_array(channel, &store->out_degrees, store->vertex_count);
    for (uint64_t v = 0; v < store->vertex_count; v++) {
        if (degrees[v] != graph->out.offsets[v + 1] - graph->out.offsets[v]) {
            CU_FAIL("an out-degree differs");
        }
    }
    free(degrees);
    CU_ASSERT_EQUAL(store->has_ids, graph->ids != NULL);
    if (store->has_ids) {
        uint64_t *ids = dmg_test_read_array(channel, &store->ids, store->vertex_count);
        CU_ASSERT_EQUAL(memcmp(ids, graph->ids, store->vertex_count * sizeof *ids), 0);
        free(ids);
    } else {
        CU_ASSERT_EQUAL(store->first_id, graph->first_id);
    }
}
