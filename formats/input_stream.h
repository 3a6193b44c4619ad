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

/** Open a file. DMG_ERR_IO, DMG_ERR_MEMORY, DMG_ERR_FORMAT when the first compressed block is damaged. */
dmg_status dmg_input_stream_open(const char *path, dmg_input_stream **stream);
/** NULL is allowed. */
void dmg_input_stream_close(dmg_input_stream *stream);

/** Read up to `capacity` bytes, at least one unless the end is reached, which is `*bytes` 0. */
dmg_status dmg_input_stream_read(dmg_input_stream *stream, void *buffer, size_t capacity, size_t *bytes);

/** The file's first bytes, as they lie on the disk; only before the first read. */
size_t dmg_input_stream_first_bytes(const dmg_input_stream *stream, const unsigned char **bytes);

/** The open file, at an undefined position. */
int dmg_input_stream_file(const dmg_input_stream *stream);
/** "", "gzip", "zstd" or "xz". */
const char *dmg_input_stream_compression(const dmg_input_stream *stream);
/** Of the file as it lies on the disk; 0 when it is no regular file. */
uint64_t dmg_input_stream_file_bytes(const dmg_input_stream *stream);
/** How many of these were read. */
uint64_t dmg_input_stream_consumed_bytes(const dmg_input_stream *stream);

#endif
