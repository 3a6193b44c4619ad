#include "cli/launcher/segments.h"

#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Making a segment: a thread takes about a second a GiB from the kernel, one of a busy machine much longer. */
#define MAKING_NS        UINT64_C(60000000000)
#define MAKING_NS_A_GIB  UINT64_C(16000000000)
#define MAKING_GIB       (UINT64_C(1) << 30)
#define MAKING_GIBS_MOST (UINT64_C(1) << 20)
#define NANOSECONDS_TO_S 1e-9

/* ---- asking ---- */

dmg_segment_options dmg_segment_of_settings(const dmg_settings *settings, uint64_t bytes)
{
    bool has_node = dmg_has(settings, DMG_OPTION_NUMA_NODE);
    return (dmg_segment_options){.bytes = bytes,
                                 .numa_node = has_node ? (int)dmg_number(settings, DMG_OPTION_NUMA_NODE) : -1,
                                 .page_size = (dmg_page_size)dmg_number(settings, DMG_OPTION_PAGE_SIZE),
                                 .prefault = dmg_flag(settings, DMG_OPTION_PREFAULT),
                                 .allow_fallback = dmg_flag(settings, DMG_OPTION_ALLOW_FALLBACK)};
}

void dmg_segment_put(json_t *setup, const dmg_segment_options *segment)
{
    json_t *own = json_pack("{s:I, s:i, s:i, s:b, s:b}", "bytes", (json_int_t)segment->bytes, "numa_node",
                            segment->numa_node, "page_size", (int)segment->page_size, "prefault",
                            (int)segment->prefault, "allow_fallback", (int)segment->allow_fallback);
    json_object_update(setup, own);
    json_decref(own);
}

dmg_status dmg_segment_take(json_t *setup, dmg_segment_options *segment)
{
    json_int_t bytes = 0;
    int numa_node = -1, page_size = 0, prefault = 0, allow_fallback = 0;
    dmg_status status =
        dmg_control_unpack(setup, "{s:I, s:i, s:i, s:b, s:b}", "bytes", &bytes, "numa_node", &numa_node, "page_size",
                           &page_size, "prefault", &prefault, "allow_fallback", &allow_fallback);
    if (status == DMG_OK && (bytes <= 0 || page_size < DMG_PAGE_DEFAULT || page_size > DMG_PAGE_1G)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "the setup has a segment that is out of range");
    }
    *segment = (dmg_segment_options){.bytes = (uint64_t)bytes,
                                     .numa_node = numa_node,
                                     .page_size = (dmg_page_size)page_size,
                                     .prefault = prefault != 0,
                                     .allow_fallback = allow_fallback != 0};
    return status;
}

dmg_status dmg_segments_check_room(const dmg_settings *settings, const uint64_t *bytes, uint32_t count)
{
    dmg_server_options *nodes = calloc(count, sizeof *nodes);
    if (!nodes) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a list of nodes");
    }
    for (uint32_t node = 0; node < count; node++) {
        nodes[node] = (dmg_server_options){.transport = dmg_value_text(settings, DMG_OPTION_TRANSPORT),
                                           .bind = dmg_value_text(settings, DMG_OPTION_BIND),
                                           .node = (uint16_t)node,
                                           .segment = dmg_segment_of_settings(settings, bytes[node])};
    }
    dmg_status status = dmg_server_check_room(nodes, count);
    free(nodes);
    return status;
}

/* ---- waiting ---- */

typedef struct making {
    const dmg_launcher *launcher;
    dmg_progress_bar *bar;
    uint64_t bytes;
    uint64_t deadline_ns;
    bool is_over;
    bool (*is_done)(void *context);
    void *context;
} making;

static uint64_t limit_ns(uint64_t bytes)
{
    uint64_t gibs = bytes / MAKING_GIB + 1;
    return MAKING_NS + (gibs < MAKING_GIBS_MOST ? gibs : MAKING_GIBS_MOST) * MAKING_NS_A_GIB;
}

static bool is_made_or_late(void *context)
{
    making *made = context;
    if (made->is_done(made->context)) {
        return true;
    }
    uint64_t populated = 0;
    for (uint32_t index = 0; index < dmg_launcher_child_count(made->launcher); index++) {
        populated += dmg_launcher_child(made->launcher, index)->made_bytes;
    }
    if (populated > 0) {
        dmg_progress_bar_show(made->bar, "making the segments", populated, made->bytes);
    }
    made->is_over = dmg_now_ns() > made->deadline_ns;
    return made->is_over;
}

