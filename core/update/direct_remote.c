#include "core/update/direct_remote.h"

#include "core/base/error.h"

#include <stdlib.h>

#define LINE_BYTES 64

/* Enough to keep a link busy for several round trips, and small enough to stay in the first-level caches. */
#define QUEUE_UPDATES 1024

struct update {
    uint32_t vertex;
    uint64_t value;
};

/* All updates of a queue that go to one word of the pool. */
struct word_update {
    dmg_address address;
    uint64_t expected; /* what the word was when last seen */
    uint64_t desired;
    uint64_t observed;
    uint32_t first; /* in the ordered updates */
    uint32_t count;
    bool is_done;
};

struct dmg_direct_remote {
    dmg_client *client;
    dmg_channel *channel;
    dmg_budget *budget;
    dmg_update_target target;
    dmg_update_counters counters;
    bool is_mapped;
    bool attributes_are_halves;
    dmg_status status;
    uint32_t count;
    struct update updates[QUEUE_UPDATES];
    struct word_update words[QUEUE_UPDATES];
    uint32_t changed[QUEUE_UPDATES]; /* vertices whose attribute was lowered, ascending */
};

dmg_status dmg_direct_remote_create(dmg_client *client, dmg_channel *channel, dmg_budget *budget,
                                    dmg_direct_remote **queue)
{
    const uint32_t needed = DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT;
    const dmg_capabilities *capabilities = dmg_client_capabilities(client);
    void *memory;
    dmg_status status = dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, sizeof **queue, &memory);
    *queue = memory;
    if (status != DMG_OK) {
        return status;
    }
    (*queue)->client = client;
    (*queue)->channel = channel;
    (*queue)->budget = budget;
    (*queue)->is_mapped = (capabilities->flags & needed) == needed && dmg_atomics_are_by_caller(capabilities->atomics);
    return DMG_OK;
}

void dmg_direct_remote_destroy(dmg_direct_remote *queue)
{
    if (queue) {
        dmg_budget_free(queue->budget, DMG_BUDGET_UPDATES, queue, sizeof *queue);
    }
}

void dmg_direct_remote_set_target(dmg_direct_remote *queue, const dmg_update_target *target)
{
    queue->target = *target;
    queue->attributes_are_halves = dmg_combine_bytes(target->combine) == 4;
}

const dmg_update_counters *dmg_direct_remote_count(const dmg_direct_remote *queue)
{
    return &queue->counters;
}

/* ---- in place ---- */

static void activate_mapped(dmg_direct_remote *queue, uint32_t vertex)
{
    dmg_address address = dmg_range_array_address(queue->target.activation, vertex / 64);
    _Atomic uint64_t *word = dmg_client_pointer(queue->client, address, sizeof *word);
    queue->counters.activated += dmg_set_bit_atomically(word, vertex);
}

static void update_mapped(dmg_direct_remote *queue, uint32_t vertex, uint64_t update)
{
    dmg_address address = dmg_range_array_address(queue->target.attributes, vertex);
    bool half = queue->attributes_are_halves && (address & 4) != 0;
    _Atomic uint64_t *word = dmg_client_pointer(queue->client, address & ~UINT64_C(7), sizeof *word);
    uint64_t swaps = 0;
    bool is_changed = dmg_combine_atomically(queue->target.combine, word, half, update, &swaps);
    for (uint64_t i = 0; i < swaps; i++) {
        dmg_channel_charge_atomic(queue->channel, address & ~UINT64_C(7));
    }
    queue->counters.lost_swaps += swaps - is_changed;
    dmg_channel_count_lost_swaps(queue->channel, swaps - is_changed);
    if (!is_changed) {
        return;
    }
    queue->counters.applied++;
    if (queue->target.activation) {
        activate_mapped(queue, vertex);
    }
}

/* ---- in place, without locks ---- */

static _Atomic uint64_t *word_at(const dmg_direct_remote *queue, dmg_address address)
{
    return dmg_client_pointer(queue->client, address & ~UINT64_C(7), sizeof(uint64_t));
}

static bool is_upper_half(const dmg_direct_remote *queue, dmg_address attribute)
{
    return queue->attributes_are_halves && (attribute & 4) != 0;
}

/* Account for fetching the line of a word, once for neighbours. */
static void fetch_word(dmg_direct_remote *queue, dmg_address address, dmg_address *last)
{
    if (address / LINE_BYTES != *last / LINE_BYTES) {
        dmg_channel_charge_read_ahead(queue->channel, address & ~UINT64_C(7), sizeof(uint64_t));
        *last = address;
    }
}

/* The same for writing it back. */
static void write_back_word(dmg_direct_remote *queue, dmg_address address, dmg_address *last)
{
    if (address / LINE_BYTES != *last / LINE_BYTES) {
        dmg_channel_charge_write_ahead(queue->channel, address & ~UINT64_C(7), sizeof(uint64_t));
        *last = address;
    }
}

