/* Records over real sockets, both ends in this thread, and somebody between them. */
#include "unit/transport/stream/support.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_BYTES_MAX 40000

static const dmg_stream_protection protections[] = {DMG_STREAM_PLAIN, DMG_STREAM_AUTHENTICATED, DMG_STREAM_ENCRYPTED};

static void records_of_every_size_arrive_whole_and_aligned(void)
{
    static uint8_t sent[RECORD_BYTES_MAX];
    static const size_t sizes[] = {0, 1, 7, 8, 9, 100, 4079, 4080, 4081, 4096, 32768, 39999, RECORD_BYTES_MAX};
    stream_fill(sent, sizeof sent, 7);
    for (stream_kind kind = 0; kind < KIND_COUNT; kind += 2) {
        for (size_t p = 0; p < 6; p++) {
            dmg_stream *streams[2];
            stream_pair_open(kind, protections[p / 2], p % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305,
                             RECORD_BYTES_MAX, streams);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                size_t head = sizes[i] < 24 ? sizes[i] : 24;
                size_t bytes;
                CU_ASSERT_TRUE(dmg_stream_send(streams[i % 2], sent, head, sent + head, sizes[i] - head));
                const uint8_t *received = stream_receive_wait(streams[1 - i % 2], &bytes);
                CU_ASSERT_PTR_NOT_NULL_FATAL(received);
                CU_ASSERT_EQUAL_FATAL(bytes, sizes[i]);
                CU_ASSERT_EQUAL((uintptr_t)received % 8, 0);
                CU_ASSERT_EQUAL(memcmp(received, sent, bytes), 0);
            }
            CU_ASSERT_FALSE(dmg_stream_send(streams[0], sent, 1, sent, RECORD_BYTES_MAX));
            stream_pair_close(streams);
        }
    }
}

/* Two streams with somebody between them: what [0] sends goes to `heard`, what is put into `said` comes to [1]. */
typedef struct tap {
    dmg_stream *streams[2];
    int heard;
    int said;
} tap;

static void tap_open(tap *between, dmg_stream_protection protection, dmg_stream_cipher cipher)
{
    int first[2];
    int second[2];
    dmg_stream_session session = {.protection = protection, .cipher = cipher};
    memset(session.send_key, 1, sizeof session.send_key);
    memset(session.receive_key, 2, sizeof session.receive_key);
    stream_sockets_open(KIND_LOCAL, first);
    stream_sockets_open(KIND_LOCAL, second);
    between->streams[0] = dmg_stream_over(first[0], &session, RECORD_BYTES_MAX);
    memset(session.send_key, 2, sizeof session.send_key);
    memset(session.receive_key, 1, sizeof session.receive_key);
    between->streams[1] = dmg_stream_over(second[1], &session, RECORD_BYTES_MAX);
    between->heard = first[1];
    between->said = second[0];
}

static void tap_close(tap *between)
{
    stream_pair_close(between->streams);
    close(between->heard);
    close(between->said);
}

/* Say so many bytes to [1], and then nothing more. Returns how many records it took; the last one's first byte. */
static int tap_say(tap *between, const uint8_t *bytes, size_t count, uint8_t *last)
{
    size_t record_bytes;
    int records = 0;
    const uint8_t *record;
    CU_ASSERT_EQUAL(send(between->said, bytes, count, 0), (ssize_t)count);
    shutdown(between->said, SHUT_WR);
    while ((record = stream_receive_wait(between->streams[1], &record_bytes)) != NULL) {
        records++;
        *last = record_bytes > 0 ? record[0] : 0;
    }
    CU_ASSERT_PTR_NOT_NULL(dmg_stream_broken(between->streams[1]));
    return records;
}

#define SEALED_BYTES (8 + 24 + 16)

static void each_bit_of_a_record_that_was_changed_is_noticed(void)
{
    for (int c = 0; c < 4; c++) {
        for (size_t bit = 0; bit < SEALED_BYTES * 8; bit++) {
            tap between;
            uint8_t wire[2 * SEALED_BYTES + 1];
            uint8_t last;
            tap_open(&between, protections[1 + c / 2], c % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305);
            dmg_stream_send(between.streams[0], "abcdefgh", 8, "the first record.", 13);
            dmg_stream_send(between.streams[0], "abcdefgh", 8, "the second record", 13);
            CU_ASSERT_EQUAL_FATAL(recv(between.heard, wire, sizeof wire, 0), 2 * SEALED_BYTES);
            wire[bit / 8] ^= (uint8_t)(1U << bit % 8);
            CU_ASSERT_EQUAL(tap_say(&between, wire, 2 * SEALED_BYTES, &last), 0);
            tap_close(&between);
        }
    }
}

