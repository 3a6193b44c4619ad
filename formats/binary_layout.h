/**
 * @file binary_layout.h
 * The header of the binary form, byte for byte; docs/formats.md describes the same for users.
 */
#ifndef DMG_FORMATS_BINARY_LAYOUT_H
#define DMG_FORMATS_BINARY_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define DMG_BINARY_VERSION     1
#define DMG_BINARY_BYTE_ORDER  UINT32_C(0x01020304)
#define DMG_BINARY_PAGE_BYTES  4096
#define DMG_BINARY_MAGIC_BYTES 8
/** Ranges of the tiny-chunk metadata (DMG, section 4.4.1). */
#define DMG_BINARY_TINY_CHUNKS 1024

#define DMG_BINARY_IS_DIRECTED UINT32_C(1)
#define DMG_BINARY_HAS_REVERSE UINT32_C(2)
#define DMG_BINARY_HAS_IDS     UINT32_C(4)

/** A byte above 127, so that it is no text, and line ends that a transfer in text mode would change. */
extern const unsigned char dmg_binary_magic[DMG_BINARY_MAGIC_BYTES];

/** In the order of the file. A section that a graph lacks has 0 bytes. */
enum {
    DMG_SECTION_OUT_OFFSETS,
    DMG_SECTION_OUT_DESTINATIONS,
    DMG_SECTION_OUT_WEIGHTS,
    DMG_SECTION_IN_OFFSETS,
    DMG_SECTION_IN_DESTINATIONS,
    DMG_SECTION_IN_WEIGHTS,
    DMG_SECTION_IDS,
    DMG_SECTION_TINY_CHUNKS,
    DMG_SECTIONS
};

typedef struct dmg_binary_section {
    uint64_t offset; /**< from the start of the file, a multiple of 4,096 */
    uint64_t bytes;  /**< without the zeros that fill the last page */
    uint32_t crc32;  /**< of the section and those zeros */
    uint32_t unused;
} dmg_binary_section;

typedef struct dmg_binary_header {
    unsigned char magic[DMG_BINARY_MAGIC_BYTES];
    uint32_t byte_order;
    uint32_t version;
    uint32_t header_bytes;
    uint32_t section_count;
    uint32_t flags;
    uint32_t weight_kind;
    uint64_t vertex_count;
    uint64_t arc_count;
    uint64_t first_id;
    uint64_t loop_arcs;
    uint64_t repeated_arcs;
    uint64_t negative_line;
    uint64_t tiny_chunk_vertices;
    uint32_t tiny_chunk_count;
    uint32_t header_crc32; /**< of the 4,096 bytes with this field 0 */
    uint64_t file_bytes;
    dmg_binary_section sections[DMG_SECTIONS];
    char negative_source[256];
    unsigned char reserved[DMG_BINARY_PAGE_BYTES - 104 - DMG_SECTIONS * sizeof(dmg_binary_section) - 256];
} dmg_binary_header;

static_assert(sizeof(dmg_binary_section) == 24, "the section table has 24 bytes an entry");
static_assert(offsetof(dmg_binary_header, sections) == 104, "the header has no holes");
static_assert(sizeof(dmg_binary_header) == DMG_BINARY_PAGE_BYTES, "the header is one page");

#endif
