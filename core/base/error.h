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

/** Leave the error that another thread had, with its errno value; returns the status. */
dmg_status dmg_error_restore(dmg_status status, int errno_value, const char *sentence);

#endif
