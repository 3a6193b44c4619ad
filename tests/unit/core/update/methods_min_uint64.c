#define DMG_VALUE       uint64_t
#define METHODS_TYPE    dmg_monotone_uint64
#define METHODS_PROGRAM dmg_methods_min_uint64
#define METHODS_NAME    "minima of 8 bytes"
#define METHODS_RANGE   (UINT64_C(1) << 40)
#include "unit/core/update/methods_min.inc"
