#include "core/base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* The one piece of process-wide state: where lines go. It is set before threads start. */
static dmg_log_sink current_sink;
static void *sink_context;
static dmg_log_level least_level = DMG_LOG_INFO;

void dmg_log_set_sink(dmg_log_sink sink, void *context, dmg_log_level least)
{
    current_sink = sink;
    sink_context = context;
    least_level = least;
}

void dmg_log(dmg_log_level level, const char *event, const char *format, ...)
{
    if (!current_sink || level < least_level) {
        return;
    }
    char line[1024];
    int used = snprintf(line, sizeof line, "%s ", event);
    if (used < 0 || (size_t)used >= sizeof line) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, arguments);
    va_end(arguments);
    current_sink(level, line, sink_context);
}
