#include "cli/compare/compare.h"

#include "cli/base/exit_code.h"
#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHUNK_BYTES 65536
#define TEXT_MOST   (UINT64_C(256) << 20)

/* ---- words ---- */

static void add_word(dmg_compare_call *call, char *word)
{
    /* One word too few shows: the place stays, and dmg_compare_call_run refuses. */
    if (call->count < DMG_COMPARE_WORDS_MAX) {
        call->words[call->count] = word;
    } else {
        free(word);
    }
    call->count++;
}

void dmg_compare_call_add(dmg_compare_call *call, const char *format, ...)
{
    char *word = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&word, format, arguments);
    va_end(arguments);
    add_word(call, length >= 0 ? word : NULL);
}

void dmg_compare_call_add_given(dmg_compare_call *call, const dmg_settings *settings, const dmg_option_id *options)
{
    for (const dmg_option_id *id = options; *id != DMG_OPTION_COUNT; id++) {
        const dmg_option *option = dmg_option_get(*id);
        if (!settings->values[*id].is_given) {
            continue;
        }
        if (option->type == DMG_TYPE_FLAG) {
            dmg_compare_call_add(call, "--%s", option->name);
        } else {
            dmg_compare_call_add(call, "--%s=%s", option->name, dmg_value_text(settings, *id));
        }
    }
}

static void free_words(dmg_compare_call *call)
{
    for (uint32_t i = 0; i < call->count && i < DMG_COMPARE_WORDS_MAX; i++) {
        free(call->words[i]);
    }
    *call = (dmg_compare_call){0};
}

/* ---- a child ---- */

/** What a child writes to one of its outputs. */
typedef struct child_output {
    int pipe[2];
    char *text;
    size_t length;
} child_output;

/** Between fork and exec: only what is async-signal-safe. */
static _Noreturn void become_child(char *const *words, const child_output *outputs, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    int nothing = open("/dev/null", O_RDONLY);
    if (getppid() != parent || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(outputs[0].pipe[1], STDOUT_FILENO) < 0 || dup2(outputs[1].pipe[1], STDERR_FILENO) < 0) {
        _exit(DMG_EXIT_INTERNAL);
    }
    execv("/proc/self/exe", words);
    _exit(DMG_EXIT_INTERNAL);
}

/** Take what is there; false at the end. */
static bool take(child_output *output, dmg_status *status)
{
    char *grown = realloc(output->text, output->length + CHUNK_BYTES + 1);
    if (!grown || output->length > TEXT_MOST) {
        output->text = grown ? grown : output->text;
        *status = dmg_error(DMG_ERR_MEMORY, "no memory for what a run prints");
        return false;
    }
    output->text = grown;
    ssize_t taken = read(output->pipe[0], output->text + output->length, CHUNK_BYTES);
    if (taken < 0 && errno == EINTR) {
        return true;
    }
    output->length += taken > 0 ? (size_t)taken : 0;
    output->text[output->length] = '\0';
    return taken > 0;
}

/** Until both outputs are closed, which the end of the child sees to. */
static dmg_status listen_to(child_output *outputs)
{
    dmg_status status = DMG_OK;
    struct pollfd files[2] = {{.fd = outputs[0].pipe[0], .events = POLLIN},
                              {.fd = outputs[1].pipe[0], .events = POLLIN}};
    while (status == DMG_OK && (files[0].fd >= 0 || files[1].fd >= 0)) {
        if (poll(files, 2, -1) < 0 && errno != EINTR) {
            return dmg_error_errno(DMG_ERR_IO, errno, "waiting for a run");
        }
        for (int i = 0; i < 2; i++) {
            if (files[i].fd >= 0 && files[i].revents != 0 && !take(&outputs[i], &status)) {
                files[i].fd = -1;
            }
        }
    }
    return status;
}

static dmg_status start(char *const *words, child_output *outputs, pid_t *pid)
{
    if (pipe2(outputs[0].pipe, O_CLOEXEC) != 0 || pipe2(outputs[1].pipe, O_CLOEXEC) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "making a pipe to a run");
    }
    pid_t parent = getpid();
    *pid = fork();
    if (*pid == 0) {
        become_child(words, outputs, parent);
    }
    if (*pid < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "starting a run");
    }
    close(outputs[0].pipe[1]);
    close(outputs[1].pipe[1]);
    outputs[0].pipe[1] = outputs[1].pipe[1] = -1;
    return DMG_OK;
}

