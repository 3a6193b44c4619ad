/**
 * @file error.h
 * Setting the error context that dmg_error_message() reads.
 *
 * It is set once, where the error is decided; callers above pass the status on, or prefix what they were doing.
 */
#ifndef DMG_CORE_BASE_ERROR_H
#define DMG_CORE_BASE_ERROR_H

#include "dmgraph/status.h"

/** Leave a sentence in this thread's error context and return the status, so that callers write `return
 * dmg_error(...)`. */
dmg_status dmg_error(dmg_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Put "PREFIX: " before the sentence that is there; returns the status. For context that only the caller knows. */
dmg_status dmg_error_prefix(dmg_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Like dmg_error, and appends ": " and the text of the errno value. */
dmg_status dmg_error_errno(dmg_status status, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The errno value of this thread's last error; 0 when it was not one of the system's. */
int dmg_error_number(void);

/** With the terminating zero. Longer sentences are cut. */
#define DMG_ERROR_SENTENCE_BYTES 1024

/** An error with its context, kept while other calls may replace that: across a clean-up, or from one thread to
 * another. Zeroed: none. */
typedef struct dmg_kept_error {
    dmg_status status;
    int errno_value;
    char sentence[DMG_ERROR_SENTENCE_BYTES];
} dmg_kept_error;

/** Keep an error, with this thread's context; nothing when the status is DMG_OK, or when one is kept already. */
void dmg_error_keep(dmg_kept_error *kept, dmg_status status);
/** The kept error becomes this thread's. Returns its status; DMG_OK, and does nothing, when there is none. */
dmg_status dmg_error_restore(const dmg_kept_error *kept);

#endif
