#include "cli/base/output_file.h"

#include "core/base/error.h"
#include "core/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)
#define MODE         0666 /* less the umask */
#define LINKS_MAX    40

struct dmg_output_file {
    char *path;      /* as given, for errors */
    char *target;    /* what is renamed to; NULL: written in place */
    char *temporary; /* its name until then; "" while it has none */
    int file;
    int scratch;   /* what is to be copied to `file` in the end; -1: nothing */
    bool is_owned; /* the descriptor is ours to close */
    bool is_standard;
    size_t used;
    char *buffer;
};

/** A folder's path: "." or everything before the last slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return strdup(".");
    }
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static dmg_status cannot_open(const dmg_output_file *output, int error)
{
    return dmg_error_errno(DMG_ERR_IO, error, "%s: opening it for writing", output->path);
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
        return cannot_open(output, errno);
    }
    output->is_owned = true;
    return DMG_OK;
}

/* ---- where a path leads ---- */

/** The descriptor that a path is a name of; -1: it is a file's. */
static int descriptor_named(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0) {
        return STDOUT_FILENO;
    }
    if (strcmp(path, "/dev/stderr") == 0) {
        return STDERR_FILENO;
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *digits = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *digits && strlen(digits) <= 9 &&
            digits[strspn(digits, "0123456789")] == '\0') {
            return atoi(digits);
        }
    }
    return -1;
}

/** Follow symbolic links by hand: the last one may point to what is not there yet. */
static dmg_status follow_links(dmg_output_file *output, char at[PATH_MAX])
{
    for (int links = 0; links < LINKS_MAX; links++) {
        char to[PATH_MAX];
        ssize_t length = descriptor_named(at) >= 0 ? -1 : readlink(at, to, sizeof to - 1);
        if (length < 0) {
            return DMG_OK; /* no link: what else is wrong shows when it is opened */
        }
        to[length] = '\0';
        const char *slash = strrchr(at, '/');
        size_t folder = slash && to[0] != '/' ? (size_t)(slash + 1 - at) : 0;
        if (folder + (size_t)length >= PATH_MAX) {
            return cannot_open(output, ENAMETOOLONG);
        }
        memcpy(at + folder, to, (size_t)length + 1);
    }
    return cannot_open(output, ELOOP);
}

static bool is_same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/** Whether a file, a pipe, a socket or a terminal is also the standard output. Other devices have no order to mix up.
 */
static bool is_standard_output(const struct stat *facts)
{
    struct stat standard;
    return fstat(STDOUT_FILENO, &standard) == 0 && is_same_file(facts, &standard) &&
           (!S_ISCHR(facts->st_mode) || isatty(STDOUT_FILENO));
}

static dmg_status refuse_input(const dmg_output_file *output, const dmg_input_files *inputs, const struct stat *facts)
{
    const dmg_input_file *input = dmg_input_files_find(inputs, facts);
    if (!input) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_ARGUMENT, "%s is %s%s, which is read: writing there would destroy it; name another output",
                     output->path, input->is_beside ? "a file that belongs to " : "the input ", input->path);
}

/* ---- opening ---- */

/** Write to a descriptor that this process was started with. */
static dmg_status take_descriptor(dmg_output_file *output, const dmg_input_files *inputs, int named)
{
    struct stat facts;
    int mode = fcntl(named, F_GETFL);
    bool is_inherited = named <= STDERR_FILENO || fcntl(named, F_GETFD) == 0; /* what is ours is closed by exec */
    if (mode < 0 || !is_inherited || (mode & O_ACCMODE) == O_RDONLY || fstat(named, &facts) != 0) {
        return dmg_error(DMG_ERR_IO, "%s: it is not open for writing", output->path);
    }
    output->file = named;
    output->is_standard = named == STDOUT_FILENO || is_standard_output(&facts);
    return S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode) ? refuse_input(output, inputs, &facts) : DMG_OK;
}

/** What is no file: nothing can take its place. */
static dmg_status open_in_place(dmg_output_file *output, const char *path)
{
    output->file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    output->is_owned = output->file >= 0;
    return output->is_owned ? DMG_OK : cannot_open(output, errno);
}

/** The path that is renamed to, without links, so that two ways to say it are the same. */
static dmg_status name_target(dmg_output_file *output, const char *path)
{
    char *folder = folder_of(path);
    char *real = folder ? realpath(folder, NULL) : NULL;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    int error = errno;
    free(folder);
    if (!real) {
        return cannot_open(output, error);
    }
    if (asprintf(&output->target, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0) {
        output->target = NULL;
    }
    free(real);
    output->temporary = output->target ? calloc(1, strlen(output->target) + 64) : NULL;
    return output->temporary ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "no memory for a path");
}

/** Whoever may use the file that is replaced may use the new one, and nobody else. */
static dmg_status keep_permissions(const dmg_output_file *output, const struct stat *before)
{
    struct stat now;
    if (fstat(output->file, &now) != 0) {
        return cannot_open(output, errno);
    }
    if (now.st_uid != before->st_uid || now.st_gid != before->st_gid) {
        /* Only some may give files away; it is then one's own, like any new file. */
        (void)!fchown(output->file, before->st_uid, before->st_gid);
    }
    return fchmod(output->file, before->st_mode & 0777) == 0 ? DMG_OK : cannot_open(output, errno);
}

