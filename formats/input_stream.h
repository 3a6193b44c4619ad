/**
 * @file input_stream.h
 * The bytes of a file, decompressed when its first bytes say gzip, zstd or xz; its name does not matter.
 *
 * A compressed stream that ends early or is damaged is an error, never a shorter file; so is what follows a stream and
 * is none.
 */
#ifndef DMG_FORMATS_INPUT_STREAM_H
#define DMG_FORMATS_INPUT_STREAM_H

#include "dmgraph/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct dmg_input_stream dmg_input_stream;

/**
 * Read an open file from where it stands, also a pipe, which can be read once. The file is borrowed; `path` is for
 * errors. DMG_ERR_IO, DMG_ERR_MEMORY, DMG_ERR_FORMAT when the first compressed block is damaged.
 */
dmg_status dmg_input_stream_open(int file, const char *path, dmg_input_stream **stream);
/** NULL is allowed. */
void dmg_input_stream_close(dmg_input_stream *stream);

/** Read up to `capacity` bytes, at least one unless the end is reached, which is `*bytes` 0. */
dmg_status dmg_input_stream_read(dmg_input_stream *stream, void *buffer, size_t capacity, size_t *bytes);

/** The file's first bytes, as they lie on the disk; only before the first read. */
size_t dmg_input_stream_first_bytes(const dmg_input_stream *stream, const unsigned char **bytes);

/**
 * A descriptor of all of the file as it lies on the disk, to be mapped, and closed by the caller: the file itself, or,
 * of a pipe and the like, a copy in memory that what comes from it is read into. Only before the first read.
 */
dmg_status dmg_input_stream_whole_file(dmg_input_stream *stream, int *file);
/** "", "gzip", "zstd" or "xz". */
const char *dmg_input_stream_compression(const dmg_input_stream *stream);
/** From where the reading began to the end of the file, as it lies on the disk; 0 when it is no regular file. */
uint64_t dmg_input_stream_file_bytes(const dmg_input_stream *stream);
/** How many of these were read. */
uint64_t dmg_input_stream_consumed_bytes(const dmg_input_stream *stream);

#endif
