#include "formats/input_stream.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define RAW_BYTES        (256 * 1024)
#define MAGIC_BYTES_MOST 8
/* xz -9 needs 65 MiB; a file may ask for 4 GiB, and is then refused. */
#define XZ_MEMORY_LIMIT (UINT64_C(1) << 30)

typedef enum compression { PLAIN, GZIP, ZSTD, XZ } compression;

static const char *const compression_names[] = {[PLAIN] = "", [GZIP] = "gzip", [ZSTD] = "zstd", [XZ] = "xz"};

struct dmg_input_stream {
    char *path;
    int file;
    compression compression;
    bool can_be_mapped; /* all of it lies in a file */
    uint64_t file_bytes;
    uint64_t consumed;
    bool file_ended;
    bool in_member; /* inside a gzip member or a zstd frame */
    bool is_done;
    z_stream gzip;
    bool has_gzip;
    ZSTD_DStream *zstd;
    lzma_stream xz;
    bool has_xz;
    size_t raw_begin;
    size_t raw_end;
    unsigned char raw[RAW_BYTES];
};

static dmg_status refill(dmg_input_stream *stream)
{
    if (stream->raw_begin < stream->raw_end || stream->file_ended) {
        return DMG_OK;
    }
    stream->raw_begin = 0;
    stream->raw_end = 0;
    /* A pipe gives what it has; the first bytes tell the format, so they are waited for. */
    while (stream->raw_end < MAGIC_BYTES_MOST && !stream->file_ended) {
        ssize_t bytes = read(stream->file, stream->raw + stream->raw_end, RAW_BYTES - stream->raw_end);
        if (bytes < 0 && errno == EINTR) {
            continue;
        }
        if (bytes < 0) {
            return dmg_error_errno(DMG_ERR_IO, errno, "%s: reading", stream->path);
        }
        stream->raw_end += (size_t)bytes;
        stream->consumed += (uint64_t)bytes;
        stream->file_ended = bytes == 0;
    }
    return DMG_OK;
}

static dmg_status damaged(const dmg_input_stream *stream, const char *why)
{
    return dmg_error(DMG_ERR_FORMAT, "%s: damaged %s data within the first %" PRIu64 " bytes: %s", stream->path,
                     compression_names[stream->compression], stream->consumed, why);
}

static dmg_status ends_early(const dmg_input_stream *stream)
{
    return dmg_error(DMG_ERR_FORMAT,
                     "%s: truncated: the %s data ends early, after %" PRIu64 " bytes; copy or download it again",
                     stream->path, compression_names[stream->compression], stream->consumed);
}

/*
 * A step of each decoder: from raw to [buffer, buffer + capacity). `*bytes` may be 0 when it needs more input; at the
 * end of the last stream is_done is set.
 */
static dmg_status step_gzip(dmg_input_stream *stream, void *buffer, size_t capacity, size_t *bytes)
{
    bool has_input = stream->raw_begin < stream->raw_end;
    if (!stream->in_member) {
        if (!has_input) {
            stream->is_done = true;
            return DMG_OK;
        }
        if (inflateReset(&stream->gzip) != Z_OK) {
            return dmg_error(DMG_ERR_INTERNAL, "%s: zlib cannot start a member", stream->path);
        }
        stream->in_member = true;
    } else if (!has_input) {
        return ends_early(stream);
    }
    stream->gzip.next_in = stream->raw + stream->raw_begin;
    stream->gzip.avail_in = (uInt)(stream->raw_end - stream->raw_begin);
    stream->gzip.next_out = buffer;
    stream->gzip.avail_out = (uInt)capacity;
    int code = inflate(&stream->gzip, Z_NO_FLUSH);
    stream->raw_begin = stream->raw_end - stream->gzip.avail_in;
    *bytes = capacity - stream->gzip.avail_out;
    if (code == Z_STREAM_END) {
        stream->in_member = false;
        return DMG_OK;
    }
    if (code == Z_MEM_ERROR) {
        return dmg_error(DMG_ERR_MEMORY, "%s: no memory to decompress", stream->path);
    }
    if (code != Z_OK && code != Z_BUF_ERROR) {
        return damaged(stream, stream->gzip.msg ? stream->gzip.msg : "it needs a dictionary");
    }
    return DMG_OK;
}

