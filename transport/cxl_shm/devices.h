/**
 * @file devices.h
 * What can stand between a process and the memory that it shares, beside the processor: nothing, in a program or a
 * library. Tests of software coherence link a table of their own in place of the empty one (devices.c): a simulated
 * cache of lines, and leaving out single steps.
 */
#ifndef DMG_TRANSPORT_CXL_SHM_DEVICES_H
#define DMG_TRANSPORT_CXL_SHM_DEVICES_H

#include "transport/cxl_shm/coherence.h"

typedef struct dmg_shm_device_table {
    /** Take what a transport string says of devices. NULL, with the rest: there are none. */
    dmg_status (*parse)(const dmg_transport_parameters *parameters, dmg_shm_coherence *coherence);
    /** What was chosen, to stand behind other facts: "; through ..."; empty when nothing was. */
    void (*describe)(const dmg_shm_coherence *coherence, char *text, size_t capacity);

    dmg_status (*cache_create)(char *memory, uint64_t bytes, dmg_shm_line_cache **cache);
    void (*cache_destroy)(dmg_shm_line_cache *cache);
    char *(*cache_pointer)(const dmg_shm_line_cache *cache);
    void (*cache_store)(dmg_shm_line_cache *cache, uint64_t offset, const void *from, uint64_t bytes, uint64_t random);
    void (*cache_load)(dmg_shm_line_cache *cache, uint64_t offset, void *to, uint64_t bytes, uint64_t random);
    void (*cache_fetch)(dmg_shm_line_cache *cache, uint64_t line, uint64_t random);
    void (*cache_mark_written)(dmg_shm_line_cache *cache, uint64_t line);
    void (*cache_write_back)(dmg_shm_line_cache *cache, uint64_t line, bool stays);
} dmg_shm_device_table;

extern const dmg_shm_device_table dmg_shm_devices;
/** The keys of transport strings that this backend takes, with those of its devices; NULL-terminated. */
extern const char *const dmg_shm_parameter_keys[];

#endif
