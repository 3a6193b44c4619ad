/**
 * @file address.h
 * Global addresses: a 16-bit memory-node id and a 48-bit offset in that node's segment (DMG, section 3.3).
 */
#ifndef DMG_TRANSPORT_ADDRESS_H
#define DMG_TRANSPORT_ADDRESS_H

#include <stdint.h>

typedef uint64_t dmg_address;

/** No object lies at offset 0 of node 0: the first bytes of every segment are its header. */
#define DMG_ADDRESS_NULL        ((dmg_address)0)
#define DMG_ADDRESS_OFFSET_BITS 48
#define DMG_ADDRESS_OFFSET_MASK ((UINT64_C(1) << DMG_ADDRESS_OFFSET_BITS) - 1)

static inline dmg_address dmg_address_make(uint16_t node, uint64_t offset)
{
    return ((uint64_t)node << DMG_ADDRESS_OFFSET_BITS) | (offset & DMG_ADDRESS_OFFSET_MASK);
}

static inline uint16_t dmg_address_node(dmg_address address)
{
    return (uint16_t)(address >> DMG_ADDRESS_OFFSET_BITS);
}

static inline uint64_t dmg_address_offset(dmg_address address)
{
    return address & DMG_ADDRESS_OFFSET_MASK;
}

#endif
