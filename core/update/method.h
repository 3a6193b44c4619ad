/**
 * @file method.h
 * How an update travels that leaves a compute node's partition (DMG, section 4.3): one list of words for code, flags,
 * reports and documents.
 */
#ifndef DMG_CORE_UPDATE_METHOD_H
#define DMG_CORE_UPDATE_METHOD_H

typedef enum dmg_update_method {
    DMG_UPDATE_AUTO,        /**< not chosen yet */
    DMG_UPDATE_DIRECT,      /**< direct remote updates */
    DMG_UPDATE_VALRD_NODE,  /**< redistribution by value (ValRD): the memory node applies them */
    DMG_UPDATE_VALRD_OWNER, /**< ValRD: the compute node that has the partition receives and applies them; in sparse
                               iterations also those that it sends to itself */
    DMG_UPDATE_REFRD,       /**< redistribution by reference (RefRD): of edge segments, beside one of the others */
    DMG_UPDATE_METHODS
} dmg_update_method;

/** "auto", "direct", "valrd-node", "valrd-owner", "refrd". */
const char *dmg_update_method_name(dmg_update_method method);

#endif
