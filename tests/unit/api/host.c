/*
 * The shared library in a host that brings its own signal handlers and its own malloc: opened while the program runs,
 * used over each transport, it changes neither.
 *
 * Usage: host LIBRARY
 */
#include <dmgraph/session.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIGNALS 65

static int passed;
static int failures;

static void expect(bool is_so, const char *what)
{
    printf("  %s %s\n", is_so ? "passed" : "FAILED", what);
    passed += is_so;
    failures += !is_so;
}

static sigjmp_buf back;

static void catch (int number)
{
    (void)number;
    siglongjmp(back, 1);
}

/* A handler on each signal that crashes a program, or ends it: what hosts such as Java's have. */
static void take_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGHUP, SIGTERM, SIGUSR1};
    const struct sigaction action = {.sa_handler = catch, .sa_flags = SA_NODEFER};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

static void read_signals(struct sigaction actions[SIGNALS])
{
    memset(actions, 0, SIGNALS * sizeof *actions);
    for (int number = 1; number < SIGNALS; number++) {
        (void)sigaction(number, NULL, &actions[number]);
    }
}

static bool are_unchanged(const struct sigaction before[SIGNALS])
{
    struct sigaction now[SIGNALS];
    read_signals(now);
    for (int number = 1; number < SIGNALS; number++) {
        if (before[number].sa_sigaction != now[number].sa_sigaction ||
            before[number].sa_flags != now[number].sa_flags) {
            printf("  signal %d has another handler\n", number);
            return false;
        }
    }
    return true;
}

static bool is_mapped(const char *library)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    bool is_found = false;
    while (maps && fgets(line, sizeof line, maps)) {
        is_found |= strstr(line, library) != NULL;
    }
    if (maps) {
        fclose(maps);
    }
    return is_found;
}

typedef struct interface {
    dmg_status (*open)(const dmg_session_options *options, dmg_session **session);
    void (*close)(dmg_session *session);
    dmg_status (*load)(dmg_session *session, const char *path, const dmg_load_options *options);
    dmg_status (*run)(dmg_session *session, const char *algorithm, const dmg_run_parameters *parameters,
                      dmg_answer *answer);
    dmg_status (*values)(dmg_session *session, uint64_t first, uint64_t count, size_t value_bytes, void *values);
} interface;

static bool find(void *library, const char *name, void *place)
{
    *(void **)place = dlsym(library, name);
    return *(void **)place != NULL;
}

/* A path of three vertices: one component, whose name is the first vertex. */
static bool gives_answers(const interface *library, const char *transport, const char *graph)
{
    const dmg_session_options options = {.transport = transport, .memory_bytes = 16 << 20, .threads = 2};
    dmg_session *session = NULL;
    uint32_t labels[3] = {1, 1, 1};
    bool is_good = library->open(&options, &session) == DMG_OK && library->load(session, graph, NULL) == DMG_OK &&
                   library->run(session, "cc", NULL, NULL) == DMG_OK &&
                   library->values(session, 0, 3, sizeof labels[0], labels) == DMG_OK;
    library->close(session);
    return is_good && labels[0] == 0 && labels[1] == 0 && labels[2] == 0;
}

int main(int argc, char **argv)
{
    struct sigaction before[SIGNALS];
    interface found;
    take_signals();
    read_signals(before);
    void *library = dlopen(argc > 1 ? argv[1] : "libdmgraph.so", RTLD_NOW | RTLD_LOCAL);
    expect(library != NULL, "the library is opened by a program that runs");
    if (!library) {
        printf("  %s\n", dlerror());
        return 1;
    }
    expect(find(library, "dmg_session_open", &found.open) && find(library, "dmg_session_close", &found.close) &&
               find(library, "dmg_session_load", &found.load) && find(library, "dmg_session_run", &found.run) &&
               find(library, "dmg_session_values", &found.values),
           "its functions are found");
    expect(are_unchanged(before), "no handler has changed when it is open");
    char graph[] = "/tmp/dmgraph-host-XXXXXX";
    int file = mkstemp(graph);
    expect(file >= 0 && write(file, "1 2\n2 3\n", 8) == 8, "there is a graph");
    expect(gives_answers(&found, "cxl_shm", graph), "a session over cxl_shm gives the answer");
    expect(!is_mapped("libucs"), "UCX is not loaded by who does not use it");
    expect(are_unchanged(before), "no handler has changed after a session over cxl_shm");
    expect(gives_answers(&found, "ucx", graph), "a session over ucx gives the answer");
    expect(is_mapped("libucs"), "UCX is loaded by who uses it");
    expect(are_unchanged(before), "no handler has changed after a session over ucx");
    expect(!is_mapped("jemalloc"), "malloc is the host's");
    unlink(graph);
    bool is_caught = sigsetjmp(back, 1) != 0;
    if (!is_caught) {
        raise(SIGSEGV);
    }
    expect(is_caught, "a crash goes to the host's handler");
    printf("cases: %d passed, %d failed\n", passed, failures);
    return failures != 0;
}
