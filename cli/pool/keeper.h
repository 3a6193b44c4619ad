/**
 * @file keeper.h
 * A pool's keeper: the parent of its memory nodes, which nothing but waits for them, and puts down how each ended. Only
 * a parent learns that, and a node that is killed cannot tell it.
 *
 * `dmgraph pool start` is two processes: one that was called, and waits; and one that starts the nodes and then stays
 * as their keeper. It ends when the last node has. When it is killed the nodes go on, and why they end is not known.
 */
#ifndef DMG_CLI_POOL_KEEPER_H
#define DMG_CLI_POOL_KEEPER_H

#include "dmgraph/status.h"

/**
 * Become two processes, before there are threads: this returns in the new one, which ends with the one that was called
 * until dmg_pool_keeper_stay. That one passes signals on, waits, and ends with the new one's exit code. `*waiting` is
 * for dmg_pool_keeper_stay. DMG_ERR_IO, then in the process that was called.
 */
dmg_status dmg_pool_keeper_fork(int *waiting);

/**
 * The nodes are detached children of this process, and all was said: let the one that was called end with this code,
 * and be their keeper. `log` becomes the standard error.
 */
_Noreturn void dmg_pool_keeper_stay(int waiting, int exit_code, int record, int log, const char *name);

#endif
