/**
 * @file log.h
 * One log line is one event with key=value pairs. The library never prints: lines go to a sink that the program sets.
 */
#ifndef DMG_CORE_BASE_LOG_H
#define DMG_CORE_BASE_LOG_H

typedef enum dmg_log_level { DMG_LOG_DEBUG, DMG_LOG_INFO, DMG_LOG_WARNING } dmg_log_level;

/** Receives one line without its newline. May be called from any thread. */
typedef void (*dmg_log_sink)(dmg_log_level level, const char *line, void *context);

/** Set the process's sink; NULL (the start value) drops every line. To be called before threads start. */
void dmg_log_set_sink(dmg_log_sink sink, void *context, dmg_log_level least);

/** Log one event: `event` is a short name such as "peer_lost"; format and arguments make "key=value key=value". */
void dmg_log(dmg_log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
