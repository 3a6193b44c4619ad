/*
 * Three messages, each of a fixed size:
 *
 *   client  magic, what it wants, its ciphers; number c; over TCP public key C
 *   server  magic, protection, cipher; number s; over TCP public key S; proof: MAC("server", all of the above)
 *   client  proof: MAC("client", all of the above)
 *
 * The MAC is BLAKE2b with the pool's token as its key. Both numbers are fresh, so that no proof is good twice; the name
 * of the role goes into it, so that no proof is good for the other side; and so do both public keys, so that nobody in
 * the middle can put in his own. Keys of the session come from the token, the shared key and all of the above: one for
 * each direction. Where keys were exchanged their secret halves are forgotten at the end, and the session with them.
 */
#include "transport/stream/greeting.h"

#include "core/base/error.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#define MAGIC        "dmgsock1"
#define MAGIC_BYTES  8
#define NUMBER_BYTES 32
#define PROOF_BYTES  32

typedef struct client_words {
    char magic[MAGIC_BYTES];
    uint8_t is_network;
    uint8_t wanted;
    uint8_t has_aes;
    uint8_t reserved[5];
    uint8_t number[NUMBER_BYTES];
    uint8_t key[crypto_scalarmult_BYTES];
} client_words;

typedef struct server_words {
    char magic[MAGIC_BYTES];
    uint8_t is_network;
    uint8_t protection;
    uint8_t cipher;
    uint8_t reserved[5];
    uint8_t number[NUMBER_BYTES];
    uint8_t key[crypto_scalarmult_BYTES];
    uint8_t proof[PROOF_BYTES];
} server_words;

_Static_assert(sizeof(client_words) == 80 && sizeof(server_words) == 112, "messages have no holes");
_Static_assert(sizeof(server_words) <= DMG_STREAM_GREETING_BYTES, "a message has room");
_Static_assert(DMG_TOKEN_BYTES >= crypto_generichash_blake2b_KEYBYTES_MIN, "a token is a key of BLAKE2b");

/* The messages in their order, then the end. */
enum { CLIENT_SPEAKS, SERVER_ANSWERS, CLIENT_PROVES, GREETED, FAILED };

/* Each use of a hash has a name of its own, so that no result is good for another use. */
static const char purpose_words[] = "dmgraph words   ";
static const char purpose_server[] = "dmgraph server  ";
static const char purpose_client[] = "dmgraph client  ";
static const char purpose_client_key[] = "dmgraph key c->s";
static const char purpose_server_key[] = "dmgraph key s->c";

_Static_assert(sizeof purpose_words == crypto_generichash_blake2b_PERSONALBYTES + 1, "a purpose fills its field");

static size_t message_bytes(uint32_t step)
{
    switch (step) {
    case CLIENT_SPEAKS:
        return sizeof(client_words);
    case SERVER_ANSWERS:
        return sizeof(server_words);
    default:
        return PROOF_BYTES;
    }
}

static void hash(uint8_t *result, size_t result_bytes, const char *purpose, const uint8_t *key, size_t key_bytes,
                 const uint8_t *text, size_t text_bytes)
{
    crypto_generichash_blake2b_salt_personal(result, result_bytes, text, text_bytes, key, key_bytes, NULL,
                                             (const uint8_t *)purpose);
}

/* The transcript takes in what was said next. */
static void note_words(dmg_greeting *greeting, const void *words, size_t bytes)
{
    uint8_t text[sizeof greeting->transcript + DMG_STREAM_GREETING_BYTES];
    memcpy(text, greeting->transcript, sizeof greeting->transcript);
    memcpy(text + sizeof greeting->transcript, words, bytes);
    hash(greeting->transcript, sizeof greeting->transcript, purpose_words, NULL, 0, text,
         sizeof greeting->transcript + bytes);
}

/* That who makes it knows the token, and heard and said what is in the transcript. */
static void make_proof(const dmg_greeting *greeting, const char *purpose, uint8_t proof[PROOF_BYTES])
{
    hash(proof, PROOF_BYTES, purpose, greeting->token, sizeof greeting->token, greeting->transcript,
         sizeof greeting->transcript);
}

static dmg_greeting_state fail(dmg_greeting *greeting, dmg_status status)
{
    greeting->step = FAILED;
    greeting->failure = status;
    return DMG_GREETING_FAILED;
}

static bool refuse(const char *why)
{
    dmg_error(DMG_ERR_PROTOCOL, "%s", why);
    return false;
}

