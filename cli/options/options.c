#include "cli/options/options.h"

#include "cli/base/text.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/engine/groups.h"
#include "core/store/tiny_chunk.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT64_MAX

static const dmg_old_word old_update_methods[] = {{"value", "valrd-node"}, {"owner", "valrd-owner"}, {NULL, NULL}};

static const dmg_option table[DMG_OPTION_COUNT] = {
    [DMG_OPTION_SYSTEM] = {.name = "system",
                           .type = DMG_TYPE_CHOICE,
                           .choices = "dmg|dmg-base|fam-graph|fully-cached",
                           .default_text = "dmg",
                           .help = "DMG, or a baseline: a bundle of the options below, which win where they are given",
                           .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_TRANSPORT] = {.name = "transport",
                              .type = DMG_TYPE_TEXT,
                              .placeholder = "T",
                              .default_text = "cxl_shm",
                              .help = "interconnect: cxl_shm or ucx, with options after a colon (docs/transports.md)"},
    [DMG_OPTION_TRUST_NETWORK] =
        {.name = "trust-network",
         .type = DMG_TYPE_FLAG,
         .help = "UCX's messages=tcp may be open to others than this machine, who can write into its "
                 "processes, and messages=ud_verbs to all on the RDMA network, who can end them"},
    [DMG_OPTION_MNS] = {.name = "mns",
                        .type = DMG_TYPE_NUMBER,
                        .placeholder = "M",
                        .default_text = "1",
                        .least = 1,
                        .most = DMG_MEMORY_NODES_MAX,
                        .help = "memory nodes to start"},
    [DMG_OPTION_CNS] = {.name = "cns",
                        .type = DMG_TYPE_NUMBER,
                        .placeholder = "C",
                        .default_text = "1",
                        .least = 1,
                        .most = DMG_COMPUTE_NODES_MAX,
                        .help = "compute nodes to start"},
    [DMG_OPTION_THREADS] = {.name = "threads",
                            .type = DMG_TYPE_NUMBER,
                            .placeholder = "N",
                            .least = 1,
                            .most = DMG_WORKERS_MAX,
                            .help = "worker threads a compute node (default: this machine's cores / C, at most 64)"},
    [DMG_OPTION_CACHE] = {.name = "cache",
                          .type = DMG_TYPE_SIZE,
                          .placeholder = "SIZE",
                          .least = 4096,
                          .most = NONE,
                          .help = "hard limit of what a compute node keeps for the run (default: none)"},
    [DMG_OPTION_MEMORY] =
        {.name = "memory",
         .type = DMG_TYPE_SIZES,
         .placeholder = "SIZE",
         .least = 1 << 20,
         .most = UINT64_C(1) << 47,
         .help = "segment of each memory node (default: what the graph and the run need; of a pool 1G, and "
                 "A,B,... gives each node its own)"},
    [DMG_OPTION_PARTITIONS] =
        {.name = "partitions",
         .type = DMG_TYPE_NUMBER,
         .placeholder = "N",
         .least = 1,
         .most = 64,
         .help = "partitions of the graph; more compute nodes form groups (default: C; in a pool 16)"},
    [DMG_OPTION_INDEX_ENTRY_BYTES] = {.name = "index-entry-bytes",
                                      .type = DMG_TYPE_CHOICE,
                                      .choices = "16|32|64|128",
                                      .default_text = "32",
                                      .help = "of a vertex in the index: as many edges as fit stay in place",
                                      .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_TINY_CHUNKS] = {.name = "tiny-chunks",
                                .type = DMG_TYPE_NUMBER,
                                .placeholder = "N",
                                .default_text = "1024",
                                .least = 1,
                                .most = DMG_TINY_CHUNKS_MAX,
                                .help = "ranges of vertices that partitions are made of",
                                .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_TASKS] = {.name = "tasks",
                          .type = DMG_TYPE_NUMBER,
                          .placeholder = "N",
                          .default_text = "4",
                          .least = 1,
                          .most = 64,
                          .help = "batches of vertices that a worker keeps in flight",
                          .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_PIN_THREADS] = {.name = "pin-threads",
                                .type = DMG_TYPE_FLAG,
                                .help = "bind each worker to a core",
                                .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_PEER_TIMEOUT] = {.name = "peer-timeout",
                                 .type = DMG_TYPE_TIME,
                                 .placeholder = "TIME",
                                 .default_text = "5s",
                                 .least = 100000000,
                                 .most = UINT64_C(3600000000000),
                                 .help = "a node that is silent for so long counts as dead"},
    [DMG_OPTION_NUMA_NODE] = {.name = "numa-node",
                              .type = DMG_TYPE_NUMBER,
                              .placeholder = "N",
                              .most = 1023,
                              .help = "NUMA node of the memory nodes' segments (default: the kernel's choice)"},
    [DMG_OPTION_PAGE_SIZE] = {.name = "page-size",
                              .type = DMG_TYPE_CHOICE,
                              .choices = "default|2M|1G",
                              .default_text = "default",
                              .help = "pages of the segments"},
    [DMG_OPTION_PREFAULT] = {.name = "prefault",
                             .type = DMG_TYPE_FLAG,
                             .help = "touch all pages of the segments at the start"},
    [DMG_OPTION_ALLOW_FALLBACK] =
        {.name = "allow-fallback",
         .type = DMG_TYPE_FLAG,
         .help = "without the NUMA node, the pages or the cores asked for: warn, and take what there "
                 "is"},
    [DMG_OPTION_LINK] = {.name = "link",
                         .type = DMG_TYPE_TEXT,
                         .placeholder = "PROFILE",
                         .help = "emulate a link: a name that 'dmgraph info links' shows, or a file (docs/links.md)"},
    [DMG_OPTION_LINK_LATENCY] = {.name = "link-latency",
                                 .type = DMG_TYPE_TIME,
                                 .placeholder = "TIME",
                                 .least = 1,
                                 .most = 1000000000,
                                 .help = "the emulated link's latency, of all operations",
                                 .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_LINK_BANDWIDTH] = {.name = "link-bandwidth",
                                   .type = DMG_TYPE_REAL,
                                   .placeholder = "GB/S",
                                   .real_least = 1e-4,
                                   .real_most = 1e5,
                                   .help = "the emulated link's bandwidth, in each direction, in 10^9 bytes a second",
                                   .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_LINK_MOPS] = {.name = "link-mops",
                              .type = DMG_TYPE_REAL,
                              .placeholder = "MOPS",
                              .real_least = 1e-4,
                              .real_most = 1e5,
                              .help = "the emulated link's operations, in millions a second",
                              .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_LINK_MODE] = {.name = "link-mode",
                              .type = DMG_TYPE_CHOICE,
                              .choices = "auto|spin|account",
                              .default_text = "auto",
                              .help = "wait out the emulated link's time, or only add it up",
                              .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_SOURCE] = {.name = "source",
                           .type = DMG_TYPE_NUMBER,
                           .placeholder = "ID",
                           .most = NONE,
                           .help = "start vertex of bfs and sssp (default: the smallest id with an arc out)"},
    [DMG_OPTION_ITERATIONS] = {.name = "iterations",
                               .type = DMG_TYPE_NUMBER,
                               .placeholder = "N",
                               .least = 1,
                               .most = UINT32_MAX,
                               .help = "iterations of pagerank (default: until the tolerance, at most 1000)"},
    [DMG_OPTION_TOLERANCE] = {.name = "tolerance",
                              .type = DMG_TYPE_REAL,
                              .placeholder = "X",
                              .real_most = 1e9,
                              .help = "pagerank ends when the ranks change by less in all (default: 1e-9)"},
    [DMG_OPTION_DAMPING] = {.name = "damping",
                            .type = DMG_TYPE_REAL,
                            .placeholder = "D",
                            .real_most = 1,
                            .help = "damping factor of pagerank (default: 0.85)"},
    [DMG_OPTION_DIRECTION] = {.name = "direction",
                              .type = DMG_TYPE_CHOICE,
                              .choices = "auto|push|pull",
                              .default_text = "auto",
                              .help = "direction of the iterations",
                              .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_DENSITY] = {.name = "density",
                            .type = DMG_TYPE_CHOICE,
                            .choices = "auto|dense|sparse",
                            .default_text = "auto",
                            .help = "mode of the iterations",
                            .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_CACHING] = {.name = "caching",
                            .type = DMG_TYPE_CHOICE,
                            .choices = "partition|full",
                            .default_text = "partition",
                            .help =
                                "attributes that a compute node caches in dense iterations: its partitions', or all",
                            .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_UPDATES] = {.name = "updates",
                            .type = DMG_TYPE_CHOICE,
                            .choices = "auto|direct|valrd-node|valrd-owner",
                            .default_text = "auto",
                            .help = "how an update reaches another node's partition",
                            .old_words = old_update_methods,
                            .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_REFERENCE_EDGES] = {.name = "reference-edges",
                                    .type = DMG_TYPE_NUMBER,
                                    .placeholder = "N",
                                    .default_text = "7",
                                    .most = UINT32_MAX - 1,
                                    .help = "pass segments of more edges to their owner by reference; 0: none",
                                    .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_REFERENCE_DEGREE] = {.name = "reference-degree",
                                     .type = DMG_TYPE_NUMBER,
                                     .placeholder = "N",
                                     .default_text = "7",
                                     .least = 1,
                                     .most = UINT32_MAX,
                                     .help = "pass lists of no more edges by value, whatever their segments",
                                     .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_REFERENCE_BUFFER] = {.name = "reference-buffer",
                                     .type = DMG_TYPE_SIZE,
                                     .placeholder = "SIZE",
                                     .default_text = "4K",
                                     .least = 32,
                                     .most = 1 << 20,
                                     .help = "a batch of segments that are passed by reference",
                                     .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_VALUE_BUFFER] = {.name = "value-buffer",
                                 .type = DMG_TYPE_SIZE,
                                 .placeholder = "SIZE",
                                 .default_text = "32K",
                                 .least = 32,
                                 .most = 1 << 20,
                                 .help =
                                     "a batch of updates that are passed by value; to memory nodes at most a message",
                                 .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_PARTIALS] = {.name = "partials",
                             .type = DMG_TYPE_CHOICE,
                             .choices = "auto|array|value",
                             .default_text = "auto",
                             .help = "how pagerank passes on what a compute node adds up in pull mode",
                             .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_PRECISION] = {.name = "precision",
                              .type = DMG_TYPE_CHOICE,
                              .choices = "auto|single|double",
                              .default_text = "auto",
                              .help = "of what pagerank caches (auto: double for tolerances below 1e-9)",
                              .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_MERGE_ACTIVATION] = {.name = "merge-activation",
                                     .type = DMG_TYPE_CHOICE,
                                     .choices = "on|off",
                                     .default_text = "on",
                                     .help = "read neighbouring activation bits and attributes in one operation",
                                     .audience = DMG_HIDDEN,
                                     .is_switch = true},
    [DMG_OPTION_BATCH_ACTIVATION] = {.name = "batch-activation",
                                     .type = DMG_TYPE_CHOICE,
                                     .choices = "on|off",
                                     .default_text = "on",
                                     .help = "ring these reads once a batch of vertices, not one by one",
                                     .audience = DMG_HIDDEN,
                                     .is_switch = true},
    [DMG_OPTION_MERGE_INDEX] = {.name = "merge-index",
                                .type = DMG_TYPE_CHOICE,
                                .choices = "on|off",
                                .default_text = "on",
                                .help = "read neighbouring index entries in one operation",
                                .audience = DMG_HIDDEN,
                                .is_switch = true},
    [DMG_OPTION_BATCH_INDEX] = {.name = "batch-index",
                                .type = DMG_TYPE_CHOICE,
                                .choices = "on|off",
                                .default_text = "on",
                                .help = "ring these reads once a batch",
                                .audience = DMG_HIDDEN,
                                .is_switch = true},
    [DMG_OPTION_MERGE_LISTS] = {.name = "merge-lists",
                                .type = DMG_TYPE_CHOICE,
                                .choices = "on|off",
                                .default_text = "on",
                                .help = "read neighbouring edge lists in one operation",
                                .audience = DMG_HIDDEN,
                                .is_switch = true},
    [DMG_OPTION_BATCH_LISTS] = {.name = "batch-lists",
                                .type = DMG_TYPE_CHOICE,
                                .choices = "on|off",
                                .default_text = "on",
                                .help = "ring these reads once a batch",
                                .audience = DMG_HIDDEN,
                                .is_switch = true},
    [DMG_OPTION_WITHOUT] = {.name = "without",
                            .type = DMG_TYPE_SWITCHES,
                            .placeholder = "LIST",
                            .help =
                                "mechanisms of retrieval that are switched off: merge-activation, batch-activation, "
                                "merge-index, batch-index, merge-lists, batch-lists; the others are on; or none",
                            .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_EMBED] = {.name = "embed",
                          .type = DMG_TYPE_CHOICE,
                          .choices = "on|off",
                          .default_text = "on",
                          .help = "keep the edges of vertices with few of them in the index",
                          .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_RESCHEDULE_DEGREE] =
        {.name = "reschedule-degree",
         .type = DMG_TYPE_NUMBER,
         .placeholder = "N",
         .default_text = "16384",
         .most = UINT32_MAX - 1,
         .help = "walk lists of more edges in segments of N; 0: never (where lists are copied at most "
                 "32768, with weights 16384)",
         .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_STEAL_SEGMENTS] = {.name = "steal-segments",
                                   .type = DMG_TYPE_CHOICE,
                                   .choices = "on|off",
                                   .default_text = "on",
                                   .help = "idle workers take segments of others' lists",
                                   .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_CACHE_INDEX] = {.name = "cache-index",
                                .type = DMG_TYPE_CHOICE,
                                .choices = "off|on",
                                .default_text = "off",
                                .help = "read the index once, and keep it on the compute node",
                                .audience = DMG_FOR_RESEARCH},
    [DMG_OPTION_FORMAT] = {.name = "format",
                           .type = DMG_TYPE_CHOICE,
                           .choices = "auto|edge-list|matrix-market|binary",
                           .default_text = "auto",
                           .help = "of the graph's file (auto: by content, name and neighbours; docs/formats.md)"},
    [DMG_OPTION_DIRECTED] = {.name = "directed",
                             .type = DMG_TYPE_FLAG,
                             .help = "edges have a direction (the default of edge lists)"},
    [DMG_OPTION_UNDIRECTED] = {.name = "undirected",
                               .type = DMG_TYPE_FLAG,
                               .help = "a line `u v` is an edge in both directions"},
    [DMG_OPTION_UNWEIGHTED] = {.name = "unweighted",
                               .type = DMG_TYPE_FLAG,
                               .help = "check the third column, and leave it out of the graph"},
    [DMG_OPTION_DEDUP] = {.name = "dedup",
                          .type = DMG_TYPE_FLAG,
                          .help = "of repeated edges keep one, with the smallest weight"},
    [DMG_OPTION_NO_LOOPS] = {.name = "no-loops",
                             .type = DMG_TYPE_FLAG,
                             .help = "leave out edges from a vertex to itself"},
    [DMG_OPTION_OUT_LISTS_ONLY] = {.name = "out-lists-only",
                                   .type = DMG_TYPE_FLAG,
                                   .help = "do not store a directed graph's lists against the arcs"},
    [DMG_OPTION_SCALE] = {.name = "scale",
                          .type = DMG_TYPE_NUMBER,
                          .placeholder = "N",
                          .least = 1,
                          .most = 31,
                          .help = "2^N vertex ids"},
    [DMG_OPTION_EDGE_FACTOR] = {.name = "edge-factor",
                                .type = DMG_TYPE_NUMBER,
                                .placeholder = "N",
                                .default_text = "16",
                                .least = 1,
                                .most = 65536,
                                .help = "edges a vertex id"},
    [DMG_OPTION_SEED] = {.name = "seed",
                         .type = DMG_TYPE_NUMBER,
                         .placeholder = "N",
                         .default_text = "1",
                         .most = NONE,
                         .help = "the same seed gives the same graph, everywhere"},
    [DMG_OPTION_WEIGHTED] = {.name = "weighted",
                             .type = DMG_TYPE_FLAG,
                             .help = "give edges integer weights from 1 to 255"},
    [DMG_OPTION_OPERATIONS] = {.name = "operations",
                               .type = DMG_TYPE_TEXT,
                               .placeholder = "LIST",
                               .default_text = "read,write,cas,faa,message",
                               .help = "what to measure; also touch, a read in place"},
    [DMG_OPTION_SIZES] = {.name = "sizes",
                          .type = DMG_TYPE_TEXT,
                          .placeholder = "LIST",
                          .default_text = "8,64,512,4K,32K",
                          .help = "bytes of reads, writes and messages"},
    [DMG_OPTION_DEPTHS] = {.name = "depths",
                           .type = DMG_TYPE_TEXT,
                           .placeholder = "LIST",
                           .default_text = "1,16",
                           .help = "operations in flight a thread"},
    [DMG_OPTION_THREAD_COUNTS] = {.name = "thread-counts",
                                  .type = DMG_TYPE_TEXT,
                                  .placeholder = "LIST",
                                  .default_text = "1",
                                  .help = "threads, each with a channel"},
    [DMG_OPTION_DURATION] = {.name = "duration",
                             .type = DMG_TYPE_TIME,
                             .placeholder = "TIME",
                             .default_text = "50ms",
                             .least = 1000000,
                             .most = UINT64_C(60000000000),
                             .help = "of each measurement"},
    [DMG_OPTION_CALIBRATE] = {.name = "calibrate",
                              .type = DMG_TYPE_FLAG,
                              .help = "prove the emulated links on this machine: of --link, or all"},
    [DMG_OPTION_FIT] = {.name = "fit",
                        .type = DMG_TYPE_TEXT,
                        .placeholder = "FILE.link",
                        .help = "measure what a link profile has, and write one"},
    [DMG_OPTION_LINK_LIST] =
        {.name = "link",
         .type = DMG_TYPE_TEXTS,
         .placeholder = "PROFILE,...",
         .help = "links to predict for: names that 'dmgraph info links' shows, or files (default: all); "
                 "may be given several times"},
    [DMG_OPTION_MN_LIST] = {.name = "mns",
                            .type = DMG_TYPE_SIZES,
                            .placeholder = "LIST",
                            .most = NONE,
                            .help = "numbers of memory nodes (default: the run's)"},
    [DMG_OPTION_CN_LIST] = {.name = "cns",
                            .type = DMG_TYPE_SIZES,
                            .placeholder = "LIST",
                            .most = NONE,
                            .help = "numbers of compute nodes (default: the run's)"},
    [DMG_OPTION_CSV] = {.name = "csv", .type = DMG_TYPE_FLAG, .help = "print comma-separated values"},
    [DMG_OPTION_WITH] = {.name = "with",
                         .type = DMG_TYPE_TEXTS,
                         .placeholder = "TRANSPORT,LINK",
                         .help =
                             "a configuration, given once for each; LINK may be none (default: cxl_shm,polar-cxl and "
                             "ucx,polar-rdma)"},
    [DMG_OPTION_CNS_LIST] = {.name = "cns",
                             .type = DMG_TYPE_TEXT,
                             .placeholder = "LIST",
                             .default_text = "1,2",
                             .help = "numbers of compute nodes to run with"},
    [DMG_OPTION_ROUNDS] =
        {.name = "rounds",
         .type = DMG_TYPE_NUMBER,
         .placeholder = "N",
         .least = 1,
         .most = 25,
         .help = "times that everything is run (default: 3; up to 7 where that is soon done, 2 where it takes long)"},
    [DMG_OPTION_REPEATS] =
        {.name = "repeats",
         .type = DMG_TYPE_NUMBER,
         .placeholder = "N",
         .least = 1,
         .most = 9,
         .help = "runs of each inside a round, of which the median counts (default: 1; 5 where iterations "
                 "take less than 10 ms in all)"},
    [DMG_OPTION_PREDICT_CNS] = {.name = "predict-cns",
                                .type = DMG_TYPE_TEXT,
                                .placeholder = "LIST",
                                .default_text = "4,8,16,32",
                                .help = "numbers of compute nodes to predict for, as 'dmgraph predict' would"},
    [DMG_OPTION_UNCERTAINTY] = {.name = "uncertainty",
                                .type = DMG_TYPE_REAL,
                                .placeholder = "FACTOR",
                                .default_text = "1.5",
                                .real_least = 1,
                                .real_most = 1000,
                                .help = "by which the numbers of a profile may be off"},
    [DMG_OPTION_RUNS_ONLY] = {.name = "runs-only",
                              .type = DMG_TYPE_FLAG,
                              .help = "do not measure the transports, nor prove the links"},
    [DMG_OPTION_CSV_FILE] = {.name = "csv",
                             .type = DMG_TYPE_TEXT,
                             .placeholder = "FILE",
                             .help = "write all numbers as comma-separated values (default: beside --output)"},
    [DMG_OPTION_OUTPUT] = {.name = "output",
                           .type = DMG_TYPE_TEXT,
                           .placeholder = "FILE",
                           .help =
                               "write the answer, one line a vertex by ascending id, or the report in HTML; - is the "
                               "standard output"},
    [DMG_OPTION_VERIFY] = {.name = "verify", .type = DMG_TYPE_FLAG, .help = "compare with a serial computation"},
    [DMG_OPTION_TABLE] = {.name = "table", .type = DMG_TYPE_FLAG, .help = "print a line an iteration"},
    [DMG_OPTION_JSON] = {.name = "json",
                         .type = DMG_TYPE_FLAG,
                         .help = "print one JSON object for programs (docs/cli.md)"},
    [DMG_OPTION_QUIET] = {.name = "quiet", .type = DMG_TYPE_FLAG, .help = "print no summary"},
    [DMG_OPTION_NO_PROGRESS] = {.name = "no-progress", .type = DMG_TYPE_FLAG, .help = "show no progress bar"},
    [DMG_OPTION_LOG_LEVEL] = {.name = "log-level",
                              .type = DMG_TYPE_CHOICE,
                              .choices = "debug|info|warning|none",
                              .default_text = "warning",
                              .help = "log lines on the standard error"},
    [DMG_OPTION_POOL] = {.name = "pool",
                         .type = DMG_TYPE_TEXT,
                         .placeholder = "P",
                         .help = "the long-lived pool that 'dmgraph pool start' made (docs/pools.md)"},
    [DMG_OPTION_NAME] = {.name = "name", .type = DMG_TYPE_TEXT, .placeholder = "P", .help = "the pool's name"},
    [DMG_OPTION_AS] = {.name = "as",
                       .type = DMG_TYPE_TEXT,
                       .placeholder = "NAME",
                       .help = "the graph's name in the pool"},
    [DMG_OPTION_BIND] =
        {.name = "bind",
         .type = DMG_TYPE_TEXT,
         .placeholder = "HOST",
         .help = "address that the memory nodes listen on (default: they are reached from this machine alone)"},
    [DMG_OPTION_JOB_MEMORY] = {.name = "job-memory",
                               .type = DMG_TYPE_SIZE,
                               .placeholder = "SIZE",
                               .least = 4096,
                               .most = NONE,
                               .help = "what one job may have of each memory node (default: all)"},
    [DMG_OPTION_JOB_CLIENTS] = {.name = "job-clients",
                                .type = DMG_TYPE_NUMBER,
                                .placeholder = "N",
                                .default_text = "64",
                                .least = 1,
                                .most = 1024,
                                .help = "compute nodes that one job may have"},
    [DMG_OPTION_JOB_CHANNELS] =
        {.name = "job-channels",
         .type = DMG_TYPE_NUMBER,
         .placeholder = "N",
         .default_text = "2048",
         .least = 1,
         .most = 1 << 20,
         .help = "channels, each a descriptor of a memory node, that all compute nodes of a job may "
                 "have"},
    [DMG_OPTION_ADMIN] = {.name = "admin",
                          .type = DMG_TYPE_FLAG,
                          .help = "by the pool's admin secret, whoever it belongs to"},
    [DMG_OPTION_CONTROL_FD] = {.name = "control-fd",
                               .type = DMG_TYPE_NUMBER,
                               .placeholder = "N",
                               .least = 3,
                               .most = 1 << 20,
                               .help = "the socket to the launcher"},
    [DMG_OPTION_HELP] = {.name = "help", .type = DMG_TYPE_FLAG, .help = "print what most need"},
    [DMG_OPTION_HELP_ALL] = {.name = "help-all",
                             .type = DMG_TYPE_FLAG,
                             .help = "print this, with the options for experiments"},
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
    case DMG_TYPE_SWITCHES:
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

/* ---- switches ---- */

static dmg_status no_switch(const dmg_option_id *allowed, const char *word, size_t length)
{
    char known[256] = "";
    size_t used = 0;
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT && used < sizeof known; id++) {
        if (table[*id].is_switch) {
            int written = snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "", table[*id].name);
            used += written > 0 ? (size_t)written : 0;
        }
    }
    return dmg_error(DMG_ERR_ARGUMENT, "--without: there is no '%.*s'; there are %s, and none", (int)length, word,
                     known);
}

