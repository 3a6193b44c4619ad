#include "formats/foreign_signatures.h"

#include "formats/text_source.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define DECOMPRESS "decompress it first, or through a pipe (GRAPH - is the standard input)"
#define EXTRACT    "extract the graph's file from it first"
#define EXPORT     "export its edges as text, SOURCE DESTINATION [WEIGHT] a line, first"
#define DOWNLOAD   "it is not the graph's file; download that again, and look at its address"
#define CONVERT    "convert it to an edge list first"

#define BYTES(bytes, what, remedy)                                                                                     \
    {                                                                                                                  \
        bytes, sizeof(bytes) - 1, 0, false, false, what, remedy                                                        \
    }
#define BYTES_AT(bytes, offset, what, remedy)                                                                          \
    {                                                                                                                  \
        bytes, sizeof(bytes) - 1, offset, false, false, what, remedy                                                   \
    }
#define TEXT(text, what, remedy)                                                                                       \
    {                                                                                                                  \
        text, 0, 0, true, false, what, remedy                                                                          \
    }
#define WORD(text, what, remedy)                                                                                       \
    {                                                                                                                  \
        text, 0, 0, true, true, what, remedy                                                                           \
    }

static const dmg_signature signatures[] = {
    /* Compressed. The first three are what dmgraph reads, found inside of another one. */
    BYTES("\x1f\x8b", "gzip data in compressed data", "decompress it once first"),
    BYTES("\x28\xb5\x2f\xfd", "zstd data in compressed data", "decompress it once first"),
    BYTES("\xfd"
          "7zXZ\0",
          "xz data in compressed data", "decompress it once first"),
    BYTES("BZh", "bzip2 data", DECOMPRESS),
    BYTES("\x04\x22\x4d\x18", "lz4 data", DECOMPRESS),
    BYTES("\x02\x21\x4c\x18", "lz4 data", DECOMPRESS),
    BYTES("LZIP", "lzip data", DECOMPRESS),
    BYTES("\x5d\0\0", "lzma data", DECOMPRESS),
    BYTES("\x89LZO\0", "lzop data", DECOMPRESS),
    BYTES("\x1f\x9d", "compress (.Z) data", DECOMPRESS),
    BYTES("\xff\x06\0\0sNaPpY", "snappy data", DECOMPRESS),
    /* Archives. */
    BYTES("PK\x03\x04", "a zip archive (or a NumPy .npz or an office document, which are zip archives)", EXTRACT),
    BYTES("PK\x05\x06", "an empty zip archive", EXTRACT),
    BYTES("7z\xbc\xaf\x27\x1c", "a 7-Zip archive", EXTRACT),
    BYTES("Rar!\x1a\x07", "a RAR archive", EXTRACT),
    BYTES_AT("ustar", 257, "a tar archive", EXTRACT),
    BYTES("070701", "a cpio archive", EXTRACT),
    BYTES("!<arch>\n", "an archive of ar or a Debian package", EXTRACT),
    BYTES("\xed\xab\xee\xdb", "an RPM package", EXTRACT),
    /* Data. */
    BYTES("\x93NUMPY", "a NumPy array", EXPORT),
    BYTES("\x89HDF\r\n\x1a\n", "an HDF5 file (MATLAB 7.3 and AnnData write them)", EXPORT),
    BYTES("MATLAB 5.0 MAT-file", "a MATLAB file", EXPORT),
    BYTES("MATLAB 7.3 MAT-file", "a MATLAB file", EXPORT),
    BYTES("CDF\x01", "a netCDF file", EXPORT),
    BYTES("CDF\x02", "a netCDF file", EXPORT),
    BYTES("PAR1", "a Parquet file", EXPORT),
    BYTES("ORC", "an ORC file", EXPORT),
    BYTES("ARROW1\0", "an Arrow (Feather) file", EXPORT),
    BYTES("FEA1", "a Feather file", EXPORT),
    BYTES("Obj\x01", "an Avro file", EXPORT),
    BYTES("SQLite format 3\0", "a SQLite database", EXPORT),
    BYTES("\x80\x02", "a Python pickle", EXPORT),
    BYTES("\x80\x03", "a Python pickle", EXPORT),
    BYTES("\x80\x04\x95", "a Python pickle", EXPORT),
    BYTES("\x80\x05\x95", "a Python pickle", EXPORT),
    BYTES("RDX2\n", "an R data file", EXPORT),
    BYTES("RDX3\n", "an R data file", EXPORT),
    BYTES("\xe2\x9b\xbe gt", "a graph of graph-tool", EXPORT),
    /* Documents, images, programs. */
    BYTES("\x89PNG\r\n\x1a\n", "a PNG image", DOWNLOAD),
    BYTES("\xff\xd8\xff", "a JPEG image", DOWNLOAD),
    BYTES("GIF87a", "a GIF image", DOWNLOAD),
    BYTES("GIF89a", "a GIF image", DOWNLOAD),
    BYTES("II*\0", "a TIFF image", DOWNLOAD),
    BYTES("MM\0*", "a TIFF image", DOWNLOAD),
    BYTES_AT("WEBP", 8, "a WebP image", DOWNLOAD),
    BYTES("\x7f"
          "ELF",
          "a program", DOWNLOAD),
    BYTES("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old office document", EXPORT),
    BYTES("\xff\xfe", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8"),
    BYTES("\xfe\xff", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8"),
    TEXT("%PDF-", "a PDF document", DOWNLOAD),
    TEXT("%!PS", "a PostScript document", DOWNLOAD),
    TEXT("{\\rtf", "an RTF document", DOWNLOAD),
    WORD("<!doctype html", "a web page", DOWNLOAD),
    WORD("<html", "a web page", DOWNLOAD),
    WORD("<head", "a web page", DOWNLOAD),
    WORD("<body", "a web page", DOWNLOAD),
    WORD("<svg", "an SVG image", DOWNLOAD),
    /* What stands for a file that is elsewhere. */
    TEXT("version https://git-lfs.github.com/spec/", "a pointer of Git LFS to the graph's file",
         "fetch that first: git lfs pull"),
    TEXT("version https://hawser.github.com/spec/", "a pointer of Git LFS to the graph's file",
         "fetch that first: git lfs pull"),
    TEXT("/annex/objects/", "a pointer of git-annex to the graph's file", "fetch that first: git annex get"),
    TEXT("../.git/annex/objects/", "a pointer of git-annex to the graph's file", "fetch that first: git annex get"),
    TEXT(".git/annex/objects/", "a pointer of git-annex to the graph's file", "fetch that first: git annex get"),
    TEXT("outs:\n- md5:", "a pointer of DVC to the graph's file", "fetch that first: dvc pull"),
    /* Graphs in text that is no edge list. XML comes behind what is more telling. */
    WORD("<graphml", "GraphML", CONVERT),
    WORD("<gexf", "GEXF", CONVERT),
    WORD("<gxl", "GXL", CONVERT),
    WORD("<?xml", "XML (GraphML and GEXF are written in it)", CONVERT),
    TEXT("{", "JSON", CONVERT),
    TEXT("[", "JSON", CONVERT),
    WORD("*vertices", "Pajek's format", CONVERT),
    WORD("*network", "Pajek's format", CONVERT),
    WORD("*arcs", "Pajek's format", CONVERT),
    WORD("*edges", "Pajek's format", CONVERT),
    WORD("digraph", "DOT, the format of Graphviz", CONVERT),
    WORD("strict", "DOT, the format of Graphviz", CONVERT),
    TEXT("graph [", "GML", CONVERT),
    TEXT("graph\n[", "GML", CONVERT),
    TEXT("graph\r\n[", "GML", CONVERT),
    TEXT("creator \"", "GML", CONVERT),
    TEXT("graph {", "DOT, the format of Graphviz", CONVERT),
    TEXT("graph g {", "DOT, the format of Graphviz", CONVERT),
    WORD("nodedef>", "GDF, a format of Gephi", CONVERT),
    TEXT("nodedef>", "GDF, a format of Gephi", CONVERT),
    WORD("adjacencygraph", "Ligra's AdjacencyGraph", CONVERT),
    WORD("weightedadjacencygraph", "Ligra's WeightedAdjacencyGraph", CONVERT),
    WORD("dl n", "UCINET's DL", CONVERT),
    TEXT("33d32945 stp", "SteinLib's format", CONVERT),
    TEXT(">>graph6<<", "graph6", CONVERT),
    TEXT(">>sparse6<<", "sparse6", CONVERT),
    TEXT("c ", "a DIMACS format (.gr, .col, .max)", CONVERT),
    TEXT("c\n", "a DIMACS format (.gr, .col, .max)", CONVERT),
    TEXT("c\r\n", "a DIMACS format (.gr, .col, .max)", CONVERT),
    TEXT("p sp ", "a DIMACS format (.gr)", CONVERT),
    TEXT("p edge ", "a DIMACS format (.col)", CONVERT),
    TEXT("p col ", "a DIMACS format (.col)", CONVERT),
    TEXT("p max ", "a DIMACS format (.max)", CONVERT),
    TEXT("p tw ", "a PACE format (.gr)", CONVERT),
};

static bool matches_text(const dmg_signature *signature, const char *text, size_t count)
{
    size_t length = strlen(signature->bytes);
    return count >= length && strncasecmp(text, signature->bytes, length) == 0 &&
           !(signature->ends_word && count > length && isalnum((unsigned char)text[length]));
}

static bool matches_bytes(const dmg_signature *signature, const char *bytes, size_t count)
{
    return count >= signature->offset + signature->count &&
           memcmp(bytes + signature->offset, signature->bytes, signature->count) == 0;
}

const dmg_signature *dmg_signature_find(const char *bytes, size_t count, bool binary_only)
{
    size_t begin = 0;
    while (begin < count && (dmg_is_blank(bytes[begin]) || dmg_is_line_end(bytes[begin]))) {
        begin++;
    }
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const dmg_signature *signature = &signatures[i];
        if (signature->is_text ? !binary_only && matches_text(signature, bytes + begin, count - begin)
                               : matches_bytes(signature, bytes, count)) {
            return signature;
        }
    }
    return NULL;
}

/*
 * Of 256 characters 28 are controls that no text has, so data that looks random has one in nine of them, and integers
 * of 4 or 8 bytes one in four and more. A text with a stray one has fewer, and its parser says where.
 */
#define BYTES_ENOUGH    64
#define CONTROLS_ONE_IN 20

bool dmg_is_binary_data(const char *bytes, size_t count)
{
    size_t controls = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char character = (unsigned char)bytes[i];
        controls += (character < 0x20 && !isspace(character)) || character == 0x7f;
    }
    return count >= BYTES_ENOUGH ? controls * CONTROLS_ONE_IN > count : controls * 2 >= count && controls > 0;
}
