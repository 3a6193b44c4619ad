#include "transport/stream/address.h"

#include "core/base/error.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define HOST_BYTES         200
#define ABSTRACT_NAME_MARK '@'

static dmg_status parse_local(const char *backend, const char *name, dmg_stream_address *address)
{
    struct sockaddr_un *local = &address->name.local;
    size_t length = strlen(name);
    if (length < 2 || length >= sizeof local->sun_path) {
        return dmg_error(DMG_ERR_ARGUMENT, "'%s' is not an address of %s: a name has 2 to %zu bytes", name, backend,
                         sizeof local->sun_path - 1);
    }
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, name, length);
    if (name[0] == ABSTRACT_NAME_MARK) {
        local->sun_path[0] = '\0';
    }
    address->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] == '/'));
    return DMG_OK;
}

static dmg_status parse_network(const char *backend, const char *name, dmg_stream_address *address)
{
    bool has_brackets = name[0] == '[';
    const char *colon = strrchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : 0;
    const char *host_text = name;
    if (has_brackets && length > 2 && name[length - 1] == ']') {
        host_text++;
        length -= 2;
    }
    char host[HOST_BYTES];
    if (length == 0 || length >= sizeof host || colon[1] == '\0' ||
        (host_text == name && (has_brackets || memchr(name, ':', length)))) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "'%s' is not an address of %s: expected @NAME, /PATH, HOST:PORT or [HOST]:PORT", name,
                         backend);
    }
    snprintf(host, sizeof host, "%.*s", (int)length, host_text);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    int failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed) {
        return dmg_error(DMG_ERR_ARGUMENT, "the address '%s': %s", name, gai_strerror(failed));
    }
    /* A name that stands for addresses of both kinds means the same one at both ends. */
    const struct addrinfo *chosen = found;
    while (chosen->ai_family != AF_INET && chosen->ai_next) {
        chosen = chosen->ai_next;
    }
    chosen = chosen->ai_family == AF_INET ? chosen : found;
    memcpy(&address->name, chosen->ai_addr, chosen->ai_addrlen);
    address->bytes = chosen->ai_addrlen;
    address->is_network = true;
    freeaddrinfo(found);
    return DMG_OK;
}

dmg_status dmg_stream_address_parse(const char *backend, const char *text, dmg_stream_address *address)
{
    size_t length = strlen(backend);
    const char *name = strncmp(text, backend, length) == 0 && text[length] == ':' ? text + length + 1 : text;
    memset(address, 0, sizeof *address);
    return name[0] == ABSTRACT_NAME_MARK || name[0] == '/' ? parse_local(backend, name, address)
                                                           : parse_network(backend, name, address);
}

void dmg_stream_address_print(const char *backend, const dmg_stream_address *address, char *text, size_t capacity)
{
    if (!address->is_network) {
        const struct sockaddr_un *local = &address->name.local;
        size_t head = offsetof(struct sockaddr_un, sun_path) + 1;
        size_t length = address->bytes > head ? address->bytes - head : 0;
        snprintf(text, capacity, "%s:%c%.*s", backend, local->sun_path[0] ? '/' : ABSTRACT_NAME_MARK, (int)length,
                 local->sun_path + 1);
        return;
    }
    char host[HOST_BYTES] = "?";
    char port[16] = "?";
    (void)getnameinfo(&address->name.any, address->bytes, host, sizeof host, port, sizeof port,
                      NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(text, capacity, address->name.any.sa_family == AF_INET6 ? "%s:[%s]:%s" : "%s:%s:%s", backend, host, port);
}

bool dmg_stream_address_is_local(const dmg_stream_address *address)
{
    if (!address->is_network) {
        return true;
    }
    if (address->name.any.sa_family == AF_INET) {
        return ntohl(address->name.ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct in6_addr *ipv6 = &address->name.ipv6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(ipv6) || (IN6_IS_ADDR_V4MAPPED(ipv6) && ipv6->s6_addr[12] == IN_LOOPBACKNET);
}