static dmg_option_id find_option(const dmg_option_id *allowed, const char *name, size_t length);

/*
 * What a list of switches says: those that it names are off, the others on. A switch that was given by itself, as an
 * earlier release had it, stays as it was given.
 */
static dmg_status apply_switches(const dmg_option_id *allowed, const char *list, dmg_settings *settings)
{
    bool is_off[DMG_OPTION_COUNT] = {false};
    const bool is_none = strcmp(list, "none") == 0;
    for (const char *word = list; !is_none && word;) {
        const char *comma = strchr(word, ',');
        size_t length = comma ? (size_t)(comma - word) : strlen(word);
        dmg_option_id id = find_option(allowed, word, length);
        if (id == DMG_OPTION_COUNT || !table[id].is_switch) {
            return no_switch(allowed, word, length);
        }
        is_off[id] = true;
        word = comma ? comma + 1 : NULL;
    }
    dmg_status status = DMG_OK;
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT && status == DMG_OK; id++) {
        if (table[*id].is_switch && !settings->values[*id].is_given) {
            status = parse_value(&table[*id], is_off[*id] ? "off" : "on", &settings->values[*id]);
            settings->values[*id].is_given = true;
        }
    }
    return status;
}

/* ---- the command line ---- */

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
        if (table[*id].audience != DMG_HIDDEN && distance < nearest_distance && distance < name_length) {
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
    const char *switches = settings->values[DMG_OPTION_WITHOUT].text;
    return switches ? apply_switches(allowed, switches, settings) : DMG_OK;
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

uint32_t dmg_options_print(FILE *to, const dmg_option_id *allowed, dmg_option_audience audience)
{
    uint32_t left_out = 0;
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT; id++) {
        const dmg_option *option = &table[*id];
        if (option->audience > audience) {
            left_out += option->audience != DMG_HIDDEN;
            continue;
        }
        char left[64];
        const char *value = option->choices ? option->choices : option->placeholder;
        snprintf(left, sizeof left, "--%s%s%s", option->name, value ? " " : "", value ? value : "");
        fprintf(to, "  %-36s %s", left, option->help);
        if (option->default_text) {
            fprintf(to, " (default: %s)", option->default_text);
        }
        fputc('\n', to);
    }
    return left_out;
}

json_t *dmg_options_json(const dmg_option_id *allowed, const dmg_settings *settings)
{
    json_t *object = json_object();
    for (const dmg_option_id *id = allowed; *id != DMG_OPTION_COUNT; id++) {
        const dmg_option *option = &table[*id];
        const dmg_option_value *value = &settings->values[*id];
        json_t *shown = NULL;
        if (*id == DMG_OPTION_HELP || *id == DMG_OPTION_HELP_ALL) {
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
        } else if (option->type == DMG_TYPE_TEXT || option->type == DMG_TYPE_CHOICE ||
                   option->type == DMG_TYPE_SWITCHES) {
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
