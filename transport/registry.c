/*
 * The backends that this build has, and transport strings: NAME[:KEY=VALUE[,KEY=VALUE]...].
 */
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INFOS_PER_BACKEND_MAX 64

static const dmg_backend *const backends[] = {&dmg_backend_cxl_shm, &dmg_backend_ucx};
#define BACKEND_COUNT (sizeof backends / sizeof backends[0])

const char *dmg_transport_parameter_get(const dmg_transport_parameters *parameters, const char *key,
                                        const char *otherwise)
{
    for (uint32_t i = 0; i < parameters->count; i++) {
        if (strcmp(parameters->entries[i].key, key) == 0) {
            return parameters->entries[i].value;
        }
    }
    return otherwise;
}

static void append(char *list, size_t capacity, const char *word)
{
    size_t used = strlen(list);
    snprintf(list + used, capacity - used, "%s%s", used ? ", " : "", word);
}

static bool is_known_key(const dmg_backend *backend, const char *key)
{
    for (const char *const *known = backend->parameter_keys; *known; known++) {
        if (strcmp(*known, key) == 0) {
            return true;
        }
    }
    return false;
}

static dmg_status refuse_key(const char *transport, const dmg_backend *backend, const char *key)
{
    char known[256] = "";
    for (const char *const *name = backend->parameter_keys; *name; name++) {
        append(known, sizeof known, *name);
    }
    return dmg_error(DMG_ERR_ARGUMENT, "transport '%s': %s has no parameter '%s'; it has: %s", transport, backend->name,
                     key, known[0] ? known : "none");
}

static dmg_status parse_parameter(const char *transport, const dmg_backend *backend, const char *text, size_t length,
                                  dmg_transport_parameters *parameters)
{
    const char *equals = memchr(text, '=', length);
    size_t key_length = equals ? (size_t)(equals - text) : length;
    size_t value_length = equals ? length - key_length - 1 : 0;
    dmg_transport_parameter parameter = {0};
    if (!equals || key_length == 0 || key_length >= sizeof parameter.key || value_length >= sizeof parameter.value) {
        return dmg_error(DMG_ERR_ARGUMENT, "transport '%s': '%.*s' is not KEY=VALUE", transport,
                         (int)(length < 80 ? length : 80), text);
    }
    memcpy(parameter.key, text, key_length);
    memcpy(parameter.value, equals + 1, value_length);
    if (!is_known_key(backend, parameter.key)) {
        return refuse_key(transport, backend, parameter.key);
    }
    if (dmg_transport_parameter_get(parameters, parameter.key, NULL)) {
        return dmg_error(DMG_ERR_ARGUMENT, "transport '%s': '%s' is given twice", transport, parameter.key);
    }
    if (parameters->count == DMG_TRANSPORT_PARAMETERS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "transport '%s' has more than %d parameters", transport,
                         DMG_TRANSPORT_PARAMETERS_MAX);
    }
    parameters->entries[parameters->count++] = parameter;
    return DMG_OK;
}

static const dmg_backend *find_backend(const char *name, size_t length)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (strlen(backends[i]->name) == length && memcmp(backends[i]->name, name, length) == 0) {
            return backends[i];
        }
    }
    return NULL;
}

dmg_status dmg_transport_parse(const char *transport, const dmg_backend **backend, dmg_transport_parameters *parameters)
{
    memset(parameters, 0, sizeof *parameters);
    if (!transport) {
        return dmg_error(DMG_ERR_ARGUMENT, "no transport was given");
    }
    size_t name_length = strcspn(transport, ":");
    *backend = find_backend(transport, name_length);
    if (!*backend) {
        char known[128] = "";
        for (size_t i = 0; i < BACKEND_COUNT; i++) {
            append(known, sizeof known, backends[i]->name);
        }
        return dmg_error(DMG_ERR_ARGUMENT, "transport '%s': no such backend; there are: %s", transport, known);
    }
    snprintf(parameters->backend, sizeof parameters->backend, "%s", (*backend)->name);
    const char *rest = transport + name_length;
    while (*rest) {
        rest++; /* the colon or comma */
        size_t length = strcspn(rest, ",");
        dmg_status status = parse_parameter(transport, *backend, rest, length, parameters);
        if (status != DMG_OK) {
            return status;
        }
        rest += length;
    }
    return DMG_OK;
}

void dmg_transport_prepare(void)
{
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (backends[i]->prepare) {
            backends[i]->prepare();
        }
    }
}

void dmg_transport_announce(const char *transport)
{
    const dmg_backend *chosen = NULL;
    dmg_transport_parameters parameters;
    if (transport && dmg_transport_parse(transport, &chosen, &parameters) != DMG_OK) {
        return; /* whoever opens it says what is wrong */
    }
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if ((!chosen || backends[i] == chosen) && backends[i]->announce) {
            backends[i]->announce(chosen ? &parameters : NULL);
        }
    }
}

dmg_status dmg_transport_trust(const char *transport, char *trusting, size_t capacity)
{
    const dmg_backend *backend;
    dmg_transport_parameters parameters;
    int length = snprintf(trusting, capacity, "%s%ctrust-network=yes", transport, strchr(transport, ':') ? ',' : ':');
    if (length < 0 || (size_t)length >= capacity) {
        return dmg_error(DMG_ERR_ARGUMENT, "transport '%s' is too long", transport);
    }
    return dmg_transport_parse(trusting, &backend, &parameters);
}

dmg_status dmg_transport_count_descriptors(const char *transport, dmg_transport_descriptors *descriptors)
{
    const dmg_backend *backend;
    dmg_transport_parameters parameters;
    *descriptors = (dmg_transport_descriptors){0};
    dmg_status status = dmg_transport_parse(transport, &backend, &parameters);
    return status == DMG_OK ? backend->descriptors(&parameters, descriptors) : status;
}

typedef struct sweep_report {
    dmg_transport_removed removed;
    void *context;
} sweep_report;

static void report_removed(void *context, const char *path, uint64_t bytes)
{
    const sweep_report *report = context;
    dmg_log(DMG_LOG_INFO, "leftover_removed", "file=%s bytes=%" PRIu64, path, bytes);
    if (report->removed) {
        report->removed(report->context, path, bytes);
    }
}

void dmg_transport_sweep(uint64_t since_s, dmg_transport_removed removed, void *context)
{
    sweep_report report = {removed, context};
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (backends[i]->sweep) {
            backends[i]->sweep(since_s, report_removed, &report);
        }
    }
}

dmg_status dmg_transport_describe(dmg_transport_info **infos, size_t *count)
{
    *count = 0;
    *infos = calloc(BACKEND_COUNT * INFOS_PER_BACKEND_MAX, sizeof **infos);
    if (!*infos) {
        return dmg_error(DMG_ERR_MEMORY, "describing the transports: out of memory");
    }
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        size_t described = 0;
        dmg_status status = backends[i]->describe(*infos + *count, INFOS_PER_BACKEND_MAX, &described);
        if (status != DMG_OK) {
            free(*infos);
            *infos = NULL;
            *count = 0;
            return dmg_error_prefix(status, "describing the transport %s", backends[i]->name);
        }
        *count += described < INFOS_PER_BACKEND_MAX ? described : INFOS_PER_BACKEND_MAX;
    }
    return DMG_OK;
}