/* The queued updates that change something go to the front, and the lines that they need are fetched together. */
static void fetch_changing(dmg_direct_remote *queue)
{
    dmg_address last_attribute = DMG_ADDRESS_NULL;
    dmg_address last_activation = DMG_ADDRESS_NULL;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct update update = queue->updates[i];
        dmg_address attribute = dmg_range_array_address(queue->target.attributes, update.vertex);
        uint64_t seen = atomic_load_explicit(word_at(queue, attribute), memory_order_relaxed);
        if (dmg_combine_word(queue->target.combine, seen, is_upper_half(queue, attribute), update.value) == seen) {
            continue;
        }
        queue->updates[kept++] = update;
        fetch_word(queue, attribute, &last_attribute);
        if (queue->target.activation) {
            fetch_word(queue, dmg_range_array_address(queue->target.activation, update.vertex / 64), &last_activation);
        }
    }
    queue->count = kept;
    dmg_channel_charge_wait(queue->channel);
}

/* Own updates, a queue at a time: fetch, change among this compute node's threads, write back. */
static void carry_out_own(dmg_direct_remote *queue)
{
    dmg_address last_attribute = DMG_ADDRESS_NULL;
    dmg_address last_activation = DMG_ADDRESS_NULL;
    if (queue->count == 0) {
        return;
    }
    fetch_changing(queue);
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct update *update = &queue->updates[i];
        dmg_address attribute = dmg_range_array_address(queue->target.attributes, update->vertex);
        uint64_t swaps = 0;
        bool is_changed = dmg_combine_atomically(queue->target.combine, word_at(queue, attribute),
                                                 is_upper_half(queue, attribute), update->value, &swaps);
        queue->counters.lost_swaps += swaps - is_changed;
        dmg_channel_count_lost_swaps(queue->channel, swaps - is_changed);
        if (!is_changed) {
            continue;
        }
        queue->counters.applied++;
        write_back_word(queue, attribute, &last_attribute);
        if (queue->target.activation) {
            dmg_address activation = dmg_range_array_address(queue->target.activation, update->vertex / 64);
            if (dmg_set_bit_atomically(word_at(queue, activation), update->vertex)) {
                queue->counters.activated++;
                write_back_word(queue, activation, &last_activation);
            }
        }
    }
    dmg_channel_charge_wait(queue->channel);
    queue->count = 0;
}

/* ---- by operations ---- */

static int compare_updates(const void *a, const void *b)
{
    const struct update *left = a;
    const struct update *right = b;
    return (left->vertex > right->vertex) - (left->vertex < right->vertex);
}

/* The word's value after all updates to it. */
static uint64_t combine_all(const dmg_direct_remote *queue, const struct word_update *word, uint64_t value)
{
    for (uint32_t i = word->first; i < word->first + word->count; i++) {
        const struct update *update = &queue->updates[i];
        dmg_address address = dmg_range_array_address(queue->target.attributes, update->vertex);
        bool half = queue->attributes_are_halves && (address & 4) != 0;
        value = dmg_combine_word(queue->target.combine, value, half, update->value);
    }
    return value;
}

/* Order the updates and group those of one word; returns the number of words. */
static uint32_t group_by_word(dmg_direct_remote *queue)
{
    qsort(queue->updates, queue->count, sizeof *queue->updates, compare_updates);
    uint32_t words = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        dmg_address address =
            dmg_range_array_address(queue->target.attributes, queue->updates[i].vertex) & ~UINT64_C(7);
        if (words == 0 || queue->words[words - 1].address != address) {
            queue->words[words++] = (struct word_update){.address = address, .first = i};
        }
        queue->words[words - 1].count++;
    }
    return words;
}

/*
 * Swap every word that is not done yet from `expected` to `desired`, all in flight together. Words whose swap lost get
 * what was observed as their new expectation. Returns how many lost.
 */
static uint32_t swap_round(dmg_direct_remote *queue, uint32_t words)
{
    dmg_completion completion = {0};
    for (uint32_t i = 0; i < words; i++) {
        struct word_update *word = &queue->words[i];
        if (!word->is_done) {
            dmg_post_cas64(queue->channel, word->address, word->expected, word->desired, &word->observed, &completion);
        }
    }
    queue->status = dmg_wait(queue->channel, &completion);
    if (queue->status != DMG_OK) {
        return 0;
    }
    uint32_t lost = 0;
    for (uint32_t i = 0; i < words; i++) {
        struct word_update *word = &queue->words[i];
        if (word->is_done) {
            continue;
        }
        word->is_done = word->observed == word->expected;
        word->expected = word->observed;
        lost += !word->is_done;
    }
    queue->counters.lost_swaps += lost;
    dmg_channel_count_lost_swaps(queue->channel, lost);
    return lost;
}