/* Keys for both directions, when all proofs were good. */
static bool make_keys(dmg_greeting *greeting)
{
    if (!greeting->is_network) {
        return true;
    }
    struct {
        uint8_t shared[crypto_scalarmult_BYTES];
        uint8_t transcript[sizeof greeting->transcript];
    } text = {0};
    bool is_sound = crypto_scalarmult(text.shared, greeting->own_secret, greeting->other_key) == 0;
    memcpy(text.transcript, greeting->transcript, sizeof text.transcript);
    dmg_stream_session *session = &greeting->session;
    uint8_t *of_client = greeting->is_server ? session->receive_key : session->send_key;
    uint8_t *of_server = greeting->is_server ? session->send_key : session->receive_key;
    hash(of_client, DMG_STREAM_KEY_BYTES, purpose_client_key, greeting->token, sizeof greeting->token,
         (const uint8_t *)&text, sizeof text);
    hash(of_server, DMG_STREAM_KEY_BYTES, purpose_server_key, greeting->token, sizeof greeting->token,
         (const uint8_t *)&text, sizeof text);
    sodium_memzero(&text, sizeof text);
    sodium_memzero(greeting->own_secret, sizeof greeting->own_secret);
    return is_sound || refuse("its public key makes no sense");
}

/* ---- what is said ---- */

static void write_client_words(dmg_greeting *greeting)
{
    client_words words = {.is_network = greeting->is_network,
                          .wanted = (uint8_t)greeting->wanted,
                          .has_aes = crypto_aead_aes256gcm_is_available() != 0};
    memcpy(words.magic, MAGIC, MAGIC_BYTES);
    memcpy(words.number, greeting->own_number, NUMBER_BYTES);
    if (greeting->is_network) {
        crypto_scalarmult_base(words.key, greeting->own_secret);
    }
    memcpy(greeting->message, &words, sizeof words);
    note_words(greeting, &words, sizeof words);
}

static void write_server_words(dmg_greeting *greeting)
{
    server_words words = {.is_network = greeting->is_network,
                          .protection = (uint8_t)greeting->session.protection,
                          .cipher = (uint8_t)greeting->session.cipher};
    memcpy(words.magic, MAGIC, MAGIC_BYTES);
    memcpy(words.number, greeting->own_number, NUMBER_BYTES);
    if (greeting->is_network) {
        crypto_scalarmult_base(words.key, greeting->own_secret);
    }
    note_words(greeting, &words, offsetof(server_words, proof));
    make_proof(greeting, purpose_server, words.proof);
    memcpy(greeting->message, &words, sizeof words);
    note_words(greeting, words.proof, PROOF_BYTES);
}

static void write_message(dmg_greeting *greeting)
{
    switch (greeting->step) {
    case CLIENT_SPEAKS:
        write_client_words(greeting);
        break;
    case SERVER_ANSWERS:
        write_server_words(greeting);
        break;
    default:
        make_proof(greeting, purpose_client, greeting->message);
        break;
    }
}

/* ---- what is heard ---- */

static bool hear_client_words(dmg_greeting *greeting)
{
    client_words words;
    memcpy(&words, greeting->message, sizeof words);
    if (memcmp(words.magic, MAGIC, MAGIC_BYTES) != 0 || words.is_network != greeting->is_network) {
        return refuse("it is no program of this version of dmgraph");
    }
    /* Also when it wants more: it refuses then, and can say why. */
    greeting->session.protection = greeting->wanted;
    greeting->session.cipher = words.has_aes == 1 && crypto_aead_aes256gcm_is_available()
                                   ? DMG_STREAM_AES256_GCM
                                   : DMG_STREAM_CHACHA20_POLY1305;
    memcpy(greeting->other_key, words.key, sizeof greeting->other_key);
    note_words(greeting, &words, sizeof words);
    return true;
}

static bool hear_server_words(dmg_greeting *greeting)
{
    server_words words;
    uint8_t proof[PROOF_BYTES];
    memcpy(&words, greeting->message, sizeof words);
    if (memcmp(words.magic, MAGIC, MAGIC_BYTES) != 0 || words.is_network != greeting->is_network) {
        return refuse("it is no program of this version of dmgraph");
    }
    note_words(greeting, &words, offsetof(server_words, proof));
    make_proof(greeting, purpose_server, proof);
    bool is_proven = sodium_memcmp(proof, words.proof, PROOF_BYTES) == 0;
    sodium_memzero(proof, sizeof proof);
    if (!is_proven) {
        return refuse("the token is wrong: one of the two ends does not know the pool's secret");
    }
    note_words(greeting, words.proof, PROOF_BYTES);
    if (words.protection > DMG_STREAM_ENCRYPTED || words.protection < (uint8_t)greeting->wanted) {
        return refuse("it protects frames less than was asked for: start the pool with protect=encrypted");
    }
    if (words.cipher > DMG_STREAM_AES256_GCM ||
        (words.cipher == DMG_STREAM_AES256_GCM && !crypto_aead_aes256gcm_is_available())) {
        return refuse("it asks for a cipher that this end does not have");
    }
    greeting->session.protection = (dmg_stream_protection)words.protection;
    greeting->session.cipher = (dmg_stream_cipher)words.cipher;
    memcpy(greeting->other_key, words.key, sizeof greeting->other_key);
    return make_keys(greeting);
}

