#include "cli/options/options.h"

#include "cli/base/text.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/engine/groups.h"
#include "core/store/tiny_chunk.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT64_MAX

static const dmg_old_word old_update_methods[] = {{"value", "valrd-node"}, {"owner", "valrd-owner"}, {NULL, NULL}};

static const dmg_option table[DMG_OPTION_COUNT] = {
    [DMG_OPTION_SYSTEM] = {"system", DMG_TYPE_CHOICE, NULL, "dmg|dmg-base|fam-graph|fully-cached", "dmg", 0, 0, 0, 0,
                           "DMG, or a baseline: a bundle of the options below, which win where they are given"},
    [DMG_OPTION_TRANSPORT] = {"transport", DMG_TYPE_TEXT, "T", NULL, "cxl_shm", 0, 0, 0, 0,
                              "interconnect: cxl_shm or ucx, with options after a colon (docs/transports.md)"},
    [DMG_OPTION_TRUST_NETWORK] = {"trust-network", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                                  "UCX's messages=tcp may be open to others than this machine, who can write into its "
                                  "processes, and messages=ud_verbs to all on the RDMA network, who can end them"},
    [DMG_OPTION_MNS] = {"mns", DMG_TYPE_NUMBER, "M", NULL, "1", 1, 16, 0, 0, "memory nodes to start"},
    [DMG_OPTION_CNS] = {"cns", DMG_TYPE_NUMBER, "C", NULL, "1", 1, DMG_COMPUTE_NODES_MAX, 0, 0,
                        "compute nodes to start"},
    [DMG_OPTION_THREADS] = {"threads", DMG_TYPE_NUMBER, "N", NULL, NULL, 1, DMG_WORKERS_MAX, 0, 0,
                            "worker threads a compute node (default: this machine's cores / C, at most 64)"},
    [DMG_OPTION_CACHE] = {"cache", DMG_TYPE_SIZE, "SIZE", NULL, NULL, 4096, NONE, 0, 0,
                          "hard limit of what a compute node keeps for the run (default: none)"},
    [DMG_OPTION_MEMORY] = {"memory", DMG_TYPE_SIZES, "SIZE", NULL, NULL, 1 << 20, UINT64_C(1) << 47, 0, 0,
                           "segment of each memory node (default: what the graph and the run need; of a pool 1G, and "
                           "A,B,... gives each node its own)"},
    [DMG_OPTION_PARTITIONS] = {"partitions", DMG_TYPE_NUMBER, "N", NULL, NULL, 1, 64, 0, 0,
                               "partitions of the graph; more compute nodes form groups (default: C; in a pool 16)"},
    [DMG_OPTION_INDEX_ENTRY_BYTES] = {"index-entry-bytes", DMG_TYPE_CHOICE, NULL, "16|32|64|128", "32", 0, 0, 0, 0,
                                      "of a vertex in the index: as many edges as fit stay in place"},
    [DMG_OPTION_TINY_CHUNKS] = {"tiny-chunks", DMG_TYPE_NUMBER, "N", NULL, "1024", 1, DMG_TINY_CHUNKS_MAX, 0, 0,
                                "ranges of vertices that partitions are made of"},
    [DMG_OPTION_TASKS] = {"tasks", DMG_TYPE_NUMBER, "N", NULL, "4", 1, 64, 0, 0,
                          "batches of vertices that a worker keeps in flight"},
    [DMG_OPTION_PIN_THREADS] = {"pin-threads", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                                "bind each worker to a core"},
    [DMG_OPTION_PEER_TIMEOUT] = {"peer-timeout", DMG_TYPE_TIME, "TIME", NULL, "5s", 100000000, UINT64_C(3600000000000),
                                 0, 0, "a node that is silent for so long counts as dead"},
    [DMG_OPTION_NUMA_NODE] = {"numa-node", DMG_TYPE_NUMBER, "N", NULL, NULL, 0, 1023, 0, 0,
                              "NUMA node of the memory nodes' segments (default: the kernel's choice)"},
    [DMG_OPTION_PAGE_SIZE] = {"page-size", DMG_TYPE_CHOICE, NULL, "default|2M|1G", "default", 0, 0, 0, 0,
                              "pages of the segments"},
    [DMG_OPTION_PREFAULT] = {"prefault", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                             "touch all pages of the segments at the start"},
    [DMG_OPTION_ALLOW_FALLBACK] = {"allow-fallback", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                                   "without the NUMA node, the pages or the cores asked for: warn, and take what there "
                                   "is"},
    [DMG_OPTION_LINK] = {"link", DMG_TYPE_TEXT, "PROFILE", NULL, NULL, 0, 0, 0, 0,
                         "emulate a link: a name that 'dmgraph info links' shows, or a file (docs/links.md)"},
    [DMG_OPTION_LINK_LATENCY] = {"link-latency", DMG_TYPE_TIME, "TIME", NULL, NULL, 1, 1000000000, 0, 0,
                                 "the emulated link's latency, of all operations"},
    [DMG_OPTION_LINK_BANDWIDTH] = {"link-bandwidth", DMG_TYPE_REAL, "GB/S", NULL, NULL, 0, 0, 1e-4, 1e5,
                                   "the emulated link's bandwidth, in each direction, in 10^9 bytes a second"},
    [DMG_OPTION_LINK_MOPS] = {"link-mops", DMG_TYPE_REAL, "MOPS", NULL, NULL, 0, 0, 1e-4, 1e5,
                              "the emulated link's operations, in millions a second"},
    [DMG_OPTION_LINK_MODE] = {"link-mode", DMG_TYPE_CHOICE, NULL, "auto|spin|account", "auto", 0, 0, 0, 0,
                              "wait out the emulated link's time, or only add it up"},
    [DMG_OPTION_SOURCE] = {"source", DMG_TYPE_NUMBER, "ID", NULL, NULL, 0, NONE, 0, 0,
                           "start vertex of bfs and sssp (default: the smallest id with an arc out)"},
    [DMG_OPTION_ITERATIONS] = {"iterations", DMG_TYPE_NUMBER, "N", NULL, NULL, 1, UINT32_MAX, 0, 0,
                               "iterations of pagerank (default: until the tolerance, at most 1000)"},
    [DMG_OPTION_TOLERANCE] = {"tolerance", DMG_TYPE_REAL, "X", NULL, NULL, 0, 0, 0, 1e9,
                              "pagerank ends when the ranks change by less in all (default: 1e-9)"},
    [DMG_OPTION_DAMPING] = {"damping", DMG_TYPE_REAL, "D", NULL, NULL, 0, 0, 0, 1,
                            "damping factor of pagerank (default: 0.85)"},
    [DMG_OPTION_DIRECTION] = {"direction", DMG_TYPE_CHOICE, NULL, "auto|push|pull", "auto", 0, 0, 0, 0,
                              "direction of the iterations"},
    [DMG_OPTION_DENSITY] = {"density", DMG_TYPE_CHOICE, NULL, "auto|dense|sparse", "auto", 0, 0, 0, 0,
                            "mode of the iterations"},
    [DMG_OPTION_CACHING] = {"caching", DMG_TYPE_CHOICE, NULL, "partition|full", "partition", 0, 0, 0, 0,
                            "attributes that a compute node caches in dense iterations: its partitions', or all"},
    [DMG_OPTION_UPDATES] = {"updates", DMG_TYPE_CHOICE, NULL, "auto|direct|valrd-node|valrd-owner", "auto", 0, 0, 0, 0,
                            "how an update reaches another node's partition", old_update_methods},
    [DMG_OPTION_REFERENCE_EDGES] = {"reference-edges", DMG_TYPE_NUMBER, "N", NULL, "7", 0, UINT32_MAX - 1, 0, 0,
                                    "pass segments of more edges to their owner by reference; 0: none"},
    [DMG_OPTION_REFERENCE_DEGREE] = {"reference-degree", DMG_TYPE_NUMBER, "N", NULL, "7", 1, UINT32_MAX, 0, 0,
                                     "pass lists of no more edges by value, whatever their segments"},
    [DMG_OPTION_REFERENCE_BUFFER] = {"reference-buffer", DMG_TYPE_SIZE, "SIZE", NULL, "4K", 32, 1 << 20, 0, 0,
                                     "a batch of segments that are passed by reference"},
    [DMG_OPTION_VALUE_BUFFER] = {"value-buffer", DMG_TYPE_SIZE, "SIZE", NULL, "32K", 32, 1 << 20, 0, 0,
                                 "a batch of updates that are passed by value; to memory nodes at most a message"},
    [DMG_OPTION_PARTIALS] = {"partials", DMG_TYPE_CHOICE, NULL, "auto|array|value", "auto", 0, 0, 0, 0,
                             "how pagerank passes on what a compute node adds up in pull mode"},
    [DMG_OPTION_PRECISION] = {"precision", DMG_TYPE_CHOICE, NULL, "auto|single|double", "auto", 0, 0, 0, 0,
                              "of what pagerank caches (auto: double for tolerances below 1e-9)"},
    [DMG_OPTION_MERGE_ACTIVATION] = {"merge-activation", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                     "read neighbouring activation bits and attributes in one operation"},
    [DMG_OPTION_BATCH_ACTIVATION] = {"batch-activation", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                     "ring these reads once a batch of vertices, not one by one"},
    [DMG_OPTION_MERGE_INDEX] = {"merge-index", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                "read neighbouring index entries in one operation"},
    [DMG_OPTION_BATCH_INDEX] = {"batch-index", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                "ring these reads once a batch"},
    [DMG_OPTION_MERGE_LISTS] = {"merge-lists", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                "read neighbouring edge lists in one operation"},
    [DMG_OPTION_BATCH_LISTS] = {"batch-lists", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                "ring these reads once a batch"},
    [DMG_OPTION_EMBED] = {"embed", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                          "keep the edges of vertices with few of them in the index"},
    [DMG_OPTION_RESCHEDULE_DEGREE] =
        {"reschedule-degree", DMG_TYPE_NUMBER, "N", NULL, "16384", 0, UINT32_MAX - 1, 0, 0,
         "walk lists of more edges in segments of N; 0: never (where lists are copied at most "
         "32768, with weights 16384)"},
    [DMG_OPTION_STEAL_SEGMENTS] = {"steal-segments", DMG_TYPE_CHOICE, NULL, "on|off", "on", 0, 0, 0, 0,
                                   "idle workers take segments of others' lists"},
    [DMG_OPTION_CACHE_INDEX] = {"cache-index", DMG_TYPE_CHOICE, NULL, "off|on", "off", 0, 0, 0, 0,
                                "read the index once, and keep it on the compute node"},
    [DMG_OPTION_FORMAT] = {"format", DMG_TYPE_CHOICE, NULL, "auto|edge-list|matrix-market|binary", "auto", 0, 0, 0, 0,
                           "of the graph's file (auto: by content, name and neighbours; docs/formats.md)"},
    [DMG_OPTION_DIRECTED] = {"directed", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                             "edges have a direction (the default of edge lists)"},
    [DMG_OPTION_UNDIRECTED] = {"undirected", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                               "a line `u v` is an edge in both directions"},
    [DMG_OPTION_UNWEIGHTED] = {"unweighted", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                               "check the third column, and leave it out of the graph"},
    [DMG_OPTION_DEDUP] = {"dedup", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                          "of repeated edges keep one, with the smallest weight"},
    [DMG_OPTION_NO_LOOPS] = {"no-loops", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                             "leave out edges from a vertex to itself"},
    [DMG_OPTION_OUT_LISTS_ONLY] = {"out-lists-only", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                                   "do not store a directed graph's lists against the arcs"},
    [DMG_OPTION_SCALE] = {"scale", DMG_TYPE_NUMBER, "N", NULL, NULL, 1, 31, 0, 0, "2^N vertex ids"},
    [DMG_OPTION_EDGE_FACTOR] = {"edge-factor", DMG_TYPE_NUMBER, "N", NULL, "16", 1, 65536, 0, 0, "edges a vertex id"},
    [DMG_OPTION_SEED] = {"seed", DMG_TYPE_NUMBER, "N", NULL, "1", 0, NONE, 0, 0,
                         "the same seed gives the same graph, everywhere"},
    [DMG_OPTION_WEIGHTED] = {"weighted", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                             "give edges integer weights from 1 to 255"},
    [DMG_OPTION_OPERATIONS] = {"operations", DMG_TYPE_TEXT, "LIST", NULL, "read,write,cas,faa,message", 0, 0, 0, 0,
                               "what to measure; also touch, a read in place"},
    [DMG_OPTION_SIZES] = {"sizes", DMG_TYPE_TEXT, "LIST", NULL, "8,64,512,4K,32K", 0, 0, 0, 0,
                          "bytes of reads, writes and messages"},
    [DMG_OPTION_DEPTHS] = {"depths", DMG_TYPE_TEXT, "LIST", NULL, "1,16", 0, 0, 0, 0, "operations in flight a thread"},
    [DMG_OPTION_THREAD_COUNTS] = {"thread-counts", DMG_TYPE_TEXT, "LIST", NULL, "1", 0, 0, 0, 0,
                                  "threads, each with a channel"},
    [DMG_OPTION_DURATION] = {"duration", DMG_TYPE_TIME, "TIME", NULL, "50ms", 1000000, UINT64_C(60000000000), 0, 0,
                             "of each measurement"},
    [DMG_OPTION_CALIBRATE] = {"calibrate", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                              "prove the emulated links on this machine: of --link, or all"},
    [DMG_OPTION_FIT] = {"fit", DMG_TYPE_TEXT, "FILE.link", NULL, NULL, 0, 0, 0, 0,
                        "measure what a link profile has, and write one"},
    [DMG_OPTION_LINK_LIST] = {"link", DMG_TYPE_TEXTS, "PROFILE,...", NULL, NULL, 0, 0, 0, 0,
                              "links to predict for: names that 'dmgraph info links' shows, or files (default: all); "
                              "may be given several times"},
    [DMG_OPTION_MN_LIST] = {"mns", DMG_TYPE_SIZES, "LIST", NULL, NULL, 0, NONE, 0, 0,
                            "numbers of memory nodes (default: the run's)"},
    [DMG_OPTION_CN_LIST] = {"cns", DMG_TYPE_SIZES, "LIST", NULL, NULL, 0, NONE, 0, 0,
                            "numbers of compute nodes (default: the run's)"},
    [DMG_OPTION_CSV] = {"csv", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0, "print comma-separated values"},
    [DMG_OPTION_WITH] = {"with", DMG_TYPE_TEXTS, "TRANSPORT,LINK", NULL, NULL, 0, 0, 0, 0,
                         "a configuration, given once for each; LINK may be none (default: cxl_shm,polar-cxl and "
                         "ucx,polar-rdma)"},
    [DMG_OPTION_CNS_LIST] = {"cns", DMG_TYPE_TEXT, "LIST", NULL, "1,2", 0, 0, 0, 0,
                             "numbers of compute nodes to run with"},
    [DMG_OPTION_ROUNDS] =
        {"rounds", DMG_TYPE_NUMBER, "N", NULL, NULL, 1, 25, 0, 0,
         "times that everything is run (default: 3; up to 7 where that is soon done, 2 where it takes long)"},
    [DMG_OPTION_REPEATS] = {"repeats", DMG_TYPE_NUMBER, "N", NULL, NULL, 1, 9, 0, 0,
                            "runs of each inside a round, of which the median counts (default: 1; 5 where iterations "
                            "take less than 10 ms in all)"},
    [DMG_OPTION_PREDICT_CNS] = {"predict-cns", DMG_TYPE_TEXT, "LIST", NULL, "4,8,16,32", 0, 0, 0, 0,
                                "numbers of compute nodes to predict for, as 'dmgraph predict' would"},
    [DMG_OPTION_UNCERTAINTY] = {"uncertainty", DMG_TYPE_REAL, "FACTOR", NULL, "1.5", 0, 0, 1, 1000,
                                "by which the numbers of a profile may be off"},
    [DMG_OPTION_RUNS_ONLY] = {"runs-only", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                              "do not measure the transports, nor prove the links"},
    [DMG_OPTION_CSV_FILE] = {"csv", DMG_TYPE_TEXT, "FILE", NULL, NULL, 0, 0, 0, 0,
                             "write all numbers as comma-separated values (default: beside --output)"},
    [DMG_OPTION_OUTPUT] = {"output", DMG_TYPE_TEXT, "FILE", NULL, NULL, 0, 0, 0, 0,
                           "write the answer, one line a vertex by ascending id, or the report in HTML; - is the "
                           "standard output"},
    [DMG_OPTION_VERIFY] = {"verify", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0, "compare with a serial computation"},
    [DMG_OPTION_TABLE] = {"table", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0, "print a line an iteration"},
    [DMG_OPTION_JSON] = {"json", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                         "print one JSON object for programs (docs/cli.md)"},
    [DMG_OPTION_QUIET] = {"quiet", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0, "print no summary"},
    [DMG_OPTION_NO_PROGRESS] = {"no-progress", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0, "show no progress bar"},
    [DMG_OPTION_LOG_LEVEL] = {"log-level", DMG_TYPE_CHOICE, NULL, "debug|info|warning|none", "warning", 0, 0, 0, 0,
                              "log lines on the standard error"},
    [DMG_OPTION_POOL] = {"pool", DMG_TYPE_TEXT, "P", NULL, NULL, 0, 0, 0, 0,
                         "the long-lived pool that 'dmgraph pool start' made (docs/pools.md)"},
    [DMG_OPTION_NAME] = {"name", DMG_TYPE_TEXT, "P", NULL, NULL, 0, 0, 0, 0, "the pool's name"},
    [DMG_OPTION_AS] = {"as", DMG_TYPE_TEXT, "NAME", NULL, NULL, 0, 0, 0, 0, "the graph's name in the pool"},
    [DMG_OPTION_BIND] = {"bind", DMG_TYPE_TEXT, "HOST", NULL, NULL, 0, 0, 0, 0,
                         "address that the memory nodes listen on (default: they are reached from this machine alone)"},
    [DMG_OPTION_JOB_MEMORY] = {"job-memory", DMG_TYPE_SIZE, "SIZE", NULL, NULL, 4096, NONE, 0, 0,
                               "what one job may have of each memory node (default: all)"},
    [DMG_OPTION_JOB_CLIENTS] = {"job-clients", DMG_TYPE_NUMBER, "N", NULL, "64", 1, 1024, 0, 0,
                                "compute nodes that one job may have"},
    [DMG_OPTION_JOB_CHANNELS] = {"job-channels", DMG_TYPE_NUMBER, "N", NULL, "2048", 1, 1 << 20, 0, 0,
                                 "channels, each a descriptor of a memory node, that all compute nodes of a job may "
                                 "have"},
    [DMG_OPTION_ADMIN] = {"admin", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0,
                          "by the pool's admin secret, whoever it belongs to"},
    [DMG_OPTION_CONTROL_FD] = {"control-fd", DMG_TYPE_NUMBER, "N", NULL, NULL, 3, 1 << 20, 0, 0,
                               "the socket to the launcher"},
    [DMG_OPTION_HELP] = {"help", DMG_TYPE_FLAG, NULL, NULL, NULL, 0, 0, 0, 0, "print this"},
};

