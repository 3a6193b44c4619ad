/**
 * @file settings.c
 * The parameters of a "ucx:..." transport string.
 */
#include "core/base/error.h"
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

/** What is no transport of UCX: the streams that connections begin with. */
static const char own_sockets[] = "socket";
/* Names as UCX_TLS takes them. */
static const char *const network_transports[] = {"tcp",     "ib",   "rc",      "rc_v", "rc_x",     "rc_verbs",
                                                 "rc_mlx5", "ud",   "ud_v",    "ud_x", "ud_verbs", "ud_mlx5",
                                                 "dc",      "dc_x", "dc_mlx5", NULL};
static const char *const shared_memory_transports[] = {"posix",    "sysv", "shm",  "sm",    "mm",  "self",
                                                       "loopback", "cma",  "knem", "xpmem", "all", NULL};
/* What queue pairs of a card are made for, by all its names. */
static const char *const card_transports[][2] = {
    {"rc_verbs", "rc_verbs"}, {"rc_v", "rc_verbs"}, {"rc", "rc_verbs"}, {"rc_mlx5", "rc_mlx5"}, {"rc_x", "rc_mlx5"}};

/** Call `check` with each word of a list; lists in a transport string are joined by '+', since ',' parts its
 * parameters. */
static dmg_status for_each_word(const char *list, dmg_status (*check)(const char *word))
{
    char copy[96];
    snprintf(copy, sizeof(copy), "%s", list);
    char *rest = NULL;
    dmg_status status = copy[0] == '\0' ? check("") : DMG_OK;
    for (char *word = strtok_r(copy, ",", &rest); word != NULL && status == DMG_OK; word = strtok_r(NULL, ",", &rest)) {
        status = check(word);
    }
    return status;
}

static dmg_status check_message_transport(const char *word)
{
    if (is_one_of(word, shared_memory_transports)) {
        return dmg_error(
            DMG_ERR_UNSUPPORTED,
            "messages=%s: messages never go through UCX's shared-memory rings, since a sender that is killed can "
            "wedge them for everybody: use messages=socket, and data=posix for one-sided data in shared memory",
            word);
    }
    if (!is_one_of(word, network_transports)) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "messages=%s: not a network transport of UCX: use socket, or else tcp, rc_verbs, ud_verbs, "
                         "rc_mlx5, ud_mlx5 or dc_mlx5, several joined by +",
                         word);
    }
    return DMG_OK;
}

dmg_ucx_data dmg_ucx_data_kind(const char *transports)
{
    if (strcmp(transports, "posix") == 0 || strcmp(transports, "sysv") == 0) {
        return DMG_UCX_DATA_SHARED_MEMORY;
    }
    return strcmp(transports, "rc_verbs") == 0 || strcmp(transports, "rc_mlx5") == 0 ? DMG_UCX_DATA_NIC
                                                                                     : DMG_UCX_DATA_AUTO;
}

void dmg_ucx_add_auxiliary_transport(char *transports, size_t capacity)
{
    static const char *const pairs[][2] = {{"rc_verbs", "rc_verbs,ud_verbs:aux"},
                                           {"rc_v", "rc_v,ud_v:aux"},
                                           {"rc_mlx5", "rc_mlx5,ud_mlx5:aux"},
                                           {"rc_x", "rc_x,ud_x:aux"},
                                           {"rc", "rc,ud:aux"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (strcmp(transports, pairs[i][0]) == 0) {
            snprintf(transports, capacity, "%s", pairs[i][1]);
            return;
        }
    }
}

static void copy_list(char *to, size_t capacity, const char *from)
{
    snprintf(to, capacity, "%s", from);
    for (char *at = to; *at != '\0'; at++) {
        if (*at == '+') {
            *at = ',';
        }
    }
}

bool dmg_ucx_list_has(const char *list, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == bytes && strncmp(at, word, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static void append_word(char *list, size_t capacity, const char *word, const char *suffix)
{
    size_t used = strlen(list);
    snprintf(list + used, capacity - used, "%s%s%s", used != 0 ? "," : "", word, suffix);
}

/** Part the devices of this side into those that speak RDMA and interfaces for tcp: each kind of context gets its own.
 */
static dmg_status parse_devices(const dmg_transport_parameters *parameters, dmg_ucx_side side,
                                dmg_ucx_settings *settings)
{
    const char *given = dmg_transport_parameter_get(parameters, "device", "");
    if (side == DMG_UCX_SIDE_MEMORY) {
        given = dmg_transport_parameter_get(parameters, "memory-device", given);
    }
    char copy[96];
    copy_list(copy, sizeof(copy), given);
    if (strlen(given) > sizeof(copy) / 2) {
        return dmg_error(DMG_ERR_ARGUMENT, "device=%s: too long a list of devices", given);
    }
    char *rest = NULL;
    for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        char name[96];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, ":"), word);
        if (strchr(word, ':') != NULL || dmg_ucx_is_rdma_device(name)) {
            append_word(settings->rdma_devices, sizeof(settings->rdma_devices), word,
                        strchr(word, ':') != NULL ? "" : ":1");
        } else {
            append_word(settings->interfaces, sizeof(settings->interfaces), word, "");
        }
    }
    return DMG_OK;
}

