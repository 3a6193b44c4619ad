#include "cli/perf/check.h"
#include "transport/link_verdict.h"

#include <math.h>
#include <stdio.h>

static bool agree(const dmg_perf_figures *figures, double a, double b)
{
    return fabs(a - b) <= DMG_PERF_AGREEMENT * fmax(a, b) + figures->step_ns;
}

static bool all_agree(const dmg_perf_figures *figures, double rate_ns)
{
    return agree(figures, figures->median_ns, rate_ns) && agree(figures, figures->median_ns, figures->host_ns) &&
           agree(figures, rate_ns, figures->host_ns);
}

/* Slow operations make a mean longer than the median. A clock that is read too early makes the mean shorter than the
 * chain, which nobody timed. */
static bool is_uneven(const dmg_perf_figures *figures)
{
    double least = (1 - DMG_PERF_AGREEMENT) * figures->clean_rate_ns - figures->step_ns;
    return figures->median_ns < figures->clean_rate_ns && figures->clean_mean_ns >= least;
}

/* All that was measured in turns agrees, and the chain is right whatever the clock does; the self-test was at another
 * time. */
static bool has_changed(const dmg_perf_figures *figures)
{
    return agree(figures, figures->median_ns, figures->clean_rate_ns) &&
           agree(figures, figures->clean_mean_ns, figures->clean_rate_ns);
}

dmg_perf_verdict dmg_perf_judge(const dmg_perf_figures *figures)
{
    if (all_agree(figures, figures->rate_ns)) {
        return DMG_PERF_AGREES;
    }
    if (figures->clean_windows < DMG_LINK_CLEAN_WINDOWS) {
        return DMG_PERF_UNDECIDED;
    }
    if (all_agree(figures, figures->clean_rate_ns) || has_changed(figures)) {
        return DMG_PERF_DISTURBED;
    }
    if (figures->is_answered) {
        return is_uneven(figures) ? DMG_PERF_UNEVEN : DMG_PERF_UNDECIDED;
    }
    return is_uneven(figures) && agree(figures, figures->median_ns, figures->host_ns) ? DMG_PERF_UNEVEN
                                                                                      : DMG_PERF_DIFFERS;
}

const char *dmg_perf_verdict_name(dmg_perf_verdict verdict)
{
    static const char *const names[DMG_PERF_VERDICTS] = {"agrees", "disturbed", "uneven", "undecided", "differs"};
    return names[verdict];
}

void dmg_perf_check_sentence(const dmg_perf_figures *figures, dmg_perf_verdict verdict, char *text, size_t capacity)
{
    char why[192];
    uint32_t clean = figures->clean_windows;
    if (verdict == DMG_PERF_DISTURBED && has_changed(figures) && !all_agree(figures, figures->clean_rate_ns)) {
        snprintf(why, sizeof why, "1/rate is %.0f ns undisturbed, but the self-test saw the memory %s busy",
                 figures->clean_rate_ns, figures->host_ns < figures->median_ns ? "less" : "more");
    } else if (verdict == DMG_PERF_DISTURBED) {
        snprintf(why, sizeof why,
                 "the processor was away, and 1/rate is %.0f ns in the %u of %u windows where it was not",
                 figures->clean_rate_ns, clean, figures->windows);
    } else if (verdict == DMG_PERF_UNEVEN) {
        snprintf(why, sizeof why, "some take much longer than others, the mean is %.0f ns", figures->clean_mean_ns);
    } else if (verdict == DMG_PERF_UNDECIDED && clean < DMG_LINK_CLEAN_WINDOWS && !figures->is_answered) {
        snprintf(why, sizeof why,
                 "undecided, the thread kept its processor in %u of %u windows; measure longer, or on an idle machine",
                 clean, figures->windows);
    } else if (verdict == DMG_PERF_UNDECIDED) {
        snprintf(why, sizeof why, "undecided, another process answers, which may sleep or wait for a processor");
    } else {
        snprintf(why, sizeof why, "the mean is %.0f ns and 1/rate %.0f ns undisturbed; do not rely on these latencies",
                 figures->clean_mean_ns, figures->clean_rate_ns);
    }
    snprintf(text, capacity, "p50 %.0f ns, 1/rate %.0f ns, self-test %.0f ns, more than %.0f %% apart: %s",
             figures->median_ns, figures->rate_ns, figures->host_ns, 100 * DMG_PERF_AGREEMENT, why);
}
