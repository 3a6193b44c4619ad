/*
 * The layout is a function of the header's counts and flags, so mapping computes it and compares: no offset or length
 * of a file is ever believed. docs/formats.md has the table that a reader in another language needs.
 */
#include "formats/binary_form.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "formats/binary_layout.h"
#include "formats/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Large enough for the disk to stream, small enough that the checksum finds it in the cache. */
#define WRITE_PIECE_BYTES (UINT64_C(1) << 20)

const unsigned char dmg_binary_magic[DMG_BINARY_MAGIC_BYTES] = {0x89, 'D', 'M', 'G', '\r', '\n', 0x1a, '\n'};

static const char *const section_names[DMG_SECTIONS] = {
    [DMG_SECTION_OUT_OFFSETS] = "offsets",
    [DMG_SECTION_OUT_DESTINATIONS] = "destinations",
    [DMG_SECTION_OUT_WEIGHTS] = "weights",
    [DMG_SECTION_IN_OFFSETS] = "reverse offsets",
    [DMG_SECTION_IN_DESTINATIONS] = "reverse destinations",
    [DMG_SECTION_IN_WEIGHTS] = "reverse weights",
    [DMG_SECTION_IDS] = "vertex ids",
    [DMG_SECTION_TINY_CHUNKS] = "tiny-chunks",
};

static void slice_tiny_chunks(uint64_t vertex_count, uint64_t *chunk_vertices, uint32_t *chunk_count)
{
    uint64_t vertices = (vertex_count + DMG_BINARY_TINY_CHUNKS - 1) / DMG_BINARY_TINY_CHUNKS;
    vertices = (vertices + 63) / 64 * 64;
    *chunk_vertices = vertices;
    *chunk_count = vertices ? (uint32_t)((vertex_count + vertices - 1) / vertices) : 0;
}

static uint64_t tiny_chunk_arcs(const uint64_t *offsets, uint64_t vertex_count, uint64_t chunk_vertices, uint32_t chunk)
{
    uint64_t begin = chunk * chunk_vertices;
    uint64_t end = begin + chunk_vertices < vertex_count ? begin + chunk_vertices : vertex_count;
    return offsets[end] - offsets[begin];
}

/** Fill in the section table and the file's size from the counts and flags. False when they overflow. */
static bool lay_out(dmg_binary_header *header)
{
    uint64_t offset_bytes;
    uint64_t destination_bytes;
    uint64_t id_bytes;
    uint64_t offset_count;
    if (!dmg_checked_add(header->vertex_count, 1, &offset_count) ||
        !dmg_checked_multiply(offset_count, sizeof(uint64_t), &offset_bytes) ||
        !dmg_checked_multiply(header->vertex_count, sizeof(uint64_t), &id_bytes) ||
        !dmg_checked_multiply(header->arc_count, sizeof(uint32_t), &destination_bytes)) {
        return false;
    }
    bool is_weighted = header->weight_kind != DMG_WEIGHT_NONE;
    bool has_reverse = header->flags & DMG_BINARY_HAS_REVERSE;
    uint64_t bytes[DMG_SECTIONS] = {
        [DMG_SECTION_OUT_OFFSETS] = offset_bytes,
        [DMG_SECTION_OUT_DESTINATIONS] = destination_bytes,
        [DMG_SECTION_OUT_WEIGHTS] = is_weighted ? destination_bytes : 0,
        [DMG_SECTION_IN_OFFSETS] = has_reverse ? offset_bytes : 0,
        [DMG_SECTION_IN_DESTINATIONS] = has_reverse ? destination_bytes : 0,
        [DMG_SECTION_IN_WEIGHTS] = has_reverse && is_weighted ? destination_bytes : 0,
        [DMG_SECTION_IDS] = header->flags & DMG_BINARY_HAS_IDS ? id_bytes : 0,
        [DMG_SECTION_TINY_CHUNKS] = header->tiny_chunk_count * sizeof(uint64_t),
    };
    uint64_t position = DMG_BINARY_PAGE_BYTES;
    for (int i = 0; i < DMG_SECTIONS; i++) {
        header->sections[i].offset = position;
        header->sections[i].bytes = bytes[i];
        if (!dmg_checked_add(position, bytes[i], &position) ||
            !dmg_checked_round_up(position, DMG_BINARY_PAGE_BYTES, &position)) {
            return false;
        }
    }
    header->file_bytes = position;
    return true;
}

