/**
 * @file devices.c
 * RDMA devices, as the kernel lists them in /sys/class/infiniband.
 */
#include "transport/ucx/ucx.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/sys/class/infiniband"

bool dmg_ucx_is_rdma_device(const char *name)
{
    char path[160];
    int length = snprintf(path, sizeof(path), FOLDER "/%s/ports", name);
    return name[0] != '\0' && strchr(name, '/') == NULL && length < (int)sizeof(path) && access(path, F_OK) == 0;
}