static bool hear_client_proof(dmg_greeting *greeting)
{
    uint8_t proof[PROOF_BYTES];
    make_proof(greeting, purpose_client, proof);
    bool is_proven = sodium_memcmp(proof, greeting->message, PROOF_BYTES) == 0;
    sodium_memzero(proof, sizeof proof);
    if (!is_proven) {
        return refuse("the token is wrong: it does not know the pool's secret");
    }
    return make_keys(greeting);
}

static bool hear_message(dmg_greeting *greeting)
{
    switch (greeting->step) {
    case CLIENT_SPEAKS:
        return hear_client_words(greeting);
    case SERVER_ANSWERS:
        return hear_server_words(greeting);
    default:
        return hear_client_proof(greeting);
    }
}

/* ---- over the socket ---- */

/* True when the message is through; else `*state` says what it waits for, or that it failed. */
static bool transfer(dmg_greeting *greeting, int socket, bool is_sending, dmg_greeting_state *state)
{
    size_t bytes = message_bytes(greeting->step);
    while (greeting->done_bytes < bytes) {
        struct iovec part = {.iov_base = greeting->message + greeting->done_bytes,
                             .iov_len = bytes - greeting->done_bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ssize_t moved = is_sending ? sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                                   : recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            *state = is_sending ? DMG_GREETING_WAITS_TO_WRITE : DMG_GREETING_WAITS_TO_READ;
            return false;
        }
        if (moved <= 0) {
            *state = fail(greeting,
                          dmg_error(DMG_ERR_PEER, "it closed the connection before both ends had greeted: it died, "
                                                  "has too many connections, or is no program of this version of "
                                                  "dmgraph"));
            return false;
        }
        if (message.msg_flags & MSG_TRUNC) { /* a packet that is longer */
            *state = fail(greeting, dmg_error(DMG_ERR_PROTOCOL, "it is no program of this version of dmgraph"));
            return false;
        }
        greeting->done_bytes += (uint32_t)moved;
    }
    return true;
}

dmg_status dmg_stream_protection_parse(const char *text, dmg_stream_protection *protection)
{
    if (!text || strcmp(text, "authenticated") == 0) {
        *protection = DMG_STREAM_AUTHENTICATED;
    } else if (strcmp(text, "encrypted") == 0) {
        *protection = DMG_STREAM_ENCRYPTED;
    } else {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "the transport's parameter protect= is '%s': expected authenticated or encrypted", text);
    }
    return DMG_OK;
}

dmg_status dmg_greeting_begin(dmg_greeting *greeting, bool is_server, bool is_network, dmg_stream_protection wanted,
                              const uint8_t token[DMG_TOKEN_BYTES])
{
    memset(greeting, 0, sizeof *greeting);
    if (sodium_init() < 0) {
        return dmg_error(DMG_ERR_IO, "libsodium cannot be used: the system gives no random numbers");
    }
    dmg_stream_protection least = is_network ? DMG_STREAM_AUTHENTICATED : DMG_STREAM_PLAIN;
    memcpy(greeting->token, token, sizeof greeting->token);
    greeting->is_server = is_server;
    greeting->is_network = is_network;
    greeting->wanted = is_network && wanted > least ? wanted : least;
    randombytes_buf(greeting->own_number, sizeof greeting->own_number);
    if (is_network) {
        randombytes_buf(greeting->own_secret, sizeof greeting->own_secret);
    }
    return DMG_OK;
}

dmg_greeting_state dmg_greeting_go_on(dmg_greeting *greeting, int socket)
{
    while (greeting->step < GREETED) {
        bool is_sending = greeting->is_server == (greeting->step == SERVER_ANSWERS);
        dmg_greeting_state state;
        if (is_sending && !greeting->is_written) {
            write_message(greeting);
            greeting->is_written = true;
        }
        if (!transfer(greeting, socket, is_sending, &state)) {
            return state;
        }
        if (!is_sending && !hear_message(greeting)) {
            return fail(greeting, DMG_ERR_PROTOCOL);
        }
        greeting->is_written = false;
        greeting->done_bytes = 0;
        greeting->step++;
    }
    return greeting->step == GREETED ? DMG_GREETING_DONE : DMG_GREETING_FAILED;
}

void dmg_greeting_clear(dmg_greeting *greeting)
{
    sodium_memzero(greeting, sizeof *greeting);
}
