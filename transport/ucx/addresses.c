/**
 * @file addresses.c
 * Hosts, ports and interfaces: where a memory node listens, how others find it, and where UCX's tcp stays.
 */
#include "core/base/error.h"
#include "transport/ucx/ucx.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static bool is_same_host(const struct sockaddr *a, const struct sockaddr_storage *b)
{
    if (a == NULL || a->sa_family != b->ss_family) {
        return false;
    }
    if (a->sa_family == AF_INET) {
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    }
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr, 16) == 0;
}

static bool is_loopback_address(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    }
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/** Name of the network interface that has this address, or "" for a wildcard or an address of another machine. */
static void interface_of(const struct sockaddr_storage *address, char *name, size_t name_bytes)
{
    name[0] = '\0';
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) != 0) {
        return;
    }
    bool is_loopback = is_loopback_address(address);
    for (struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        if (is_same_host(at->ifa_addr, address) || (is_loopback && (at->ifa_flags & IFF_LOOPBACK))) {
            snprintf(name, name_bytes, "%s", at->ifa_name);
            break;
        }
    }
    freeifaddrs(interfaces);
}

/** "HOST:PORT" of what is "HOST", "HOST:PORT" or "[HOST]:PORT", or an address of IPv6 without its brackets. */
static void complete(const char *host, uint16_t port, char *text, size_t capacity)
{
    const char *colon = strchr(host, ':');
    const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;
    if (bracket != NULL ? bracket[1] == ':' : colon != NULL && strchr(colon + 1, ':') == NULL) {
        snprintf(text, capacity, "%s", host);
    } else {
        snprintf(text, capacity, colon != NULL && bracket == NULL ? "[%s]:%u" : "%s:%u", host, port);
    }
}

dmg_status dmg_ucx_bind_text(const dmg_ucx_settings *settings, const char *bind, char *text, size_t capacity)
{
    text[0] = '\0';
    if (bind == NULL && !settings->has_port) {
        return DMG_OK;
    }
    if (bind != NULL && strlen(bind) + sizeof("[]:65535") > capacity) {
        return dmg_error(DMG_ERR_ARGUMENT, "address \"%s\" is too long", bind);
    }
    if (bind != NULL && (bind[0] == '@' || bind[0] == '/')) {
        snprintf(text, capacity, "%s", bind);
    } else {
        complete(bind != NULL ? bind : "127.0.0.1", settings->port, text, capacity);
    }
    return DMG_OK;
}

dmg_status dmg_ucx_confine_tcp(const dmg_ucx_settings *settings, const dmg_stream_address *address, const char *text,
                               bool is_local, char *interface, size_t interface_bytes)
{
    struct sockaddr_storage loopback = {.ss_family = AF_INET};
    ((struct sockaddr_in *)&loopback)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    interface_of(&loopback, interface, interface_bytes);
    /* With a card beside it, to name the loopback interface would leave out the card. */
    bool is_confined = settings->interfaces[0] != '\0' ? strcmp(settings->interfaces, interface) == 0
                                                       : is_local && strcmp(settings->messages, "tcp") == 0;
    if (!settings->has_tcp_messages || (is_confined && interface[0] != '\0')) {
        return DMG_OK;
    }
    if (!settings->trusts_network) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "messages=%s at %s%s%s: UCX's tcp writes into the memory of its process whatever anybody asks "
                         "it to who can connect: use messages=socket, or --trust-network where nobody else can",
                         settings->messages, text, settings->interfaces[0] != '\0' ? ", device=" : "",
                         settings->interfaces);
    }
    interface[0] = '\0';
    if (address != NULL && address->is_network) {
        interface_of(&address->name.room, interface, interface_bytes);
    }
    return DMG_OK;
}

static bool is_wildcard(const dmg_stream_address *address)
{
    return address->is_network &&
           (address->name.any.sa_family == AF_INET ? address->name.ipv4.sin_addr.s_addr == INADDR_ANY
                                                   : IN6_IS_ADDR_UNSPECIFIED(&address->name.ipv6.sin6_addr));
}

/** The first address of this machine of the same kind that is neither loopback nor for one link alone. */
static bool pick_host(dmg_stream_address *address)
{
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) != 0) {
        return false;
    }
    bool is_found = false;
    for (struct ifaddrs *at = interfaces; at != NULL && !is_found; at = at->ifa_next) {
        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != address->name.any.sa_family ||
            (at->ifa_flags & (IFF_LOOPBACK | IFF_UP)) != IFF_UP) {
            continue;
        }
        if (at->ifa_addr->sa_family == AF_INET) {
            address->name.ipv4.sin_addr = ((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr;
            is_found = true;
        } else {
            const struct in6_addr *host = &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
            is_found = !IN6_IS_ADDR_LINKLOCAL(host);
            address->name.ipv6.sin6_addr = is_found ? *host : address->name.ipv6.sin6_addr;
        }
    }
    freeifaddrs(interfaces);
    return is_found;
}

dmg_status dmg_ucx_public_address(const char *listening, char *text, size_t capacity)
{
    dmg_stream_address address;
    dmg_status status = dmg_stream_address_parse("ucx", listening, &address);
    if (status == DMG_OK && is_wildcard(&address) && pick_host(&address)) {
        dmg_stream_address_print("ucx", &address, text, capacity);
    } else {
        snprintf(text, capacity, "%s", listening);
    }
    return status;
}