const dmg_option *dmg_option_get(dmg_option_id id)
{
    return &table[id];
}

/** Digits only: strtoull would take signs and spaces, and wrap. Moves *text behind them. */
static bool read_digits(const char **text, uint64_t *number)
{
    const char *start = *text;
    uint64_t value = 0;
    for (; **text >= '0' && **text <= '9'; (*text)++) {
        if (!dmg_checked_multiply(value, 10, &value) || !dmg_checked_add(value, (uint64_t)(**text - '0'), &value)) {
            return false;
        }
    }
    *number = value;
    return *text != start;
}

dmg_status dmg_parse_number(const char *text, uint64_t *number)
{
    const char *rest = text;
    if (!read_digits(&rest, number) || *rest) {
        return dmg_error(DMG_ERR_ARGUMENT, "'%s' is not an unsigned integer of at most 64 bits", text);
    }
    return DMG_OK;
}

/**
 * A non-negative decimal number without sign, exponent or spaces; moves *text behind it. Long double has 64 bits of
 * mantissa, so that whole bytes stay exact.
 */
static bool read_decimal(const char **text, long double *number)
{
    const char *at = *text;
    long double value = 0;
    bool has_digits = false;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (*at - '0');
        has_digits = true;
    }
    if (*at == '.') {
        long double unit = 1;
        for (at++; *at >= '0' && *at <= '9'; at++) {
            unit *= 10;
            value += (*at - '0') / unit;
            has_digits = true;
        }
    }
    *text = at;
    *number = value;
    return has_digits;
}

