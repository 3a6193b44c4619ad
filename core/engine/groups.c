#include "core/engine/groups.h"

/* So many blocks go to each rank: enough that each gets its share of the hubs, and few enough that blocks of large
 * graphs are as long as the largest chunks. */
#define BLOCKS_A_RANK 16

static uint32_t first_rank_of(uint32_t group, uint32_t group_count, uint32_t ranks)
{
    return (uint32_t)((uint64_t)ranks * group / group_count);
}

dmg_groups dmg_groups_of(uint32_t rank, uint32_t ranks, uint32_t partitions, dmg_caching caching)
{
    uint32_t members_wanted = caching == DMG_CACHING_FULL ? 1 : partitions;
    uint32_t group_count = ranks / members_wanted + (ranks % members_wanted != 0);
    uint32_t group = (uint32_t)((((uint64_t)rank + 1) * group_count - 1) / ranks);
    uint32_t first_rank = first_rank_of(group, group_count, ranks);
    return (dmg_groups){.ranks = ranks,
                        .group_count = group_count,
                        .members_max = ranks / group_count + (ranks % group_count != 0),
                        .group = group,
                        .first_rank = first_rank,
                        .members = first_rank_of(group + 1, group_count, ranks) - first_rank,
                        .member = rank - first_rank};
}

/* All ranks must come to the same size, which depends on nothing else therefore. */
static uint32_t block_vertices(const dmg_groups *groups, uint64_t vertex_count)
{
    uint64_t vertices = vertex_count / ((uint64_t)groups->ranks * BLOCKS_A_RANK);
    vertices = (vertices + 63) & ~UINT64_C(63);
    return vertices < 64 ? 64 : vertices > DMG_CHUNK_VERTICES_MAX ? DMG_CHUNK_VERTICES_MAX : (uint32_t)vertices;
}

dmg_block_cyclic dmg_groups_own(const dmg_groups *groups, uint64_t vertex_count)
{
    if (groups->group_count == 1) {
        return (dmg_block_cyclic){0};
    }
    return (dmg_block_cyclic){.block_vertices = block_vertices(groups, vertex_count),
                              .cycle = groups->ranks,
                              .first = groups->first_rank,
                              .count = groups->members};
}

dmg_block_cyclic dmg_groups_others(const dmg_groups *groups, uint64_t vertex_count)
{
    return (dmg_block_cyclic){.block_vertices = block_vertices(groups, vertex_count),
                              .cycle = groups->ranks,
                              .first = (groups->first_rank + groups->members) % groups->ranks,
                              .count = groups->ranks - groups->members};
}

uint32_t dmg_groups_arrays(const dmg_groups *groups)
{
    uint32_t copies = groups->group_count > 1 ? groups->group_count : 0;
    return 1 + (copies + 1 > groups->members_max ? copies + 1 : groups->members_max);
}
