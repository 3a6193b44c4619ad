#include "core/engine/exchange/mailbox.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A worker takes pool memory for about so many bytes at once, and for one buffer at least. */
#define EXTENT_BYTES (UINT64_C(256) << 10)
#define EXTENTS_MAX  512

/* A buffer that is being filled. */
struct filling {
    uint32_t line; /* of the receiver's directory; 0: none, the buffer is empty */
    uint32_t count;
    uint8_t *items;
};

/* What one worker uses and counts; other workers' lines of the cache are not touched. */
struct sender {
    _Alignas(64) uint32_t extent_count;
    uint32_t used_buffers; /* of all extents, in this round */
    bool is_out_of_memory; /* the pool had none for another buffer in this round */
    dmg_passed sent;
    dmg_passed taken;
    struct filling *filling; /* one a receiver */
    uint8_t *items;          /* of all of these */
    dmg_kept_error error;    /* the first one since the last flush */
    dmg_address extents[EXTENTS_MAX];
};

struct dmg_mailbox {
    dmg_mailbox_setup setup;
    uint32_t items_a_buffer;
    uint32_t slot_bytes; /* of a buffer in the pool: whole cache lines */
    uint32_t extent_buffers;
    uint32_t round;
    struct sender *senders;
    dmg_mailbox_line *outgoing;   /* ranks directories */
    _Atomic uint32_t *used_lines; /* of each, without line 0 */
    dmg_mailbox_line *incoming;   /* all buffers for this rank */
    uint32_t incoming_count;
    _Atomic uint32_t incoming_taken;
    atomic_bool is_filling_up;
};

static uint32_t lines_a_directory(uint32_t buffers_max)
{
    return buffers_max + 1;
}

uint64_t dmg_mailbox_directory_lines(uint32_t ranks, uint32_t buffers_max)
{
    return (uint64_t)ranks * ranks * lines_a_directory(buffers_max);
}

/* Where the directory of a pair of ranks begins. */
static uint64_t directory_of(const dmg_mailbox *mailbox, uint32_t sender, uint32_t receiver)
{
    return ((uint64_t)receiver * mailbox->setup.ranks + sender) * lines_a_directory(mailbox->setup.buffers_max);
}

static dmg_mailbox_line *outgoing_line(dmg_mailbox *mailbox, uint32_t receiver, uint32_t line)
{
    return &mailbox->outgoing[(uint64_t)receiver * lines_a_directory(mailbox->setup.buffers_max) + line];
}

/* ---- memory ---- */

struct need {
    void **memory;
    uint64_t bytes;
};

#define NEEDS 4

static void list_needs(dmg_mailbox *mailbox, struct need needs[NEEDS])
{
    const dmg_mailbox_setup *setup = &mailbox->setup;
    uint64_t lines = (uint64_t)setup->ranks * lines_a_directory(setup->buffers_max);
    needs[0] = (struct need){(void **)&mailbox->senders, setup->workers * sizeof *mailbox->senders};
    needs[1] = (struct need){(void **)&mailbox->outgoing, lines * sizeof *mailbox->outgoing};
    needs[2] = (struct need){(void **)&mailbox->incoming, lines * sizeof *mailbox->incoming};
    needs[3] = (struct need){(void **)(void *)&mailbox->used_lines, setup->ranks * sizeof *mailbox->used_lines};
}

static uint64_t items_bytes(const dmg_mailbox *mailbox)
{
    return (uint64_t)mailbox->setup.ranks * mailbox->slot_bytes;
}

static dmg_status open_sender(dmg_mailbox *mailbox, struct sender *sender)
{
    const dmg_mailbox_setup *setup = &mailbox->setup;
    void *memory;
    dmg_status status =
        dmg_budget_allocate(setup->budget, DMG_BUDGET_UPDATES, setup->ranks * sizeof *sender->filling, &memory);
    sender->filling = memory;
    if (status == DMG_OK) {
        status = dmg_budget_allocate(setup->budget, DMG_BUDGET_UPDATES, items_bytes(mailbox), &memory);
        sender->items = memory;
    }
    for (uint32_t i = 0; i < setup->ranks && status == DMG_OK; i++) {
        sender->filling[i].items = sender->items + (uint64_t)i * mailbox->slot_bytes;
    }
    return status;
}