static uint32_t header_checksum(const dmg_binary_header *header)
{
    dmg_binary_header copy = *header;
    copy.header_crc32 = 0;
    return (uint32_t)crc32_z(0, (const Bytef *)&copy, sizeof copy);
}

static dmg_status write_at(int file, const char *path, uint64_t position, const void *data, uint64_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t written = pwrite(file, from, bytes, (off_t)position);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return dmg_error_errno(DMG_ERR_IO, written < 0 ? errno : ENOSPC, "%s: writing the binary form", path);
        }
        from += written;
        position += (uint64_t)written;
        bytes -= (uint64_t)written;
    }
    return DMG_OK;
}

/** Write a section with its padding; the checksum covers both, so that every byte of a file is covered. */
static dmg_status write_section(int file, const char *path, dmg_binary_section *section, const void *data)
{
    static const unsigned char zeros[DMG_BINARY_PAGE_BYTES];
    const unsigned char *from = data;
    uLong crc = crc32_z(0, NULL, 0);
    for (uint64_t done = 0; done < section->bytes;) {
        uint64_t piece = section->bytes - done < WRITE_PIECE_BYTES ? section->bytes - done : WRITE_PIECE_BYTES;
        crc = crc32_z(crc, from + done, piece);
        dmg_status status = write_at(file, path, section->offset + done, from + done, piece);
        if (status != DMG_OK) {
            return status;
        }
        done += piece;
    }
    uint64_t padding = -section->bytes & (DMG_BINARY_PAGE_BYTES - 1);
    crc = crc32_z(crc, zeros, padding);
    section->crc32 = (uint32_t)crc;
    return write_at(file, path, section->offset + section->bytes, zeros, padding);
}

dmg_status dmg_binary_form_write(const dmg_graph *graph, int file, const char *path_for_errors)
{
    dmg_binary_header header = {
        .version = DMG_BINARY_VERSION,
        .byte_order = DMG_BINARY_BYTE_ORDER,
        .header_bytes = sizeof(dmg_binary_header),
        .section_count = DMG_SECTIONS,
        .flags = (graph->is_directed ? DMG_BINARY_IS_DIRECTED : 0) | (graph->in.offsets ? DMG_BINARY_HAS_REVERSE : 0) |
                 (graph->ids ? DMG_BINARY_HAS_IDS : 0),
        .weight_kind = graph->weight_kind,
        .vertex_count = graph->vertex_count,
        .arc_count = graph->arc_count,
        .first_id = graph->ids ? 0 : graph->first_id,
        .loop_arcs = graph->loop_arcs,
        .repeated_arcs = graph->repeated_arcs,
        .negative_line = graph->negative_line,
    };
    memcpy(header.magic, dmg_binary_magic, sizeof header.magic);
    memcpy(header.negative_source, graph->negative_source, sizeof header.negative_source - 1);
    slice_tiny_chunks(graph->vertex_count, &header.tiny_chunk_vertices, &header.tiny_chunk_count);
    if (!lay_out(&header)) {
        return dmg_error(DMG_ERR_LIMIT, "%s: the graph is too large for a file", path_for_errors);
    }
    uint64_t tiny_chunks[DMG_BINARY_TINY_CHUNKS];
    for (uint32_t i = 0; i < header.tiny_chunk_count; i++) {
        tiny_chunks[i] = tiny_chunk_arcs(graph->out.offsets, graph->vertex_count, header.tiny_chunk_vertices, i);
    }
    const void *data[DMG_SECTIONS] = {
        [DMG_SECTION_OUT_OFFSETS] = graph->out.offsets,
        [DMG_SECTION_OUT_DESTINATIONS] = graph->out.destinations,
        [DMG_SECTION_OUT_WEIGHTS] = graph->out.weights,
        [DMG_SECTION_IN_OFFSETS] = graph->in.offsets,
        [DMG_SECTION_IN_DESTINATIONS] = graph->in.destinations,
        [DMG_SECTION_IN_WEIGHTS] = graph->in.weights,
        [DMG_SECTION_IDS] = graph->ids,
        [DMG_SECTION_TINY_CHUNKS] = tiny_chunks,
    };
    for (int i = 0; i < DMG_SECTIONS; i++) {
        dmg_status status = write_section(file, path_for_errors, &header.sections[i], data[i]);
        if (status != DMG_OK) {
            return status;
        }
    }
    /* The header comes last: a file whose writing was cut short has none. */
    header.header_crc32 = header_checksum(&header);
    return write_at(file, path_for_errors, 0, &header, sizeof header);
}