/** A whole number of a parameter, kept as UCX wants it: as text. "" when it is not given and has no default. */
static dmg_status parse_number(const dmg_transport_parameters *parameters, const char *key, const char *otherwise,
                               unsigned long least, unsigned long most, char *text, size_t capacity)
{
    const char *given = dmg_transport_parameter_get(parameters, key, NULL);
    if (given == NULL) {
        snprintf(text, capacity, "%s", otherwise);
        return DMG_OK;
    }
    char *end;
    errno = 0;
    unsigned long value = strtoul(given, &end, 10);
    if (errno != 0 || given[0] < '0' || given[0] > '9' || *end != '\0' || value < least || value > most) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s=%s: expected a number from %lu to %lu", key, given, least, most);
    }
    snprintf(text, capacity, "%lu", value);
    return DMG_OK;
}

static dmg_status parse_retry_time(const dmg_transport_parameters *parameters, dmg_ucx_settings *settings)
{
    const char *given = dmg_transport_parameter_get(parameters, "retry-time", "");
    if (given[0] == '\0') {
        return DMG_OK;
    }
    char *end;
    unsigned long value = strtoul(given, &end, 10);
    bool has_unit = strcmp(end, "us") == 0 || strcmp(end, "ms") == 0 || strcmp(end, "s") == 0;
    if (given[0] < '0' || given[0] > '9' || !has_unit || value == 0 || value > 1000000) {
        return dmg_error(DMG_ERR_ARGUMENT, "retry-time=%s: expected a whole number of us, ms or s, such as 100ms",
                         given);
    }
    snprintf(settings->retry_time, sizeof(settings->retry_time), "%lu%s", value, end);
    return DMG_OK;
}

static dmg_status parse_rdma(const dmg_transport_parameters *parameters, dmg_ucx_side side, dmg_ucx_settings *settings)
{
    dmg_status status = parse_devices(parameters, side, settings);
    if (status == DMG_OK) {
        status = parse_number(parameters, "gid", "", 0, 65535, settings->gid, sizeof(settings->gid));
    }
    if (status == DMG_OK) {
        /* Not 7: soft-RoCE takes it as "for ever". */
        status = parse_number(parameters, "retries", "4", 1, 6, settings->retries, sizeof(settings->retries));
    }
    return status == DMG_OK ? parse_retry_time(parameters, settings) : status;
}

/** The one name of what makes queue pairs; other words stay as they are. */
static const char *card_transport(const char *word)
{
    for (size_t i = 0; i < sizeof(card_transports) / sizeof(card_transports[0]); i++) {
        if (strcmp(word, card_transports[i][0]) == 0) {
            return card_transports[i][1];
        }
    }
    return word;
}

static dmg_status parse_messages(const dmg_transport_parameters *parameters, dmg_ucx_settings *settings)
{
    copy_list(settings->messages, sizeof(settings->messages),
              card_transport(dmg_transport_parameter_get(parameters, "messages", own_sockets)));
    settings->are_messages_ucx = strcmp(settings->messages, own_sockets) != 0;
    settings->are_messages_card = dmg_ucx_data_kind(settings->messages) == DMG_UCX_DATA_NIC;
    settings->has_tcp_messages = dmg_ucx_list_has(settings->messages, "tcp");
    settings->has_open_messages =
        settings->are_messages_ucx && !settings->are_messages_card && strcmp(settings->messages, "tcp") != 0;
    return settings->are_messages_ucx ? for_each_word(settings->messages, check_message_transport) : DMG_OK;
}

