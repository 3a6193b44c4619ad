#include "core/update/reference_redistribution.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define DIRECTORY_LINES (DMG_REFERENCE_BUFFERS_MAX + 1)
/* A worker takes pool memory for so many buffers at once. */
#define EXTENT_BUFFERS 64
#define EXTENTS_MAX    256

/* A buffer that is being filled. */
struct filling {
    uint32_t line; /* of the receiver's directory; 0: none, the buffer is empty */
    uint32_t count;
    dmg_reference references[DMG_REFERENCES_A_BUFFER];
};

struct sender {
    uint32_t extent_count;
    uint32_t used_buffers; /* of all extents, in this iteration */
    dmg_status status;
    char sentence[512];
    dmg_address extents[EXTENTS_MAX];
    struct filling *filling; /* one a receiver */
};

struct dmg_reference_board {
    dmg_budget *budget;
    uint32_t rank;
    uint32_t ranks;
    uint32_t workers;
    uint64_t job;
    const dmg_range_array *directories;
    struct sender *senders;
    dmg_reference_buffer *outgoing; /* ranks directories */
    _Atomic uint32_t *used_lines;   /* of each, without line 0 */
    dmg_reference_buffer *incoming; /* all buffers for this rank */
    uint32_t incoming_count;
    _Atomic uint32_t incoming_taken;
    _Atomic uint64_t sent;
};

uint64_t dmg_reference_board_elements(uint32_t ranks)
{
    return (uint64_t)ranks * ranks * DIRECTORY_LINES;
}

/* Where the directory of a pair of ranks begins. */
static uint64_t directory_of(const dmg_reference_board *board, uint32_t sender, uint32_t receiver)
{
    return ((uint64_t)receiver * board->ranks + sender) * DIRECTORY_LINES;
}

/* ---- memory ---- */

struct need {
    void **memory;
    uint64_t bytes;
};

static uint32_t list_needs(dmg_reference_board *board, struct need needs[4])
{
    uint64_t lines = (uint64_t)board->ranks * DIRECTORY_LINES;
    needs[0] = (struct need){(void **)&board->senders, board->workers * sizeof *board->senders};
    needs[1] = (struct need){(void **)&board->outgoing, lines * sizeof *board->outgoing};
    needs[2] = (struct need){(void **)&board->incoming, lines * sizeof *board->incoming};
    needs[3] = (struct need){(void **)(void *)&board->used_lines, board->ranks * sizeof *board->used_lines};
    return 4;
}

dmg_status dmg_reference_board_create(dmg_budget *budget, uint32_t rank, uint32_t ranks, uint32_t workers, uint64_t job,
                                      const dmg_range_array *directories, dmg_reference_board **out)
{
    void *memory;
    *out = NULL;
    if (ranks > DMG_RANKS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "%u compute nodes: redistribution by reference works with %d at most", ranks,
                         DMG_RANKS_MAX);
    }
    dmg_status status = dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, sizeof **out, &memory);
    if (status != DMG_OK) {
        return status;
    }
    dmg_reference_board *board = memory;
    board->budget = budget;
    board->rank = rank;
    board->ranks = ranks;
    board->workers = workers;
    board->job = job;
    board->directories = directories;
    struct need needs[4];
    uint32_t count = list_needs(board, needs);
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        status = dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, needs[i].bytes, needs[i].memory);
    }
    for (uint32_t i = 0; i < workers && status == DMG_OK; i++) {
        status = dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, ranks * sizeof(struct filling), &memory);
        board->senders[i].filling = memory;
    }
    if (status != DMG_OK) {
        dmg_reference_board_destroy(board);
        return status;
    }
    *out = board;
    return DMG_OK;
}

void dmg_reference_board_destroy(dmg_reference_board *board)
{
    if (!board) {
        return;
    }
    for (uint32_t i = 0; board->senders && i < board->workers; i++) {
        dmg_budget_free(board->budget, DMG_BUDGET_UPDATES, board->senders[i].filling,
                        board->ranks * sizeof(struct filling));
    }
    struct need needs[4];
    uint32_t count = list_needs(board, needs);
    for (uint32_t i = 0; i < count; i++) {
        dmg_budget_free(board->budget, DMG_BUDGET_UPDATES, *needs[i].memory, needs[i].bytes);
    }
    dmg_budget_free(board->budget, DMG_BUDGET_UPDATES, board, sizeof *board);
}