/** What stands in the first page, before anything of it is used. */
static dmg_status check_header(const dmg_binary_header *header, const char *path, uint64_t file_bytes)
{
    if (memcmp(header->magic, dmg_binary_magic, sizeof header->magic) != 0) {
        return dmg_error(DMG_ERR_FORMAT, "%s: does not start with the mark of dmgraph's binary form", path);
    }
    if (header->byte_order != DMG_BINARY_BYTE_ORDER) {
        return header->byte_order == __builtin_bswap32(DMG_BINARY_BYTE_ORDER)
                   ? dmg_error(DMG_ERR_FORMAT,
                               "%s: was written on a machine of the other byte order; convert the original here", path)
                   : dmg_error(DMG_ERR_FORMAT, "%s: byte-order mark %#" PRIx32 ": expected %#" PRIx32, path,
                               header->byte_order, DMG_BINARY_BYTE_ORDER);
    }
    if (header->version != DMG_BINARY_VERSION) {
        return dmg_error(DMG_ERR_FORMAT, "%s: is version %" PRIu32 " of the binary form; this dmgraph reads version %d",
                         path, header->version, DMG_BINARY_VERSION);
    }
    if (header->header_crc32 != header_checksum(header)) {
        return dmg_error(DMG_ERR_FORMAT, "%s: wrong checksum of the header: the file is damaged", path);
    }
    if (file_bytes < header->file_bytes) {
        return dmg_error(DMG_ERR_FORMAT, "%s: truncated: %" PRIu64 " bytes, the header says %" PRIu64, path, file_bytes,
                         header->file_bytes);
    }
    if (file_bytes > header->file_bytes) {
        return dmg_error(DMG_ERR_FORMAT, "%s: trailing bytes: %" PRIu64 " bytes, the header says %" PRIu64, path,
                         file_bytes, header->file_bytes);
    }
    return DMG_OK;
}

/** A header may be damaged on purpose and carry a right checksum: its counts and table must agree with each other. */
static dmg_status check_layout(const dmg_binary_header *header, const char *path)
{
    const uint32_t known_flags = DMG_BINARY_IS_DIRECTED | DMG_BINARY_HAS_REVERSE | DMG_BINARY_HAS_IDS;
    uint64_t chunk_vertices;
    uint32_t chunk_count;
    slice_tiny_chunks(header->vertex_count, &chunk_vertices, &chunk_count);
    if (header->header_bytes != sizeof *header || header->section_count != DMG_SECTIONS ||
        (header->flags & ~known_flags) != 0 || header->weight_kind > DMG_WEIGHT_FLOAT32 ||
        ((header->flags & DMG_BINARY_HAS_REVERSE) && !(header->flags & DMG_BINARY_IS_DIRECTED))) {
        return dmg_error(DMG_ERR_FORMAT, "%s: the header has flags or sizes that version %d does not know", path,
                         DMG_BINARY_VERSION);
    }
    if (header->vertex_count > DMG_VERTICES_MAX || header->tiny_chunk_vertices != chunk_vertices ||
        header->tiny_chunk_count != chunk_count || header->loop_arcs > header->arc_count ||
        header->repeated_arcs > header->arc_count || (header->vertex_count == 0 && header->arc_count > 0) ||
        (header->vertex_count > 0 && header->first_id > UINT64_MAX - (header->vertex_count - 1)) ||
        header->negative_source[sizeof header->negative_source - 1] != '\0') {
        return dmg_error(DMG_ERR_FORMAT, "%s: the counts in the header contradict each other", path);
    }
    dmg_binary_header expected = *header;
    if (!lay_out(&expected) || expected.file_bytes != header->file_bytes) {
        return dmg_error(DMG_ERR_FORMAT, "%s: %" PRIu64 " vertices and %" PRIu64 " arcs do not make %" PRIu64 " bytes",
                         path, header->vertex_count, header->arc_count, header->file_bytes);
    }
    for (int i = 0; i < DMG_SECTIONS; i++) {
        if (header->sections[i].offset != expected.sections[i].offset ||
            header->sections[i].bytes != expected.sections[i].bytes) {
            return dmg_error(DMG_ERR_FORMAT,
                             "%s: section \"%s\" at %" PRIu64 " with %" PRIu64 " bytes: expected at %" PRIu64
                             " with %" PRIu64,
                             path, section_names[i], header->sections[i].offset, header->sections[i].bytes,
                             expected.sections[i].offset, expected.sections[i].bytes);
        }
    }
    return DMG_OK;
}

