#include "core/work/reschedule.h"

#include <pthread.h>
#include <stdatomic.h>

/* A list, or what is left of it. */
struct long_list {
    void *task;
    _Atomic uint64_t *unfinished;
    uint32_t list;
    uint32_t next; /* edge */
    uint32_t end;
};

struct buffer {
    _Alignas(64) pthread_mutex_t lock;
    _Atomic uint32_t count; /* of lists; looked at without the lock by workers that have nothing to do */
    uint32_t first;         /* in the ring */
    struct long_list lists[DMG_RESCHEDULE_LISTS];
};

struct dmg_reschedule {
    dmg_budget *budget;
    uint64_t bytes;
    uint32_t workers;
    uint32_t segment_edges;
    struct buffer buffers[];
};

dmg_status dmg_reschedule_create(dmg_budget *budget, uint32_t workers, uint32_t segment_edges,
                                 dmg_reschedule **reschedule)
{
    uint64_t bytes = sizeof **reschedule + workers * sizeof(struct buffer);
    void *memory;
    dmg_status status = dmg_budget_allocate(budget, DMG_BUDGET_RETRIEVAL, bytes, &memory);
    *reschedule = memory;
    if (status != DMG_OK) {
        return status;
    }
    (*reschedule)->budget = budget;
    (*reschedule)->bytes = bytes;
    (*reschedule)->workers = workers;
    (*reschedule)->segment_edges = segment_edges;
    for (uint32_t worker = 0; worker < workers; worker++) {
        pthread_mutex_init(&(*reschedule)->buffers[worker].lock, NULL);
    }
    return DMG_OK;
}

uint32_t dmg_reschedule_segment_edges(const dmg_reschedule *reschedule)
{
    return reschedule->segment_edges;
}

void dmg_reschedule_destroy(dmg_reschedule *reschedule)
{
    if (!reschedule) {
        return;
    }
    for (uint32_t worker = 0; worker < reschedule->workers; worker++) {
        pthread_mutex_destroy(&reschedule->buffers[worker].lock);
    }
    dmg_budget_free(reschedule->budget, DMG_BUDGET_RETRIEVAL, reschedule, reschedule->bytes);
}

bool dmg_reschedule_add(dmg_reschedule *reschedule, uint32_t worker, void *task, uint32_t list, uint32_t count,
                        _Atomic uint64_t *unfinished)
{
    struct buffer *buffer = &reschedule->buffers[worker];
    pthread_mutex_lock(&buffer->lock);
    uint32_t waiting = atomic_load_explicit(&buffer->count, memory_order_relaxed);
    bool has_room = waiting < DMG_RESCHEDULE_LISTS;
    if (has_room) {
        buffer->lists[(buffer->first + waiting) % DMG_RESCHEDULE_LISTS] =
            (struct long_list){.task = task, .unfinished = unfinished, .list = list, .end = count};
        atomic_fetch_add_explicit(unfinished, count, memory_order_relaxed);
        atomic_store_explicit(&buffer->count, waiting + 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&buffer->lock);
    return has_room;
}

static bool take_from(dmg_reschedule *reschedule, struct buffer *buffer, dmg_list_piece *segment)
{
    if (atomic_load_explicit(&buffer->count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&buffer->lock);
    uint32_t waiting = atomic_load_explicit(&buffer->count, memory_order_relaxed);
    if (waiting > 0) {
        struct long_list *list = &buffer->lists[buffer->first];
        uint32_t left = list->end - list->next;
        uint32_t count = left < reschedule->segment_edges ? left : reschedule->segment_edges;
        *segment = (dmg_list_piece){list->task, list->unfinished, list->list, list->next, count};
        list->next += count;
        if (list->next == list->end) {
            buffer->first = (buffer->first + 1) % DMG_RESCHEDULE_LISTS;
            atomic_store_explicit(&buffer->count, waiting - 1, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&buffer->lock);
    return waiting > 0;
}

bool dmg_reschedule_take(dmg_reschedule *reschedule, uint32_t worker, dmg_list_piece *segment)
{
    return take_from(reschedule, &reschedule->buffers[worker], segment);
}

bool dmg_reschedule_steal(dmg_reschedule *reschedule, uint32_t worker, dmg_list_piece *segment)
{
    for (uint32_t i = 1; i < reschedule->workers; i++) {
        if (take_from(reschedule, &reschedule->buffers[(worker + i) % reschedule->workers], segment)) {
            return true;
        }
    }
    return false;
}

void dmg_reschedule_finish(const dmg_list_piece *segment)
{
    atomic_fetch_sub_explicit(segment->unfinished, segment->count, memory_order_release);
}

void dmg_reschedule_clear(dmg_reschedule *reschedule, uint32_t worker)
{
    struct buffer *buffer = &reschedule->buffers[worker];
    pthread_mutex_lock(&buffer->lock);
    uint32_t waiting = atomic_load_explicit(&buffer->count, memory_order_relaxed);
    for (; waiting > 0; waiting--) {
        struct long_list *list = &buffer->lists[buffer->first];
        atomic_fetch_sub_explicit(list->unfinished, list->end - list->next, memory_order_release);
        buffer->first = (buffer->first + 1) % DMG_RESCHEDULE_LISTS;
    }
    atomic_store_explicit(&buffer->count, 0, memory_order_relaxed);
    pthread_mutex_unlock(&buffer->lock);
}