void dmg_reference_board_clear(dmg_reference_board *board)
{
    for (uint32_t i = 0; i < board->ranks; i++) {
        atomic_store(&board->used_lines[i], 0);
    }
    for (uint32_t i = 0; i < board->workers; i++) {
        board->senders[i].used_buffers = 0;
    }
}

/* ---- sending ---- */

/* Pool memory for the next buffer, or null. Extents go round the memory nodes. */
static dmg_address next_buffer(dmg_reference_board *board, dmg_channel *channel, struct sender *sender, uint32_t worker)
{
    uint32_t extent = sender->used_buffers / EXTENT_BUFFERS;
    if (extent == EXTENTS_MAX) {
        return DMG_ADDRESS_NULL;
    }
    if (extent == sender->extent_count) {
        uint32_t nodes = dmg_client_node_count(dmg_channel_client(channel));
        uint16_t node = (uint16_t)((board->rank * board->workers + worker + extent) % nodes);
        dmg_status status = dmg_pool_allocate(channel, node, board->job, EXTENT_BUFFERS * DMG_REFERENCE_BUFFER_BYTES,
                                              &sender->extents[extent]);
        if (status != DMG_OK) {
            return DMG_ADDRESS_NULL;
        }
        sender->extent_count++;
    }
    uint32_t index = sender->used_buffers++ % EXTENT_BUFFERS;
    return sender->extents[extent] + index * DMG_REFERENCE_BUFFER_BYTES;
}

/* Claim a line of the receiver's directory and memory for a buffer. False when there is none. */
static bool begin_buffer(dmg_reference_board *board, dmg_channel *channel, uint32_t worker, uint32_t receiver)
{
    struct sender *sender = &board->senders[worker];
    uint32_t used = atomic_load(&board->used_lines[receiver]);
    do {
        if (used == DMG_REFERENCE_BUFFERS_MAX) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&board->used_lines[receiver], &used, used + 1));
    uint32_t line = used + 1;
    dmg_reference_buffer *entry = &board->outgoing[(uint64_t)receiver * DIRECTORY_LINES + line];
    *entry = (dmg_reference_buffer){.address = next_buffer(board, channel, sender, worker)};
    if (entry->address == DMG_ADDRESS_NULL) {
        return false; /* the line stays, of a buffer without references */
    }
    sender->filling[receiver].line = line;
    return true;
}

static void write_buffer(dmg_reference_board *board, dmg_channel *channel, struct sender *sender, uint32_t receiver)
{
    struct filling *filling = &sender->filling[receiver];
    dmg_reference_buffer *entry = &board->outgoing[(uint64_t)receiver * DIRECTORY_LINES + filling->line];
    entry->count = filling->count;
    dmg_status status =
        dmg_write(channel, filling->references, entry->address, filling->count * sizeof *filling->references);
    if (status != DMG_OK && sender->status == DMG_OK) {
        sender->status = status;
        snprintf(sender->sentence, sizeof sender->sentence, "%s", dmg_error_message());
    }
    atomic_fetch_add_explicit(&board->sent, filling->count, memory_order_relaxed);
    filling->line = 0;
    filling->count = 0;
}

bool dmg_reference_send(dmg_reference_board *board, dmg_channel *channel, uint32_t worker, uint32_t receiver,
                        const dmg_reference *reference)
{
    struct sender *sender = &board->senders[worker];
    struct filling *filling = &sender->filling[receiver];
    if (filling->line == 0 && !begin_buffer(board, channel, worker, receiver)) {
        return false;
    }
    filling->references[filling->count++] = *reference;
    if (filling->count == DMG_REFERENCES_A_BUFFER) {
        write_buffer(board, channel, sender, receiver);
    }
    return true;
}

