#define DMG_VALUE    uint32_t
#define DMG_PROGRAM  min_uint32_program
#define WAYS_PROGRAM dmg_ways_min_uint32
#define WAYS_NAME    "minima of 4 bytes"
#define WAYS_RANGE   1000
#include "unit/core/update/ways_min.inc"