static dmg_status parse_safety(const dmg_transport_parameters *parameters, dmg_ucx_settings *settings)
{
    const char *trust = dmg_transport_parameter_get(parameters, "trust-network", "no");
    settings->trusts_network = strcmp(trust, "yes") == 0;
    dmg_status status =
        dmg_stream_protection_parse(dmg_transport_parameter_get(parameters, "protect", NULL), &settings->protection);
    if (status != DMG_OK) {
        return status;
    }
    if (settings->protection == DMG_STREAM_ENCRYPTED && settings->are_messages_ucx) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "protect=encrypted,messages=%s: UCX encrypts nothing: use messages=socket",
                         settings->messages);
    }
    if (!settings->trusts_network && strcmp(trust, "no") != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "trust-network=%s: expected yes or no", trust);
    }
    if (settings->trusts_network && !settings->has_tcp_messages && !settings->has_open_messages) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "trust-network=yes,messages=%s: nothing but messages=tcp and those of UCX's that take "
                         "unreliable datagrams (ud, dc) need that trust",
                         settings->messages);
    }
    if (settings->has_open_messages && !settings->trusts_network) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "messages=%s: UCX takes packets from everybody on the RDMA network there, and some end the "
                         "process: use messages=socket, rc_verbs or rc_mlx5 alone, or --trust-network where nobody "
                         "else is",
                         settings->messages);
    }
    return DMG_OK;
}

static dmg_status parse_data(const dmg_transport_parameters *parameters, dmg_ucx_settings *settings)
{
    const char *data = dmg_transport_parameter_get(parameters, "data", "auto");
    if (strcmp(data, "auto") == 0) {
        settings->data = DMG_UCX_DATA_AUTO;
        return DMG_OK;
    }
    if (strcmp(data, "message") == 0) {
        settings->data = DMG_UCX_DATA_MESSAGE;
        return DMG_OK;
    }
    const char *transport = card_transport(data);
    settings->data = dmg_ucx_data_kind(transport);
    if (settings->data == DMG_UCX_DATA_AUTO && strncmp(data, "dc", 2) == 0 && is_one_of(data, network_transports)) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "data=%s: what one client reaches by such a target cannot be taken from it alone when it is "
                         "given up: use rc_mlx5 or rc_verbs",
                         data);
    }
    if (settings->data == DMG_UCX_DATA_AUTO) {
        return dmg_error(is_one_of(data, network_transports) ? DMG_ERR_UNSUPPORTED : DMG_ERR_ARGUMENT,
                         "data=%s: no UCX transport with one-sided reads and writes: use auto, message, posix, sysv, "
                         "rc_verbs or rc_mlx5",
                         data);
    }
    snprintf(settings->data_transports, sizeof(settings->data_transports), "%s", transport);
    return DMG_OK;
}

dmg_status dmg_ucx_settings_parse(const dmg_transport_parameters *parameters, dmg_ucx_side side,
                                  dmg_ucx_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    dmg_status status = parse_messages(parameters, settings);
    if (status == DMG_OK) {
        status = parse_rdma(parameters, side, settings);
    }
    if (status == DMG_OK) {
        status = parse_safety(parameters, settings);
    }
    if (status == DMG_OK && settings->interfaces[0] != '\0' && !settings->has_tcp_messages) {
        status = dmg_error(DMG_ERR_UNSUPPORTED,
                           "device=%s: this machine has no such RDMA device, and network interfaces are for "
                           "messages=tcp: `rdma link` lists the devices, --bind takes an interface's address",
                           settings->interfaces);
    }
    if (status != DMG_OK) {
        return status;
    }
    status = parse_data(parameters, settings);
    if (status != DMG_OK) {
        return status;
    }

    char port[8];
    settings->has_port = dmg_transport_parameter_get(parameters, "port", NULL) != NULL;
    status = parse_number(parameters, "port", "0", 0, 65535, port, sizeof(port));
    settings->port = status == DMG_OK ? (uint16_t)strtoul(port, NULL, 10) : 0;
    return status;
}
