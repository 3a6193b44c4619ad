/**
 * @file foreign_format.h
 * Files of formats that dmgraph does not read, told by content, name and neighbours, so that they are refused for what
 * they are. Where their lines happen to have two or three numbers they would otherwise be another graph.
 */
#ifndef DMG_FORMATS_FOREIGN_FORMAT_H
#define DMG_FORMATS_FOREIGN_FORMAT_H

#include "formats/reading.h"

/**
 * Look at a text's first bytes (decompressed), at its name, and for files beside it.
 *
 * @param path     of the file, for its name and its neighbours
 * @param options  with a format asked for, only data that can be no text is refused; with a direction asked for, a
 *                 header that says the direction is no reason
 * @return DMG_OK, or DMG_ERR_FORMAT: which format it looks like, that it is not read, what to do
 */
dmg_status dmg_foreign_format_check(const char *path, const char *bytes, size_t count, const dmg_read_options *options);

/** Whether the name is NAME.SUFFIX, or that with the suffix of a compressor behind. Any case. */
bool dmg_path_has_suffix(const char *path, const char *suffix);

#endif