dmg_status dmg_parse_size(const char *text, uint64_t *bytes)
{
    static const char suffixes[] = "KMGT";
    const char *rest = text;
    long double value;
    bool is_good = read_decimal(&rest, &value);
    const char *suffix = *rest ? strchr(suffixes, *rest >= 'a' ? *rest - ('a' - 'A') : *rest) : NULL;
    if (is_good && suffix) {
        value = ldexpl(value, 10 * (int)(suffix - suffixes + 1));
        rest++;
        if (strcmp(rest, "iB") == 0) {
            rest += 2;
        }
    }
    if (is_good && (*rest == 'B' || *rest == 'b')) {
        rest++;
    }
    if (!is_good || *rest) {
        return dmg_error(DMG_ERR_ARGUMENT, "'%s' is not a size: expected a number of bytes, or one with K, M, G or T",
                         text);
    }
    if (value >= 18446744073709551616.0L) {
        return dmg_error(DMG_ERR_ARGUMENT, "the size '%s' does not fit into 64 bits", text);
    }
    *bytes = (uint64_t)value;
    return DMG_OK;
}

dmg_status dmg_parse_time(const char *text, uint64_t *duration_ns)
{
    static const struct {
        const char *suffix;
        long double nanoseconds;
    } units[] = {{"ns", 1},    {"us", 1e3L}, {"\u00b5s", 1e3L}, {"\u03bcs", 1e3L},
                 {"ms", 1e6L}, {"s", 1e9L},  {"min", 60e9L}};
    const char *rest = text;
    long double value;
    if (read_decimal(&rest, &value)) {
        for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++) {
            if (strcmp(rest, units[unit].suffix) == 0) {
                value = roundl(value * units[unit].nanoseconds);
                if (value >= 18446744073709551616.0L) {
                    return dmg_error(DMG_ERR_ARGUMENT, "the time '%s' is too long", text);
                }
                *duration_ns = (uint64_t)value;
                return DMG_OK;
            }
        }
    }
    return dmg_error(DMG_ERR_ARGUMENT,
                     "'%s' is not a time: expected a number with ms or s behind it, as in 500ms or 5s", text);
}

