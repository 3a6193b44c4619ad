/**
 * @file card_lane.c
 * A channel's one-sided lanes over a network card.
 *
 * A read ends when its last piece has come; a write ends only after a flush that was asked for later than it, since a
 * write that is complete here may not have arrived there. What the card has no room for waits in its link's list, in
 * order, and is given to it when something has completed.
 */
#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/ucx/client.h"

#include <stddef.h>
#include <string.h>

static void break_link(dmg_ucx_link *link, const char *why)
{
    if (link->broken == NULL) {
        link->broken = why;
    }
}

/* ---- what the card tells ---- */

static void on_queue_pair_broken(void *context, uct_ep_h endpoint)
{
    dmg_ucx_channel *channel = context;
    for (uint32_t i = 0; i < channel->node_count; i++) {
        if (channel->links[i].queue_pair == endpoint) {
            break_link(&channel->links[i], "broke the one-sided lane");
        }
    }
}

static bool is_posted(const dmg_ucx_operation *operation)
{
    return operation->pieces_sent == operation->pieces;
}

/** All pieces of an operation that the card had are complete. */
static void on_complete(uct_completion_t *completion)
{
    dmg_ucx_operation *operation =
        (dmg_ucx_operation *)(void *)((char *)completion - offsetof(dmg_ucx_operation, at_card));
    dmg_ucx_channel *channel = operation->channel;
    dmg_ucx_link *link = &channel->links[operation->node];
    link->one_sided--;
    link->has_moved = true;
    operation->is_held_by_ucx = false;
    if (completion->status != UCS_OK) {
        operation->status = DMG_ERR_PEER;
    }
    if (operation->is_ended || is_posted(operation)) {
        dmg_ucx_end_operation(channel, operation, operation->status);
    }
}

static void copy_in(void *to, const void *data, size_t bytes)
{
    memcpy(to, data, bytes);
}

/* ---- posting ---- */

typedef struct source {
    const void *from;
    size_t bytes;
} source;

static size_t copy_out(void *to, void *argument)
{
    const source *copied = argument;
    memcpy(to, copied->from, copied->bytes);
    return copied->bytes;
}

static ucs_status_t post_read(dmg_ucx_link *link, dmg_ucx_operation *operation, uint64_t start, size_t bytes)
{
    dmg_ucx_channel *channel = operation->channel;
    uint64_t remote = channel->client->facts[operation->node].base + operation->offset + start;
    ucs_status_t status = uct_ep_get_bcopy(link->queue_pair, copy_in, (uint8_t *)operation->local + start, bytes,
                                           remote, link->card_key.rkey, &operation->at_card);
    if (status == UCS_INPROGRESS) {
        if (operation->at_card.count++ == 0) {
            operation->is_held_by_ucx = true;
            link->one_sided++;
        }
        status = UCS_OK;
    }
    return status;
}

static ucs_status_t post_write(dmg_ucx_link *link, const dmg_ucx_operation *operation, uint64_t start, size_t bytes)
{
    dmg_ucx_channel *channel = operation->channel;
    uint64_t remote = channel->client->facts[operation->node].base + operation->offset + start;
    source copied = {.from = (const uint8_t *)operation->local + start, .bytes = bytes};
    if (bytes <= channel->port.short_bytes_max) {
        return uct_ep_put_short(link->queue_pair, copied.from, (unsigned)bytes, remote, link->card_key.rkey);
    }
    ssize_t posted = uct_ep_put_bcopy(link->queue_pair, copy_out, &copied, remote, link->card_key.rkey);
    return posted < 0 ? (ucs_status_t)posted : UCS_OK;
}