static void records_that_are_left_out_repeated_or_moved_are_noticed(void)
{
    static const struct {
        int order[4]; /* of records 0 to 2; -1: no more */
        int taken;
    } cases[] = {{{0, 1, 2, -1}, 3}, {{0, 0, -1}, 1}, {{1, -1}, 0},
                 {{0, 2, -1}, 1},    {{1, 0, -1}, 0}, {{0, 1, 1, -1}, 2}};
    for (int c = 0; c < 4; c++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tap between;
            uint8_t wire[3 * SEALED_BYTES];
            uint8_t said[3 * SEALED_BYTES];
            uint8_t last = 0;
            size_t bytes = 0;
            tap_open(&between, protections[1 + c / 2], c % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305);
            for (uint8_t record = 0; record < 3; record++) {
                uint8_t text[24] = {record};
                dmg_stream_send(between.streams[0], text, sizeof text, NULL, 0);
            }
            CU_ASSERT_EQUAL_FATAL(recv(between.heard, wire, sizeof wire, 0), sizeof wire);
            for (const int *record = cases[i].order; *record >= 0; record++, bytes += SEALED_BYTES) {
                memcpy(said + bytes, wire + *record * SEALED_BYTES, SEALED_BYTES);
            }
            CU_ASSERT_EQUAL(tap_say(&between, said, bytes, &last), cases[i].taken);
            CU_ASSERT_EQUAL(last, cases[i].taken > 0 ? cases[i].taken - 1 : 0);
            tap_close(&between);
        }
    }
}

static void record_that_comes_back_to_its_sender_is_refused(void)
{
    for (int c = 0; c < 4; c++) {
        tap between;
        uint8_t wire[SEALED_BYTES];
        size_t bytes;
        tap_open(&between, protections[1 + c / 2], c % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305);
        dmg_stream_send(between.streams[0], "abcdefgh", 8, "the first record.", 13);
        CU_ASSERT_EQUAL_FATAL(recv(between.heard, wire, sizeof wire, 0), SEALED_BYTES);
        CU_ASSERT_EQUAL(send(between.heard, wire, sizeof wire, 0), SEALED_BYTES);
        CU_ASSERT_PTR_NULL(stream_receive_wait(between.streams[0], &bytes));
        CU_ASSERT_PTR_NOT_NULL(dmg_stream_broken(between.streams[0]));
        tap_close(&between);
    }
}

static void what_is_encrypted_cannot_be_read(void)
{
    static const char text[] = "what nobody else is to read, and the same again";
    for (int c = 0; c < 6; c++) {
        tap between;
        uint8_t wire[256];
        tap_open(&between, protections[c / 2], c % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305);
        dmg_stream_send(between.streams[0], text, 10, text + 10, sizeof text - 10);
        dmg_stream_send(between.streams[0], text, sizeof text, NULL, 0);
        ssize_t bytes = recv(between.heard, wire, sizeof wire, 0);
        CU_ASSERT_FATAL(bytes > 0);
        int found = 0;
        for (size_t at = 0; at + 6 < sizeof text; at++) {
            found += memmem(wire, (size_t)bytes, text + at, 6) != NULL;
        }
        CU_ASSERT_EQUAL(found > 0, protections[c / 2] != DMG_STREAM_ENCRYPTED);
        /* The same text twice is not the same on the wire. */
        bool is_same = memcmp(wire + 8, wire + bytes / 2 + 8, sizeof text) == 0;
        CU_ASSERT_EQUAL(is_same, protections[c / 2] != DMG_STREAM_ENCRYPTED);
        tap_close(&between);
    }
}

#define TINY_RECORDS 400

static size_t size_of(uint32_t record)
{
    uint8_t noise[2];
    stream_fill(noise, sizeof noise, record + 1);
    size_t size = (size_t)noise[0] << 8 | noise[1];
    return record % 3 == 0 ? size % RECORD_BYTES_MAX : size % 200;
}

/* Both ends send, and take in only when they cannot. */
static void records_pass_through_tiny_buffers_in_both_directions(void)
{
    static uint8_t text[RECORD_BYTES_MAX];
    for (stream_kind kind = 0; kind < KIND_COUNT; kind += 2) {
        for (size_t p = 0; p < 3; p++) {
            dmg_stream *streams[2];
            uint32_t sent[2] = {0};
            uint32_t taken[2] = {0};
            int tiny = 4096;
            stream_pair_open(kind, protections[p], DMG_STREAM_CHACHA20_POLY1305, RECORD_BYTES_MAX, streams);
            for (int end = 0; end < 2; end++) {
                (void)setsockopt(dmg_stream_socket(streams[end]), SOL_SOCKET, SO_SNDBUF, &tiny, sizeof tiny);
            }
            size_t unsent_most = 0;
            for (dmg_test_wait wait = dmg_test_wait_for(30); dmg_test_goes_on(&wait);) {
                for (int end = 0; end < 2; end++) {
                    while (sent[end] < TINY_RECORDS && dmg_stream_unsent_bytes(streams[end]) < 3 * RECORD_BYTES_MAX) {
                        size_t size = size_of(sent[end]);
                        stream_fill(text, size, sent[end]);
                        CU_ASSERT_TRUE_FATAL(
                            dmg_stream_send(streams[end], text, size / 2, text + size / 2, size - size / 2));
                        sent[end]++;
                    }
                    unsent_most = unsent_most > dmg_stream_unsent_bytes(streams[end])
                                      ? unsent_most
                                      : dmg_stream_unsent_bytes(streams[end]);
                    CU_ASSERT_TRUE_FATAL(dmg_stream_flush(streams[end]));
                    size_t bytes;
                    const void *record;
                    while ((record = dmg_stream_receive(streams[1 - end], &bytes)) != NULL) {
                        CU_ASSERT_EQUAL_FATAL(bytes, size_of(taken[end]));
                        stream_fill(text, bytes, taken[end]);
                        CU_ASSERT_EQUAL_FATAL(memcmp(record, text, bytes), 0);
                        CU_ASSERT_EQUAL((uintptr_t)record % 8, 0);
                        taken[end]++;
                    }
                    CU_ASSERT_PTR_NULL_FATAL(dmg_stream_broken(streams[1 - end]));
                }
                if (taken[0] == TINY_RECORDS && taken[1] == TINY_RECORDS) {
                    break;
                }
            }
            CU_ASSERT_EQUAL(taken[0], TINY_RECORDS);
            CU_ASSERT_EQUAL(taken[1], TINY_RECORDS);
            CU_ASSERT_TRUE(unsent_most > 0);
            stream_pair_close(streams);
        }
    }
}