static dmg_status parse_real(const char *text, double *real)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || *text == ' ') {
        return dmg_error(DMG_ERR_ARGUMENT, "'%s' is not a decimal number", text);
    }
    *real = value;
    return DMG_OK;
}

static dmg_status parse_choice(const char *choices, const char *text, uint64_t *index)
{
    size_t length = strlen(text);
    uint64_t position = 0;
    for (const char *word = choices; word; position++) {
        const char *end = strchr(word, '|');
        size_t word_length = end ? (size_t)(end - word) : strlen(word);
        if (word_length == length && memcmp(word, text, length) == 0) {
            *index = position;
            return DMG_OK;
        }
        word = end ? end + 1 : NULL;
    }
    return dmg_error(DMG_ERR_ARGUMENT, "'%s' is not one of %s", text, choices);
}

static dmg_status check_range(const dmg_option *option, const char *text, const dmg_option_value *value)
{
    if (option->type == DMG_TYPE_REAL) {
        if (value->real < option->real_least || value->real > option->real_most) {
            return dmg_error(DMG_ERR_ARGUMENT, "%s is out of range: expected %g to %g", text, option->real_least,
                             option->real_most);
        }
        return DMG_OK;
    }
    if (value->number < option->least || value->number > option->most) {
        const char *unit = option->type == DMG_TYPE_SIZE || option->type == DMG_TYPE_SIZES ? " bytes"
                           : option->type == DMG_TYPE_TIME                                 ? " ns"
                                                                                           : "";
        if (option->most == NONE) {
            return dmg_error(DMG_ERR_ARGUMENT, "%s is out of range: expected at least %llu%s", text,
                             (unsigned long long)option->least, unit);
        }
        return dmg_error(DMG_ERR_ARGUMENT, "%s is out of range: expected %llu to %llu%s", text,
                         (unsigned long long)option->least, (unsigned long long)option->most, unit);
    }
    return DMG_OK;
}

