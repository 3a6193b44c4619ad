#include "cli/run/run.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Values are read in blocks of so many vertices, two in flight. */
#define BLOCK_VERTICES UINT64_C(65536)
#define BLOCKS         2
#define LINE_BYTES_MAX 192

/** What goes on while the values stream by. */
typedef struct value_stream {
    dmg_run *run;
    const dmg_range_array *values;
    dmg_channel *channel;
    char *blocks[BLOCKS];
    dmg_completion completions[BLOCKS];
    char *kept; /* all values, when they are to be verified */
} value_stream;

static uint64_t id_of_vertex(const void *context, uint32_t vertex)
{
    const dmg_graph *graph = context;
    return vertex < graph->vertex_count ? dmg_graph_id(graph, vertex) : UINT64_MAX;
}

static int write_decimal(uint64_t number, char *text)
{
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (int index = 0; index < count; index++) {
        text[index] = digits[count - 1 - index];
    }
    return count;
}

static dmg_status write_block(const value_stream *stream, uint64_t first, uint64_t count, const char *values)
{
    const dmg_run *run = stream->run;
    const dmg_graph *graph = &run->source.graph;
    for (uint64_t index = 0; index < count; index++) {
        char line[LINE_BYTES_MAX];
        int length = write_decimal(dmg_graph_id(graph, (uint32_t)(first + index)), line);
        line[length++] = ' ';
        int rest = run->algorithm->format(values + index * run->algorithm->value_bytes, id_of_vertex, graph,
                                          line + length, sizeof line - (size_t)length - 1);
        if (rest < 0 || rest >= (int)sizeof line - length - 1) {
            return dmg_error(DMG_ERR_INTERNAL, "a line of the output is too long");
        }
        length += rest;
        line[length++] = '\n';
        dmg_status status = dmg_output_file_write(run->output, line, (size_t)length);
        if (status != DMG_OK) {
            return status;
        }
    }
    return DMG_OK;
}

static dmg_status use_block(value_stream *stream, uint64_t first, uint64_t count, const char *values)
{
    dmg_run *run = stream->run;
    dmg_headline_add(run->headline, first, count, values);
    if (stream->kept) {
        memcpy(stream->kept + first * run->algorithm->value_bytes, values, count * run->algorithm->value_bytes);
    }
    dmg_progress_bar_show(run->bar, "reading the result", first + count, run->source.graph.vertex_count);
    return run->output ? write_block(stream, first, count, values) : DMG_OK;
}

static uint64_t block_count(const value_stream *stream, uint64_t first)
{
    uint64_t left = stream->run->source.graph.vertex_count - first;
    return left < BLOCK_VERTICES ? left : BLOCK_VERTICES;
}

static void post_block(value_stream *stream, uint64_t number)
{
    uint64_t first = number * BLOCK_VERTICES;
    if (first < stream->run->source.graph.vertex_count) {
        dmg_range_array_post_read(stream->channel, stream->values, first, block_count(stream, first),
                                  stream->blocks[number % BLOCKS], &stream->completions[number % BLOCKS]);
        dmg_channel_ring(stream->channel);
    }
}

static dmg_status read_all(value_stream *stream)
{
    uint64_t vertex_count = stream->run->source.graph.vertex_count;
    post_block(stream, 0);
    for (uint64_t number = 0; number * BLOCK_VERTICES < vertex_count; number++) {
        post_block(stream, number + 1);
        dmg_status status = dmg_wait(stream->channel, &stream->completions[number % BLOCKS]);
        if (status == DMG_OK) {
            uint64_t first = number * BLOCK_VERTICES;
            status = use_block(stream, first, block_count(stream, first), stream->blocks[number % BLOCKS]);
        }
        if (status != DMG_OK) {
            return status;
        }
        stream->completions[number % BLOCKS] = (dmg_completion){0};
    }
    return DMG_OK;
}

static dmg_status check_values(const dmg_run *run, const dmg_range_array *values, const dmg_client *client)
{
    bool is_good = values->count == run->source.graph.vertex_count &&
                   (values->count == 0 || values->element_bytes == run->algorithm->value_bytes) &&
                   values->node_count <= dmg_client_node_count(client);
    return is_good ? DMG_OK : dmg_error(DMG_ERR_PROTOCOL, "compute node 0 described a result that is not this graph's");
}

