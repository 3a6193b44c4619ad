/**
 * @file watch.h
 * How long others have been silent, as one sees it who may have been stopped himself.
 *
 * Whoever waits for signs of life looks at the clock now and then. When all of a run is stopped and continued (a batch
 * system's suspend, a laptop's lid), or when the machine is so busy that the watcher does not come to its turn, the
 * time between two looks says nothing about the others. So a watch is a clock that stands still meanwhile: a look adds
 * what has passed since the last one, but at most a tenth of the timeout; and a gap of half a timeout or more counts as
 * an absence, after which everybody has a full timeout again.
 *
 * Signs of life are stamped with the watch's own time, and silence is the difference of two such stamps. Silence is
 * thus decided, and explained to people, from one reading of the real clock: that of the last look. What came in must
 * be taken in before or after the look that judges it, but never only after the judgement.
 *
 * Pure: it reads no clock itself. Not thread-safe.
 */
#ifndef DMG_CORE_BASE_WATCH_H
#define DMG_CORE_BASE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_watch {
    uint64_t timeout_ns;
    uint64_t clock_ns; /**< the real clock at the last look */
    uint64_t now_ns;   /**< the watch's own time: since some moment, without absences. For stamps */
    uint64_t fresh_ns; /**< where the last absence ended, in the watch's time */
} dmg_watch;

/** Begin to watch: `clock_ns` is the monotonic clock now, and the first stamp. */
void dmg_watch_start(dmg_watch *watch, uint64_t timeout_ns, uint64_t clock_ns);

/** How often to look: 20 times a timeout, and at most once a millisecond. Looks that are twice as rare lose time. */
uint64_t dmg_watch_interval_ns(const dmg_watch *watch);

/** Take note of the time. */
void dmg_watch_look(dmg_watch *watch, uint64_t clock_ns);

/** How long somebody has been silent at the last look, who gave the last sign of life at `heard_ns` (a `now_ns`). */
uint64_t dmg_watch_silence_ns(const dmg_watch *watch, uint64_t heard_ns);

/** Whether that is longer than the timeout. */
bool dmg_watch_is_over(const dmg_watch *watch, uint64_t heard_ns);

/** For a single wait that began with the watch: look, and say whether it has been longer than the timeout. */
bool dmg_watch_wait_is_over(dmg_watch *watch, uint64_t clock_ns);

#endif
