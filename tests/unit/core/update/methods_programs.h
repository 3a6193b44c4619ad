/**
 * @file methods_programs.h
 * Vertex programs for the tests of how updates are passed on: their answers are exact whatever the order of updates,
 * and a lost or repeated one changes them.
 */
#ifndef DMG_TEST_CORE_UPDATE_METHODS_PROGRAMS_H
#define DMG_TEST_CORE_UPDATE_METHODS_PROGRAMS_H

#include "core/engine/engine.h"
#include "formats/graph.h"

typedef struct dmg_methods_program {
    const char *name;
    uint32_t value_bytes;
    bool adds;
    /** `parameters` is what `serial` gets, too. */
    dmg_status (*run)(dmg_engine *engine, const void *parameters, dmg_run_result *result);
    void (*serial)(const dmg_graph *graph, const void *parameters, void *values);
} dmg_methods_program;

typedef struct dmg_methods_parameters {
    uint64_t seed;
    uint32_t iterations; /**< of adding programs */
} dmg_methods_parameters;

/** Minima over what active vertices send along their arcs; start values and who is active are random. */
extern const dmg_methods_program dmg_methods_min_uint32;
extern const dmg_methods_program dmg_methods_min_uint64;
/** Sums of whole numbers, in doubles. */
extern const dmg_methods_program dmg_methods_add_double;

/** A vertex's own random number. */
static inline uint64_t dmg_methods_random(uint64_t seed, uint32_t vertex)
{
    uint64_t x = seed + (vertex + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline bool dmg_methods_starts_active(uint64_t seed, uint32_t vertex)
{
    return dmg_methods_random(seed, vertex) % 8 != 0;
}

/** What a vertex of this value sends along each of its arcs. */
static inline uint64_t dmg_methods_step(uint32_t source)
{
    return 1 + source % 5;
}

#endif
