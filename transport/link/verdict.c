#include "transport/link_verdict.h"

#include <math.h>
#include <stdlib.h>

#define FLOORS_A_LATENCY  3
#define CEILING_PART      0.8
#define MICROSECOND_NS    1000
#define GATE_LONG         0.03
#define GATE_SHORT        0.05
#define GATE_RATE         0.02
#define GATE_RATE_LENIENT 0.10

const char *dmg_link_verdict_name(dmg_link_verdict verdict)
{
    static const char *const names[] = {"pass", "fail", "inconclusive", "not emulable here"};
    return names[verdict];
}

static int compare_values(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Median of the clean windows, and the quickest of them: the least latency, the highest rate. */
static double clean_median(const dmg_link_trial *trial, uint32_t *count, double *quickest)
{
    double values[DMG_LINK_WINDOWS_MAX];
    *count = 0;
    for (uint32_t i = 0; i < trial->window_count && i < DMG_LINK_WINDOWS_MAX; i++) {
        if (trial->windows[i].is_clean) {
            values[(*count)++] = trial->windows[i].value;
        }
    }
    if (*count == 0) {
        return 0;
    }
    qsort(values, *count, sizeof *values, compare_values);
    *quickest = values[trial->is_latency ? 0 : *count - 1];
    return *count % 2 ? values[*count / 2] : (values[*count / 2 - 1] + values[*count / 2]) / 2;
}

static double gate_of(const dmg_link_trial *trial)
{
    if (trial->is_latency) {
        return trial->expected >= MICROSECOND_NS ? GATE_LONG : GATE_SHORT;
    }
    return trial->is_lenient ? GATE_RATE_LENIENT : GATE_RATE;
}

dmg_link_finding dmg_link_judge(const dmg_link_trial *trial)
{
    dmg_link_finding finding = {.gate = gate_of(trial)};
    double quickest = 0;
    finding.measured = clean_median(trial, &finding.clean_windows, &quickest);
    finding.error = (finding.measured - trial->expected) / trial->expected;
    bool is_beyond_host = trial->is_latency ? trial->expected < FLOORS_A_LATENCY * trial->host
                                            : trial->expected > CEILING_PART * trial->host;
    if (is_beyond_host) {
        finding.verdict = DMG_LINK_NOT_EMULABLE;
    } else if (finding.clean_windows < DMG_LINK_CLEAN_WINDOWS) {
        finding.verdict = DMG_LINK_INCONCLUSIVE;
    } else if (fabs(finding.error) <= finding.gate) {
        finding.verdict = DMG_LINK_PASS;
    } else {
        bool is_slow = trial->is_latency ? finding.error > 0 : finding.error < 0;
        bool is_right_at_best = fabs(quickest - trial->expected) <= finding.gate * trial->expected;
        finding.verdict = is_slow && is_right_at_best ? DMG_LINK_INCONCLUSIVE : DMG_LINK_FAIL;
    }
    return finding;
}