static dmg_status open_target(dmg_output_file *output, const dmg_input_files *inputs)
{
    char path[PATH_MAX];
    struct stat facts;
    if (strlen(output->path) >= sizeof path) {
        return cannot_open(output, ENAMETOOLONG);
    }
    strcpy(path, output->path);
    dmg_status status = follow_links(output, path);
    int named = status == DMG_OK ? descriptor_named(path) : -1;
    if (status != DMG_OK || named >= 0) {
        return status != DMG_OK ? status : take_descriptor(output, inputs, named);
    }
    bool exists = stat(path, &facts) == 0;
    if (!exists && errno != ENOENT) {
        return cannot_open(output, errno);
    }
    if (exists) {
        status = refuse_input(output, inputs, &facts);
    }
    if (status == DMG_OK && exists && is_standard_output(&facts)) {
        return take_descriptor(output, inputs, STDOUT_FILENO);
    }
    if (status != DMG_OK || (exists && !S_ISREG(facts.st_mode))) {
        return status != DMG_OK ? status : open_in_place(output, path);
    }
    if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) {
        return cannot_open(output, errno); /* it would be replaced against its protection */
    }
    status = exists ? DMG_OK : dmg_folder_check(path);
    if (status == DMG_OK) {
        status = name_target(output, path);
    }
    if (status == DMG_OK) {
        status = open_temporary(output);
    }
    return status == DMG_OK && exists ? keep_permissions(output, &facts) : status;
}

dmg_status dmg_output_file_open(const char *path, const dmg_input_files *inputs, dmg_output_file **result)
{
    dmg_output_file *output = calloc(1, sizeof *output);
    bool is_dash = strcmp(path, "-") == 0;
    if (output) {
        output->path = strdup(is_dash ? "standard output" : path);
        output->buffer = malloc(BUFFER_BYTES);
        output->file = output->scratch = -1;
    }
    if (!output || !output->path || !output->buffer) {
        dmg_output_file_close(output);
        return dmg_error(DMG_ERR_MEMORY, "no memory for an output buffer");
    }
    dmg_status status = is_dash ? take_descriptor(output, inputs, STDOUT_FILENO) : open_target(output, inputs);
    if (status != DMG_OK) {
        dmg_output_file_close(output);
        return status;
    }
    *result = output;
    return DMG_OK;
}

bool dmg_output_file_is_standard(const dmg_output_file *output)
{
    return output && output->is_standard;
}

bool dmg_output_file_is_same(const dmg_output_file *one, const dmg_output_file *other)
{
    return one && other && one->target && other->target && strcmp(one->target, other->target) == 0;
}

/* ---- writing ---- */

dmg_status dmg_output_file_descriptor(dmg_output_file *output, int *descriptor)
{
    if (!output->target && output->scratch < 0) {
        output->scratch = memfd_create("dmgraph-output", MFD_CLOEXEC);
        if (output->scratch < 0) {
            return dmg_error_errno(DMG_ERR_IO, errno, "creating an anonymous file for %s", output->path);
        }
    }
    *descriptor = output->target ? output->file : output->scratch;
    return DMG_OK;
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

static dmg_status copy_scratch(dmg_output_file *output)
{
    for (off_t at = 0;;) {
        ssize_t taken = pread(output->scratch, output->buffer, BUFFER_BYTES, at);
        if (taken < 0 && errno == EINTR) {
            continue;
        }
        if (taken <= 0) {
            return taken == 0 ? DMG_OK
                              : dmg_error_errno(DMG_ERR_IO, errno, "reading what is to go to %s", output->path);
        }
        dmg_status status = write_all(output, output->buffer, (size_t)taken);
        if (status != DMG_OK) {
            return status;
        }
        at += taken;
    }
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

/** Some file systems keep nothing, or write at once, and say so with these. */
static bool has_nothing_to_sync(int error)
{
    return error == EINVAL || error == ENOTSUP || error == EROFS;
}

/** A name that outlives a loss of power must not be of a file that does not: errors of the disk are seen here, too. */
static dmg_status sync_contents(const dmg_output_file *output)
{
    if (fsync(output->file) == 0 || has_nothing_to_sync(errno)) {
        return DMG_OK;
    }
    return dmg_error_errno(DMG_ERR_IO, errno, "%s: putting what was written on the disk", output->path);
}

static dmg_status sync_folder(const dmg_output_file *output)
{
    char *path = folder_of(output->target);
    if (!path) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a path");
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(path);
    /* Who may write into a folder need not be allowed to read it, and then has no way to ask. */
    bool is_done = folder < 0 ? errno == EACCES : fsync(folder) == 0 || has_nothing_to_sync(errno);
    int error = errno;
    if (folder >= 0) {
        close(folder);
    }
    return is_done ? DMG_OK
                   : dmg_error_errno(DMG_ERR_IO, error, "%s: it is written, but putting its name on the disk failed",
                                     output->path);
}

dmg_status dmg_output_file_commit(dmg_output_file *output)
{
    dmg_status status = flush(output);
    if (status == DMG_OK && output->scratch >= 0) {
        status = copy_scratch(output);
    }
    if (status != DMG_OK || !output->target) {
        return status;
    }
    status = sync_contents(output);
    if (status == DMG_OK && !output->temporary[0]) {
        status = link_temporary(output);
    }
    if (status == DMG_OK && rename(output->temporary, output->target) != 0) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "%s: giving the file its name", output->path);
    }
    if (status == DMG_OK) {
        output->temporary[0] = '\0';
        status = sync_folder(output);
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
    if (output->scratch >= 0) {
        close(output->scratch);
    }
    free(output->buffer);
    free(output->temporary);
    free(output->target);
    free(output->path);
    free(output);
}
