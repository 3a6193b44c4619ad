#include "cli/identity.h"

#include "cli/pool_file.h"
#include "cli/private_file.h"
#include "cli/token.h"
#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Where it is. */
typedef struct identity_place {
    int folder; /* to be closed when it is not AT_FDCWD */
    char name[PATH_MAX];
    char path[PATH_MAX + 16];
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

static dmg_status find_place(identity_place *place)
{
    const char *named = getenv("DMGRAPH_IDENTITY");
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char folder[PATH_MAX];
    bool fits = true;
    place->folder = AT_FDCWD;
    snprintf(place->name, sizeof place->name, "identity");
    if (named && *named) {
        fits = strlen(named) < sizeof place->name;
        snprintf(place->name, sizeof place->name, "%s", named);
        snprintf(place->path, sizeof place->path, "%s", place->name);
        return fits ? DMG_OK : dmg_error(DMG_ERR_ARGUMENT, "DMGRAPH_IDENTITY names a path that is too long");
    }
    if (state && state[0] == '/') {
        fits = snprintf(folder, sizeof folder, "%s/dmgraph", state) < (int)sizeof folder;
    } else if (home && home[0] == '/' && home[1] != '\0') {
        fits = snprintf(folder, sizeof folder, "%s/.local/state/dmgraph", home) < (int)sizeof folder;
    } else {
        dmg_pool_path("identity", NULL, place->path, sizeof place->path);
        return dmg_pool_folder_open(true, &place->folder);
    }
    if (!fits) {
        return dmg_error(DMG_ERR_ARGUMENT, "the path of this user's identity is too long");
    }
    snprintf(place->path, sizeof place->path, "%s/identity", folder);
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
    char text[DMG_SECRET_TEXT_BYTES + 1];
    dmg_status status = dmg_secret_make(secret);
    if (status == DMG_OK) {
        dmg_secret_write(secret, text);
        text[DMG_SECRET_TEXT_BYTES - 1] = '\n';
        /* The temporary file lies in the same folder: a path is cut into folder and name. */
        char folder[PATH_MAX];
        const char *slash = strrchr(place->name, '/');
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - place->name) + 1 : 1, slash ? place->name : ".");
        int opened = place->folder != AT_FDCWD ? place->folder : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (opened < 0) {
            return dmg_error_errno(DMG_ERR_IO, errno, "opening %s for the identity of this user", folder);
        }
        status =
            dmg_private_file_write(opened, slash ? slash + 1 : place->name, place->path, text, DMG_SECRET_TEXT_BYTES);
        if (opened != place->folder) {
            close(opened);
        }
    }
    return status;
}

dmg_status dmg_identity_find(uint8_t secret[DMG_SECRET_BYTES])
{
    identity_place place;
    dmg_status status = find_place(&place);
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