/** Post what the card has room for. False when some is left. */
static bool post_pieces(dmg_ucx_link *link, dmg_ucx_operation *operation)
{
    dmg_ucx_channel *channel = operation->channel;
    bool is_read = operation->kind == DMG_UCX_READ;
    uint64_t piece_bytes = is_read ? channel->port.read_bytes_max : channel->port.write_bytes_max;
    while (!is_posted(operation)) {
        uint64_t start = operation->pieces_sent * piece_bytes;
        uint64_t left = operation->bytes - start;
        size_t bytes = left < piece_bytes ? left : piece_bytes;
        ucs_status_t status =
            is_read ? post_read(link, operation, start, bytes) : post_write(link, operation, start, bytes);
        if (status == UCS_ERR_NO_RESOURCE) {
            return false;
        }
        if (status != UCS_OK) {
            break_link(link, "broke the one-sided lane");
            operation->status = DMG_ERR_PEER;
            operation->pieces = operation->pieces_sent; /* no more of it */
            break;
        }
        operation->pieces_sent++;
        link->has_moved = true;
    }
    return true;
}

/** All of it is posted, or has failed. */
static void after_posting(dmg_ucx_link *link, dmg_ucx_operation *operation)
{
    dmg_ucx_channel *channel = operation->channel;
    if (operation->kind == DMG_UCX_WRITE && operation->status == DMG_OK) {
        dmg_ucx_list_append(channel, &link->unflushed, (uint32_t)(operation - channel->operations));
    } else if (!operation->is_held_by_ucx) {
        dmg_ucx_end_operation(channel, operation, operation->status);
    }
}

void dmg_ucx_card_post(dmg_ucx_channel *channel, dmg_ucx_operation *operation)
{
    dmg_ucx_link *link = &channel->links[operation->node];
    uint64_t piece_bytes =
        operation->kind == DMG_UCX_READ ? channel->port.read_bytes_max : channel->port.write_bytes_max;
    operation->pieces = (uint32_t)((operation->bytes + piece_bytes - 1) / piece_bytes);
    operation->at_card = (uct_completion_t){.func = on_complete, .status = UCS_OK};
    if (link->at_card.first != DMG_UCX_NO_SLOT || !post_pieces(link, operation)) {
        dmg_ucx_list_append(channel, &link->at_card, (uint32_t)(operation - channel->operations));
        return;
    }
    after_posting(link, operation);
}

/* ---- flushing ---- */

static void end_flushed(dmg_ucx_link *link, ucs_status_t status)
{
    dmg_ucx_channel *channel = link->channel;
    while (link->flushing.first != DMG_UCX_NO_SLOT) {
        dmg_ucx_operation *operation = &channel->operations[link->flushing.first];
        dmg_ucx_list_pop(channel, &link->flushing);
        dmg_ucx_end_operation(channel, operation, status == UCS_OK ? operation->status : DMG_ERR_PEER);
    }
}

static void on_flushed(uct_completion_t *completion)
{
    dmg_ucx_link *link = (dmg_ucx_link *)(void *)((char *)completion - offsetof(dmg_ucx_link, flushed));
    link->is_flushing = false;
    link->has_moved = true;
    end_flushed(link, completion->status);
}

/** Ask for the remote completion of the writes so far, one flush at a time. */
static void flush_writes(dmg_ucx_link *link)
{
    if (link->unflushed.first == DMG_UCX_NO_SLOT || link->is_flushing || link->queue_pair == NULL) {
        return;
    }
    link->flushed = (uct_completion_t){.func = on_flushed, .count = 1, .status = UCS_OK};
    ucs_status_t status = uct_ep_flush(link->queue_pair, UCT_FLUSH_FLAG_LOCAL, &link->flushed);
    if (status == UCS_ERR_NO_RESOURCE) {
        return;
    }
    link->flushing = link->unflushed;
    link->unflushed.first = DMG_UCX_NO_SLOT;
    link->is_flushing = status == UCS_INPROGRESS;
    link->has_moved = true;
    if (status != UCS_INPROGRESS) {
        if (status != UCS_OK) {
            break_link(link, "broke the one-sided lane");
        }
        end_flushed(link, status);
    }
}

