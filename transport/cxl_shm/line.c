/* The connection between a channel and its memory node: packets over a Unix socket, records over TCP. */
#include "core/base/error.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/** Longest record: a welcome. */
#define RECORD_BYTES_MAX 512

_Static_assert(sizeof(dmg_shm_welcome) <= RECORD_BYTES_MAX && sizeof(dmg_shm_hello) <= RECORD_BYTES_MAX,
               "what is said fits into a record");

dmg_status dmg_shm_line_open(int socket, const dmg_stream_session *session, dmg_shm_line *line)
{
    *line = (dmg_shm_line){.socket = socket};
    if (session->protection == DMG_STREAM_PLAIN) {
        return DMG_OK;
    }
    line->stream = dmg_stream_over(socket, session, RECORD_BYTES_MAX);
    if (!line->stream) {
        close(socket);
        line->socket = -1;
        return dmg_error(DMG_ERR_MEMORY, "out of memory");
    }
    return DMG_OK;
}

void dmg_shm_line_close(dmg_shm_line *line)
{
    if (line->stream) {
        dmg_stream_close(line->stream);
    } else if (line->socket >= 0) {
        close(line->socket);
    }
    *line = (dmg_shm_line){.socket = -1};
}

/* Room for one descriptor: the kernel closes any more. */
typedef union descriptor_room {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
} descriptor_room;

static bool send_packet(int socket, const void *bytes, size_t count, int descriptor)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    descriptor_room control = {0};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)count;
}

bool dmg_shm_line_send(dmg_shm_line *line, const void *bytes, size_t count, int descriptor)
{
    if (!line->stream) {
        return send_packet(line->socket, bytes, count, descriptor);
    }
    /* What the socket does not take would only wait behind more of the same. */
    return dmg_stream_flush(line->stream) && dmg_stream_unsent_bytes(line->stream) == 0 &&
           dmg_stream_send(line->stream, bytes, count, NULL, 0);
}

void dmg_shm_line_send_byte(dmg_shm_line *line, char byte)
{
    (void)dmg_shm_line_send(line, &byte, 1, -1);
}

static ssize_t receive_record(dmg_stream *stream, void *bytes, size_t capacity)
{
    size_t count;
    const void *record = dmg_stream_receive(stream, &count);
    if (!record) {
        return dmg_stream_broken(stream) ? 0 : -1;
    }
    memcpy(bytes, record, count < capacity ? count : capacity);
    return (ssize_t)count;
}

static ssize_t receive_packet(int socket, void *bytes, size_t capacity, int *descriptor)
{
    struct iovec part = {.iov_base = bytes, .iov_len = capacity};
    descriptor_room control = {0};
    bool was_reset = false;
    for (;;) {
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (descriptor) {
            message.msg_control = control.bytes;
            message.msg_controllen = sizeof control.bytes;
        }
        ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
        if (received >= 0) {
            struct cmsghdr *header = descriptor ? CMSG_FIRSTHDR(&message) : NULL;
            if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
                header->cmsg_len == CMSG_LEN(sizeof(int))) {
                memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
            }
            return received;
        }
        if (errno == EAGAIN || errno == EINTR) {
            return -1;
        }
        if (errno != ECONNRESET || was_reset) {
            return 0;
        }
        was_reset = true; /* it left a wake byte of ours unread; what it said before it closed comes next */
    }
}

ssize_t dmg_shm_line_receive(dmg_shm_line *line, void *bytes, size_t capacity, int *descriptor)
{
    if (descriptor) {
        *descriptor = -1;
    }
    return line->stream ? receive_record(line->stream, bytes, capacity)
                        : receive_packet(line->socket, bytes, capacity, descriptor);
}