static dmg_status check_offsets(const dmg_graph *graph, const uint64_t *offsets, const char *path, const char *which)
{
    bool is_good = offsets[0] == 0 && offsets[graph->vertex_count] == graph->arc_count;
    bool descends = false;
    for (uint64_t v = 0; v < graph->vertex_count; v++) {
        descends |= offsets[v] > offsets[v + 1];
    }
    if (!is_good || descends) {
        return dmg_error(DMG_ERR_FORMAT, "%s: the %soffsets do not ascend from 0 to %" PRIu64, path, which,
                         graph->arc_count);
    }
    return DMG_OK;
}

static dmg_status check_lists(const dmg_graph *graph, const dmg_adjacency *lists, const char *path, const char *which)
{
    for (uint64_t v = 0; v < graph->vertex_count; v++) {
        uint64_t least = 0;
        for (uint64_t arc = lists->offsets[v]; arc < lists->offsets[v + 1]; arc++) {
            uint64_t destination = lists->destinations[arc];
            if (destination >= graph->vertex_count || destination < least) {
                return dmg_error(DMG_ERR_FORMAT,
                                 "%s: the %slist of vertex %" PRIu64 " names %" PRIu64
                                 ": expected ascending numbers below %" PRIu64,
                                 path, which, v, destination, graph->vertex_count);
            }
            if (graph->weight_kind == DMG_WEIGHT_FLOAT32 && !isfinite(lists->weights[arc].as_float32)) {
                return dmg_error(DMG_ERR_FORMAT, "%s: the %slist of vertex %" PRIu64 " has a weight that is no number",
                                 path, which, v);
            }
            least = destination;
        }
    }
    return DMG_OK;
}

static dmg_status check_sections(const dmg_graph *graph, const unsigned char *base, const char *path)
{
    const dmg_binary_header *header = (const dmg_binary_header *)base;
    for (int i = 0; i < DMG_SECTIONS; i++) {
        const dmg_binary_section *section = &header->sections[i];
        uint64_t end = i + 1 < DMG_SECTIONS ? header->sections[i + 1].offset : header->file_bytes;
        if ((uint32_t)crc32_z(0, base + section->offset, end - section->offset) != section->crc32) {
            return dmg_error(DMG_ERR_FORMAT, "%s: wrong checksum of section \"%s\": the file is damaged", path,
                             section_names[i]);
        }
    }
    for (uint64_t v = 1; graph->ids && v < graph->vertex_count; v++) {
        if (graph->ids[v - 1] >= graph->ids[v]) {
            return dmg_error(DMG_ERR_FORMAT, "%s: the vertex ids do not ascend", path);
        }
    }
    dmg_status status = check_lists(graph, &graph->out, path, "");
    if (status == DMG_OK && graph->in.offsets) {
        status = check_lists(graph, &graph->in, path, "reverse ");
    }
    return status;
}