dmg_status dmg_parse_sizes(const char *text, uint64_t *sizes, uint32_t capacity, uint32_t *count)
{
    *count = 0;
    for (const char *at = text; at;) {
        char one[32];
        const char *comma = strchr(at, ',');
        size_t length = comma ? (size_t)(comma - at) : strlen(at);
        if (*count == capacity) {
            return dmg_error(DMG_ERR_ARGUMENT, "'%s' has more than %u sizes", text, (unsigned int)capacity);
        }
        if (length >= sizeof one) {
            return dmg_error(DMG_ERR_ARGUMENT, "'%.*s' is not a size", (int)length, at);
        }
        memcpy(one, at, length);
        one[length] = '\0';
        dmg_status status = dmg_parse_size(one, &sizes[*count]);
        if (status != DMG_OK) {
            return status;
        }
        (*count)++;
        at = comma ? comma + 1 : NULL;
    }
    return DMG_OK;
}

/** Each in the option's range; the first one is the value. */
static dmg_status parse_sizes(const dmg_option *option, const char *text, dmg_option_value *value)
{
    uint64_t sizes[DMG_SIZES_MAX];
    uint32_t count;
    dmg_status status = dmg_parse_sizes(text, sizes, DMG_SIZES_MAX, &count);
    for (uint32_t index = count; index-- > 0 && status == DMG_OK;) {
        value->number = sizes[index];
        status = check_range(option, text, value);
    }
    return status;
}

