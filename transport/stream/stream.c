/*
 * A record on the wire: a head of 8 bytes (the length of what was sent, and zeros), what was sent, zeros up to the next
 * multiple of 8, and where the session is protected a tag over all of it. So records lie at multiples of 8 in the inbox
 * as well, and are handed out where they lie.
 *
 * A memory node has thousands of streams, most of them idle: an idle one keeps a small inbox at most. What comes in
 * bulk gets a large one, which goes back when nothing is left in it.
 */
#include "transport/stream/stream.h"

#include "core/base/error.h"
#include "transport/stream/seal.h"
#include "transport/stream/socket.h"

#include <endian.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEAD_BYTES       8
#define ALIGNMENT        8
#define IDLE_BYTES       4096  /* what an idle stream keeps of a buffer */
#define BULK_BYTES       65536 /* of an inbox that more comes into than that */
#define LOCAL_BYTES      (512 * 1024)
#define PARTS            4 /* of a record: head, header, payload, padding */
#define ROUND_UP(bytes)  (((bytes) + (ALIGNMENT - 1)) / ALIGNMENT * ALIGNMENT)
#define RECORD_BYTES_MAX (UINT32_MAX - 64)
#define NOT_OURS         "sent a frame that is not one of ours"
#define CLOSED           "closed the connection"
#define OUT_OF_MEMORY    "could not be answered: this process is out of memory"

typedef struct record_head {
    uint32_t bytes; /* the lowest byte first */
    uint32_t zeros;
} record_head;

_Static_assert(sizeof(record_head) == HEAD_BYTES, "a head has no holes");

typedef struct byte_queue {
    uint8_t *bytes;
    size_t capacity;
    size_t start;
    size_t end;
} byte_queue;

struct dmg_stream {
    int socket;
    dmg_stream_protection protection;
    size_t record_bytes_max;
    dmg_seal *sending; /* NULL: plain */
    dmg_seal *receiving;
    const char *broken;
    bool is_deaf;    /* broken for receiving too; until then what had come before is still handed out */
    bool is_drained; /* the last receive took all that the socket had */
    byte_queue inbox;
    byte_queue outbox;
};

/* ---- buffers ---- */

static size_t queued_bytes(const byte_queue *queue)
{
    return queue->end - queue->start;
}

/* A larger buffer, or a fresh one, with what is in the queue. */
static bool queue_grow(byte_queue *queue, size_t capacity)
{
    uint8_t *grown = malloc(capacity);
    if (!grown) {
        return false;
    }
    size_t used = queued_bytes(queue);
    if (used > 0) {
        memcpy(grown, queue->bytes + queue->start, used);
    }
    free(queue->bytes);
    *queue = (byte_queue){.bytes = grown, .capacity = capacity, .end = used};
    return true;
}

static void queue_move_to_front(byte_queue *queue)
{
    size_t used = queued_bytes(queue);
    if (queue->start > 0 && used > 0) {
        memmove(queue->bytes, queue->bytes + queue->start, used);
    }
    queue->start = 0;
    queue->end = used;
}

/* Room for `bytes` more behind the end. What is moved is never more than what has left since the last time. */
static bool queue_reserve(byte_queue *queue, size_t bytes)
{
    size_t used = queued_bytes(queue);
    if (queue->capacity - queue->end >= bytes) {
        return true;
    }
    if (queue->start >= used && queue->capacity - used >= bytes) {
        queue_move_to_front(queue);
        return true;
    }
    size_t capacity = queue->capacity ? queue->capacity : IDLE_BYTES;
    while (capacity - used < bytes) {
        if (capacity > SIZE_MAX / 2) {
            return false;
        }
        capacity *= 2;
    }
    return queue_grow(queue, capacity);
}

/* Of an empty queue an idle stream keeps little. */
static void queue_give_back(byte_queue *queue)
{
    if (queued_bytes(queue) > 0) {
        return;
    }
    queue->start = queue->end = 0;
    if (queue->capacity > IDLE_BYTES) {
        free(queue->bytes);
        *queue = (byte_queue){0};
    }
}

static void queue_free(byte_queue *queue, bool is_secret)
{
    if (is_secret && queue->bytes) {
        sodium_memzero(queue->bytes, queue->capacity);
    }
    free(queue->bytes);
}

/* ---- life ---- */