static dmg_status check(const dmg_mailbox_setup *setup)
{
    if (setup->ranks > DMG_COMPUTE_NODES_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "%u compute nodes: %d can redistribute updates among them", setup->ranks,
                         DMG_COMPUTE_NODES_MAX);
    }
    if (setup->item_bytes == 0 || setup->buffer_bytes < setup->item_bytes) {
        return dmg_error(DMG_ERR_ARGUMENT, "a buffer of %u bytes has no room for an item of %u bytes",
                         setup->buffer_bytes, setup->item_bytes);
    }
    if (setup->buffer_bytes > DMG_MAILBOX_BUFFER_BYTES_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "a buffer of %u bytes: at most %d are possible", setup->buffer_bytes,
                         DMG_MAILBOX_BUFFER_BYTES_MAX);
    }
    if (setup->buffers_max == 0 || setup->buffers_max > DMG_MAILBOX_BUFFERS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "%u buffers a pair of compute nodes: between 1 and %d are possible",
                         setup->buffers_max, DMG_MAILBOX_BUFFERS_MAX);
    }
    return DMG_OK;
}

dmg_status dmg_mailbox_create(const dmg_mailbox_setup *setup, dmg_mailbox **out)
{
    void *memory;
    *out = NULL;
    dmg_status status = check(setup);
    if (status == DMG_OK) {
        status = dmg_budget_allocate(setup->budget, DMG_BUDGET_UPDATES, sizeof **out, &memory);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_mailbox *mailbox = memory;
    mailbox->setup = *setup;
    mailbox->items_a_buffer = setup->buffer_bytes / setup->item_bytes;
    mailbox->slot_bytes = (setup->buffer_bytes + 63) & ~UINT32_C(63);
    mailbox->extent_buffers = mailbox->slot_bytes < EXTENT_BYTES ? (uint32_t)(EXTENT_BYTES / mailbox->slot_bytes) : 1;
    struct need needs[NEEDS];
    list_needs(mailbox, needs);
    for (uint32_t i = 0; i < NEEDS && status == DMG_OK; i++) {
        status = dmg_budget_allocate(setup->budget, DMG_BUDGET_UPDATES, needs[i].bytes, needs[i].memory);
    }
    for (uint32_t i = 0; i < setup->workers && status == DMG_OK; i++) {
        status = open_sender(mailbox, &mailbox->senders[i]);
    }
    if (status != DMG_OK) {
        dmg_mailbox_destroy(mailbox);
        return status;
    }
    *out = mailbox;
    return DMG_OK;
}

void dmg_mailbox_destroy(dmg_mailbox *mailbox)
{
    if (!mailbox) {
        return;
    }
    dmg_budget *budget = mailbox->setup.budget;
    for (uint32_t i = 0; mailbox->senders && i < mailbox->setup.workers; i++) {
        dmg_budget_free(budget, DMG_BUDGET_UPDATES, mailbox->senders[i].items, items_bytes(mailbox));
        dmg_budget_free(budget, DMG_BUDGET_UPDATES, mailbox->senders[i].filling,
                        mailbox->setup.ranks * sizeof(struct filling));
    }
    struct need needs[NEEDS];
    list_needs(mailbox, needs);
    for (uint32_t i = 0; i < NEEDS; i++) {
        dmg_budget_free(budget, DMG_BUDGET_UPDATES, *needs[i].memory, needs[i].bytes);
    }
    dmg_budget_free(budget, DMG_BUDGET_UPDATES, mailbox, sizeof *mailbox);
}

void dmg_mailbox_clear(dmg_mailbox *mailbox)
{
    mailbox->round++;
    for (uint32_t i = 0; i < mailbox->setup.ranks; i++) {
        atomic_store(&mailbox->used_lines[i], 0);
    }
    for (uint32_t i = 0; i < mailbox->setup.workers; i++) {
        mailbox->senders[i].used_buffers = 0;
        mailbox->senders[i].is_out_of_memory = false;
    }
    atomic_store(&mailbox->is_filling_up, false);
}

/* ---- sending ---- */

/* The first error stays until the flush; its context lies in this thread, where other calls may replace it. */
static void keep_error(struct sender *sender, dmg_status status)
{
    dmg_error_keep(&sender->error, status);
}

/* Pool memory for the next buffer, or null. Extents go round the memory nodes. */
static dmg_address next_buffer(dmg_mailbox *mailbox, dmg_channel *channel, struct sender *sender, uint32_t worker)
{
    uint32_t extent = sender->used_buffers / mailbox->extent_buffers;
    if (extent >= EXTENTS_MAX / 2) {
        atomic_store_explicit(&mailbox->is_filling_up, true, memory_order_relaxed);
    }
    if (extent == EXTENTS_MAX) {
        sender->is_out_of_memory = true;
        return DMG_ADDRESS_NULL;
    }
    if (extent == sender->extent_count) {
        uint32_t nodes = dmg_client_node_count(dmg_channel_client(channel));
        uint16_t node = (uint16_t)((mailbox->setup.rank * mailbox->setup.workers + worker + extent) % nodes);
        dmg_status status =
            dmg_pool_allocate(channel, node, mailbox->setup.job,
                              (uint64_t)mailbox->extent_buffers * mailbox->slot_bytes, &sender->extents[extent]);
        if (status != DMG_OK) {
            atomic_store_explicit(&mailbox->is_filling_up, true, memory_order_relaxed);
            sender->is_out_of_memory = true;
            if (status != DMG_ERR_MEMORY) {
                keep_error(sender, status);
            }
            return DMG_ADDRESS_NULL;
        }
        sender->extent_count++;
    }
    uint32_t index = sender->used_buffers++ % mailbox->extent_buffers;
    return sender->extents[extent] + (uint64_t)index * mailbox->slot_bytes;
}

/* Claim a line of the receiver's directory and memory for a buffer. False when there is none. */
static bool begin_buffer(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, uint32_t receiver)
{
    struct sender *sender = &mailbox->senders[worker];
    if (sender->is_out_of_memory) {
        return false;
    }
    uint32_t used = atomic_load(&mailbox->used_lines[receiver]);
    do {
        if (used == mailbox->setup.buffers_max) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&mailbox->used_lines[receiver], &used, used + 1));
    if (used + 1 > mailbox->setup.buffers_max / 2) {
        atomic_store_explicit(&mailbox->is_filling_up, true, memory_order_relaxed);
    }
    uint32_t line = used + 1;
    dmg_mailbox_line *entry = outgoing_line(mailbox, receiver, line);
    *entry = (dmg_mailbox_line){.address = next_buffer(mailbox, channel, sender, worker), .round = mailbox->round};
    if (entry->address == DMG_ADDRESS_NULL) {
        return false; /* the line stays, of a buffer without items */
    }
    sender->filling[receiver].line = line;
    return true;
}

