/*
 * One side of a control area: publishing messages, finding those of the other side, sleeping and waking.
 *
 * Everything here is written twice: for memory that the hardware keeps coherent, by atomic loads and stores, and for
 * memory that it does not, by the steps of coherence.h.
 */
#include "core/base/error.h"
#include "transport/cxl_shm/shm.h"

#include <stddef.h>

#define SLOT_AND_TYPE      offsetof(dmg_shm_entry, slot_and_type)
#define BYTES_AND_SEQUENCE offsetof(dmg_shm_entry, bytes_and_sequence)

dmg_status dmg_shm_side_open(const dmg_shm_coherence *coherence, dmg_shm_control *control, bool is_server,
                             dmg_shm_side *side)
{
    *side = (dmg_shm_side){.outgoing = is_server ? DMG_SHM_ANSWERS : DMG_SHM_REQUESTS,
                           .incoming = is_server ? DMG_SHM_REQUESTS : DMG_SHM_ANSWERS,
                           .own_flag = is_server ? DMG_SHM_SERVER_IS_ASLEEP : DMG_SHM_CLIENT_IS_ASLEEP,
                           .other_flag = is_server ? DMG_SHM_CLIENT_IS_ASLEEP : DMG_SHM_SERVER_IS_ASLEEP};
    return dmg_shm_view_open(coherence, control, sizeof *control, &side->view);
}

void dmg_shm_side_close(dmg_shm_agent *agent, dmg_shm_side *side)
{
    dmg_shm_agent_forget(agent, &side->view);
    dmg_shm_view_close(&side->view);
}

static uint64_t entry_offset(uint64_t queue, uint32_t position)
{
    return queue + (position % DMG_SHM_SLOTS) * sizeof(dmg_shm_entry);
}

static uint64_t payload_offset(uint32_t slot)
{
    return offsetof(dmg_shm_control, payloads) + (uint64_t)slot * DMG_MESSAGE_BYTES_MAX;
}

void dmg_shm_send(dmg_shm_agent *agent, dmg_shm_side *side, const dmg_shm_message *message, const void *payload)
{
    uint32_t position = side->published++;
    if (!agent->coherence.is_software) {
        char *at = side->view.memory;
        if (message->bytes > 0) {
            memcpy(at + payload_offset(message->slot), payload, message->bytes);
        }
        dmg_shm_entry_publish((dmg_shm_entry *)(void *)(at + side->outgoing), position, message);
        return;
    }
    uint64_t slot_and_type = message->slot | (uint64_t)message->type_or_status << 32;
    uint64_t bytes_and_sequence = message->bytes | (uint64_t)(position + 1) << 32;
    uint64_t entry = entry_offset(side->outgoing, position);
    /* The fence comes also without a payload: what this thread wrote back before has arrived when the message has. */
    dmg_shm_write(agent, &side->view, payload_offset(message->slot), payload, message->bytes, DMG_SHM_PAYLOAD_WRITE);
    /* The sequence number last, and at the reader first: the line may leave the cache between the two. */
    dmg_shm_store(agent, &side->view, entry + SLOT_AND_TYPE, &slot_and_type, sizeof slot_and_type);
    dmg_shm_write(agent, &side->view, entry + BYTES_AND_SEQUENCE, &bytes_and_sequence, sizeof bytes_and_sequence,
                  DMG_SHM_ENTRY_WRITE);
}

bool dmg_shm_peek(dmg_shm_agent *agent, const dmg_shm_side *side, dmg_shm_message *message)
{
    uint64_t slot_and_type;
    uint64_t bytes_and_sequence;
    uint64_t offset = entry_offset(side->incoming, side->taken);
    if (agent->coherence.is_software) {
        dmg_shm_read(agent, &side->view, offset + BYTES_AND_SEQUENCE, &bytes_and_sequence, sizeof bytes_and_sequence,
                     DMG_SHM_ENTRY_READ);
        dmg_shm_load(agent, &side->view, offset + SLOT_AND_TYPE, &slot_and_type, sizeof slot_and_type);
    } else {
        dmg_shm_entry *entry = (dmg_shm_entry *)(void *)(side->view.memory + offset);
        bytes_and_sequence = atomic_load_explicit(&entry->bytes_and_sequence, memory_order_seq_cst);
        slot_and_type = atomic_load_explicit(&entry->slot_and_type, memory_order_relaxed);
    }
    if (bytes_and_sequence >> 32 != (uint32_t)(side->taken + 1)) {
        return false;
    }
    *message = (dmg_shm_message){.slot = (uint32_t)slot_and_type,
                                 .type_or_status = (uint32_t)(slot_and_type >> 32),
                                 .bytes = (uint32_t)bytes_and_sequence};
    return true;
}

const void *dmg_shm_payload(dmg_shm_agent *agent, const dmg_shm_side *side, const dmg_shm_message *message,
                            void *buffer)
{
    if (!agent->coherence.is_software) {
        return side->view.memory + payload_offset(message->slot);
    }
    dmg_shm_read(agent, &side->view, payload_offset(message->slot), buffer, message->bytes, DMG_SHM_PAYLOAD_READ);
    return buffer;
}

/* ---- sleeping ---- */

static _Atomic uint32_t *flag_at(const dmg_shm_side *side, uint64_t offset)
{
    return (_Atomic uint32_t *)(void *)(side->view.memory + offset);
}

void dmg_shm_set_asleep(dmg_shm_agent *agent, dmg_shm_side *side, bool is_asleep)
{
    if (!agent->coherence.is_software) {
        atomic_store_explicit(flag_at(side, side->own_flag), is_asleep,
                              is_asleep ? memory_order_seq_cst : memory_order_relaxed);
    } else if (is_asleep != side->sleeps % 2) {
        side->sleeps++;
        dmg_shm_write(agent, &side->view, side->own_flag, &side->sleeps, sizeof side->sleeps, DMG_SHM_ASLEEP_WRITE);
    }
}

void dmg_shm_wake(dmg_shm_agent *agent, dmg_shm_side *side, dmg_shm_line *line)
{
    if (agent->coherence.is_software) {
        uint32_t sleeps;
        dmg_shm_read(agent, &side->view, side->other_flag, &sleeps, sizeof sleeps, DMG_SHM_ASLEEP_READ);
        if (sleeps % 2 != 0 && sleeps != side->woken) {
            side->woken = sleeps;
            dmg_shm_line_send_byte(line, DMG_SHM_BYTE_WAKE);
        }
        return;
    }
    _Atomic uint32_t *flag = flag_at(side, side->other_flag);
    if (atomic_load_explicit(flag, memory_order_seq_cst) && atomic_exchange(flag, 0)) {
        dmg_shm_line_send_byte(line, DMG_SHM_BYTE_WAKE);
    }
}
