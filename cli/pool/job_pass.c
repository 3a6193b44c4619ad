#include "cli/pool/job_pass.h"

#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "cli/pool/identity.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A user directory may have long entries. */
#define ENTRY_BYTES 16384

/* For people, so that nothing of it has to succeed. */
static void claim(dmg_pool_owner *owner)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char *room = malloc(ENTRY_BYTES);
    owner->user = (uint32_t)geteuid();
    if (room && getpwuid_r(geteuid(), &entry, room, ENTRY_BYTES, &found) == 0 && found) {
        snprintf(owner->user_name, sizeof owner->user_name, "%s", found->pw_name);
    }
    free(room);
    if (gethostname(owner->host, sizeof owner->host) != 0) {
        owner->host[0] = '\0';
    }
    owner->host[sizeof owner->host - 1] = '\0';
}

dmg_status dmg_job_pass_make(bool shows_identity, const uint8_t token[DMG_TOKEN_BYTES], dmg_job_pass *pass)
{
    uint8_t identity[DMG_SECRET_BYTES];
    memset(pass, 0, sizeof *pass);
    claim(&pass->owner);
    dmg_status status = dmg_secret_make(pass->secret);
    if (status == DMG_OK && shows_identity) {
        status = dmg_identity_find(identity);
        if (status == DMG_OK) {
            dmg_identity_show(identity, token, pass->owner.identity);
        }
    }
    return status;
}

json_t *dmg_job_pass_json(const dmg_job_pass *pass)
{
    char secret[DMG_SECRET_TEXT_BYTES];
    char identity[DMG_SECRET_TEXT_BYTES];
    dmg_secret_write(pass->secret, secret);
    dmg_secret_write(pass->owner.identity, identity);
    return json_pack("{s:s, s:s, s:I, s:o, s:o}", "secret", secret, "identity", identity, "user",
                     (json_int_t)pass->owner.user, "user_name", dmg_json_text(pass->owner.user_name), "host",
                     dmg_json_text(pass->owner.host));
}

dmg_status dmg_job_pass_from_json(json_t *object, dmg_job_pass *pass)
{
    const char *secret = NULL, *identity = NULL, *user_name = NULL, *host = NULL;
    json_int_t user = 0;
    memset(pass, 0, sizeof *pass);
    dmg_status status = dmg_control_unpack(object, "{s:s, s:s, s:I, s:s, s:s}", "secret", &secret, "identity",
                                           &identity, "user", &user, "user_name", &user_name, "host", &host);
    if (status == DMG_OK) {
        status = dmg_secret_read(secret, pass->secret);
    }
    if (status == DMG_OK) {
        status = dmg_secret_read(identity, pass->owner.identity);
    }
    if (status == DMG_OK) {
        pass->owner.user = (uint32_t)user;
        snprintf(pass->owner.user_name, sizeof pass->owner.user_name, "%s", user_name);
        snprintf(pass->owner.host, sizeof pass->owner.host, "%s", host);
    }
    return status;
}