static dmg_status step_zstd(dmg_input_stream *stream, void *buffer, size_t capacity, size_t *bytes)
{
    bool has_input = stream->raw_begin < stream->raw_end;
    if (!has_input && !stream->in_member) {
        stream->is_done = true;
        return DMG_OK;
    }
    ZSTD_inBuffer in = {.src = stream->raw + stream->raw_begin, .size = stream->raw_end - stream->raw_begin};
    ZSTD_outBuffer out = {.dst = buffer, .size = capacity};
    size_t code = ZSTD_decompressStream(stream->zstd, &out, &in);
    if (ZSTD_isError(code)) {
        return damaged(stream, ZSTD_getErrorName(code));
    }
    stream->raw_begin += in.pos;
    *bytes = out.pos;
    stream->in_member = code != 0;
    if (!has_input && out.pos == 0 && stream->in_member) {
        return ends_early(stream);
    }
    return DMG_OK;
}

static dmg_status step_xz(dmg_input_stream *stream, void *buffer, size_t capacity, size_t *bytes)
{
    stream->xz.next_in = stream->raw + stream->raw_begin;
    stream->xz.avail_in = stream->raw_end - stream->raw_begin;
    stream->xz.next_out = buffer;
    stream->xz.avail_out = capacity;
    lzma_ret code = lzma_code(&stream->xz, stream->file_ended ? LZMA_FINISH : LZMA_RUN);
    stream->raw_begin = stream->raw_end - stream->xz.avail_in;
    *bytes = capacity - stream->xz.avail_out;
    switch (code) {
    case LZMA_OK:
        return DMG_OK;
    case LZMA_STREAM_END:
        stream->is_done = true;
        return DMG_OK;
    case LZMA_MEM_ERROR:
        return dmg_error(DMG_ERR_MEMORY, "%s: no memory to decompress", stream->path);
    case LZMA_MEMLIMIT_ERROR:
        return dmg_error(DMG_ERR_LIMIT, "%s: xz data that needs more than 1 GiB to decompress", stream->path);
    case LZMA_BUF_ERROR:
        return ends_early(stream);
    case LZMA_FORMAT_ERROR:
        return damaged(stream, "what follows the first stream is no xz stream");
    case LZMA_OPTIONS_ERROR:
        return damaged(stream, "unknown options");
    default:
        return damaged(stream, "the checksum or the structure is wrong");
    }
}

dmg_status dmg_input_stream_read(dmg_input_stream *stream, void *buffer, size_t capacity, size_t *bytes)
{
    *bytes = 0;
    if (capacity > UINT32_MAX / 2) {
        capacity = UINT32_MAX / 2; /* zlib counts in 32 bits */
    }
    while (*bytes == 0 && !stream->is_done && capacity > 0) {
        dmg_status status = refill(stream);
        if (status != DMG_OK) {
            return status;
        }
        switch (stream->compression) {
        case PLAIN:
            *bytes = stream->raw_end - stream->raw_begin;
            *bytes = *bytes < capacity ? *bytes : capacity;
            memcpy(buffer, stream->raw + stream->raw_begin, *bytes);
            stream->raw_begin += *bytes;
            stream->is_done = *bytes == 0;
            break;
        case GZIP:
            status = step_gzip(stream, buffer, capacity, bytes);
            break;
        case ZSTD:
            status = step_zstd(stream, buffer, capacity, bytes);
            break;
        case XZ:
            status = step_xz(stream, buffer, capacity, bytes);
            break;
        }
        if (status != DMG_OK) {
            return status;
        }
    }
    return DMG_OK;
}

static compression detect(const unsigned char *bytes, size_t count)
{
    static const unsigned char gzip_magic[] = {0x1f, 0x8b};
    static const unsigned char zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char xz_magic[] = {0xfd, '7', 'z', 'X', 'Z', 0x00};
    if (count >= sizeof gzip_magic && memcmp(bytes, gzip_magic, sizeof gzip_magic) == 0) {
        return GZIP;
    }
    /* pzstd begins each frame with one that is skipped: 50 to 5f, and these three. */
    static const unsigned char skippable_magic[] = {0x2a, 0x4d, 0x18};
    bool is_skippable = count >= 1 + sizeof skippable_magic && (bytes[0] & 0xf0) == 0x50 &&
                        memcmp(bytes + 1, skippable_magic, sizeof skippable_magic) == 0;
    if (is_skippable || (count >= sizeof zstd_magic && memcmp(bytes, zstd_magic, sizeof zstd_magic) == 0)) {
        return ZSTD;
    }
    if (count >= sizeof xz_magic && memcmp(bytes, xz_magic, sizeof xz_magic) == 0) {
        return XZ;
    }
    return PLAIN;
}

