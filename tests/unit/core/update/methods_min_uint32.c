#define DMG_VALUE       uint32_t
#define METHODS_TYPE    dmg_monotone_uint32
#define METHODS_PROGRAM dmg_methods_min_uint32
#define METHODS_NAME    "minima of 4 bytes"
#define METHODS_RANGE   1000
#include "unit/core/update/methods_min.inc"