static dmg_status stream_values(dmg_run *run, dmg_client *client, char *kept)
{
    value_stream stream = {.run = run, .values = &run->cns[0].report.values, .kept = kept};
    dmg_status status = check_values(run, stream.values, client);
    for (size_t index = 0; index < BLOCKS && status == DMG_OK; index++) {
        stream.blocks[index] = malloc(BLOCK_VERTICES * run->algorithm->value_bytes);
        if (!stream.blocks[index]) {
            status = dmg_error(DMG_ERR_MEMORY, "no memory for a block of the result");
        }
    }
    if (status == DMG_OK) {
        status = dmg_channel_open(client, &stream.channel);
    }
    if (status == DMG_OK) {
        status = read_all(&stream);
    }
    dmg_channel_close(stream.channel);
    for (size_t index = 0; index < BLOCKS; index++) {
        free(stream.blocks[index]);
    }
    return status;
}

/* The compute nodes have what the launcher's own client has, over the run's emulated link. */
static void note_capabilities(dmg_run *run, const dmg_client *client)
{
    run->capabilities = *dmg_client_capabilities(client);
    run->capabilities.atomics = dmg_atomics_over(run->has_link ? &run->link : NULL, run->capabilities.atomics);
}

static dmg_status read_values(dmg_run *run, char *kept)
{
    if (run->pool) {
        note_capabilities(run, run->pool->client);
        dmg_status status = stream_values(run, run->pool->client, kept);
        return status == DMG_OK ? dmg_run_pool_usage(run) : status;
    }
    const char *addresses[DMG_MEMORY_NODES_MAX];
    for (uint32_t node = 0; node < run->mn_count; node++) {
        addresses[node] = run->mns[node].address;
    }
    dmg_client_options options = {.transport = dmg_value_text(run->settings, DMG_OPTION_TRANSPORT),
                                  .addresses = addresses,
                                  .address_count = run->mn_count,
                                  .peer_timeout_ns = run->peer_timeout_ns};
    memcpy(options.token, run->token, sizeof options.token);
    dmg_client *client = NULL;
    dmg_status status = dmg_client_open(&options, &client);
    if (status == DMG_OK) {
        note_capabilities(run, client);
        status = stream_values(run, client, kept);
    }
    dmg_client_close(client);
    return status;
}

static dmg_status verify(dmg_run *run, const char *values)
{
    const dmg_graph *graph = &run->source.graph;
    uint64_t started_ns = dmg_now_ns();
    void *expected = calloc(graph->vertex_count + 1, run->algorithm->value_bytes);
    if (!expected) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to verify %" PRIu64 " values", graph->vertex_count);
    }
    dmg_status status = run->algorithm->serial(graph, &run->parameters, expected);
    if (status == DMG_OK) {
        status = run->algorithm->compare(graph, values, expected);
        if (status == DMG_ERR_VERIFY) {
            dmg_error_prefix(status, "%s: the answer is wrong", run->algorithm->name);
        }
    }
    free(expected);
    run->is_verified = status == DMG_OK;
    run->times.verify = (double)(dmg_now_ns() - started_ns) / 1e9;
    return status;
}

dmg_status dmg_run_read_result(void *context)
{
    dmg_run *run = context;
    const dmg_graph *graph = &run->source.graph;
    uint64_t started_ns = dmg_now_ns();
    char *kept = NULL;
    bool is_to_be_verified = dmg_flag(run->settings, DMG_OPTION_VERIFY);
    if (is_to_be_verified) {
        kept = malloc((graph->vertex_count + 1) * run->algorithm->value_bytes);
        if (!kept) {
            return dmg_error(DMG_ERR_MEMORY, "no memory to verify %" PRIu64 " values", graph->vertex_count);
        }
    }
    dmg_status status = dmg_headline_create(run->algorithm, graph, &run->headline);
    if (status == DMG_OK) {
        status = read_values(run, kept);
    }
    run->times.result = (double)(dmg_now_ns() - started_ns) / 1e9;
    if (status == DMG_OK && is_to_be_verified) {
        status = verify(run, kept);
    }
    free(kept);
    return status;
}
