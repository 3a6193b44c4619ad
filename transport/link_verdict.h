/**
 * @file link_verdict.h
 * What measurements of an emulated link prove: pass, fail, inconclusive, or that this machine cannot emulate it.
 *
 * A measurement is cut into short windows, since other programs take the processor away; windows in which that happened
 * say nothing. Too few clean ones are inconclusive, never a pass. What a machine does without the model bounds what it
 * can emulate.
 */
#ifndef DMG_TRANSPORT_LINK_VERDICT_H
#define DMG_TRANSPORT_LINK_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dmg_link_verdict {
    DMG_LINK_PASS,
    DMG_LINK_FAIL,
    DMG_LINK_INCONCLUSIVE,
    DMG_LINK_NOT_EMULABLE
} dmg_link_verdict;

/** Clean windows below which a measurement is inconclusive. */
#define DMG_LINK_CLEAN_WINDOWS 3
#define DMG_LINK_WINDOWS_MAX   64

typedef struct dmg_link_window {
    double value;  /**< nanoseconds, or a rate */
    bool is_clean; /**< the thread kept its processor */
} dmg_link_window;

/** A measurement and what it should show. */
typedef struct dmg_link_trial {
    bool is_latency; /**< values are nanoseconds; else rates at saturation */
    bool is_lenient; /**< rates may be off by a tenth: machines that many share */
    double expected;
    double host; /**< what the host does without the model: the least latency, the highest rate */
    const dmg_link_window *windows;
    uint32_t window_count;
} dmg_link_trial;

typedef struct dmg_link_finding {
    dmg_link_verdict verdict;
    double measured; /**< median of the clean windows; 0 when there is none */
    double error;    /**< (measured - expected) / expected */
    double gate;     /**< what the error may be at most */
    uint32_t clean_windows;
} dmg_link_finding;

/**
 * Judge a measurement. Other programs only ever slow things down: when the median is too slow but the quickest clean
 * window is right, the machine was disturbed and nothing is proven. Not emulable: a latency below three times the
 * machine's own, a rate above 0.8 of its own. Gates: 3 per cent for latencies from 1 us, 5 below; 2 per cent for rates,
 * 10 when lenient.
 */
dmg_link_finding dmg_link_judge(const dmg_link_trial *trial);

/** "pass", "fail", "inconclusive", "not emulable here". */
const char *dmg_link_verdict_name(dmg_link_verdict verdict);

#endif
