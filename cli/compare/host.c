/* The machine that a comparison runs on: what it is, and how much of it other programs leave. */
#include "cli/compare/compare.h"
#include "core/base/topology.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define PROBE_NS  UINT64_C(200000000)
#define CORES_MAX 256

/* ---- how much is left ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/** Compute for a while, as a thread does that waits for a link; returns what it got of that time. */
static void *probe(void *share)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    uint64_t now = start;
    while (now - start < PROBE_NS) {
        now = clock_ns(CLOCK_MONOTONIC);
    }
    *(double *)share = (double)clock_ns(CLOCK_THREAD_CPUTIME_ID) / (double)(now - start);
    return NULL;
}

/** What a thread on each core gets of it, 0 to 1. A load average would still tell of our own last comparison. */
static double measure_share(uint32_t cores)
{
    pthread_t threads[CORES_MAX];
    double shares[CORES_MAX];
    uint32_t wanted = cores < CORES_MAX ? cores : CORES_MAX;
    uint32_t started = 0;
    while (started < wanted && pthread_create(&threads[started], NULL, probe, &shares[started]) == 0) {
        started++;
    }
    double sum = 0;
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        sum += shares[i];
    }
    return started > 0 ? sum / started : 1;
}

/* ---- what it is ---- */

static void read_processor(char *text, size_t capacity)
{
    char line[512];
    snprintf(text, capacity, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon && colon[1] == ' ') {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, capacity, "%.100s", colon + 2);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

void dmg_compare_describe_host(dmg_compare *compare)
{
    char processor[128];
    struct utsname system;
    compare->cores = dmg_topology_usable_cpus();
    compare->core_share = measure_share(compare->cores);
    read_processor(processor, sizeof processor);
    bool has_system = uname(&system) == 0;
    snprintf(compare->host, sizeof compare->host,
             "%.120s, %" PRIu32 " core%s, %.40s %.40s; a thread on each core got %.0f %% of it", processor,
             compare->cores, compare->cores == 1 ? "" : "s", has_system ? system.sysname : "",
             has_system ? system.release : "", 100 * compare->core_share);
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts)) {
        strftime(compare->date, sizeof compare->date, "%Y-%m-%d %H:%M", &parts);
    }
    compare->is_busy = compare->core_share < DMG_COMPARE_SHARE_LEAST;
    bool is_chosen = compare->settings->values[DMG_OPTION_LINK_MODE].is_given;
    compare->link_mode = is_chosen || !compare->is_busy ? dmg_value_text(compare->settings, DMG_OPTION_LINK_MODE)
                                                        : dmg_link_mode_name(DMG_LINK_ACCOUNT);
}
