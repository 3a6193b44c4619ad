#define DMG_VALUE    uint64_t
#define DMG_PROGRAM  min_uint64_program
#define WAYS_PROGRAM dmg_ways_min_uint64
#define WAYS_NAME    "minima of 8 bytes"
#define WAYS_RANGE   (UINT64_C(1) << 40)
#include "unit/core/update/ways_min.inc"