static const void *section_at(const unsigned char *base, int section)
{
    return base + ((const dmg_binary_header *)base)->sections[section].offset;
}

static void fill_graph(const unsigned char *base, dmg_graph *graph)
{
    const dmg_binary_header *header = (const dmg_binary_header *)base;
    bool is_weighted = header->weight_kind != DMG_WEIGHT_NONE;
    graph->vertex_count = header->vertex_count;
    graph->arc_count = header->arc_count;
    graph->is_directed = header->flags & DMG_BINARY_IS_DIRECTED;
    graph->weight_kind = (dmg_weight_kind)header->weight_kind;
    graph->first_id = header->first_id;
    graph->loop_arcs = header->loop_arcs;
    graph->repeated_arcs = header->repeated_arcs;
    graph->negative_line = header->negative_line;
    memcpy(graph->negative_source, header->negative_source, sizeof graph->negative_source);
    graph->out.offsets = section_at(base, DMG_SECTION_OUT_OFFSETS);
    graph->out.destinations = section_at(base, DMG_SECTION_OUT_DESTINATIONS);
    graph->out.weights = is_weighted ? section_at(base, DMG_SECTION_OUT_WEIGHTS) : NULL;
    if (header->flags & DMG_BINARY_HAS_REVERSE) {
        graph->in.offsets = section_at(base, DMG_SECTION_IN_OFFSETS);
        graph->in.destinations = section_at(base, DMG_SECTION_IN_DESTINATIONS);
        graph->in.weights = is_weighted ? section_at(base, DMG_SECTION_IN_WEIGHTS) : NULL;
    }
    graph->ids = header->flags & DMG_BINARY_HAS_IDS ? section_at(base, DMG_SECTION_IDS) : NULL;
}

static dmg_status check_graph(const dmg_graph *graph, const unsigned char *base, const char *path, bool check_contents)
{
    const dmg_binary_header *header = (const dmg_binary_header *)base;
    dmg_status status = check_offsets(graph, graph->out.offsets, path, "");
    if (status == DMG_OK && graph->in.offsets) {
        status = check_offsets(graph, graph->in.offsets, path, "reverse ");
    }
    if (status != DMG_OK) {
        return status;
    }
    const uint64_t *tiny_chunks = section_at(base, DMG_SECTION_TINY_CHUNKS);
    for (uint32_t i = 0; i < header->tiny_chunk_count; i++) {
        if (tiny_chunks[i] !=
            tiny_chunk_arcs(graph->out.offsets, graph->vertex_count, header->tiny_chunk_vertices, i)) {
            return dmg_error(DMG_ERR_FORMAT, "%s: tiny-chunk %" PRIu32 " does not count the arcs of its vertices", path,
                             i);
        }
    }
    return check_contents ? check_sections(graph, base, path) : DMG_OK;
}

/** What a graph of a file owns: a mapping of it, or a copy. */
typedef struct contents {
    void *memory;
    uint64_t bytes;
    dmg_pages copy;
    dmg_mapped_range *range; /**< of the mapping; NULL: nobody looks after it */
} contents;

static void release_contents(void *owner)
{
    contents *own = owner;
    if (own->copy.memory) {
        dmg_pages_release(&own->copy);
    } else {
        munmap(own->memory, own->bytes);
    }
    if (own->range) {
        atomic_store(&own->range->last, 0);
        atomic_store(&own->range->first, 0);
    }
    free(own);
}

static dmg_status cut_short(const char *path, uint64_t bytes, uint64_t expected)
{
    return dmg_error(DMG_ERR_FORMAT,
                     "%s: was cut short while it was read, to %" PRIu64 " bytes of %" PRIu64
                     ": read it again when nobody writes to it",
                     path, bytes, expected);
}

