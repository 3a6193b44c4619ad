#include "transport/cxl_shm/devices.h"

/* Alone in their file, so that a test that has devices of its own does not get these. */
const dmg_shm_device_table dmg_shm_devices = {0};
const char *const dmg_shm_parameter_keys[] = {"coherence", "path", "port", "protect", NULL};
