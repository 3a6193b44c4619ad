/*
 * Named segments that memory nodes left behind.
 *
 * A memory node removes the file that it made at its end. When it is killed it cannot; then the file's mode tells that
 * a memory node made it: nobody else has use for it, and the file has it from the moment that it exists. What the user
 * had made before has the user's mode, and stays. Where the file is nobody wrote down, but it is in memory: all mounts
 * of such file systems are walked through.
 */
#include "transport/leftovers.h"
#include "transport/cxl_shm/shm.h"

#include <fts.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

/** Bounds the walk: deeper than anybody puts a segment. */
#define DEPTH_MAX 8

/** Segments are made in pages of this size or a multiple. */
#define PAGE_BYTES (UINT64_C(2) << 20)

static dmg_leftover_kind made_by_a_node(uint64_t since_s)
{
    return (dmg_leftover_kind){.mode = DMG_SHM_SEGMENT_MODE, .unit_bytes = PAGE_BYTES, .since_s = since_s};
}

static void walk(const char *mount, const dmg_leftover_kind *kind, dmg_transport_removed removed, void *context)
{
    char *roots[] = {(char *)(uintptr_t)mount, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    if (!tree) {
        return;
    }
    for (FTSENT *entry = fts_read(tree); entry; entry = fts_read(tree)) {
        uint64_t bytes;
        if (entry->fts_level > DEPTH_MAX) {
            fts_set(tree, entry, FTS_SKIP);
        } else if (entry->fts_info == FTS_F && dmg_leftover_remove(entry->fts_path, kind, &bytes)) {
            removed(context, entry->fts_path, bytes);
        }
    }
    fts_close(tree);
}

void dmg_shm_sweep(uint64_t since_s, dmg_transport_removed removed, void *context)
{
    const dmg_leftover_kind kind = made_by_a_node(since_s);
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    if (!mounts) {
        return;
    }
    struct mntent mount;
    char text[4096];
    while (getmntent_r(mounts, &mount, text, sizeof text)) {
        if (strcmp(mount.mnt_type, "tmpfs") == 0 || strcmp(mount.mnt_type, "hugetlbfs") == 0) {
            walk(mount.mnt_dir, &kind, removed, context);
        }
    }
    endmntent(mounts);
}

bool dmg_shm_remove_leftover(const char *path)
{
    const dmg_leftover_kind kind = made_by_a_node(0);
    uint64_t bytes;
    return dmg_leftover_remove(path, &kind, &bytes);
}