static void write_buffer(dmg_mailbox *mailbox, dmg_channel *channel, struct sender *sender, uint32_t receiver)
{
    struct filling *filling = &sender->filling[receiver];
    dmg_mailbox_line *entry = outgoing_line(mailbox, receiver, filling->line);
    uint64_t bytes = (uint64_t)filling->count * mailbox->setup.item_bytes;
    entry->count = filling->count;
    keep_error(sender, dmg_write(channel, filling->items, entry->address, bytes));
    dmg_passed_add(&sender->sent, &(dmg_passed){.items = filling->count, .buffers = 1, .bytes = bytes});
    filling->line = 0;
    filling->count = 0;
}

void *dmg_mailbox_reserve(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, uint32_t receiver)
{
    struct sender *sender = &mailbox->senders[worker];
    struct filling *filling = &sender->filling[receiver];
    if (filling->count == mailbox->items_a_buffer) {
        write_buffer(mailbox, channel, sender, receiver);
    }
    if (filling->line == 0 && !begin_buffer(mailbox, channel, worker, receiver)) {
        return NULL;
    }
    return filling->items + (uint64_t)filling->count++ * mailbox->setup.item_bytes;
}

bool dmg_mailbox_is_filling_up(const dmg_mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->is_filling_up, memory_order_relaxed);
}

dmg_status dmg_mailbox_flush(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker)
{
    struct sender *sender = &mailbox->senders[worker];
    for (uint32_t receiver = 0; receiver < mailbox->setup.ranks; receiver++) {
        if (sender->filling[receiver].line != 0) {
            write_buffer(mailbox, channel, sender, receiver);
        }
    }
    dmg_status status = dmg_error_restore(&sender->error);
    sender->error.status = DMG_OK;
    return status;
}

dmg_status dmg_mailbox_publish(dmg_mailbox *mailbox, dmg_channel *channel)
{
    dmg_completion completion = {0};
    uint32_t rank = mailbox->setup.rank;
    for (uint32_t receiver = 0; receiver < mailbox->setup.ranks; receiver++) {
        if (receiver == rank) {
            continue;
        }
        uint32_t used = atomic_load(&mailbox->used_lines[receiver]);
        dmg_mailbox_line *directory = outgoing_line(mailbox, receiver, 0);
        directory[0] = (dmg_mailbox_line){.count = used, .round = mailbox->round};
        dmg_range_array_post_write(channel, mailbox->setup.directories, directory_of(mailbox, rank, receiver), used + 1,
                                   directory, &completion);
    }
    return dmg_wait(channel, &completion);
}

/* ---- receiving ---- */

