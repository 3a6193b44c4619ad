#include "formats/foreign_format.h"

#include "core/base/error.h"
#include "formats/foreign_signatures.h"
#include "formats/text_source.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define QUOTED_BYTES 40

#define FORCE "--format edge-list reads it as one all the same"

/* ---- names ---- */

/** A suffix that belongs to a format; with a neighbour, only beside a file of that suffix. */
typedef struct foreign_name {
    const char *suffix;
    const char *neighbour;
    const char *what;
    const char *remedy; /* NULL: convert it */
} foreign_name;

static const foreign_name names[] = {
    {"graph", "properties", "WebGraph's", NULL},
    {"graph", NULL, "METIS'", NULL},
    {"metis", NULL, "METIS'", NULL},
    {"chaco", NULL, "Chaco's and METIS'", NULL},
    {"hgr", NULL, "hMETIS'", NULL},
    {"hmetis", NULL, "hMETIS'", NULL},
    {"e", "v", "Graphalytics'",
     "its vertices without edges stand in the file .v beside it, and would be missing. Where there are none, " FORCE},
    {"v", NULL, "Graphalytics'", "these are vertices; the edges are in the file .e beside it"},
    {"properties", NULL, "the settings of WebGraph's and Graphalytics'",
     "this is no graph, the graph is in a file beside it"},
    {"gr", NULL, "DIMACS' (or Galois')", NULL},
    {"dimacs", NULL, "DIMACS'", NULL},
    {"col", NULL, "DIMACS'", NULL},
    {"sg", NULL, "the GAP benchmark's binary", NULL},
    {"wsg", NULL, "the GAP benchmark's binary", NULL},
    {"adj", NULL, "an adjacency list's", NULL},
    {"adjlist", NULL, "an adjacency list's", NULL},
    {"smat", NULL, "the SMAT", NULL},
    {"graphml", NULL, "the GraphML", NULL},
    {"gexf", NULL, "the GEXF", NULL},
    {"gml", NULL, "the GML", NULL},
    {"gdf", NULL, "the GDF", NULL},
    {"dot", NULL, "Graphviz'", NULL},
    {"gv", NULL, "Graphviz'", NULL},
    {"net", NULL, "Pajek's", NULL},
    {"paj", NULL, "Pajek's", NULL},
    {"lgl", NULL, "the LGL", NULL},
    {"g6", NULL, "the graph6", NULL},
    {"s6", NULL, "the sparse6", NULL},
    {"json", NULL, "the JSON", NULL},
    {"jsonl", NULL, "the JSON", NULL},
    {"npz", NULL, "NumPy's", NULL},
    {"npy", NULL, "NumPy's", NULL},
    {"mat", NULL, "MATLAB's", NULL},
    {"parquet", NULL, "the Parquet", NULL},
    {"feather", NULL, "the Feather", NULL},
    {"h5", NULL, "the HDF5", NULL},
    {"hdf5", NULL, "the HDF5", NULL},
    {"rb", NULL, "the Rutherford-Boeing", NULL},
};

static const char *const compressors[] = {"gz", "xz", "zst", "zstd", "bz2", "lz4"};

/** Where the suffix begins that ends at `end`, behind its dot; NULL when the name has none. */
static const char *suffix_before(const char *path, const char *end)
{
    for (const char *at = end; at > path && at[-1] != '/'; at--) {
        if (at[-1] == '.') {
            return at;
        }
    }
    return NULL;
}

static bool is_suffix(const char *begin, const char *end, const char *suffix)
{
    return (size_t)(end - begin) == strlen(suffix) && strncasecmp(begin, suffix, strlen(suffix)) == 0;
}

/** The suffix that says the format, in [*begin, *end); *begin is NULL when there is none. */
static void find_suffix(const char *path, const char **begin, const char **end)
{
    *end = path + strlen(path);
    *begin = suffix_before(path, *end);
    for (size_t i = 0; *begin && i < sizeof compressors / sizeof compressors[0]; i++) {
        if (is_suffix(*begin, *end, compressors[i])) {
            *end = *begin - 1;
            *begin = suffix_before(path, *end);
            return;
        }
    }
}

bool dmg_path_has_suffix(const char *path, const char *suffix)
{
    const char *begin;
    const char *end;
    find_suffix(path, &begin, &end);
    return begin && is_suffix(begin, end, suffix);
}

/** A file of the same name with another suffix, compressed or not. */
static bool has_neighbour(const char *path, const char *suffix_begin, const char *neighbour)
{
    int stem = (int)(suffix_begin - path);
    for (size_t i = 0; i <= sizeof compressors / sizeof compressors[0]; i++) {
        char *beside = NULL;
        int length = i == 0 ? asprintf(&beside, "%.*s%s", stem, path, neighbour)
                            : asprintf(&beside, "%.*s%s.%s", stem, path, neighbour, compressors[i - 1]);
        bool is_there = length >= 0 && access(beside, F_OK) == 0;
        if (length >= 0) {
            free(beside);
        }
        if (is_there) {
            return true;
        }
    }
    return false;
}