static dmg_status start_decoder(dmg_input_stream *stream)
{
    bool is_started = true;
    switch (stream->compression) {
    case PLAIN:
        break;
    case GZIP:
        is_started = stream->has_gzip = inflateInit2(&stream->gzip, 15 + 16) == Z_OK;
        stream->in_member = stream->has_gzip;
        break;
    case ZSTD:
        stream->zstd = ZSTD_createDStream();
        is_started = stream->zstd != NULL;
        break;
    case XZ:
        stream->xz = (lzma_stream)LZMA_STREAM_INIT;
        is_started = stream->has_xz = lzma_stream_decoder(&stream->xz, XZ_MEMORY_LIMIT, LZMA_CONCATENATED) == LZMA_OK;
        break;
    }
    return is_started ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "%s: no memory to decompress", stream->path);
}

dmg_status dmg_input_stream_open(int file, const char *path, dmg_input_stream **stream)
{
    dmg_input_stream *made = calloc(1, sizeof *made);
    char *path_copy = strdup(path);
    if (!made || !path_copy) {
        free(made);
        free(path_copy);
        return dmg_error(DMG_ERR_MEMORY, "%s: no memory to read", path);
    }
    made->path = path_copy;
    made->file = file;
    struct stat about;
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode)) {
        off_t begin = lseek(file, 0, SEEK_CUR);
        made->can_be_mapped = begin == 0;
        made->file_bytes = begin >= 0 && begin < about.st_size ? (uint64_t)(about.st_size - begin) : 0;
        (void)posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    dmg_status status = refill(made);
    if (status == DMG_OK) {
        made->compression = detect(made->raw, made->raw_end);
        status = start_decoder(made);
    }
    if (status != DMG_OK) {
        dmg_input_stream_close(made);
        return status;
    }
    *stream = made;
    return DMG_OK;
}

void dmg_input_stream_close(dmg_input_stream *stream)
{
    if (!stream) {
        return;
    }
    if (stream->has_gzip) {
        inflateEnd(&stream->gzip);
    }
    ZSTD_freeDStream(stream->zstd);
    if (stream->has_xz) {
        lzma_end(&stream->xz);
    }
    free(stream->path);
    free(stream);
}

size_t dmg_input_stream_first_bytes(const dmg_input_stream *stream, const unsigned char **bytes)
{
    *bytes = stream->raw + stream->raw_begin;
    return stream->raw_end - stream->raw_begin;
}

static dmg_status write_copy(const dmg_input_stream *stream, int copy, const unsigned char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(copy, bytes, count);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return dmg_error_errno(DMG_ERR_MEMORY, errno, "%s: copying it into memory, to be mapped", stream->path);
        }
        bytes += written;
        count -= (size_t)written;
    }
    return DMG_OK;
}

/** What is left of a pipe, in an anonymous file that nobody changes any more. */
static dmg_status copy_into_memory(dmg_input_stream *stream, int *file)
{
    int copy = memfd_create("dmgraph-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (copy < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "%s: creating an anonymous file for what comes from it",
                               stream->path);
    }
    dmg_status status = DMG_OK;
    while (status == DMG_OK && stream->raw_begin < stream->raw_end) {
        status = write_copy(stream, copy, stream->raw + stream->raw_begin, stream->raw_end - stream->raw_begin);
        stream->raw_begin = stream->raw_end;
        if (status == DMG_OK) {
            status = refill(stream);
        }
    }
    if (status == DMG_OK && fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "%s: sealing the copy of it", stream->path);
    }
    if (status != DMG_OK) {
        close(copy);
        return status;
    }
    *file = copy;
    return DMG_OK;
}

dmg_status dmg_input_stream_whole_file(dmg_input_stream *stream, int *file)
{
    if (!stream->can_be_mapped) {
        return copy_into_memory(stream, file);
    }
    *file = fcntl(stream->file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return *file >= 0 ? DMG_OK : dmg_error_errno(DMG_ERR_IO, errno, "%s: keeping it open", stream->path);
}

const char *dmg_input_stream_compression(const dmg_input_stream *stream)
{
    return compression_names[stream->compression];
}

uint64_t dmg_input_stream_file_bytes(const dmg_input_stream *stream)
{
    return stream->file_bytes;
}

uint64_t dmg_input_stream_consumed_bytes(const dmg_input_stream *stream)
{
    return stream->consumed;
}