static void prepare_socket(int socket)
{
    int domain;
    socklen_t domain_bytes = sizeof domain;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) != 0) {
        return;
    }
    /* Less is slower, and works. TCP finds its sizes by itself, and is not to collect bytes that somebody waits for. */
    int bytes = LOCAL_BYTES;
    int one = 1;
    if (domain == AF_UNIX) {
        (void)setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    } else {
        (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

dmg_stream *dmg_stream_over(int socket, const dmg_stream_session *session, size_t record_bytes_max)
{
    dmg_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return NULL;
    }
    stream->protection = session->protection;
    stream->record_bytes_max = record_bytes_max < RECORD_BYTES_MAX ? record_bytes_max : RECORD_BYTES_MAX;
    if (session->protection != DMG_STREAM_PLAIN) {
        stream->sending = dmg_seal_open(session, true);
        stream->receiving = dmg_seal_open(session, false);
        if (!stream->sending || !stream->receiving) {
            dmg_seal_close(stream->sending);
            dmg_seal_close(stream->receiving);
            free(stream);
            return NULL;
        }
    }
    prepare_socket(socket);
    stream->socket = socket;
    return stream;
}

dmg_status dmg_stream_connect(const dmg_stream_options *options, const dmg_stream_address *address, const char *name,
                              dmg_watch *watch, dmg_stream **stream)
{
    int connected;
    dmg_stream_session session;
    dmg_status status = dmg_socket_connect(address, SOCK_STREAM, name, watch, &connected);
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_socket_greet(connected, address->is_network, options->wanted, options->token, name, watch, &session);
    if (status == DMG_OK) {
        *stream = dmg_stream_over(connected, &session, options->record_bytes_max);
        sodium_memzero(&session, sizeof session);
        status = *stream ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "connecting to %s: out of memory", name);
    }
    if (status != DMG_OK) {
        close(connected);
    }
    return status;
}

void dmg_stream_close(dmg_stream *stream)
{
    if (!stream) {
        return;
    }
    bool is_secret = stream->protection == DMG_STREAM_ENCRYPTED;
    close(stream->socket);
    dmg_seal_close(stream->sending);
    dmg_seal_close(stream->receiving);
    queue_free(&stream->inbox, is_secret);
    queue_free(&stream->outbox, is_secret);
    free(stream);
}

int dmg_stream_socket(const dmg_stream *stream)
{
    return stream->socket;
}

dmg_stream_protection dmg_stream_protected(const dmg_stream *stream)
{
    return stream->protection;
}

const char *dmg_stream_broken(const dmg_stream *stream)
{
    return stream->broken;
}

void dmg_stream_identify_peer(const dmg_stream *stream, dmg_process *process)
{
    dmg_socket_identify_peer(stream->socket, process);
}

/* ---- sending ---- */

static bool break_sending(dmg_stream *stream, const char *why)
{
    if (!stream->broken) {
        stream->broken = why;
    }
    return false;
}

/* What a failed send means: true when it is to be tried again later. */
static bool is_only_full(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == ENOBUFS || number == ENOMEM;
}

static record_head make_head(size_t bytes)
{
    return (record_head){.bytes = htole32((uint32_t)bytes)};
}

/* Give all parts to the socket; what it does not take goes to the outbox. */
static bool send_parts(dmg_stream *stream, struct iovec parts[PARTS], size_t bytes)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = PARTS};
    ssize_t taken;
    do {
        taken = sendmsg(stream->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (taken < 0 && errno == EINTR);
    if (taken < 0 && !is_only_full(errno)) {
        return break_sending(stream, CLOSED);
    }
    size_t skipped = taken > 0 ? (size_t)taken : 0;
    if (skipped == bytes) {
        return true;
    }
    byte_queue *outbox = &stream->outbox;
    if (!queue_reserve(outbox, bytes - skipped)) {
        return break_sending(stream, OUT_OF_MEMORY);
    }
    for (size_t i = 0; i < PARTS; i++) {
        size_t left_out = skipped < parts[i].iov_len ? skipped : parts[i].iov_len;
        size_t kept = parts[i].iov_len - left_out;
        skipped -= left_out;
        if (kept > 0) {
            memcpy(outbox->bytes + outbox->end, (const char *)parts[i].iov_base + left_out, kept);
            outbox->end += kept;
        }
    }
    return true;
}

/* Put the record together behind what waits already, sealed where the session is. */
static bool queue_record(dmg_stream *stream, const struct iovec parts[PARTS], size_t bytes)
{
    byte_queue *outbox = &stream->outbox;
    size_t tag_bytes = stream->sending ? DMG_SEAL_TAG_BYTES : 0;
    if (!queue_reserve(outbox, bytes + tag_bytes)) {
        return break_sending(stream, OUT_OF_MEMORY);
    }
    uint8_t *record = outbox->bytes + outbox->end;
    uint8_t *at = record;
    for (size_t i = 0; i < PARTS; i++) {
        if (parts[i].iov_len > 0) {
            memcpy(at, parts[i].iov_base, parts[i].iov_len);
            at += parts[i].iov_len;
        }
    }
    if (stream->sending) {
        dmg_seal_put(stream->sending, record, bytes, HEAD_BYTES, at);
    }
    outbox->end += bytes + tag_bytes;
    return true;
}

static struct iovec make_part(const void *bytes, size_t count)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
}

bool dmg_stream_send(dmg_stream *stream, const void *header, size_t header_bytes, const void *payload,
                     size_t payload_bytes)
{
    static const uint8_t zeros[ALIGNMENT];
    if (stream->broken || header_bytes > stream->record_bytes_max ||
        payload_bytes > stream->record_bytes_max - header_bytes) {
        return false;
    }
    size_t bytes = header_bytes + payload_bytes;
    record_head head = make_head(bytes);
    struct iovec parts[PARTS] = {make_part(&head, sizeof head), make_part(header, header_bytes),
                                 make_part(payload, payload_bytes), make_part(zeros, ROUND_UP(bytes) - bytes)};
    bool has_to_wait = queued_bytes(&stream->outbox) > 0;
    if (!stream->sending && !has_to_wait) {
        return send_parts(stream, parts, HEAD_BYTES + ROUND_UP(bytes));
    }
    return queue_record(stream, parts, HEAD_BYTES + ROUND_UP(bytes)) && (has_to_wait || dmg_stream_flush(stream));
}