static dmg_status check_name(const char *path)
{
    const char *begin;
    const char *end;
    find_suffix(path, &begin, &end);
    for (size_t i = 0; begin && i < sizeof names / sizeof names[0]; i++) {
        const foreign_name *name = &names[i];
        if (!is_suffix(begin, end, name->suffix) || (name->neighbour && !has_neighbour(path, begin, name->neighbour))) {
            continue;
        }
        return dmg_error(DMG_ERR_FORMAT, "%s: its name%s%s%s belongs to %s format, which dmgraph does not read: %s",
                         path, name->neighbour ? ", beside a file ." : "", name->neighbour ? name->neighbour : "",
                         name->neighbour ? "," : "", name->what,
                         name->remedy ? name->remedy
                                      : "convert it to an edge list first; if it is one, give --format edge-list");
    }
    return DMG_OK;
}

/* ---- first lines ---- */

/** The words of a line, at most `most` of them; how many there are. */
typedef struct word {
    const char *begin;
    size_t length;
} word;

static size_t split(const char *at, const char *end, word *words, size_t most)
{
    size_t count = 0;
    while (count < most) {
        while (at < end && dmg_is_blank(*at)) {
            at++;
        }
        if (at == end) {
            break;
        }
        words[count].begin = at;
        while (at < end && !dmg_is_blank(*at)) {
            at++;
        }
        words[count].length = (size_t)(at - words[count].begin);
        count++;
    }
    return count;
}

static bool word_is(const word *found, const char *wanted)
{
    return found->length == strlen(wanted) && strncasecmp(found->begin, wanted, found->length) == 0;
}

static const char *line_end(const char *at, const char *end)
{
    while (at < end && !dmg_is_line_end(*at)) {
        at++;
    }
    return at;
}

/**
 * KONECT's files begin with "% FORMAT WEIGHTS". asym is how an edge list is read anyway; sym says that edges are
 * undirected, and bip that rows and columns are different vertices with the same numbers.
 */
static dmg_status check_konect(const char *path, const char *bytes, const char *end, const dmg_read_options *options)
{
    static const char *const weights[] = {"unweighted", "positive",      "posweighted",      "signed", "multisigned",
                                          "weighted",   "multiweighted", "multiposweighted", "dynamic"};
    word words[3];
    size_t count = split(bytes, line_end(bytes, end), words, 3);
    if (count < 3 || !word_is(&words[0], "%")) {
        return DMG_OK;
    }
    bool is_konect = false;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        is_konect = is_konect || word_is(&words[2], weights[i]);
    }
    if (is_konect && word_is(&words[1], "bip")) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:1: looks like KONECT's format, a bipartite network (\"%% bip\"), which dmgraph does not "
                         "read: both sides are counted from 1, so give one side other ids first; " FORCE,
                         path);
    }
    if (is_konect && word_is(&words[1], "sym") && options->direction == DMG_DIRECTION_BY_FILE) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:1: looks like KONECT's format, an undirected network (\"%% sym\"), and dmgraph does not "
                         "read that header: give --undirected, or --directed for one arc a line",
                         path);
    }
    return DMG_OK;
}

/** A line of column names above lines of numbers, as tables have it. */
static dmg_status check_column_names(const char *path, const char *bytes, const char *end)
{
    const char *first_end = line_end(bytes, end);
    const char *second = first_end;
    while (second < end && (dmg_is_line_end(*second) || dmg_is_blank(*second))) {
        second++;
    }
    const char *name = bytes;
    name += name < first_end && *name == '"';
    if (name == first_end || !(isalpha((unsigned char)*name) || *name == '_') || second == end ||
        !isdigit((unsigned char)*second) || !memchr(second, '\n', (size_t)(end - second))) {
        return DMG_OK;
    }
    if (!memchr(bytes, ',', (size_t)(first_end - bytes)) && !memchr(bytes, ' ', (size_t)(first_end - bytes)) &&
        !memchr(bytes, '\t', (size_t)(first_end - bytes)) && !memchr(bytes, ';', (size_t)(first_end - bytes))) {
        return DMG_OK;
    }
    char quoted[QUOTED_BYTES + 1];
    size_t length = 0;
    for (; length < QUOTED_BYTES && bytes + length < first_end; length++) {
        unsigned char character = (unsigned char)bytes[length];
        quoted[length] = character < 0x20 || character >= 0x7f ? ' ' : (char)character;
    }
    quoted[length] = '\0';
    return dmg_error(DMG_ERR_FORMAT,
                     "%s:1: \"%s%s\": looks like the column names of a table (CSV), which dmgraph does not read: "
                     "expected an edge; remove the line, or put # before it",
                     path, quoted, bytes + length < first_end ? "..." : "");
}

dmg_status dmg_foreign_format_check(const char *path, const char *bytes, size_t count, const dmg_read_options *options)
{
    bool is_forced = options->format != DMG_FORMAT_AUTO;
    const dmg_signature *signature = dmg_signature_find(bytes, count, is_forced);
    if (signature) {
        return dmg_error(DMG_ERR_FORMAT, "%s: looks like %s, which dmgraph does not read: %s", path, signature->what,
                         signature->remedy);
    }
    dmg_status status = is_forced ? DMG_OK : check_name(path);
    if (status == DMG_OK && dmg_is_binary_data(bytes, count)) {
        status = dmg_error(DMG_ERR_FORMAT,
                           "%s: binary data of a format that dmgraph does not know (Gemini and others have binary edge "
                           "lists, without a mark): expected text; convert it to an edge list first",
                           path);
    }
    if (status == DMG_OK && !is_forced) {
        status = check_konect(path, bytes, bytes + count, options);
    }
    if (status == DMG_OK && !is_forced) {
        status = check_column_names(path, bytes, bytes + count);
    }
    return status;
}
