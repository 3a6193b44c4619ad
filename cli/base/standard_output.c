#include "cli/base/standard_output.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/** Why something could not be written, of the first time; 0: all was. As stdout itself, one a process. */
static int failure;

/** With a standard descriptor closed, the next file to be opened would take its place, and get what is printed. */
static dmg_status open_standard_descriptors(void)
{
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (fcntl(number, F_GETFD) >= 0) {
            continue;
        }
        /* The way that it is not used: reading a closed input, or writing to a closed output, fails as it should. */
        if (open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number) {
            return dmg_error(DMG_ERR_IO, "descriptor %d is closed, and /dev/null cannot take its place", number);
        }
    }
    return DMG_OK;
}

static ssize_t write_out(void *cookie, const char *bytes, size_t count)
{
    (void)cookie;
    size_t done = 0;
    while (done < count && failure == 0) {
        ssize_t written = write(STDOUT_FILENO, bytes + done, count - done);
        if (written >= 0) {
            done += (size_t)written;
        } else if (errno != EINTR) {
            failure = errno;
        }
    }
    errno = failure;
    return (ssize_t)done;
}

dmg_status dmg_standard_output_prepare(void)
{
    dmg_status status = open_standard_descriptors();
    if (status != DMG_OK) {
        return status;
    }
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_out});
    if (!file) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the standard output");
    }
    setvbuf(file, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = file;
    return DMG_OK;
}

dmg_status dmg_standard_output_flush(void)
{
    bool is_whole = fflush(stdout) == 0 && !ferror(stdout);
    if (failure == EBADF) {
        return dmg_error(DMG_ERR_IO, "standard output: it is not open for writing");
    }
    return is_whole ? DMG_OK : dmg_error_errno(DMG_ERR_IO, failure ? failure : EIO, "standard output: writing");
}