static void length_that_is_too_long_breaks_the_stream(void)
{
    for (size_t p = 0; p < 3; p++) {
        static const uint8_t heads[][8] = {
            {0x41, 0x9c, 0, 0, 0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0}};
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
            tap between;
            size_t bytes;
            tap_open(&between, protections[p], DMG_STREAM_CHACHA20_POLY1305);
            CU_ASSERT_EQUAL(send(between.said, heads[i], 8, 0), 8);
            CU_ASSERT_PTR_NULL(stream_receive_wait(between.streams[1], &bytes));
            CU_ASSERT_PTR_NOT_NULL_FATAL(dmg_stream_broken(between.streams[1]));
            CU_ASSERT_STRING_EQUAL(dmg_stream_broken(between.streams[1]), "sent a frame that is not one of ours");
            tap_close(&between);
        }
    }
}

/* Heads that make sense, more often than not, and noise behind them. */
static void noise_is_no_record_of_a_session_and_harms_none(void)
{
    uint64_t seed = dmg_test_seed();
    for (int round = 0; round < 600; round++) {
        tap between;
        uint8_t noise[2000];
        uint8_t last;
        stream_fill(noise, sizeof noise, seed + (uint64_t)round);
        for (size_t at = 0; at + 8 <= sizeof noise && round % 4 != 0; at += 8U * (1U + noise[at] % 32U)) {
            memset(noise + at + 1, 0, 7);
        }
        size_t protection = (size_t)round % 3;
        tap_open(&between, protections[protection], round % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305);
        int records = tap_say(&between, noise, 1 + noise[0] * 7U, &last);
        CU_ASSERT_TRUE(records == 0 || protection == 0);
        tap_close(&between);
    }
}

static void what_came_before_the_end_is_handed_out(void)
{
    for (stream_kind kind = 0; kind < KIND_COUNT; kind += 2) {
        dmg_stream *streams[2];
        size_t bytes;
        stream_pair_open(kind, DMG_STREAM_AUTHENTICATED, DMG_STREAM_CHACHA20_POLY1305, 100, streams);
        dmg_stream_send(streams[1], "unread", 7, NULL, 0);
        dmg_stream_send(streams[0], "bye", 4, NULL, 0);
        dmg_stream_close(streams[0]); /* with something that it has not read */
        streams[0] = NULL;
        for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_test_goes_on(&wait);) {
            if (!dmg_stream_send(streams[1], "into the void", 14, NULL, 0)) {
                break;
            }
        }
        CU_ASSERT_STRING_EQUAL(dmg_stream_broken(streams[1]), "closed the connection");
        const char *said = stream_receive_wait(streams[1], &bytes);
        if (kind == KIND_LOCAL) { /* over TCP a reset may take it away */
            CU_ASSERT_PTR_NOT_NULL_FATAL(said);
            CU_ASSERT_STRING_EQUAL(said, "bye");
        }
        CU_ASSERT_PTR_NULL(stream_receive_wait(streams[1], &bytes));
        stream_pair_close(streams);
    }
}

const dmg_test stream_record_tests[] = {
    DMG_TEST(records_of_every_size_arrive_whole_and_aligned),
    DMG_TEST(each_bit_of_a_record_that_was_changed_is_noticed),
    DMG_TEST(records_that_are_left_out_repeated_or_moved_are_noticed),
    DMG_TEST(record_that_comes_back_to_its_sender_is_refused),
    DMG_TEST(what_is_encrypted_cannot_be_read),
    DMG_TEST(records_pass_through_tiny_buffers_in_both_directions),
    DMG_TEST(length_that_is_too_long_breaks_the_stream),
    DMG_TEST(noise_is_no_record_of_a_session_and_harms_none),
    DMG_TEST(what_came_before_the_end_is_handed_out),
    {NULL, NULL},
};
