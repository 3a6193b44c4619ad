#include "core/store/index_entry.h"

bool dmg_index_lengths_fit(const dmg_index_shape *shape, const uint32_t *lengths)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < shape->partition_count; i++) {
        if (lengths[i] > DMG_INDEX_LENGTH_MAX) {
            return false;
        }
        bytes += dmg_index_length_bytes(lengths[i]);
    }
    return bytes <= shape->entry_bytes - DMG_INDEX_LENGTHS_AT;
}

void dmg_index_entry_set_in_place(const dmg_index_shape *shape, uint32_t degree, const void *edges, uint8_t *entry)
{
    size_t bytes = (size_t)degree * shape->edge_bytes;
    memcpy(entry, &degree, sizeof degree);
    if (bytes > 0) {
        memcpy(entry + 4, edges, bytes);
    }
    memset(entry + 4 + bytes, 0, shape->entry_bytes - 4 - bytes);
}

bool dmg_index_entry_set_out_of_place(const dmg_index_shape *shape, uint32_t degree, dmg_address list,
                                      const uint32_t *lengths, uint8_t *entry)
{
    memcpy(entry, &degree, sizeof degree);
    memcpy(entry + 4, &list, sizeof list);
    uint8_t *to = entry + DMG_INDEX_LENGTHS_AT;
    bool fit = dmg_index_lengths_fit(shape, lengths);
    if (fit) {
        for (uint32_t i = 0; i < shape->partition_count; i++) {
            uint32_t bytes = dmg_index_length_bytes(lengths[i]);
            uint32_t word = lengths[i] << 2 | (bytes - 1);
            for (uint32_t j = 0; j < bytes; j++) {
                *to++ = (uint8_t)(word >> (8 * j));
            }
        }
    } else {
        memset(to, 0xff, 4);
        to += 4;
    }
    memset(to, 0, (size_t)(entry + shape->entry_bytes - to));
    return fit;
}

/** The length that begins at byte `*at` of the entry, which moves behind it; false when it reaches beyond the entry. */
static inline bool next_length(const uint8_t *entry, uint32_t entry_bytes, uint32_t *at, uint32_t *length)
{
    /* Four bytes are read in one go; near the end of the entry from further left, and shifted. */
    uint32_t from = *at < entry_bytes - 4 ? *at : entry_bytes - 4;
    if (*at >= entry_bytes) {
        return false;
    }
    uint32_t word = dmg_read_once_32(entry + from) >> (8 * (*at - from));
    uint32_t bytes = (word & 3) + 1;
    *length = (uint32_t)((word & (UINT32_MAX >> (32 - 8 * bytes))) >> 2);
    *at += bytes;
    return *at <= entry_bytes;
}

bool dmg_index_entry_segments_walk(const dmg_index_shape *shape, const uint8_t *entry, const uint32_t *header,
                                   uint32_t first, uint32_t last, uint64_t *edges_before, uint64_t *edges)
{
    bool has_header = dmg_index_entry_has_list_header(entry);
    if (has_header && !header) {
        return false;
    }
    uint64_t degree = dmg_index_entry_degree(entry);
    uint64_t before = 0;
    uint64_t sum = 0;
    uint32_t at = DMG_INDEX_LENGTHS_AT;
    for (uint32_t i = 0; i < last; i++) {
        uint32_t length;
        if (has_header) {
            length = dmg_read_once_32(&header[i]);
        } else if (!next_length(entry, shape->entry_bytes, &at, &length)) {
            return false;
        }
        before += i < first ? length : 0;
        sum += length;
    }
    *edges_before = before;
    *edges = sum - before;
    return last == shape->partition_count ? sum == degree : sum <= degree;
}