static dmg_status copy_file(int file, const char *path, contents *own)
{
    dmg_status status = dmg_pages_resize(&own->copy, own->bytes, 1, "graph in its binary form");
    own->memory = own->copy.memory;
    for (uint64_t done = 0; status == DMG_OK && done < own->bytes;) {
        ssize_t count = pread(file, (char *)own->memory + done, own->bytes - done, (off_t)done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            status = dmg_error_errno(DMG_ERR_IO, errno, "%s: reading the binary form", path);
        } else if (count == 0) {
            status = cut_short(path, done, own->bytes);
        } else {
            done += (uint64_t)count;
        }
    }
    if (status != DMG_OK) {
        dmg_pages_release(&own->copy);
    }
    return status;
}

static bool is_sealed(int file)
{
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

/** Whether a mapping of the file is safe to touch, or looked after: then `*range` is this mapping's. */
static bool may_map(int file, dmg_mapped_range **range)
{
    uintptr_t free_range = 0;
    if (is_sealed(file)) {
        *range = NULL;
        return true;
    }
    return *range && atomic_compare_exchange_strong(&(*range)->first, &free_range, 1);
}

static dmg_status take_contents(int file, const char *path, dmg_mapped_range *range, contents *own)
{
    if (!may_map(file, &range)) {
        return copy_file(file, path, own);
    }
    own->memory = mmap(NULL, own->bytes, PROT_READ, MAP_SHARED, file, 0);
    if (own->memory == MAP_FAILED) {
        int why = errno;
        if (range) {
            atomic_store(&range->first, 0);
        }
        return dmg_error_errno(DMG_ERR_IO, why, "%s: mapping %" PRIu64 " bytes", path, own->bytes);
    }
    own->range = range;
    if (range) {
        atomic_store(&range->first, (uintptr_t)own->memory);
        atomic_store(&range->last, (uintptr_t)own->memory + own->bytes);
    }
    return DMG_OK;
}

/** What lies behind the end of a file in its last page reads as zeros, without a signal: ask at last how long it is. */
static dmg_status check_still_whole(int file, const char *path, uint64_t bytes)
{
    struct stat about;
    if (fstat(file, &about) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s", path);
    }
    return (uint64_t)about.st_size < bytes ? cut_short(path, (uint64_t)about.st_size, bytes) : DMG_OK;
}

static dmg_status check_all(int file, const char *path, bool check_contents, const contents *own, dmg_graph *graph)
{
    dmg_status status = check_header(own->memory, path, own->bytes);
    if (status == DMG_OK) {
        status = check_layout(own->memory, path);
    }
    if (status == DMG_OK) {
        fill_graph(own->memory, graph);
        status = check_graph(graph, own->memory, path, check_contents);
    }
    dmg_status whole = own->copy.memory ? DMG_OK : check_still_whole(file, path, own->bytes);
    return whole == DMG_OK ? status : whole;
}

dmg_status dmg_binary_form_map(int file, const char *path_for_errors, bool check_contents, dmg_mapped_range *range,
                               dmg_graph *graph)
{
    memset(graph, 0, sizeof *graph);
    struct stat about;
    if (fstat(file, &about) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s", path_for_errors);
    }
    if (!S_ISREG(about.st_mode)) {
        return dmg_error(DMG_ERR_IO, "%s: is no regular file, and the binary form is mapped", path_for_errors);
    }
    uint64_t bytes = (uint64_t)about.st_size;
    if (bytes < sizeof(dmg_binary_header)) {
        return dmg_error(DMG_ERR_FORMAT, "%s: truncated: %" PRIu64 " bytes, and the header alone has %zu",
                         path_for_errors, bytes, sizeof(dmg_binary_header));
    }
    contents *own = calloc(1, sizeof *own);
    if (!own) {
        return dmg_error(DMG_ERR_MEMORY, "%s: no memory", path_for_errors);
    }
    own->bytes = bytes;
    dmg_status status = take_contents(file, path_for_errors, range, own);
    if (status != DMG_OK) {
        free(own);
        return status;
    }
    status = check_all(file, path_for_errors, check_contents, own, graph);
    if (status != DMG_OK) {
        release_contents(own);
        memset(graph, 0, sizeof *graph);
        return status;
    }
    graph->owner = own;
    graph->release = release_contents;
    return DMG_OK;
}
