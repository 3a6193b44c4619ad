#include "cli/base/input_files.h"

#include "transport/link.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add(dmg_input_files *inputs, const char *path, const char *given, bool is_beside)
{
    struct stat facts;
    bool is_there = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &facts) == 0 : stat(path, &facts) == 0;
    if (is_there && (S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode) || S_ISFIFO(facts.st_mode)) &&
        inputs->count < DMG_INPUT_FILES_MAX) {
        inputs->files[inputs->count++] =
            (dmg_input_file){.device = facts.st_dev, .inode = facts.st_ino, .path = given, .is_beside = is_beside};
    }
}

void dmg_input_files_add(dmg_input_files *inputs, const char *path)
{
    add(inputs, path, path, false);
}

void dmg_input_files_add_graph(dmg_input_files *inputs, const char *path)
{
    /* Graphalytics: one graph in three files. */
    static const char *const suffixes[] = {".e", ".v", ".properties"};
    enum { SUFFIXES = sizeof suffixes / sizeof suffixes[0] };
    size_t length = strlen(path);
    dmg_input_files_add(inputs, path);
    for (size_t own = 0; own < SUFFIXES; own++) {
        size_t suffix = strlen(suffixes[own]);
        if (length <= suffix || strcmp(path + length - suffix, suffixes[own]) != 0) {
            continue;
        }
        for (size_t other = 0; other < SUFFIXES; other++) {
            char beside[PATH_MAX];
            int written = snprintf(beside, sizeof beside, "%.*s%s", (int)(length - suffix), path, suffixes[other]);
            if (other != own && written > 0 && written < (int)sizeof beside) {
                add(inputs, beside, path, true);
            }
        }
    }
}

void dmg_input_files_add_link(dmg_input_files *inputs, const char *name_or_path)
{
    dmg_link_profile *profile = malloc(sizeof *profile);
    if (profile && dmg_link_profile_load(name_or_path, profile) == DMG_OK) {
        add(inputs, profile->path, name_or_path, false);
    }
    free(profile);
}

const dmg_input_file *dmg_input_files_find(const dmg_input_files *inputs, const struct stat *facts)
{
    for (uint32_t index = 0; inputs && index < inputs->count; index++) {
        const dmg_input_file *file = &inputs->files[index];
        if (file->device == facts->st_dev && file->inode == facts->st_ino) {
            return file;
        }
    }
    return NULL;
}
