/**
 * @file devices.c
 * RDMA devices, as the kernel lists them in /sys/class/infiniband.
 */
#include "transport/ucx/ucx.h"

#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "/sys/class/infiniband"

bool dmg_ucx_is_rdma_device(const char *name)
{
    char path[160];
    int length = snprintf(path, sizeof(path), FOLDER "/%s/ports", name);
    return name[0] != '\0' && strchr(name, '/') == NULL && length < (int)sizeof(path) && access(path, F_OK) == 0;
}

/** The network interface behind the port of a device: the kernel names it beside each GID. */
static bool find_interface(const char *device, const char *port, char name[IF_NAMESIZE])
{
    char path[200];
    int length = snprintf(path, sizeof(path), FOLDER "/%s/ports/%s/gid_attrs/ndevs/0", device, port);
    FILE *file = length < (int)sizeof(path) ? fopen(path, "re") : NULL;
    if (file == NULL) {
        return false;
    }
    bool is_found = fgets(name, IF_NAMESIZE, file) != NULL;
    fclose(file);
    name[is_found ? strcspn(name, "\n") : 0] = '\0';
    return is_found && name[0] != '\0';
}

static bool is_address(const struct sockaddr *address)
{
    return address != NULL &&
           (address->sa_family == AF_INET ||
            (address->sa_family == AF_INET6 &&
             !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr)));
}

/** IPv4 before IPv6, as RoCE v2 does. */
static bool find_address(const char *interface, struct sockaddr_storage *address, socklen_t *address_bytes)
{
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) != 0) {
        return false;
    }
    const struct ifaddrs *found = NULL;
    for (const struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        if (strcmp(at->ifa_name, interface) == 0 && is_address(at->ifa_addr) &&
            (found == NULL || (found->ifa_addr->sa_family != AF_INET && at->ifa_addr->sa_family == AF_INET))) {
            found = at;
        }
    }
    if (found != NULL) {
        *address_bytes =
            found->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        memset(address, 0, sizeof(*address));
        memcpy(address, found->ifa_addr, *address_bytes);
    }
    freeifaddrs(interfaces);
    return found != NULL;
}

static bool device_address(const char *device, const char *port, struct sockaddr_storage *address,
                           socklen_t *address_bytes)
{
    char interface[IF_NAMESIZE];
    return find_interface(device, port, interface) && find_address(interface, address, address_bytes);
}

bool dmg_ucx_rdma_address(const char *devices, struct sockaddr_storage *address, socklen_t *address_bytes)
{
    if (devices[0] != '\0') {
        char device[96];
        char port[16] = "1";
        snprintf(device, sizeof(device), "%.*s", (int)strcspn(devices, ":,"), devices);
        const char *colon = devices + strcspn(devices, ":,");
        if (*colon == ':') {
            snprintf(port, sizeof(port), "%.*s", (int)strcspn(colon + 1, ","), colon + 1);
        }
        return device_address(device, port, address, address_bytes);
    }
    struct dirent **entries;
    int count = scandir(FOLDER, &entries, NULL, alphasort);
    bool is_found = false;
    for (int i = 0; i < count; i++) {
        is_found = is_found ||
                   (entries[i]->d_name[0] != '.' && device_address(entries[i]->d_name, "1", address, address_bytes));
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    return is_found;
}
