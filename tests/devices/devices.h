/**
 * @file devices.h
 * For tests of software coherence: the sites that can be left out. Whoever links this has a line cache and leave-out.
 */
#ifndef DMG_TEST_DEVICES_DEVICES_H
#define DMG_TEST_DEVICES_DEVICES_H

#include "transport/cxl_shm/devices.h"

/** "data-write.lines", "data-write.fence", ..., "shared-lines", "atomics"; NULL behind the last one. */
const char *dmg_shm_site_name(uint32_t site, char name[32]);

#endif
