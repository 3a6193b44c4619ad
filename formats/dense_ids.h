/**
 * @file dense_ids.h
 * From the external ids at the ends of edges to vertices 0 .. n - 1 in the order of the ids.
 */
#ifndef DMG_FORMATS_DENSE_IDS_H
#define DMG_FORMATS_DENSE_IDS_H

#include "formats/pages.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_dense_ids {
    uint64_t vertex_count;
    uint64_t first_id; /**< of vertex 0 */
    dmg_pages ids;     /**< uint64_t, ascending; empty when the ids are first_id + vertex */
} dmg_dense_ids;

/**
 * Number the distinct ids among `end_count` ends of edges and replace each end by its vertex, in place.
 *
 * @param ends     uint64_t when is_wide, else uint32_t; becomes uint32_t
 * @param[out] map the caller releases map->ids
 * @return DMG_ERR_LIMIT for more than DMG_VERTICES_MAX distinct ids, DMG_ERR_MEMORY
 *
 * Linear, with a bitmap of the ids when they are dense, else a hash table and a radix sort of the distinct ones.
 */
dmg_status dmg_dense_ids_make(dmg_pages *ends, uint64_t end_count, bool is_wide, dmg_dense_ids *map);

#endif