/* Read the first lines of all directories that are for this rank; `heads` gets one a sender. */
static dmg_status read_heads(dmg_mailbox *mailbox, dmg_channel *channel, dmg_mailbox_line *heads)
{
    dmg_completion completion = {0};
    uint32_t rank = mailbox->setup.rank;
    for (uint32_t sender = 0; sender < mailbox->setup.ranks; sender++) {
        heads[sender] = (dmg_mailbox_line){.round = mailbox->round};
        if (sender != rank) {
            dmg_range_array_post_read(channel, mailbox->setup.directories, directory_of(mailbox, sender, rank), 1,
                                      &heads[sender], &completion);
        }
    }
    return dmg_wait(channel, &completion);
}

static dmg_status check_head(const dmg_mailbox *mailbox, uint32_t sender, const dmg_mailbox_line *head)
{
    if (head->round != mailbox->round) {
        return dmg_error(DMG_ERR_PROTOCOL, "rank %u has left buffers for round %u of redistribution; this is round %u",
                         sender, head->round, mailbox->round);
    }
    if (head->count > mailbox->setup.buffers_max) {
        return dmg_error(DMG_ERR_CORRUPT, "rank %u says that it has left %u buffers; there are at most %u", sender,
                         head->count, mailbox->setup.buffers_max);
    }
    return DMG_OK;
}

/* What this rank has left for itself needs no way over the pool. */
static void collect_own(dmg_mailbox *mailbox)
{
    uint32_t rank = mailbox->setup.rank;
    uint32_t used = atomic_load(&mailbox->used_lines[rank]);
    memcpy(mailbox->incoming + mailbox->incoming_count, outgoing_line(mailbox, rank, 1),
           used * sizeof *mailbox->incoming);
    mailbox->incoming_count += used;
}

dmg_status dmg_mailbox_collect(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t *count)
{
    dmg_mailbox_line heads[DMG_COMPUTE_NODES_MAX];
    dmg_completion completion = {0};
    mailbox->incoming_count = 0;
    atomic_store(&mailbox->incoming_taken, 0);
    *count = 0;
    dmg_status status = read_heads(mailbox, channel, heads);
    for (uint32_t sender = 0; sender < mailbox->setup.ranks && status == DMG_OK; sender++) {
        status = check_head(mailbox, sender, &heads[sender]);
        if (status == DMG_OK) {
            dmg_range_array_post_read(channel, mailbox->setup.directories,
                                      directory_of(mailbox, sender, mailbox->setup.rank) + 1, heads[sender].count,
                                      mailbox->incoming + mailbox->incoming_count, &completion);
            mailbox->incoming_count += heads[sender].count;
        }
    }
    collect_own(mailbox);
    dmg_status waited = dmg_wait(channel, &completion);
    status = status == DMG_OK ? waited : status;
    *count = status == DMG_OK ? mailbox->incoming_count : 0;
    return status;
}

dmg_status dmg_mailbox_receive(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, void *items,
                               uint32_t *count)
{
    *count = 0;
    while (*count == 0) {
        uint32_t index = atomic_fetch_add(&mailbox->incoming_taken, 1);
        if (index >= mailbox->incoming_count) {
            return DMG_OK;
        }
        const dmg_mailbox_line *buffer = &mailbox->incoming[index];
        if (buffer->count > mailbox->items_a_buffer || buffer->round != mailbox->round) {
            return dmg_error(DMG_ERR_CORRUPT,
                             "a buffer says that it has %u items of round %u; there are at most %u, of round %u",
                             buffer->count, buffer->round, mailbox->items_a_buffer, mailbox->round);
        }
        if (buffer->count == 0) {
            continue; /* its sender found no memory for it */
        }
        *count = buffer->count;
        uint64_t bytes = (uint64_t)buffer->count * mailbox->setup.item_bytes;
        dmg_status status = dmg_read(channel, buffer->address, items, bytes);
        if (status != DMG_OK) {
            return status;
        }
        dmg_passed_add(&mailbox->senders[worker].taken,
                       &(dmg_passed){.items = buffer->count, .buffers = 1, .bytes = bytes});
    }
    return DMG_OK;
}

/* ---- figures ---- */

uint32_t dmg_mailbox_items_a_buffer(const dmg_mailbox *mailbox)
{
    return mailbox->items_a_buffer;
}

uint32_t dmg_mailbox_item_bytes(const dmg_mailbox *mailbox)
{
    return mailbox->setup.item_bytes;
}

void dmg_mailbox_count(const dmg_mailbox *mailbox, dmg_passed *sent, dmg_passed *taken)
{
    for (uint32_t i = 0; i < mailbox->setup.workers; i++) {
        dmg_passed_add(sent, &mailbox->senders[i].sent);
        dmg_passed_add(taken, &mailbox->senders[i].taken);
    }
}
