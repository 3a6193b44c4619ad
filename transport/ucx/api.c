/* Here the names of functions are names. */
#define DMG_UCX_TABLE_ONLY
#include "transport/ucx/api.h"

#include "core/base/error.h"
#include "transport/ucx/ucx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

dmg_ucx_api dmg_ucx;

/** What loading came to, for all who ask. */
static struct {
    pthread_once_t once;
    dmg_status status;
    char why[256];
} loading = {.once = PTHREAD_ONCE_INIT};

/* ---- the host's signals ---- */

#define SIGNALS 65

/* UCX's constructors put handlers on the signals of errors, and on one for debuggers. */
typedef struct signal_actions {
    struct sigaction action[SIGNALS];
    bool is_known[SIGNALS];
} signal_actions;

static void save_signals(signal_actions *saved)
{
    for (int number = 1; number < SIGNALS; number++) {
        saved->is_known[number] = sigaction(number, NULL, &saved->action[number]) == 0;
    }
}

static void restore_signals(const signal_actions *saved)
{
    for (int number = 1; number < SIGNALS; number++) {
        struct sigaction now;
        if (saved->is_known[number] && sigaction(number, NULL, &now) == 0 &&
            now.sa_sigaction != saved->action[number].sa_sigaction) {
            (void)sigaction(number, &saved->action[number], NULL);
        }
    }
}

/* ---- the libraries ---- */

static bool fail(const char *what)
{
    const char *reason = dlerror();
    snprintf(loading.why, sizeof(loading.why), "%s", reason != NULL ? reason : what);
    loading.status = DMG_ERR_UNSUPPORTED;
    return false;
}

static bool find(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL) {
        return fail(name);
    }
    *(void **)place = symbol;
    return true;
}

/* Never closed again: UCX leaves threads' data and exit handlers behind. */
static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        (void)fail(name);
    }
    return library;
}

static bool load_libraries(void)
{
    void *ucs = open_library("libucs.so.0");
    void *uct = ucs != NULL ? open_library("libuct.so.0") : NULL;
    void *ucp = uct != NULL ? open_library("libucp.so.0") : NULL;
    if (ucp == NULL) {
        return false;
    }
    bool is_found = find(ucs, "ucs_global_opts", &dmg_ucx.global_opts);
#define FIND_UCP(name) is_found = is_found && find(ucp, #name, &dmg_ucx.name);
#define FIND_UCT(name) is_found = is_found && find(uct, #name, &dmg_ucx.name);
#define FIND_UCS(name) is_found = is_found && find(ucs, #name, &dmg_ucx.name);
    DMG_UCX_UCP(FIND_UCP)
    DMG_UCX_UCT(FIND_UCT)
    DMG_UCX_UCS(FIND_UCS)
    return is_found;
}

static void load_once(void)
{
    signal_actions saved;
    save_signals(&saved);
    if (load_libraries()) {
        dmg_ucx_library_prepare();
    }
    restore_signals(&saved);
}

dmg_status dmg_ucx_load(void)
{
    pthread_once(&loading.once, load_once);
    return loading.status == DMG_OK ? DMG_OK
                                    : dmg_error(loading.status,
                                                "loading UCX: %s: install it (Debian's package libucx0), or use "
                                                "another transport",
                                                loading.why);
}
