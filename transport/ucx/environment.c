/**
 * @file environment.c
 * Which of the user's UCX_ variables reach UCX.
 *
 * A context of UCX takes over every UCX_ variable that it knows. Some of these abort a process (UCX_PROTO_ENABLE=y,
 * UCX_SOCKADDR_TLS_PRIORITY=rdmacm), with others its calls never return (UCX_TCP_PORT_RANGE of a few ports,
 * UCX_ATOMIC_MODE=device), and new versions bring new ones. So the list below is of those that pass; it is no list of
 * those that are known to hurt.
 *
 * UCX reads some variables when it is loaded (api.h). A program therefore takes what may not pass out of its
 * environment as it starts; what it starts inherits the clean one. In a library the environment belongs to the host
 * program, which may have threads that read it: there such variables are an error. Files (ucx.conf) that UCX reads
 * itself cannot be taken from it: they are an error everywhere.
 */
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/ucx/ucx.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX      "UCX_"
#define PREFIX_SIZE (sizeof PREFIX - 1)
/** Names of what was left out, until somebody says so. */
#define IGNORED     "DMGRAPH_IGNORED_VARIABLES"
#define NAMES_BYTES 1024
#define LINE_BYTES  1024
#define FILE_NAME   "ucx.conf"

extern char **environ;

/** What passes. */
static const char *const passing[] = {
    /* What UCX says. It goes to dmgraph's log, whatever its level. */
    "LOG_LEVEL",
    "LOG_FILE_FILTER",
    "WARN_UNUSED_ENV_VARS",
    /* "none" keeps UCX's signal handlers out of the process from its start; otherwise they are taken off again. */
    "HANDLE_ERRORS",
    /* Hooks into the process's memory functions, read when UCX is loaded. Sanitizers and allocators need them off;
       nothing here depends on them. */
    "MEM_EVENTS",
    "MEM_LOG_LEVEL",
    "MEM_MALLOC_HOOKS",
    "MEM_MALLOC_RELOC",
    "MEM_MMAP_HOOK_MODE",
    /* Where an installation has the parts of UCX that are loaded later. */
    "MODULE_DIR",
    /* How processes reach each other's shared memory; containers without access to each other's /proc need it. */
    "POSIX_USE_PROC_LINK",
    NULL,
};

/** What describes the network of RDMA devices, and nothing of what is done over them, behind any of the prefixes. */
static const char *const network_prefixes[] = {"IB_", "RC_",       "RC_VERBS_", "RC_MLX5_", "DC_",
                                               "UD_", "UD_VERBS_", "UD_MLX5_",  "DC_MLX5_", NULL};
static const char *const network[] = {
    "ADDR_TYPE",
    "GID_INDEX",
    "HOP_LIMIT",
    "IS_GLOBAL",
    "LID_PATH_BITS",
    "PATH_MTU",
    "PKEY",
    "ROCE_LOCAL_SUBNET",
    "ROCE_PATH_FACTOR",
    "SL",
    "SUBNET_PREFIX",
    "ROCE_SUBNET_PREFIX_LEN",
    "TRAFFIC_CLASS",
    "DEVICE_SPECS",
    "PCI_RELAXED_ORDERING",
    NULL,
};

/** What is set through UCX's interface for every context, so that the environment has no say: no harm in a host. */
static const char *const overridden[] = {"TLS", "NET_DEVICES", "MEMTYPE_CACHE", NULL};

static bool is_in(const char *const *list, const char *name)
{
    for (; *list != NULL; list++) {
        if (strcmp(*list, name) == 0) {
            return true;
        }
    }
    return false;
}

/** `name` stands behind the prefix. */
static bool passes(const char *name)
{
    for (const char *const *prefix = network_prefixes; *prefix != NULL; prefix++) {
        size_t length = strlen(*prefix);
        if (strncmp(name, *prefix, length) == 0 && is_in(network, name + length)) {
            return true;
        }
    }
    return is_in(passing, name);
}

/** The name in an entry "NAME=VALUE" of the environment, when it is one of UCX's. */
static bool take_name(const char *entry, char *name, size_t capacity)
{
    size_t length = strcspn(entry, "=");
    if (strncmp(entry, PREFIX, PREFIX_SIZE) != 0 || length >= capacity) {
        return false;
    }
    memcpy(name, entry, length);
    name[length] = '\0';
    return true;
}

