/**
 * @file wrap.h
 * Putting the link model between a client's channels and their backend: the one way in for the layer above.
 */
#ifndef DMG_TRANSPORT_LINK_WRAP_H
#define DMG_TRANSPORT_LINK_WRAP_H

#include "transport/backend.h"
#include "transport/link.h"

/**
 * Put an emulated link around what a client's channels are opened over. The client can send messages already; channels
 * that are open stay as they are.
 *
 * @param client            for messages, and for channels that measure what the model itself costs
 * @param settings          of the link; copied
 * @param[in,out] capabilities  of the client: says afterwards what was chosen, and who executes atomics over this link
 * @param[in,out] lower     what is wrapped, and then the wrapping, which owns it: closing that closes both. Unchanged
 *                          on failure
 * @return DMG_OK; DMG_ERR_ARGUMENT for settings that are none; DMG_ERR_UNSUPPORTED when a memory node is not on this
 *         machine; DMG_ERR_MEMORY, DMG_ERR_PEER
 */
dmg_status dmg_link_wrap(dmg_client *client, const dmg_link_settings *settings, dmg_capabilities *capabilities,
                         dmg_backend_client **lower);

#endif