static const char *current_word(const dmg_option *option, const char *text)
{
    for (const dmg_old_word *old = option->old_words; old && old->old_word; old++) {
        if (strcmp(old->old_word, text) == 0) {
            return old->word;
        }
    }
    return text;
}

static dmg_status parse_value(const dmg_option *option, const char *text, dmg_option_value *value)
{
    dmg_status status = DMG_OK;
    switch (option->type) {
    case DMG_TYPE_FLAG:
        value->number = 1;
        break;
    case DMG_TYPE_TEXT:
    case DMG_TYPE_TEXTS:
        if (!*text) {
            status = dmg_error(DMG_ERR_ARGUMENT, "the value is empty");
        }
        break;
    case DMG_TYPE_NUMBER:
        status = dmg_parse_number(text, &value->number);
        break;
    case DMG_TYPE_SIZE:
        status = dmg_parse_size(text, &value->number);
        break;
    case DMG_TYPE_SIZES:
        status = parse_sizes(option, text, value);
        break;
    case DMG_TYPE_TIME:
        status = dmg_parse_time(text, &value->number);
        break;
    case DMG_TYPE_REAL:
        status = parse_real(text, &value->real);
        break;
    case DMG_TYPE_CHOICE:
        text = current_word(option, text);
        status = parse_choice(option->choices, text, &value->number);
        break;
    }
    if (status == DMG_OK && (option->type == DMG_TYPE_NUMBER || option->type == DMG_TYPE_SIZE ||
                             option->type == DMG_TYPE_TIME || option->type == DMG_TYPE_REAL)) {
        status = check_range(option, text, value);
    }
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "--%s", option->name);
    }
    value->has_value = true;
    value->text = text;
    return DMG_OK;
}

