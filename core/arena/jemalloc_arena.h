/**
 * @file jemalloc_arena.h
 * A jemalloc arena whose extents come from a segment: it serves the small extents of a program's memory nodes.
 *
 * jemalloc rounds sizes up to four classes a doubling. For extents that are a good part of the segment that would be a
 * good part of the segment lost, so large ones are taken from the pages as they are, and only small ones come through
 * here.
 *
 * jemalloc's own records stay outside the segment (compute nodes write there): the arena is made with hooks for extents
 * but not for metadata, which needs jemalloc 5.3. The arena lives from the first small extent to the last one, because
 * jemalloc keeps the rests of what it took until an arena is destroyed.
 *
 * It stands in a library of its own: whoever links jemalloc has it for all of the process's memory, and a shared
 * library that does so cannot be opened by a program that runs ("cannot allocate memory in static TLS block").
 */
#ifndef DMG_CORE_ARENA_JEMALLOC_ARENA_H
#define DMG_CORE_ARENA_JEMALLOC_ARENA_H

#include "core/pool/segment_arena.h"

/** For dmg_memory_node_options. */
extern const dmg_segment_arena_operations dmg_jemalloc_arena;

#endif