void dmg_ucx_card_drive(dmg_ucx_link *link)
{
    dmg_ucx_channel *channel = link->channel;
    while (link->at_card.first != DMG_UCX_NO_SLOT) {
        dmg_ucx_operation *operation = &channel->operations[link->at_card.first];
        if (!post_pieces(link, operation)) {
            break;
        }
        dmg_ucx_list_pop(channel, &link->at_card);
        after_posting(link, operation);
    }
    flush_writes(link);
}

/* ---- opening and closing ---- */

static dmg_status open_port(dmg_ucx_channel *channel)
{
    if (channel->port.card != NULL) {
        return DMG_OK;
    }
    dmg_status status =
        dmg_ucx_port_open(channel->client->card, DMG_UCX_PORT_POSTS, on_queue_pair_broken, channel, &channel->port);
    if (status == DMG_OK && uct_iface_event_fd_get(channel->port.interface, &channel->data_event) != UCS_OK) {
        channel->data_event = -1;
        dmg_ucx_port_close(&channel->port);
        status = dmg_error(DMG_ERR_UNSUPPORTED, "UCX cannot wake a thread that waits for %s",
                           dmg_ucx_card_device(channel->client->card));
    }
    return status;
}

static dmg_status join(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_link *link = &channel->links[node];
    dmg_ucx_card_address own;
    dmg_ucx_lane_answer answer;
    dmg_status status = dmg_ucx_port_endpoint(&channel->port, &link->queue_pair, &own);
    if (status == DMG_OK) {
        status = dmg_ucx_request_lane(channel, (uint16_t)node, &own, &answer);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_port_connect(&channel->port, link->queue_pair, &answer.address);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_card_unpack_key(channel->client->card, answer.key, answer.key_bytes, &link->card_key);
        link->has_card_key = status == DMG_OK;
    }
    return status;
}

static void on_tried(uct_completion_t *completion)
{
    (void)completion;
}

/** Read a word, to see whether packets pass. */
static dmg_status try_lane(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_link *link = &channel->links[node];
    uint64_t word;
    uct_completion_t tried = {.func = on_tried, .count = 1, .status = UCS_OK};
    ucs_status_t status = uct_ep_get_bcopy(link->queue_pair, copy_in, &word, sizeof(word),
                                           channel->client->facts[node].base, link->card_key.rkey, &tried);
    dmg_watch watch;
    dmg_watch_start(&watch, channel->client->peer_timeout_ns, dmg_now_ns());
    dmg_backoff backoff = {0};
    bool is_dead = false;
    while (status == UCS_INPROGRESS && tried.count != 0 && !is_dead && !dmg_watch_wait_is_over(&watch, dmg_now_ns())) {
        if (uct_worker_progress(channel->port.worker) == 0) {
            dmg_backoff_wait(&backoff);
        }
        is_dead = atomic_load_explicit(&channel->client->nodes[node].dead, memory_order_acquire) != 0;
    }
    bool is_good = (status == UCS_OK || tried.count == 0) && tried.status == UCS_OK && link->broken == NULL;
    if (!is_good) {
        /* What was posted lies on this stack: close while it is there. */
        dmg_ucx_card_lane_close(channel, node);
        const dmg_ucx_facts *facts = &channel->client->facts[node];
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "memory node %u (%s) did not answer on its one-sided lane over %s: do RDMA packets pass "
                         "between the devices (RoCE: UDP port 4791), and is device= right?",
                         node, facts->address_text, facts->data);
    }
    return DMG_OK;
}

dmg_status dmg_ucx_card_lane_open(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_status status = open_port(channel);
    if (status == DMG_OK) {
        status = join(channel, node);
        status = status == DMG_OK ? try_lane(channel, node) : status;
        if (status != DMG_OK) {
            dmg_ucx_card_lane_close(channel, node);
        }
    }
    return status;
}

void dmg_ucx_card_lane_close(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_link *link = &channel->links[node];
    if (link->queue_pair != NULL) {
        uct_ep_destroy(link->queue_pair);
        link->queue_pair = NULL;
    }
    if (link->has_card_key) {
        dmg_ucx_card_release_key(channel->client->card, &link->card_key);
        link->has_card_key = false;
    }
}