dmg_status dmg_reference_flush(dmg_reference_board *board, dmg_channel *channel, uint32_t worker)
{
    struct sender *sender = &board->senders[worker];
    for (uint32_t receiver = 0; receiver < board->ranks; receiver++) {
        if (sender->filling[receiver].line != 0) {
            write_buffer(board, channel, sender, receiver);
        }
    }
    dmg_status status = sender->status;
    sender->status = DMG_OK;
    return status == DMG_OK ? DMG_OK : dmg_error(status, "%s", sender->sentence);
}

dmg_status dmg_reference_publish(dmg_reference_board *board, dmg_channel *channel)
{
    dmg_completion completion = {0};
    for (uint32_t receiver = 0; receiver < board->ranks; receiver++) {
        if (receiver == board->rank) {
            continue;
        }
        uint32_t used = atomic_load(&board->used_lines[receiver]);
        dmg_reference_buffer *directory = &board->outgoing[(uint64_t)receiver * DIRECTORY_LINES];
        directory[0] = (dmg_reference_buffer){.count = used};
        dmg_range_array_post_write(channel, board->directories, directory_of(board, board->rank, receiver), used + 1,
                                   directory, &completion);
    }
    return dmg_wait(channel, &completion);
}

/* ---- receiving ---- */

/* Read the first lines of all directories that are for this rank; `heads` gets one a sender. */
static dmg_status read_heads(dmg_reference_board *board, dmg_channel *channel, dmg_reference_buffer *heads)
{
    dmg_completion completion = {0};
    for (uint32_t sender = 0; sender < board->ranks; sender++) {
        heads[sender] = (dmg_reference_buffer){0};
        if (sender != board->rank) {
            dmg_range_array_post_read(channel, board->directories, directory_of(board, sender, board->rank), 1,
                                      &heads[sender], &completion);
        }
    }
    return dmg_wait(channel, &completion);
}

dmg_status dmg_reference_collect(dmg_reference_board *board, dmg_channel *channel, uint32_t *count)
{
    dmg_reference_buffer heads[DMG_RANKS_MAX];
    dmg_completion completion = {0};
    board->incoming_count = 0;
    atomic_store(&board->incoming_taken, 0);
    *count = 0;
    dmg_status status = read_heads(board, channel, heads);
    for (uint32_t sender = 0; sender < board->ranks && status == DMG_OK; sender++) {
        if (heads[sender].count > DMG_REFERENCE_BUFFERS_MAX) {
            status = dmg_error(DMG_ERR_CORRUPT,
                               "rank %u says that it has left %" PRIu64 " buffers of references; there are "
                               "at most %d",
                               sender, heads[sender].count, DMG_REFERENCE_BUFFERS_MAX);
            break;
        }
        dmg_range_array_post_read(channel, board->directories, directory_of(board, sender, board->rank) + 1,
                                  heads[sender].count, board->incoming + board->incoming_count, &completion);
        board->incoming_count += (uint32_t)heads[sender].count;
    }
    dmg_status waited = dmg_wait(channel, &completion);
    status = status == DMG_OK ? waited : status;
    *count = status == DMG_OK ? board->incoming_count : 0;
    return status;
}

dmg_status dmg_reference_take(dmg_reference_board *board, dmg_channel *channel, dmg_reference *references,
                              uint32_t *count)
{
    *count = 0;
    while (*count == 0) {
        uint32_t index = atomic_fetch_add(&board->incoming_taken, 1);
        if (index >= board->incoming_count) {
            return DMG_OK;
        }
        const dmg_reference_buffer *buffer = &board->incoming[index];
        if (buffer->count > DMG_REFERENCES_A_BUFFER) {
            return dmg_error(DMG_ERR_CORRUPT, "a buffer says that it has %" PRIu64 " references; there are at most %zu",
                             buffer->count, DMG_REFERENCES_A_BUFFER);
        }
        *count = (uint32_t)buffer->count;
        dmg_status status = dmg_read(channel, buffer->address, references, *count * sizeof *references);
        if (status != DMG_OK) {
            return status;
        }
    }
    return DMG_OK;
}

uint64_t dmg_reference_sent(const dmg_reference_board *board)
{
    return atomic_load_explicit(&board->sent, memory_order_relaxed);
}
