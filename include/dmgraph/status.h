/**
 * @file status.h
 * The one status type of dmgraph, and the context of the last error.
 *
 * A function that can fail returns a dmg_status. Where the failure was decided, it also left one sentence in a
 * thread-local context: what was being done, to what, why it failed, and what to do about it.
 */
#ifndef DMGRAPH_STATUS_H
#define DMGRAPH_STATUS_H

#if defined(__GNUC__)
#define DMG_API __attribute__((visibility("default")))
#else
#define DMG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What became of a call. The values are stable: they travel between processes. */
typedef enum dmg_status {
    DMG_OK = 0,
    DMG_ERR_ARGUMENT = 1,     /**< the caller asked for something that makes no sense */
    DMG_ERR_IO = 2,           /**< the operating system refused a file, a socket or a mapping */
    DMG_ERR_FORMAT = 3,       /**< an input file is malformed */
    DMG_ERR_MEMORY = 4,       /**< this process or a memory node is out of memory */
    DMG_ERR_LIMIT = 5,        /**< a limit of dmgraph or a budget of the user would be exceeded */
    DMG_ERR_PEER = 6,         /**< a memory node or a compute node died, or does not answer */
    DMG_ERR_PROTOCOL = 7,     /**< a peer sent something that is not a message of ours */
    DMG_ERR_NOT_FOUND = 8,    /**< no such name */
    DMG_ERR_EXISTS = 9,       /**< the name is taken */
    DMG_ERR_UNSUPPORTED = 10, /**< this machine, backend or build cannot do it */
    DMG_ERR_CORRUPT = 11,     /**< stored data contradicts itself */
    DMG_ERR_CANCELLED = 12,   /**< stopped before it was done */
    DMG_ERR_VERIFY = 13,      /**< a result differs from the serial computation */
    DMG_ERR_INTERNAL = 14,    /**< a bug in dmgraph */
    DMG_ERR_DENIED = 15,      /**< it belongs to somebody else */
    DMG_STATUS_COUNT
} dmg_status;

/** The name of a status, for example "DMG_ERR_PEER"; never NULL. Thread-safe. */
DMG_API const char *dmg_status_name(dmg_status status);

/**
 * The sentence that describes this thread's last error; "" when there was none. Owned by the library, valid until the
 * next failing call in this thread.
 */
DMG_API const char *dmg_error_message(void);

#ifdef __cplusplus
}
#endif

#endif
