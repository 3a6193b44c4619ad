#include "cli/pool/identity.h"

#include "cli/pool/file.h"
#include "cli/pool/private_file.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Where it is. */
typedef struct identity_place {
    int folder;
    char name[NAME_MAX + 1]; /* in that folder */
    char path[PATH_MAX];     /* for people */
} identity_place;

/* The folder's parents are made as far as they are missing, as other programs do it in a home that is new. */
static dmg_status make_folders(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1;; at++) {
        char end = *at;
        if (end != '/' && end != '\0') {
            continue;
        }
        *at = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            return dmg_error_errno(DMG_ERR_IO, errno,
                                   "making the folder %s for the identity of this user (DMGRAPH_IDENTITY=FILE names "
                                   "another place)",
                                   part);
        }
        if (end == '\0') {
            return DMG_OK;
        }
        *at = end;
    }
}

/* A folder for nothing else, which is made, and checked. */
static dmg_status open_own_folder(const char *path, identity_place *place)
{
    struct stat facts;
    dmg_status status = make_folders(path);
    if (status != DMG_OK) {
        return status;
    }
    place->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place->folder < 0 || fstat(place->folder, &facts) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "opening %s", path);
    }
    return dmg_private_check(&facts, path);
}

/* The folder of the file that the user names may be any: the file itself has to be private. */
static dmg_status open_named(const char *path, identity_place *place)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (*name == '\0' || strlen(name) >= sizeof place->name || strlen(path) >= sizeof folder) {
        return dmg_error(DMG_ERR_ARGUMENT, "DMGRAPH_IDENTITY names no file: '%.200s'", path);
    }
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(name - path) : 1, slash ? path : ".");
    snprintf(place->name, sizeof place->name, "%s", name);
    snprintf(place->path, sizeof place->path, "%s", path);
    place->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return place->folder >= 0
               ? DMG_OK
               : dmg_error_errno(DMG_ERR_IO, errno, "opening the folder of the identity %s (DMGRAPH_IDENTITY)", path);
}

static dmg_status open_place(identity_place *place)
{
    const char *named = getenv("DMGRAPH_IDENTITY");
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char folder[PATH_MAX];
    int length;
    if (named && *named) {
        return open_named(named, place);
    }
    snprintf(place->name, sizeof place->name, "identity");
    if (state && state[0] == '/') {
        length = snprintf(folder, sizeof folder, "%s/dmgraph", state);
    } else if (home && home[0] == '/' && home[1] != '\0') {
        length = snprintf(folder, sizeof folder, "%s/.local/state/dmgraph", home);
    } else {
        dmg_pool_path(place->name, NULL, place->path, sizeof place->path);
        return dmg_pool_folder_open(true, &place->folder);
    }
    if (length >= (int)sizeof folder ||
        snprintf(place->path, sizeof place->path, "%s/%s", folder, place->name) >= (int)sizeof place->path) {
        return dmg_error(DMG_ERR_ARGUMENT, "the path of this user's identity is too long");
    }
    return open_own_folder(folder, place);
}

static dmg_status read_identity(const identity_place *place, uint8_t secret[DMG_SECRET_BYTES])
{
    char text[DMG_SECRET_TEXT_BYTES + 2];
    size_t bytes = 0;
    dmg_status status = dmg_private_file_read(place->folder, place->name, place->path, text, sizeof text - 1, &bytes);
    if (status != DMG_OK) {
        return status;
    }
    text[bytes] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return dmg_secret_read(text, secret) == DMG_OK
               ? DMG_OK
               : dmg_error(DMG_ERR_CORRUPT,
                           "%s is no identity: that is one line of %d hexadecimal digits. Who removes it loses the "
                           "right to what he has loaded",
                           place->path, 2 * DMG_SECRET_BYTES);
}

static dmg_status make_identity(const identity_place *place)
{
    uint8_t secret[DMG_SECRET_BYTES];
    char line[DMG_SECRET_TEXT_BYTES];
    dmg_status status = dmg_secret_make(secret);
    if (status != DMG_OK) {
        return status;
    }
    dmg_secret_write(secret, line);
    line[sizeof line - 1] = '\n';
    return dmg_private_file_write(place->folder, place->name, place->path, line, sizeof line);
}

dmg_status dmg_identity_find(uint8_t secret[DMG_SECRET_BYTES])
{
    identity_place place = {.folder = -1};
    dmg_status status = open_place(&place);
    if (status == DMG_OK) {
        status = read_identity(&place, secret);
        if (status == DMG_ERR_NOT_FOUND) {
            status = make_identity(&place);
            /* Another process may have been faster. */
            status = status == DMG_OK || status == DMG_ERR_EXISTS ? read_identity(&place, secret) : status;
        }
    }
    if (place.folder >= 0) {
        close(place.folder);
    }
    return status;
}