static void read_words(dmg_direct_remote *queue, uint32_t words)
{
    dmg_completion completion = {0};
    for (uint32_t i = 0; i < words; i++) {
        dmg_post_read(queue->channel, queue->words[i].address, &queue->words[i].expected, 8, &completion);
    }
    queue->status = dmg_wait(queue->channel, &completion);
}

/* Note the vertices whose attribute the swap lowered: those that the old word did not satisfy. */
static uint32_t note_changed(dmg_direct_remote *queue, const struct word_update *word, uint64_t before,
                             uint32_t changed)
{
    for (uint32_t i = word->first; i < word->first + word->count; i++) {
        const struct update *update = &queue->updates[i];
        dmg_address address = dmg_range_array_address(queue->target.attributes, update->vertex);
        bool half = queue->attributes_are_halves && (address & 4) != 0;
        bool is_repeat = changed > 0 && queue->changed[changed - 1] == update->vertex;
        if (!is_repeat && dmg_combine_word(queue->target.combine, before, half, update->value) != before) {
            queue->changed[changed++] = update->vertex;
        }
    }
    return changed;
}

/* Apply the queued updates to the attributes; returns how many vertices changed (listed in `changed`). */
static uint32_t apply_updates(dmg_direct_remote *queue)
{
    uint32_t words = group_by_word(queue);
    read_words(queue, words);
    uint32_t left = words;
    while (queue->status == DMG_OK && left > 0) {
        for (uint32_t i = 0; i < words; i++) {
            struct word_update *word = &queue->words[i];
            if (word->is_done) {
                continue;
            }
            word->desired = combine_all(queue, word, word->expected);
            if (word->desired == word->expected) {
                word->is_done = true;
                word->count = 0; /* nothing changed here */
            }
        }
        left = swap_round(queue, words);
    }
    uint32_t changed = 0;
    for (uint32_t i = 0; i < words && queue->status == DMG_OK; i++) {
        changed = note_changed(queue, &queue->words[i], queue->words[i].expected, changed);
    }
    return changed;
}

/* Set the bits of the changed vertices in the activation bitmap. */
static void activate_changed(dmg_direct_remote *queue, uint32_t changed)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < changed; i++) {
        dmg_address address = dmg_range_array_address(queue->target.activation, queue->changed[i] / 64);
        if (words == 0 || queue->words[words - 1].address != address) {
            queue->words[words++] = (struct word_update){.address = address, .first = i};
        }
        queue->words[words - 1].count++;
    }
    read_words(queue, words);
    uint32_t left = words;
    while (queue->status == DMG_OK && left > 0) {
        for (uint32_t i = 0; i < words; i++) {
            struct word_update *word = &queue->words[i];
            if (word->is_done) {
                continue;
            }
            uint64_t bits = 0;
            for (uint32_t j = word->first; j < word->first + word->count; j++) {
                bits |= UINT64_C(1) << (queue->changed[j] % 64);
            }
            word->desired = word->expected | bits;
            word->is_done = word->desired == word->expected;
        }
        left = swap_round(queue, words);
    }
    for (uint32_t i = 0; i < words && queue->status == DMG_OK; i++) {
        const struct word_update *word = &queue->words[i];
        queue->counters.activated += (uint64_t)__builtin_popcountll(word->desired & ~word->expected);
    }
}

static void carry_out(dmg_direct_remote *queue)
{
    if (queue->status == DMG_OK && queue->count > 0) {
        uint32_t changed = apply_updates(queue);
        queue->counters.applied += changed;
        if (queue->target.activation && changed > 0 && queue->status == DMG_OK) {
            activate_changed(queue, changed);
        }
    }
    queue->count = 0;
}

static void carry_out_all(dmg_direct_remote *queue)
{
    if (queue->is_mapped) {
        carry_out_own(queue); /* others are not queued */
    } else {
        carry_out(queue);
    }
}

static void take(dmg_direct_remote *queue, uint32_t vertex, uint64_t value, bool is_own)
{
    if (queue->is_mapped && !is_own) {
        update_mapped(queue, vertex, value);
        return;
    }
    queue->updates[queue->count++] = (struct update){vertex, value};
    if (queue->count == QUEUE_UPDATES) {
        carry_out_all(queue);
    }
}

void dmg_direct_remote_update(dmg_direct_remote *queue, uint32_t vertex, uint64_t value)
{
    queue->counters.updates++;
    take(queue, vertex, value, queue->target.has_one_writer);
}

void dmg_direct_remote_update_own(dmg_direct_remote *queue, uint32_t vertex, uint64_t value)
{
    take(queue, vertex, value, true);
}

dmg_status dmg_direct_remote_flush(dmg_direct_remote *queue)
{
    carry_out_all(queue);
    dmg_status status = queue->status;
    queue->status = DMG_OK;
    return status;
}