static void append(char *list, const char *name)
{
    size_t used = strlen(list);
    snprintf(list + used, NAMES_BYTES - used, "%s%s", used != 0 ? ", " : "", name);
}

void dmg_ucx_environment_clean(void)
{
    char names[NAMES_BYTES] = "";
    char name[256];
    for (char **entry = environ; *entry != NULL;) {
        if (!take_name(*entry, name, sizeof(name)) || passes(name + PREFIX_SIZE)) {
            entry++;
            continue;
        }
        append(names, name);
        unsetenv(name); /* which moves the next one here */
    }
    if (names[0] != '\0') {
        (void)setenv(IGNORED, names, 1);
    }
}

void dmg_ucx_environment_announce(void)
{
    const char *names = getenv(IGNORED);
    if (names != NULL) {
        dmg_log(DMG_LOG_WARNING, "ucx_variables_ignored",
                "names=\"%s\" why=\"dmgraph sets UCX itself\" remedy=\"unset them; docs/hardware.md lists those that "
                "pass\"",
                names);
        unsetenv(IGNORED); /* said once, and not by what is started from here */
    }
}

/* ---- what cannot be taken from UCX ---- */

static dmg_status check_variables(void)
{
    char name[256];
    for (char **entry = environ; *entry != NULL; entry++) {
        if (take_name(*entry, name, sizeof(name)) && !passes(name + PREFIX_SIZE) &&
            !is_in(overridden, name + PREFIX_SIZE)) {
            return dmg_error(DMG_ERR_ARGUMENT,
                             "opening UCX: the environment has %s, which UCX would take over, and dmgraph sets UCX "
                             "itself: unset it (docs/hardware.md lists the variables that pass)",
                             name);
        }
    }
    return DMG_OK;
}

static dmg_status check_file(const char *folder)
{
    char path[PATH_MAX];
    char line[LINE_BYTES];
    if (snprintf(path, sizeof(path), "%s/" FILE_NAME, folder) >= (int)sizeof(path)) {
        return DMG_OK; /* nor does UCX find it */
    }
    FILE *file = fopen(path, "re");
    dmg_status status = DMG_OK;
    while (file != NULL && status == DMG_OK && fgets(line, sizeof(line), file) != NULL) {
        char *name = line + strspn(line, " \t");
        name[strcspn(name, " \t=:\r\n")] = '\0';
        if (strncmp(name, PREFIX, PREFIX_SIZE) == 0 && !passes(name + PREFIX_SIZE) &&
            !is_in(overridden, name + PREFIX_SIZE)) {
            status = dmg_error(DMG_ERR_ARGUMENT,
                               "opening UCX: the file %s sets %s, which UCX takes over, and dmgraph sets UCX itself: "
                               "remove the line (docs/hardware.md lists the variables that pass)",
                               path, name);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return status;
}

/** The folders in which UCX looks for its file when it is loaded. The working directory was that of the program's
 * start; a node of a pool starts in "/". */
static dmg_status check_files(void)
{
    char beside[PATH_MAX] = "";
    Dl_info library;
    if (dladdr((const void *)(uintptr_t)ucp_get_version_string, &library) != 0 && library.dli_fname != NULL) {
        const char *slash = strrchr(library.dli_fname, '/');
        int length = slash != NULL ? (int)(slash - library.dli_fname) : 0;
        if (snprintf(beside, sizeof(beside), "%.*s/../etc", length, library.dli_fname) >= (int)sizeof(beside)) {
            beside[0] = '\0';
        }
    }
    const char *folders[] = {"/etc/ucx", beside, getenv("HOME"), "."};
    dmg_status status = DMG_OK;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && status == DMG_OK; i++) {
        if (folders[i] != NULL && folders[i][0] != '\0') {
            status = check_file(folders[i]);
        }
    }
    return status;
}

dmg_status dmg_ucx_load_checked(void)
{
    dmg_status status = check_variables();
    if (status == DMG_OK) {
        status = dmg_ucx_load();
    }
    return status == DMG_OK ? check_files() : status;
}
