/*
 * What UCX does beyond its contexts: it opens ports, and leaves files behind where processes were killed.
 *
 * UCX makes a file in /dev/shm, allocates its pages, and only then removes its name (with UCX_POSIX_USE_PROC_LINK=n:
 * not before its end). A process that is killed in between leaves the file, with its pages, forever. UCX never looks
 * for such a file again, since names are random, so what nobody holds is of no use, whichever program made it.
 */
#include "core/base/log.h"
#include "transport/leftovers.h"
#include "transport/transport.h"
#include "transport/ucx/ucx.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define FOLDER "/dev/shm"
#define PREFIX "ucx_shm_posix_"

void dmg_ucx_announce(const dmg_transport_parameters *parameters)
{
    dmg_ucx_settings settings;
    dmg_ucx_environment_announce();
    if (parameters == NULL || dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_MEMORY, &settings) != DMG_OK) {
        return;
    }
    if (settings.has_tcp_messages) {
        dmg_log(
            DMG_LOG_WARNING, "ucx_tcp_is_open",
            "messages=%s why=\"UCX's tcp opens a port in every node, compute nodes too, and writes there whatever is "
            "asked, by %s\" remedy=\"messages=socket\"",
            settings.messages, settings.trusts_network ? "anybody who can connect" : "any user of this machine");
    }
    if (settings.has_open_messages) {
        dmg_log(DMG_LOG_WARNING, "ucx_datagrams_are_open",
                "messages=%s why=\"UCX takes datagrams in every node, compute nodes too, from anybody on the RDMA "
                "network, and some end the process\" remedy=\"messages=socket or rc_verbs\"",
                settings.messages);
    }
}

void dmg_ucx_sweep(uint64_t since_s, dmg_transport_removed removed, void *context)
{
    const dmg_leftover_kind kind = {.since_s = since_s};
    DIR *folder = opendir(FOLDER);
    if (!folder) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[sizeof FOLDER + sizeof entry->d_name + 1];
        uint64_t bytes;
        snprintf(path, sizeof path, "%s/%s", FOLDER, entry->d_name);
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 && dmg_leftover_remove(path, &kind, &bytes)) {
            removed(context, path, bytes);
        }
    }
    closedir(folder);
}
