/**
 * @file listener.h
 * Who may connect to a memory node: a listening socket, and those who have not proved themselves yet.
 *
 * A stranger can make it accept and hash, no more: those who say too little are cut off after a time, and there is a
 * bound on how many there are at once. When there are so many, newcomers wait until one has greeted, and for 50 ms at
 * most while there is one who has said nothing at all: he goes, or after a quarter of the time the oldest. So many
 * clients that come at once only take turns. Each is counted. When the process has no descriptor left it keeps
 * listening, takes in the next when one is free again, and says so once.
 *
 * Not thread-safe: the serving thread has it.
 */
#ifndef DMG_TRANSPORT_STREAM_LISTENER_H
#define DMG_TRANSPORT_STREAM_LISTENER_H

#include "transport/stream/stream.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_listener dmg_listener;

typedef struct dmg_listener_options {
    const char *backend; /**< for the address string */
    const char *bind;    /**< as in dmg_stream_address_parse, port 0 for a free one; NULL: a fresh abstract name */
    dmg_stream_options stream; /**< of what is accepted */
    uint64_t greeting_timeout_ns;
    uint32_t strangers_max; /**< connections at once that have not greeted; 0: 256 */
    bool keeps_packets;     /**< Unix sockets are of packets: for who takes sockets, not streams */
} dmg_listener_options;

/** What has become of connections that were no streams in the end. */
typedef struct dmg_listener_counts {
    uint64_t accepted; /**< all */
    uint64_t greeted;
    uint64_t expired;   /**< said too little for too long, or too little when others waited */
    uint64_t refused;   /**< did not know the secret, spoke something else, closed, or are of another user */
    uint64_t postponed; /**< times that accepting had to wait for a descriptor or memory */
} dmg_listener_counts;

/** DMG_ERR_EXISTS when the name or port is taken, DMG_ERR_IO. */
dmg_status dmg_listener_open(const dmg_listener_options *options, dmg_listener **listener);
/** Cuts off who has not greeted; a path in the file system is removed. Streams stay. NULL is allowed. */
void dmg_listener_close(dmg_listener *listener);
/** The address string that clients are given. */
const char *dmg_listener_address(const dmg_listener *listener);
/** Whether it has a path in the file system, which goes when it is closed. */
bool dmg_listener_has_file(const dmg_listener *listener);
/** A descriptor that is readable while dmg_listener_progress has something to do; it has a timer in it. */
int dmg_listener_descriptor(const dmg_listener *listener);
/**
 * Take in, go on with greetings, and cut off. Streams of those who have proved themselves go to `on_stream`, which owns
 * them from then on.
 *
 * @param now_ns  of a watch, so that nobody expires while this process was stopped
 * @return how many things happened
 */
uint32_t dmg_listener_progress(dmg_listener *listener, uint64_t now_ns,
                               void (*on_stream)(void *context, dmg_stream *stream), void *context);
/** The same for who sends other things than records: sockets, which `on_socket` owns, and what the greeting left. */
uint32_t dmg_listener_progress_sockets(dmg_listener *listener, uint64_t now_ns,
                                       void (*on_socket)(void *context, int socket, const dmg_stream_session *session),
                                       void *context);
/** Those who have not greeted. */
uint32_t dmg_listener_strangers(const dmg_listener *listener);
const dmg_listener_counts *dmg_listener_counted(const dmg_listener *listener);

#endif
