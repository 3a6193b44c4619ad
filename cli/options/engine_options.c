#include "cli/options/engine_options.h"

#include "core/base/error.h"
#include "core/base/topology.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/** A field of dmg_engine_options: how it is called between processes, and which option sets it. */
typedef struct engine_field {
    const char *name;
    size_t offset;
    size_t bytes; /* of an unsigned integer, an enumeration or a bool */
    uint64_t least;
    uint64_t most;
    dmg_option_id option; /* DMG_OPTION_COUNT: none */
} engine_field;

#define FIELD(member, least, most, option)                                                                             \
    {                                                                                                                  \
#member, offsetof(dmg_engine_options, member), sizeof(((dmg_engine_options *)NULL)->member), least, most,      \
            option                                                                                                     \
    }

static const engine_field fields[] = {
    FIELD(threads, 1, UINT32_MAX, DMG_OPTION_COUNT),
    FIELD(cache_bytes, 0, INT64_MAX, DMG_OPTION_CACHE),
    FIELD(tasks_in_flight, 0, UINT32_MAX, DMG_OPTION_TASKS),
    FIELD(direction, DMG_DIRECTION_AUTO, DMG_DIRECTION_PULL, DMG_OPTION_DIRECTION),
    FIELD(density, DMG_DENSITY_AUTO, DMG_DENSITY_SPARSE, DMG_OPTION_DENSITY),
    FIELD(caching, DMG_CACHING_PARTITION, DMG_CACHING_FULL, DMG_OPTION_CACHING),
    FIELD(updates, DMG_UPDATE_AUTO, DMG_UPDATE_VALRD_OWNER, DMG_OPTION_UPDATES),
    FIELD(reference_edges, 1, UINT32_MAX, DMG_OPTION_REFERENCE_EDGES),
    FIELD(reference_degree, 0, UINT32_MAX, DMG_OPTION_REFERENCE_DEGREE),
    FIELD(reference_buffer_bytes, 0, DMG_MAILBOX_BUFFER_BYTES_MAX, DMG_OPTION_REFERENCE_BUFFER),
    FIELD(value_buffer_bytes, 0, DMG_MAILBOX_BUFFER_BYTES_MAX, DMG_OPTION_VALUE_BUFFER),
    FIELD(partials, DMG_PARTIALS_AUTO, DMG_PARTIALS_VALUE, DMG_OPTION_PARTIALS),
    FIELD(precision, DMG_PRECISION_AUTO, DMG_PRECISION_DOUBLE, DMG_OPTION_PRECISION),
    FIELD(pin_threads, 0, 1, DMG_OPTION_PIN_THREADS),
    FIELD(allow_fallback, 0, 1, DMG_OPTION_ALLOW_FALLBACK),
    FIELD(merge_activation, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_MERGE_ACTIVATION),
    FIELD(batch_activation, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_BATCH_ACTIVATION),
    FIELD(merge_index, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_MERGE_INDEX),
    FIELD(batch_index, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_BATCH_INDEX),
    FIELD(merge_lists, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_MERGE_LISTS),
    FIELD(batch_lists, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_BATCH_LISTS),
    FIELD(reschedule_degree, 1, UINT32_MAX, DMG_OPTION_RESCHEDULE_DEGREE),
    FIELD(cache_index, 0, 1, DMG_OPTION_CACHE_INDEX),
    FIELD(steal_segments, DMG_SWITCH_ON, DMG_SWITCH_OFF, DMG_OPTION_STEAL_SEGMENTS),
};

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static void set_field(dmg_engine_options *options, const engine_field *field, uint64_t value)
{
    void *at = (char *)options + field->offset;
    if (field->bytes == sizeof(bool)) {
        memcpy(at, &(bool){value != 0}, sizeof(bool));
    } else if (field->bytes == sizeof(uint32_t)) {
        memcpy(at, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    } else {
        memcpy(at, &value, sizeof value);
    }
}

static uint64_t get_field(const dmg_engine_options *options, const engine_field *field)
{
    const void *at = (const char *)options + field->offset;
    bool flag = false;
    uint32_t number = 0;
    uint64_t value = 0;
    if (field->bytes == sizeof flag) {
        memcpy(&flag, at, sizeof flag);
        return flag;
    }
    if (field->bytes == sizeof number) {
        memcpy(&number, at, sizeof number);
        return number;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

void dmg_engine_options_from_settings(const dmg_settings *settings, dmg_engine_options *options)
{
    for (size_t index = 0; index < FIELD_COUNT; index++) {
        if (fields[index].option != DMG_OPTION_COUNT) {
            /* An option without a default that was not given is 0: the engine's own default. */
            set_field(options, &fields[index], settings->values[fields[index].option].number);
        }
    }
    if (options->reference_edges == 0) {
        options->reference_edges = DMG_REFERENCE_EDGES_NEVER; /* what people write as 0 */
    }
    if (options->reschedule_degree == 0) {
        options->reschedule_degree = DMG_RESCHEDULE_NEVER; /* likewise */
    }
}

uint32_t dmg_engine_threads(const dmg_settings *settings, uint32_t compute_nodes)
{
    if (dmg_has(settings, DMG_OPTION_THREADS)) {
        return (uint32_t)dmg_number(settings, DMG_OPTION_THREADS);
    }
    uint32_t threads = dmg_topology_usable_cpus() / compute_nodes;
    threads = threads > DMG_WORKERS_MAX ? DMG_WORKERS_MAX : threads;
    return threads > 0 ? threads : 1;
}

json_t *dmg_engine_options_json(const dmg_engine_options *options)
{
    json_t *object = json_object();
    for (size_t index = 0; index < FIELD_COUNT; index++) {
        json_object_set_new(object, fields[index].name, json_integer((json_int_t)get_field(options, &fields[index])));
    }
    return object;
}

dmg_status dmg_engine_options_from_json(const json_t *object, dmg_engine_options *options)
{
    memset(options, 0, sizeof *options);
    for (size_t index = 0; index < FIELD_COUNT; index++) {
        const engine_field *field = &fields[index];
        const json_t *value = json_object_get(object, field->name);
        if (!json_is_integer(value)) {
            return dmg_error(DMG_ERR_PROTOCOL, "the setup has no number '%s'", field->name);
        }
        if (json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) < field->least ||
            (uint64_t)json_integer_value(value) > field->most) {
            return dmg_error(DMG_ERR_PROTOCOL, "the setup's '%s' is %" JSON_INTEGER_FORMAT ", which is out of range",
                             field->name, json_integer_value(value));
        }
        set_field(options, field, (uint64_t)json_integer_value(value));
    }
    return DMG_OK;
}
