/**
 * @file job_pass.h
 * What this program's nodes show when they join a job: made by the launcher, and told to its compute nodes over their
 * control sockets.
 */
#ifndef DMG_CLI_POOL_JOB_PASS_H
#define DMG_CLI_POOL_JOB_PASS_H

#include "core/pool/rights.h"

#include <jansson.h>

/**
 * Make the pass of a new job of this user. With `shows_identity`, what the job keeps is this user's: then the identity
 * is read or made (dmg_identity_find), and shown as the pool of this token is to see it.
 */
dmg_status dmg_job_pass_make(bool shows_identity, const uint8_t token[DMG_TOKEN_BYTES], dmg_job_pass *pass);

json_t *dmg_job_pass_json(const dmg_job_pass *pass);
/** DMG_ERR_PROTOCOL for what is none. */
dmg_status dmg_job_pass_from_json(json_t *object, dmg_job_pass *pass);

#endif
