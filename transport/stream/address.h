/**
 * @file address.h
 * Where a socket of ours is: a name on this host, or a port.
 */
#ifndef DMG_TRANSPORT_STREAM_ADDRESS_H
#define DMG_TRANSPORT_STREAM_ADDRESS_H

#include "dmgraph/status.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct dmg_stream_address {
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
        struct sockaddr_storage room;
    } name;
    socklen_t bytes;
    bool is_network; /**< TCP; else a Unix socket */
} dmg_stream_address;

/**
 * Take "BACKEND:WHERE", or WHERE alone, apart, where WHERE is "@NAME" (abstract: not in the file system, and gone with
 * its process), "/PATH", "HOST:PORT" or "[HOST]:PORT". Host names are resolved; one that stands for addresses of both
 * kinds means the IPv4 one, at both ends.
 *
 * @return DMG_ERR_ARGUMENT with what was expected
 */
dmg_status dmg_stream_address_parse(const char *backend, const char *text, dmg_stream_address *address);

/** "BACKEND:WHERE", as dmg_stream_address_parse takes it. */
void dmg_stream_address_print(const char *backend, const dmg_stream_address *address, char *text, size_t capacity);

/** Whether only processes of this host can connect: a Unix socket, or a loopback address. */
bool dmg_stream_address_is_local(const dmg_stream_address *address);

#endif
