#include "core/base/process.h"

#include "core/base/clock.h"
#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Fields of /proc/PID/stat behind the name: the state, and 19 further on the time of the start. */
#define FIELDS_TO_START_TIME 19

static bool parse_stat(const char *text, char *state, uint64_t *start_time)
{
    /* The program's name stands in parentheses, and may hold any of them itself. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2]) {
        return false;
    }
    *state = at[2];
    at += 2;
    for (int field = 0; field < FIELDS_TO_START_TIME; field++) {
        at = strchr(at, ' ');
        if (!at) {
            return false;
        }
        at++;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(at, &end, 10);
    if (*at < '0' || *at > '9' || errno != 0 || *end != ' ' || value == 0) {
        return false;
    }
    *start_time = value;
    return true;
}

bool dmg_process_parse_stat(const char *text, uint64_t *start_time)
{
    char state;
    return parse_stat(text, &state, start_time) && state != 'Z' && state != 'X';
}

/* Of a process that is alive or of which something is left. */
static bool read_stat(int pid, char *state, uint64_t *start_time)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    ssize_t bytes = read(file, text, sizeof text - 1);
    close(file);
    if (bytes <= 0) {
        return false;
    }
    text[bytes] = '\0';
    return parse_stat(text, state, start_time);
}

static bool read_start_time(int pid, uint64_t *start_time)
{
    char state;
    return read_stat(pid, &state, start_time) && state != 'Z' && state != 'X';
}

void dmg_process_boot_id(char boot_id[DMG_BOOT_ID_BYTES])
{
    memset(boot_id, 0, DMG_BOOT_ID_BYTES);
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t bytes = read(file, boot_id, DMG_BOOT_ID_BYTES - 1);
        boot_id[bytes > 0 ? bytes : 0] = '\0';
        close(file);
    }
}

dmg_status dmg_process_identify(int pid, dmg_process *process)
{
    process->pid = pid;
    return read_start_time(pid, &process->start_time) ? DMG_OK
                                                      : dmg_error(DMG_ERR_NOT_FOUND, "there is no process %d", pid);
}

bool dmg_process_is_alive(const dmg_process *process)
{
    uint64_t start_time;
    return process->pid > 0 && read_start_time(process->pid, &start_time) && start_time == process->start_time;
}

bool dmg_process_awaits_parent(const dmg_process *process)
{
    char state;
    uint64_t start_time;
    return process->pid > 0 && read_stat(process->pid, &state, &start_time) && start_time == process->start_time &&
           state == 'Z';
}

int dmg_process_open(const dmg_process *process)
{
    if (process->pid <= 0) {
        return -1;
    }
    int descriptor = (int)syscall(SYS_pidfd_open, process->pid, 0);
    /* Looked at only now: the descriptor stays with whoever had the id when it was opened. */
    if (descriptor >= 0 && !dmg_process_is_alive(process)) {
        close(descriptor);
        descriptor = -1;
    }
    return descriptor;
}

static void close_descriptor(int *descriptor)
{
    if (*descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
}

bool dmg_process_has_ended(const dmg_process *process, int *descriptor)
{
    if (*descriptor < 0) {
        *descriptor = (int)syscall(SYS_pidfd_open, process->pid, 0);
        if (*descriptor < 0 && errno == ESRCH) {
            return true;
        }
        /* Looked at only now, as above. A first thread that has ended says nothing of the others: its state does not
           count. */
        char state;
        uint64_t start_time;
        if (read_stat(process->pid, &state, &start_time) && start_time != process->start_time) {
            close_descriptor(descriptor);
            return true;
        }
        if (*descriptor < 0) {
            return false;
        }
    }
    struct pollfd file = {.fd = *descriptor, .events = POLLIN};
    if (poll(&file, 1, 0) <= 0) {
        return false;
    }
    close_descriptor(descriptor);
    return true;
}

bool dmg_process_signal(int descriptor, int number)
{
    return syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0) == 0;
}

bool dmg_process_wait(int descriptor, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = dmg_now_ns();
        uint64_t left_ms = now < deadline_ns ? (deadline_ns - now) / 1000000 + 1 : 0;
        struct pollfd file = {.fd = descriptor, .events = POLLIN};
        int ready = poll(&file, 1, left_ms < 1000 ? (int)left_ms : 1000);
        if (ready > 0) {
            return true;
        }
        if (left_ms == 0) {
            return false;
        }
    }
}
