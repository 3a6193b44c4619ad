/**
 * @file binary_form.h
 * dmgraph's own binary form: an aligned, versioned, checksummed file that is mapped, not parsed.
 *
 * Layout in docs/formats.md: a 4,096-byte header (magic, version, byte order, counts, flags, a table of sections with
 * offset, length and checksum, its own checksum), then page-aligned sections: offsets, destinations, weights, the same
 * for the reverse, external ids, tiny-chunk metadata (DMG, section 4.4.1).
 */
#ifndef DMG_FORMATS_BINARY_FORM_H
#define DMG_FORMATS_BINARY_FORM_H

#include "formats/graph.h"

#include <stdatomic.h>

/** Write a graph to an open, empty file (or memfd). DMG_ERR_IO. */
dmg_status dmg_binary_form_write(const dmg_graph *graph, int file, const char *path_for_errors);

/**
 * Where a file is mapped that another process may cut short meanwhile. The kernel ends a process that touches what is
 * cut off (SIGBUS), and only the program, no library, can take that signal: it looks here whose memory it was.
 */
typedef struct dmg_mapped_range {
    _Atomic uintptr_t first; /**< 0: nothing is mapped */
    _Atomic uintptr_t last;
} dmg_mapped_range;

/**
 * Make a graph of an open file; the descriptor may be closed afterwards. A file that is sealed, or that somebody looks
 * after (`range`, which is filled in until the graph is closed, and must live as long), is mapped. With `range` NULL,
 * or in use, any other is copied into memory, so that it may be cut short: that is DMG_ERR_FORMAT, too. The header, all
 * section bounds, and the order of offsets are always checked; destinations and section checksums are checked when
 * `check_contents` is set (one pass over the file). DMG_ERR_FORMAT says what is wrong: truncated, trailing bytes, other
 * byte order, newer version, checksum.
 */
dmg_status dmg_binary_form_map(int file, const char *path_for_errors, bool check_contents, dmg_mapped_range *range,
                               dmg_graph *graph);

#endif
