/**
 * @file control.h
 * The control socket between the launcher and a node that it started: JSON messages of bounded size, one a packet.
 *
 *     launcher -> node    setup (once, first), leave (compute nodes), stop (memory nodes)
 *     node -> launcher    beat (now and then), error (once, last), and what the node's kind has to say
 *
 * Every message is an object with a "type". What comes in is checked like anything from outside.
 */
#ifndef DMG_CLI_LAUNCHER_CONTROL_H
#define DMG_CLI_LAUNCHER_CONTROL_H

#include "dmgraph/status.h"

#include <jansson.h>
#include <stdbool.h>

/** Fits into a socket buffer of default size. */
#define DMG_CONTROL_BYTES_MAX (128 * 1024)

/**
 * Send a message. Takes the reference, also on failure; NULL counts as out of memory. With `may_drop`, a full socket is
 * no error and the message is lost. DMG_ERR_PEER when the other end is gone. Thread-safe.
 */
dmg_status dmg_control_send(int control, json_t *message, bool may_drop);

/**
 * Receive one message; `*message` is a new reference, or NULL when there is none now and `may_wait` is false.
 * DMG_ERR_PEER at the end of the stream, DMG_ERR_PROTOCOL for what is no message.
 */
dmg_status dmg_control_receive(int control, bool may_wait, json_t **message);

/** The message's type; never NULL. */
const char *dmg_control_type(const json_t *message);

/** Take values out of a message as json_unpack_ex does; DMG_ERR_PROTOCOL says what is missing. */
dmg_status dmg_control_unpack(json_t *message, const char *format, ...);

#endif