dmg_status dmg_segments_wait(dmg_launcher *launcher, uint64_t bytes, dmg_progress_bar *bar,
                             bool (*is_done)(void *context), void *context)
{
    making made = {.launcher = launcher,
                   .bar = bar,
                   .bytes = bytes,
                   .deadline_ns = dmg_now_ns() + limit_ns(bytes),
                   .is_done = is_done,
                   .context = context};
    dmg_launcher_expect_memory(launcher, bytes);
    dmg_status status = dmg_launcher_wait(launcher, is_made_or_late, &made);
    dmg_progress_bar_clear(bar);
    if (status == DMG_OK && made.is_over) {
        status = dmg_error(DMG_ERR_PEER,
                           "the memory nodes have not made their segments, %s in all, in %.0f s: is the machine short "
                           "of memory, or much too busy?",
                           dmg_text_bytes(bytes).text, (double)limit_ns(bytes) * NANOSECONDS_TO_S);
    }
    return status;
}

/* ---- what was got ---- */

json_t *dmg_placement_json(const dmg_placement *placement)
{
    return json_pack("{s:I, s:o, s:o, s:b}", "bytes", (json_int_t)placement->bytes, "page_bytes",
                     placement->page_bytes ? json_integer((json_int_t)placement->page_bytes) : json_null(), "numa_node",
                     placement->numa_node >= 0 ? json_integer(placement->numa_node) : json_null(), "prefaulted",
                     (int)placement->is_populated);
}

dmg_status dmg_placement_from_json(const json_t *object, dmg_placement *placement)
{
    const json_t *bytes = json_object_get(object, "bytes");
    const json_t *page_bytes = json_object_get(object, "page_bytes");
    const json_t *node = json_object_get(object, "numa_node");
    if (!json_is_integer(bytes) || json_integer_value(bytes) <= 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "a memory node did not say what segment it has");
    }
    *placement = (dmg_placement){.bytes = (uint64_t)json_integer_value(bytes),
                                 .page_bytes = (uint64_t)json_integer_value(page_bytes),
                                 .numa_node = json_is_integer(node) ? (int)json_integer_value(node) : -1,
                                 .is_populated = json_is_true(json_object_get(object, "prefaulted"))};
    return DMG_OK;
}

static uint64_t wanted_page_bytes(const dmg_settings *settings)
{
    static const uint64_t bytes[] = {
        [DMG_PAGE_DEFAULT] = 0, [DMG_PAGE_2M] = UINT64_C(2) << 20, [DMG_PAGE_1G] = UINT64_C(1) << 30};
    return bytes[dmg_number(settings, DMG_OPTION_PAGE_SIZE)];
}

void dmg_segments_correct_settings(dmg_settings *settings, const dmg_placement *placement)
{
    if (dmg_has(settings, DMG_OPTION_NUMA_NODE) &&
        (int)dmg_number(settings, DMG_OPTION_NUMA_NODE) != placement->numa_node) {
        settings->values[DMG_OPTION_NUMA_NODE].has_value = false;
    }
    if (wanted_page_bytes(settings) != 0 && wanted_page_bytes(settings) != placement->page_bytes) {
        dmg_set_number(settings, DMG_OPTION_PAGE_SIZE, DMG_PAGE_DEFAULT);
        settings->values[DMG_OPTION_PAGE_SIZE].text = "default";
    }
}

bool dmg_segments_are_special(const dmg_settings *settings)
{
    static const dmg_option_id ids[] = {DMG_SEGMENT_OPTIONS};
    for (size_t index = 0; index < sizeof ids / sizeof ids[0]; index++) {
        if (settings->values[ids[index]].is_given) {
            return true;
        }
    }
    return false;
}

void dmg_placement_print(FILE *to, const dmg_placement *placement)
{
    if (placement->page_bytes > 0) {
        fprintf(to, "pages of %s, ", dmg_text_bytes(placement->page_bytes).text);
    }
    if (placement->numa_node >= 0) {
        fprintf(to, "on NUMA node %d, ", placement->numa_node);
    } else {
        fprintf(to, "on no NUMA node in particular, ");
    }
    fprintf(to, "%s", placement->is_populated ? "all touched" : "touched when used");
}
