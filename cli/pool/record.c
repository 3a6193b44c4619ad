#include "cli/pool/record.h"

#include "cli/base/text.h"
#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** A pool's file, and some lines for each node. */
#define RECORD_BYTES_MAX (4 * DMG_POOL_FILE_BYTES_MAX)

/** In one piece, so that lines of several processes do not mix. Takes the reference. */
static dmg_status append_line(int file, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!text) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to describe the pool");
    }
    size_t bytes = strlen(text);
    text[bytes] = '\n'; /* in the place of the zero */
    ssize_t written;
    do {
        written = write(file, text, bytes + 1);
    } while (written < 0 && errno == EINTR);
    dmg_status status = written == (ssize_t)bytes + 1
                            ? DMG_OK
                            : dmg_error_errno(DMG_ERR_IO, written < 0 ? errno : EIO, "writing a pool's record");
    free(text);
    return status;
}

dmg_status dmg_pool_record_create(const char *name, int *record)
{
    char text[DMG_POOL_NAME_BYTES + 16];
    snprintf(text, sizeof text, "dmgraph-pool:%.*s", DMG_POOL_NAME_BYTES - 1, name);
    *record = memfd_create(text, MFD_CLOEXEC);
    if (*record < 0 || fcntl(*record, F_SETFL, O_APPEND) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "making a pool's record in memory");
    }
    return DMG_OK;
}

dmg_status dmg_pool_record_write(int record, const dmg_pool_file *pool)
{
    char folder[PATH_MAX];
    dmg_pool_folder_path(folder, sizeof folder);
    dmg_status status = append_line(record, dmg_pool_file_json(pool));
    return status == DMG_OK ? append_line(record, json_pack("{s:o}", "folder", dmg_json_text(folder))) : status;
}

/** All of it, with a zero behind; NULL when it cannot be read, or is longer than it can be. */
static char *read_all(int file)
{
    char *text = malloc(RECORD_BYTES_MAX + 1);
    size_t bytes = 0;
    while (text && bytes <= RECORD_BYTES_MAX) {
        ssize_t got = pread(file, text + bytes, RECORD_BYTES_MAX + 1 - bytes, (off_t)bytes);
        if (got == 0) {
            text[bytes] = '\0';
            return text;
        }
        if (got < 0 && errno != EINTR) {
            break;
        }
        bytes += got > 0 ? (size_t)got : 0;
    }
    free(text);
    return NULL;
}

/** The line at `*at` as an object, and `*at` behind it; NULL for what is none, and at the end, where `*at` is NULL. */
static json_t *next_line(const char **at)
{
    const char *end = *at ? strchr(*at, '\n') : NULL;
    json_t *object = end ? json_loadb(*at, (size_t)(end - *at), JSON_REJECT_DUPLICATES, NULL) : NULL;
    *at = end ? end + 1 : NULL;
    return object;
}

dmg_status dmg_pool_record_read(int record, dmg_pool_record *result)
{
    char *text = read_all(record);
    if (!text) {
        return dmg_error(DMG_ERR_IO, "a pool's record cannot be read");
    }
    const char *at = text;
    json_t *pool = next_line(&at);
    json_t *place = next_line(&at);
    const char *folder = json_string_value(json_object_get(place, "folder"));
    dmg_status status = DMG_ERR_CORRUPT;
    if (!pool || !folder || folder[0] != '/' || strlen(folder) >= sizeof result->folder) {
        dmg_error(status, "a pool's record is not whole");
    } else {
        status = dmg_pool_file_from_json(pool, &result->pool);
        snprintf(result->folder, sizeof result->folder, "%s", folder);
    }
    json_decref(pool);
    json_decref(place);
    free(text);
    return status;
}

void dmg_pool_end_append(int file, const dmg_pool_end *end)
{
    (void)append_line(file, json_pack("{s:I, s:I, s:I, s:o}", "pid", (json_int_t)end->process.pid, "start_time",
                                      (json_int_t)end->process.start_time, "at", (json_int_t)end->at_s, "why",
                                      dmg_json_text(end->why)));
}

bool dmg_pool_end_read(int file, const dmg_process *process, dmg_pool_end *end)
{
    char *text = read_all(file);
    bool is_found = false;
    for (const char *at = text; at;) {
        json_t *object = next_line(&at);
        json_int_t pid = 0, start_time = 0, at_s = 0;
        const char *why = NULL;
        if (json_unpack(object, "{s:I, s:I, s:I, s:s}", "pid", &pid, "start_time", &start_time, "at", &at_s, "why",
                        &why) == 0 &&
            pid == process->pid && (uint64_t)start_time == process->start_time && at_s >= 0) {
            *end = (dmg_pool_end){.process = *process, .at_s = (uint64_t)at_s};
            snprintf(end->why, sizeof end->why, "%s", why);
            is_found = true;
        }
        json_decref(object);
    }
    free(text);
    return is_found;
}
