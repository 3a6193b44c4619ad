/**
 * @file foreign_signatures.h
 * First bytes by which files of other kinds are known: compressed data, archives, documents, data formats, pointers of
 * large-file systems, and graph formats that dmgraph does not read.
 */
#ifndef DMG_FORMATS_FOREIGN_SIGNATURES_H
#define DMG_FORMATS_FOREIGN_SIGNATURES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct dmg_signature {
    const char *bytes; /**< of text, any case */
    size_t count;      /**< 0: as many as strlen says */
    size_t offset;     /**< of text, behind blanks and line ends */
    bool is_text;      /**< could be the start of a text that somebody wants to be read as an edge list */
    bool ends_word;    /**< text: what follows is no letter or digit */
    const char *what;  /**< "a zip archive" */
    const char *remedy;
} dmg_signature;

/** What a file with these first bytes (decompressed; 512 tell all, a tar archive is known by its 257th) is, or NULL.
 * With `binary_only`, texts are not looked for. */
const dmg_signature *dmg_signature_find(const char *bytes, size_t count, bool binary_only);

/** Whether these first bytes are no text: more control characters than a text has. */
bool dmg_is_binary_data(const char *bytes, size_t count);

#endif