static void close_outputs(child_output *outputs)
{
    for (int i = 0; i < 2; i++) {
        for (int end = 0; end < 2; end++) {
            if (outputs[i].pipe[end] >= 0) {
                close(outputs[i].pipe[end]);
            }
        }
        free(outputs[i].text);
    }
}

/* ---- what became of it ---- */

static dmg_status status_of(int code)
{
    static const dmg_status statuses[] = {[DMG_EXIT_INTERNAL] = DMG_ERR_INTERNAL,
                                          [DMG_EXIT_USAGE] = DMG_ERR_ARGUMENT,
                                          [DMG_EXIT_INPUT] = DMG_ERR_FORMAT,
                                          [DMG_EXIT_LIMIT] = DMG_ERR_LIMIT,
                                          [DMG_EXIT_NODE] = DMG_ERR_PEER,
                                          [DMG_EXIT_VERIFY] = DMG_ERR_VERIFY,
                                          [DMG_EXIT_IO] = DMG_ERR_IO};
    return code > 0 && code <= DMG_EXIT_IO ? statuses[code] : DMG_ERR_INTERNAL;
}

/** The child's own sentence: its last line on the standard error, without the program's name. */
static const char *sentence_of(child_output *errors)
{
    static const char program[] = "dmgraph: ";
    while (errors->length > 0 && errors->text[errors->length - 1] == '\n') {
        errors->text[--errors->length] = '\0';
    }
    const char *line = errors->text ? strrchr(errors->text, '\n') : NULL;
    line = line ? line + 1 : errors->text ? errors->text : "";
    return strncmp(line, program, sizeof program - 1) == 0 ? line + sizeof program - 1 : line;
}

static dmg_status conclude(const dmg_compare_call *call, int wait_status, int accepted, child_output *outputs,
                           json_t **object)
{
    if (WIFSIGNALED(wait_status)) {
        return dmg_error(DMG_ERR_INTERNAL, "%s %s: ended by signal %d", call->words[1], call->words[2],
                         WTERMSIG(wait_status));
    }
    int code = WEXITSTATUS(wait_status);
    if (code != 0 && code != accepted) {
        return dmg_error(code > DMG_EXIT_SIGNAL ? DMG_ERR_CANCELLED : status_of(code), "%s", sentence_of(&outputs[1]));
    }
    json_error_t error;
    *object = outputs[0].text ? json_loadb(outputs[0].text, outputs[0].length, 0, &error) : NULL;
    return *object ? DMG_OK : dmg_error(DMG_ERR_PROTOCOL, "%s %s: it printed no JSON", call->words[1], call->words[2]);
}

static dmg_status check_words(const dmg_compare_call *call)
{
    for (uint32_t i = 0; i < call->count && i < DMG_COMPARE_WORDS_MAX; i++) {
        if (!call->words[i]) {
            return dmg_error(DMG_ERR_MEMORY, "no memory for the words of a run");
        }
    }
    return call->count <= DMG_COMPARE_WORDS_MAX ? DMG_OK : dmg_error(DMG_ERR_LIMIT, "a run has too many options");
}

dmg_status dmg_compare_call_run(dmg_compare_call *call, int accepted, json_t **object)
{
    child_output outputs[2] = {{.pipe = {-1, -1}}, {.pipe = {-1, -1}}};
    pid_t pid = -1;
    int wait_status = 0;
    *object = NULL;
    dmg_status status = check_words(call);
    if (status == DMG_OK) {
        status = start(call->words, outputs, &pid);
    }
    if (status == DMG_OK) {
        status = listen_to(outputs);
        if (status != DMG_OK) {
            kill(pid, SIGTERM);
        }
        while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
        }
    }
    if (status == DMG_OK) {
        status = conclude(call, wait_status, accepted, outputs, object);
    }
    close_outputs(outputs);
    free_words(call);
    return status;
}
