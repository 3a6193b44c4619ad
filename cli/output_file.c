#include "cli/output_file.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)
#define MODE         0666 /* less the umask */

struct dmg_output_file {
    char *path;      /* as given, for errors */
    char *target;    /* what is renamed to; NULL: written in place */
    char *temporary; /* its name until then; "" while it has none */
    int file;
    bool is_owned; /* the descriptor is ours to close */
    size_t used;
    char *buffer;
};

/** A folder's path, for O_TMPFILE: "." or everything before the last slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return strdup(".");
    }
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/** A name beside the target that is not taken yet. */
static void name_temporary(dmg_output_file *output, unsigned int attempt)
{
    snprintf(output->temporary, strlen(output->target) + 64, "%s.%d.%u.partial", output->target, (int)getpid(),
             attempt);
}

static dmg_status open_temporary(dmg_output_file *output)
{
    char *folder = folder_of(output->target);
    if (!folder) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a path");
    }
    output->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, MODE);
    free(folder);
    for (unsigned int attempt = 0; output->file < 0 && attempt < 100; attempt++) {
        name_temporary(output, attempt);
        output->file = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, MODE);
        if (output->file < 0 && errno != EEXIST) {
            break;
        }
    }
    if (output->file < 0) {
        output->temporary[0] = '\0';
        return dmg_error_errno(DMG_ERR_IO, errno, "%s: opening it for writing", output->path);
    }
    output->is_owned = true;
    return DMG_OK;
}

static dmg_status open_target(dmg_output_file *output)
{
    struct stat facts;
    bool exists = stat(output->path, &facts) == 0;
    if (exists && !S_ISREG(facts.st_mode)) {
        output->file = open(output->path, O_WRONLY | O_CLOEXEC);
        output->is_owned = output->file >= 0;
        return output->is_owned ? DMG_OK
                                : dmg_error_errno(DMG_ERR_IO, errno, "%s: opening it for writing", output->path);
    }
    /* A link keeps its place: what it points to is replaced. */
    output->target = exists ? realpath(output->path, NULL) : strdup(output->path);
    output->temporary = output->target ? calloc(1, strlen(output->target) + 64) : NULL;
    if (!output->temporary) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a path");
    }
    return open_temporary(output);
}

dmg_status dmg_output_file_open(const char *path, dmg_output_file **result)
{
    dmg_output_file *output = calloc(1, sizeof *output);
    if (output) {
        output->path = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
        output->buffer = malloc(BUFFER_BYTES);
        output->file = STDOUT_FILENO;
    }
    if (!output || !output->path || !output->buffer) {
        dmg_output_file_close(output);
        return dmg_error(DMG_ERR_MEMORY, "no memory for an output buffer");
    }
    dmg_status status = strcmp(path, "-") == 0 ? DMG_OK : open_target(output);
    if (status != DMG_OK) {
        dmg_output_file_close(output);
        return status;
    }
    *result = output;
    return DMG_OK;
}

int dmg_output_file_descriptor(const dmg_output_file *output)
{
    return output->file;
}

static dmg_status write_all(dmg_output_file *output, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t written = write(output->file, bytes, count);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return dmg_error_errno(DMG_ERR_IO, errno, "%s: writing", output->path);
        }
        bytes += written;
        count -= (size_t)written;
    }
    return DMG_OK;
}

static dmg_status flush(dmg_output_file *output)
{
    size_t used = output->used;
    output->used = 0;
    return write_all(output, output->buffer, used);
}

dmg_status dmg_output_file_write(dmg_output_file *output, const char *text, size_t bytes)
{
    if (bytes > BUFFER_BYTES - output->used) {
        dmg_status status = flush(output);
        if (status != DMG_OK) {
            return status;
        }
    }
    if (bytes > BUFFER_BYTES) {
        return write_all(output, text, bytes);
    }
    memcpy(output->buffer + output->used, text, bytes);
    output->used += bytes;
    return DMG_OK;
}

/** Give the nameless file a temporary name, which can then be renamed over whatever is there. */
static dmg_status link_temporary(dmg_output_file *output)
{
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", output->file);
    for (unsigned int attempt = 0; attempt < 100; attempt++) {
        name_temporary(output, attempt);
        if (linkat(AT_FDCWD, self, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0) {
            return DMG_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    output->temporary[0] = '\0';
    return dmg_error_errno(DMG_ERR_IO, errno, "%s: giving the file its name", output->path);
}

dmg_status dmg_output_file_commit(dmg_output_file *output)
{
    dmg_status status = flush(output);
    if (status != DMG_OK || !output->target) {
        return status;
    }
    if (!output->temporary[0]) {
        status = link_temporary(output);
    }
    if (status == DMG_OK && rename(output->temporary, output->target) != 0) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "%s: giving the file its name", output->path);
    }
    if (status == DMG_OK) {
        output->temporary[0] = '\0';
    }
    return status;
}

void dmg_output_file_discard(const dmg_output_file *output)
{
    if (output && output->temporary && output->temporary[0]) {
        unlink(output->temporary);
    }
}

void dmg_output_file_close(dmg_output_file *output)
{
    if (!output) {
        return;
    }
    dmg_output_file_discard(output);
    if (output->is_owned) {
        close(output->file);
    }
    free(output->buffer);
    free(output->temporary);
    free(output->target);
    free(output->path);
    free(output);
}
