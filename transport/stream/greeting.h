/**
 * @file greeting.h
 * How the two ends of a new socket prove to each other that they know the pool's secret, before anything else.
 *
 * Neither end sends the secret, nor anything from which it could be guessed faster than by trying all of its 128 bits.
 * The client sends a fresh number and, over TCP, a fresh public key (X25519). The server answers with its own and with
 * a proof: a keyed hash (BLAKE2b) of all that was said. The client's proof follows. Over TCP both derive one key for
 * each direction from the secret, the shared key and all that was said, so that a connection that was recorded cannot
 * be read later by who learns the secret. Every message has a fixed size, so that nobody makes either end wait for or
 * store more than that; whoever says anything else is cut off, and costs no more than a hash and, over TCP, a key.
 *
 * A greeting never blocks. It takes sockets that keep the bounds of packets (SOCK_SEQPACKET) and those that do not.
 * The server dictates how frames are protected; a client refuses less than it was told to want. A Unix socket is plain,
 * whatever was wanted: nobody but this user and root stand between its ends.
 */
#ifndef DMG_TRANSPORT_STREAM_GREETING_H
#define DMG_TRANSPORT_STREAM_GREETING_H

#include "dmgraph/status.h"
#include "transport/transport.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum dmg_stream_protection {
    DMG_STREAM_PLAIN,         /**< Unix sockets: the kernel tells who is there, and nobody else reads or writes */
    DMG_STREAM_AUTHENTICATED, /**< frames in clear that nobody can change, repeat, reorder or leave out */
    DMG_STREAM_ENCRYPTED,     /**< and nobody can read */
} dmg_stream_protection;

/**
 * The transport's parameter "protect=authenticated" or "protect=encrypted"; NULL (not given): authenticated.
 *
 * @return DMG_ERR_ARGUMENT for anything else
 */
dmg_status dmg_stream_protection_parse(const char *text, dmg_stream_protection *protection);

/** How, when they are: the faster one where both ends have instructions for it. */
typedef enum dmg_stream_cipher {
    DMG_STREAM_CHACHA20_POLY1305,
    DMG_STREAM_AES256_GCM,
} dmg_stream_cipher;

#define DMG_STREAM_KEY_BYTES 32

/** What a greeting leaves behind. */
typedef struct dmg_stream_session {
    dmg_stream_protection protection;
    dmg_stream_cipher cipher;
    uint8_t send_key[DMG_STREAM_KEY_BYTES]; /**< all zeros when plain */
    uint8_t receive_key[DMG_STREAM_KEY_BYTES];
} dmg_stream_session;

#define DMG_STREAM_GREETING_BYTES 128

typedef struct dmg_greeting {
    uint8_t token[DMG_TOKEN_BYTES];
    dmg_stream_protection wanted; /**< the server's word, the client's least */
    bool is_server;
    bool is_network;
    bool is_written; /**< the message that is being sent */
    uint32_t step;
    uint32_t done_bytes; /**< of the message that is being sent or received */
    dmg_status failure;  /**< when it failed: DMG_ERR_PEER when the other end closed, DMG_ERR_PROTOCOL, DMG_ERR_IO */
    uint8_t message[DMG_STREAM_GREETING_BYTES];
    uint8_t own_number[32];
    uint8_t own_secret[32];
    uint8_t other_key[32];  /**< public; over TCP */
    uint8_t transcript[64]; /**< a hash of all that was said */
    dmg_stream_session session;
} dmg_greeting;

typedef enum dmg_greeting_state {
    DMG_GREETING_WAITS_TO_READ,
    DMG_GREETING_WAITS_TO_WRITE,
    DMG_GREETING_DONE,
    DMG_GREETING_FAILED, /**< the reason is the error message of this thread */
} dmg_greeting_state;

/** Begin. DMG_ERR_IO when the system gives no random numbers. */
dmg_status dmg_greeting_begin(dmg_greeting *greeting, bool is_server, bool is_network, dmg_stream_protection wanted,
                              const uint8_t token[DMG_TOKEN_BYTES]);
/** Go on as far as the socket allows. */
dmg_greeting_state dmg_greeting_go_on(dmg_greeting *greeting, int socket);
/** Of a server: whether the other end has not said its first message yet. */
static inline bool dmg_greeting_is_silent(const dmg_greeting *greeting)
{
    return greeting->step == 0;
}
/** Forget the keys, after they were taken or when it failed. */
void dmg_greeting_clear(dmg_greeting *greeting);

#endif
