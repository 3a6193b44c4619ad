/**
 * @file socket.h
 * The sockets below streams and listeners, for those who send other things than records over them.
 *
 * On one host a Unix socket, whose other end must be of this user or root; between hosts TCP.
 */
#ifndef DMG_TRANSPORT_STREAM_SOCKET_H
#define DMG_TRANSPORT_STREAM_SOCKET_H

#include "core/base/process.h"
#include "core/base/watch.h"
#include "transport/stream/address.h"
#include "transport/stream/greeting.h"

/**
 * Listen at `bind_to`, as in dmg_stream_address_parse; NULL: at a fresh abstract name. `kind` is SOCK_STREAM or
 * SOCK_SEQPACKET, which Unix sockets alone have. A path is made with mode 0600, and taken over when a process of this
 * user listened there that was killed.
 *
 * @param[out] printed  the address string that clients are given
 * @return DMG_ERR_EXISTS when the name or port is taken, DMG_ERR_ARGUMENT, DMG_ERR_IO
 */
dmg_status dmg_socket_listen(const char *backend, const char *bind_to, int kind, int *listener, char *printed,
                             size_t printed_bytes);

/**
 * Connect, and wait for it until the watch says that it has been too long.
 *
 * @return DMG_ERR_PEER, or DMG_ERR_PROTOCOL when who listens at a Unix socket is of another user
 */
dmg_status dmg_socket_connect(const dmg_stream_address *address, int kind, const char *name, dmg_watch *watch,
                              int *connected);

/**
 * Greet as a client, and wait for it until the watch says that it has been too long. The socket stays the caller's.
 *
 * @return DMG_ERR_PEER when the other end closes or does not answer, DMG_ERR_PROTOCOL when it does not know the token
 */
dmg_status dmg_socket_greet(int socket, bool is_network, dmg_stream_protection wanted,
                            const uint8_t token[DMG_TOKEN_BYTES], const char *name, dmg_watch *watch,
                            dmg_stream_session *session);

/** Whether the process at the other end of a Unix socket is of this user, or root. Over TCP the token has to do. */
bool dmg_socket_peer_is_ours(int socket);
/** The process at the other end of a Unix socket; pid 0 over TCP, when it is gone, and when this one cannot see it. */
void dmg_socket_identify_peer(int socket, dmg_process *process);

#endif