bool dmg_stream_flush(dmg_stream *stream)
{
    byte_queue *outbox = &stream->outbox;
    while (!stream->broken && queued_bytes(outbox) > 0) {
        ssize_t taken =
            send(stream->socket, outbox->bytes + outbox->start, queued_bytes(outbox), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (taken >= 0) {
            outbox->start += (size_t)taken;
        } else if (errno != EINTR) {
            return is_only_full(errno) || break_sending(stream, CLOSED);
        }
    }
    queue_give_back(outbox);
    return !stream->broken;
}

size_t dmg_stream_unsent_bytes(const dmg_stream *stream)
{
    return queued_bytes(&stream->outbox);
}

/* ---- receiving ---- */

static void break_receiving(dmg_stream *stream, const char *why)
{
    stream->is_deaf = true;
    break_sending(stream, why);
}

/* How many bytes the next record has on the wire: those of a head while that is not there. False: nonsense. */
static bool next_bytes(const dmg_stream *stream, size_t *payload_bytes, size_t *wire_bytes)
{
    const byte_queue *inbox = &stream->inbox;
    *payload_bytes = 0;
    *wire_bytes = HEAD_BYTES;
    if (queued_bytes(inbox) < HEAD_BYTES) {
        return true;
    }
    record_head head;
    memcpy(&head, inbox->bytes + inbox->start, sizeof head);
    *payload_bytes = le32toh(head.bytes);
    if (*payload_bytes > stream->record_bytes_max || head.zeros != 0) {
        return false;
    }
    *wire_bytes = HEAD_BYTES + ROUND_UP(*payload_bytes) + (stream->receiving ? DMG_SEAL_TAG_BYTES : 0);
    return true;
}

/* Room behind what is there, for the rest of a record of so many bytes on the wire. */
static bool make_room(byte_queue *inbox, size_t wire_bytes)
{
    if (queued_bytes(inbox) == 0) {
        inbox->start = inbox->end = 0;
    }
    if (!inbox->bytes) {
        return queue_grow(inbox, IDLE_BYTES);
    }
    /* A small buffer that was filled, or is too small, makes way for a large one. */
    if (wire_bytes > inbox->capacity || (inbox->end == inbox->capacity && inbox->capacity < BULK_BYTES)) {
        return queue_grow(inbox, wire_bytes > BULK_BYTES ? wire_bytes : BULK_BYTES);
    }
    if (inbox->capacity - inbox->start < wire_bytes || inbox->end == inbox->capacity) {
        queue_move_to_front(inbox);
    }
    return true;
}

/* Take in what the socket has. False when there is nothing. */
static bool fill_inbox(dmg_stream *stream, size_t wire_bytes)
{
    byte_queue *inbox = &stream->inbox;
    if (stream->is_drained) {
        stream->is_drained = false;
        return false;
    }
    if (!make_room(inbox, wire_bytes)) {
        break_receiving(stream, OUT_OF_MEMORY);
        return false;
    }
    size_t room = inbox->capacity - inbox->end;
    ssize_t received;
    bool was_reset = false;
    for (;;) {
        received = recv(stream->socket, inbox->bytes + inbox->end, room, MSG_DONTWAIT);
        if (received < 0 && errno == ECONNRESET && !was_reset) {
            was_reset = true; /* it left something of ours unread; what it said before it closed comes next */
        } else if (received >= 0 || errno != EINTR) {
            break;
        }
    }
    if (received > 0) {
        inbox->end += (size_t)received;
        stream->is_drained = (size_t)received < room;
        return true;
    }
    if (received == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
        break_receiving(stream, CLOSED);
    }
    return false;
}

const void *dmg_stream_receive(dmg_stream *stream, size_t *bytes)
{
    byte_queue *inbox = &stream->inbox;
    while (!stream->is_deaf) {
        size_t wire_bytes;
        if (!next_bytes(stream, bytes, &wire_bytes)) {
            break_receiving(stream, NOT_OURS);
            break;
        }
        bool is_whole = queued_bytes(inbox) >= HEAD_BYTES && queued_bytes(inbox) >= wire_bytes;
        if (is_whole) {
            uint8_t *record = inbox->bytes + inbox->start;
            size_t sealed_bytes = wire_bytes - DMG_SEAL_TAG_BYTES;
            inbox->start += wire_bytes;
            if (stream->receiving &&
                !dmg_seal_check(stream->receiving, record, sealed_bytes, HEAD_BYTES, record + sealed_bytes)) {
                break_receiving(stream, NOT_OURS);
                break;
            }
            return record + HEAD_BYTES;
        }
        if (!fill_inbox(stream, wire_bytes)) {
            break;
        }
    }
    queue_give_back(inbox);
    *bytes = 0;
    return NULL;
}