static dmg_option_id find_option(const dmg_option_id *allowed, const char *name, size_t length)
{
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT; id++) {
        if (strlen(table[*id].name) == length && memcmp(table[*id].name, name, length) == 0) {
            return *id;
        }
    }
    return DMG_OPTION_COUNT;
}

#define COMPARED_LENGTH_MAX 32

/** Levenshtein's distance of two short words. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[COMPARED_LENGTH_MAX + 1];
    for (size_t j = 0; j <= b_length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t least = row[j] + 1 < row[j - 1] + 1 ? row[j] + 1 : row[j - 1] + 1;
            row[j] = least < substituted ? least : substituted;
        }
    }
    return row[b_length];
}

static dmg_status unknown_option(const dmg_option_id *allowed, const char *argument, size_t length)
{
    const char *name = argument + 2;
    size_t name_length = length - 2;
    const char *nearest = NULL;
    size_t nearest_distance = 4;
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT && name_length <= COMPARED_LENGTH_MAX; id++) {
        size_t distance = edit_distance(name, name_length, table[*id].name, strlen(table[*id].name));
        if (distance < nearest_distance && distance < name_length) {
            nearest_distance = distance;
            nearest = table[*id].name;
        }
    }
    if (nearest) {
        return dmg_error(DMG_ERR_ARGUMENT, "unknown option %.*s; did you mean --%s?", (int)length, argument, nearest);
    }
    return dmg_error(DMG_ERR_ARGUMENT, "unknown option %.*s; --help lists the options", (int)length, argument);
}

dmg_status dmg_options_parse(const dmg_option_id *allowed, int count, char *const *arguments, dmg_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT; id++) {
        if (table[*id].default_text) {
            dmg_status status = parse_value(&table[*id], table[*id].default_text, &settings->values[*id]);
            if (status != DMG_OK) {
                return status;
            }
        }
    }
    bool options_ended = false;
    for (int index = 0; index < count; index++) {
        const char *argument = arguments[index];
        if (!options_ended && strcmp(argument, "--") == 0) {
            options_ended = true;
            continue;
        }
        if (!options_ended && strcmp(argument, "-h") == 0) {
            argument = "--help";
        }
        if (options_ended || argument[0] != '-' || argument[1] == '\0') {
            if (settings->positional_count == DMG_POSITIONALS_MAX) {
                return dmg_error(DMG_ERR_ARGUMENT, "too many arguments, from '%s' on", argument);
            }
            settings->positionals[settings->positional_count++] = argument;
            continue;
        }
        const char *equals = strchr(argument, '=');
        size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
        if (argument[1] != '-') {
            return dmg_error(DMG_ERR_ARGUMENT, "unknown option %s; options begin with two dashes", argument);
        }
        dmg_option_id id = find_option(allowed, argument + 2, length - 2);
        if (id == DMG_OPTION_COUNT) {
            return unknown_option(allowed, argument, length);
        }
        const dmg_option *option = &table[id];
        const char *text = equals ? equals + 1 : "";
        if (option->type == DMG_TYPE_FLAG && equals) {
            return dmg_error(DMG_ERR_ARGUMENT, "--%s takes no value", option->name);
        }
        if (option->type != DMG_TYPE_FLAG && !equals) {
            if (index + 1 == count) {
                return dmg_error(DMG_ERR_ARGUMENT, "--%s needs a value", option->name);
            }
            text = arguments[++index];
        }
        dmg_status status = parse_value(option, text, &settings->values[id]);
        if (status != DMG_OK) {
            return status;
        }
        settings->values[id].is_given = true;
        if (option->type == DMG_TYPE_TEXTS) {
            if (settings->repeated_count == DMG_REPEATS_MAX) {
                return dmg_error(DMG_ERR_ARGUMENT, "--%s may be given %d times", option->name, DMG_REPEATS_MAX);
            }
            settings->repeated[settings->repeated_count++] = text;
        }
    }
    return DMG_OK;
}

dmg_status dmg_options_set_default(dmg_settings *settings, dmg_option_id id, const char *text)
{
    dmg_option_value value = {0};
    dmg_status status = parse_value(&table[id], text, &value);
    if (status == DMG_OK) {
        settings->values[id] = value;
    }
    return status;
}

dmg_status dmg_options_refuse(const dmg_settings *settings, const dmg_option_id *ids, const char *why)
{
    for (const dmg_option_id *id = ids; *id != DMG_OPTION_COUNT; id++) {
        if (settings->values[*id].is_given) {
            return dmg_error(DMG_ERR_ARGUMENT, "--%s has no effect %s", table[*id].name, why);
        }
    }
    return DMG_OK;
}

void dmg_options_print(FILE *to, const dmg_option_id *allowed)
{
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT; id++) {
        const dmg_option *option = &table[*id];
        char left[64];
        const char *value = option->choices ? option->choices : option->placeholder;
        snprintf(left, sizeof left, "--%s%s%s", option->name, value ? " " : "", value ? value : "");
        fprintf(to, "  %-36s %s", left, option->help);
        if (option->default_text) {
            fprintf(to, " (default: %s)", option->default_text);
        }
        fputc('\n', to);
    }
}

json_t *dmg_options_json(const dmg_option_id *allowed, const dmg_settings *settings)
{
    json_t *object = json_object();
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT; id++) {
        const dmg_option *option = &table[*id];
        const dmg_option_value *value = &settings->values[*id];
        json_t *shown = NULL;
        if (*id == DMG_OPTION_HELP) {
            continue;
        }
        if (option->type == DMG_TYPE_FLAG) {
            shown = json_boolean(value->number != 0);
        } else if (!value->has_value) {
            shown = json_null();
        } else if (option->type == DMG_TYPE_TEXTS) {
            shown = json_array();
            for (uint32_t i = 0; i < settings->repeated_count; i++) {
                json_array_append_new(shown, dmg_json_text(settings->repeated[i]));
            }
        } else if (option->type == DMG_TYPE_TEXT || option->type == DMG_TYPE_CHOICE) {
            shown = dmg_json_text(value->text);
        } else if (option->type == DMG_TYPE_REAL) {
            shown = json_real(value->real);
        } else if (option->type == DMG_TYPE_TIME) {
            shown = json_real((double)value->number / 1e9);
        } else {
            shown = dmg_json_id(value->number);
        }
        json_object_set_new(object, option->name, shown);
    }
    return object;
}
