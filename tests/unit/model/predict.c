/*
 * The model behind dmgraph predict: cases that were worked out by hand, what must always hold, and reports that are not
 * to be trusted.
 */
#include "dmgraph/status.h"
#include "model/predict_model.h"
#include "unit/support/suite.h"

#include "core/base/error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR(value, expected) CU_ASSERT_DOUBLE_EQUAL(value, expected, 1e-6 * ((expected) + 1))
#define CNS_MOST              4

/* ---- runs of one superstep ---- */

typedef struct small_run {
    dmg_predict_run run;
    dmg_predict_superstep superstep;
    dmg_predict_share shares[CNS_MOST];
} small_run;

static void begin(small_run *small, uint32_t cns)
{
    *small = (small_run){.run = {.mns = 1, .cns = cns, .workers = 1, .most_loaded = 1, .superstep_count = 1},
                         .superstep = {.lone_workers = 1}};
    small->run.supersteps = &small->superstep;
    small->superstep.shares = small->run.shares = small->shares;
}

static dmg_link_settings link_of(dmg_link_cell cell, double value)
{
    dmg_link_settings link = {.name = "test", .line_bytes = 1};
    link.cells[cell] = value;
    return link;
}

static dmg_prediction predict(const small_run *small, const dmg_link_settings *link, uint32_t mns, uint32_t cns)
{
    dmg_prediction found;
    dmg_predict(&small->run, link, mns, cns, &found);
    double sum = 0;
    for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
        CU_ASSERT_TRUE(found.parts_ns[part] >= 0);
        sum += found.parts_ns[part];
    }
    NEAR(sum, found.total_ns);
    return found;
}

static void computing_alone_takes_as_long_as_it_took(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].busy_ns = 1000;
    dmg_link_settings link = link_of(DMG_LINK_READ_LATENCY, 5000);
    dmg_prediction found = predict(&small, &link, 1, 1);
    NEAR(found.total_ns, 1000);
    CU_ASSERT_EQUAL(found.bound, DMG_PREDICT_COMPUTE);
}

static void latency_alone_counts_rounds_that_follow_each_other(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].rounds[DMG_OPERATION_READ] = 40;
    small.shares[0].serial_rounds[DMG_OPERATION_READ] = 10; /* four at a time */
    small.shares[0].operations[DMG_OPERATION_READ] = 4000;
    dmg_link_settings link = link_of(DMG_LINK_READ_LATENCY, 500);
    dmg_prediction found = predict(&small, &link, 1, 1);
    NEAR(found.total_ns, 5000);
    CU_ASSERT_EQUAL(found.bound, DMG_PREDICT_LATENCY);
    small.run.workers = 2;
    small.superstep.lone_workers = 2; /* they share the rounds */
    NEAR(predict(&small, &link, 1, 1).total_ns, 2500);
}

static void atomics_of_a_link_without_cost_a_read_and_a_write(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].mapped_atomics = 3;
    dmg_link_settings link = link_of(DMG_LINK_READ_LATENCY, 500);
    link.cells[DMG_LINK_WRITE_LATENCY] = 200;
    NEAR(predict(&small, &link, 1, 1).total_ns, 2100);
    link.cells[DMG_LINK_ATOMIC_LATENCY] = 400;
    NEAR(predict(&small, &link, 1, 1).total_ns, 1200);
}

static void rate_of_operations_alone_bounds(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].operations[DMG_OPERATION_READ] = 1000;
    small.shares[0].rounds[DMG_OPERATION_READ] = small.shares[0].serial_rounds[DMG_OPERATION_READ] = 1;
    dmg_link_settings link = link_of(DMG_LINK_READ_RATE, 1); /* a microsecond each */
    dmg_prediction found = predict(&small, &link, 1, 1);
    NEAR(found.total_ns, 1e6);
    CU_ASSERT_EQUAL(found.bound, DMG_PREDICT_OPERATIONS);
    /* Twice the memory nodes, twice the links: such a round goes to both. */
    NEAR(predict(&small, &link, 2, 1).total_ns, 5e5);
    link = link_of(DMG_LINK_CHANNEL_RATE, 0.5);
    NEAR(predict(&small, &link, 1, 1).total_ns, 2e6);
}

static void bytes_alone_bound(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].operations[DMG_OPERATION_READ] = small.shares[0].rounds[DMG_OPERATION_READ] = 1;
    small.shares[0].serial_rounds[DMG_OPERATION_READ] = 1;
    small.shares[0].bytes[DMG_OPERATION_READ] = 1e6;
    dmg_link_settings link = link_of(DMG_LINK_READ_BANDWIDTH, 10);
    dmg_prediction found = predict(&small, &link, 1, 1);
    NEAR(found.total_ns, 1e5);
    CU_ASSERT_EQUAL(found.bound, DMG_PREDICT_BYTES);
    /* A lone transfer has one memory node's link, however many there are. */
    NEAR(predict(&small, &link, 2, 1).total_ns, 1e5);
    link = link_of(DMG_LINK_WRITE_BANDWIDTH, 1); /* the other direction */
    NEAR(predict(&small, &link, 1, 1).total_ns, 0);
}

static void compute_nodes_share_a_memory_nodes_link(void)
{
    small_run small;
    begin(&small, 2);
    for (int node = 0; node < 2; node++) {
        small.shares[node].operations[DMG_OPERATION_WRITE] = small.shares[node].rounds[DMG_OPERATION_WRITE] = 1;
        small.shares[node].serial_rounds[DMG_OPERATION_WRITE] = 1;
        small.shares[node].bytes[DMG_OPERATION_WRITE] = 1e6;
    }
    dmg_link_settings link = link_of(DMG_LINK_WRITE_BANDWIDTH, 10);
    dmg_prediction found = predict(&small, &link, 1, 2);
    NEAR(found.total_ns, 2e5);
    NEAR(found.bound_supersteps, 1);
    small.run.mns = 2;
    small.run.most_loaded = 0.75;
    NEAR(predict(&small, &link, 2, 2).total_ns, 1.5e5);
    link = link_of(DMG_LINK_CHANNEL_WRITE_BANDWIDTH, 10); /* each has its own connections */
    NEAR(predict(&small, &link, 1, 2).total_ns, 1e5);
}

static void posting_overlaps_the_link_and_computing_does_not(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].busy_ns = 1000;
    small.shares[0].post_ns = 400;
    small.shares[0].rounds[DMG_OPERATION_WRITE] = small.shares[0].serial_rounds[DMG_OPERATION_WRITE] = 4;
    dmg_link_settings link = link_of(DMG_LINK_WRITE_LATENCY, 200);
    dmg_prediction found = predict(&small, &link, 1, 1);
    NEAR(found.total_ns, 600 + 800);
    NEAR(found.parts_ns[DMG_PREDICT_LATENCY], 800);
    link.cells[DMG_LINK_WRITE_LATENCY] = 50; /* hidden */
    NEAR(predict(&small, &link, 1, 1).total_ns, 1000);
}

static void posting_hides_no_more_than_handing_over_takes(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].busy_ns = small.shares[0].post_ns = 1000;
    small.shares[0].operations[DMG_OPERATION_WRITE] = 1;
    small.shares[0].rounds[DMG_OPERATION_WRITE] = small.shares[0].serial_rounds[DMG_OPERATION_WRITE] = 1;
    dmg_link_settings link = link_of(DMG_LINK_WRITE_LATENCY, 600);
    NEAR(predict(&small, &link, 1, 1).total_ns, 600 + 600); /* 400 go on beside the link: of a round and an operation */
}

static void bytes_of_messages_take_their_time(void)
{
    small_run small;
    begin(&small, 1);
    dmg_predict_share *share = &small.shares[0];
    share->operations[DMG_OPERATION_MESSAGE] = share->rounds[DMG_OPERATION_MESSAGE] = 2;
    share->serial_rounds[DMG_OPERATION_MESSAGE] = 1; /* two in flight */
    share->bytes[DMG_OPERATION_MESSAGE] = 2e4;
    dmg_link_settings link = link_of(DMG_LINK_MESSAGE_LATENCY, 5000);
    link.cells[DMG_LINK_CHANNEL_WRITE_BANDWIDTH] = 10;
    dmg_prediction found = predict(&small, &link, 1, 1);
    NEAR(found.parts_ns[DMG_PREDICT_MESSAGES], 5000);
    CU_ASSERT_TRUE(found.parts_ns[DMG_PREDICT_BYTES] >= 1000);
}

static void mapped_spans_move_lines_and_are_waited_for(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].mapped_spans = small.shares[0].mapped_waits = 5;
    small.shares[0].mapped_lines = 100;
    small.shares[0].mapped_bytes = 5000;
    dmg_link_settings link = link_of(DMG_LINK_READ_LATENCY, 300);
    link.cells[DMG_LINK_READ_BANDWIDTH] = 6.4;
    link.line_bytes = 64;
    NEAR(predict(&small, &link, 1, 1).total_ns, 1500 + 1000);
    link.line_bytes = 1;
    NEAR(predict(&small, &link, 1, 1).total_ns, 1500 + 5000 / 6.4);
}

static void bytes_of_other_tasks_come_meanwhile(void)
{
    small_run small;
    begin(&small, 1);
    dmg_predict_share *share = &small.shares[0];
    share->busy_ns = 1e5;
    share->operations[DMG_OPERATION_READ] = share->rounds[DMG_OPERATION_READ] = 40;
    share->serial_rounds[DMG_OPERATION_READ] = 10;
    share->bytes[DMG_OPERATION_READ] = 1e6;
    dmg_link_settings link = link_of(DMG_LINK_READ_BANDWIDTH, 10); /* 1e5 ns of bytes */
    NEAR(predict(&small, &link, 1, 1).total_ns, 1e5 + 1e5 / 4);
    share->busy_ns = 1000; /* the link is never idle */
    NEAR(predict(&small, &link, 1, 1).total_ns, 1e5);
}

static void messages_keep_what_the_memory_node_took(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].rounds[DMG_OPERATION_MESSAGE] = small.shares[0].serial_rounds[DMG_OPERATION_MESSAGE] = 2;
    small.shares[0].message_wait_ns = 5000;
    dmg_link_settings link = link_of(DMG_LINK_MESSAGE_LATENCY, 1000);
    NEAR(predict(&small, &link, 1, 1).total_ns, 5000);
    link.cells[DMG_LINK_MESSAGE_LATENCY] = 4000;
    NEAR(predict(&small, &link, 1, 1).total_ns, 8000);
    small.run.has_link = true; /* the 5000 were 3000 of the memory node, and 2000 of the link */
    small.run.ran_on.cells[DMG_LINK_MESSAGE_LATENCY] = 1000;
    NEAR(predict(&small, &link, 1, 1).total_ns, 3000 + 8000);
}

static void slowest_compute_node_and_barriers_make_an_iteration(void)
{
    small_run small;
    begin(&small, 2);
    small.shares[0].busy_ns = 1000;
    small.shares[1].busy_ns = 3000;
    small.superstep.barriers = 3;
    dmg_link_settings link = link_of(DMG_LINK_MESSAGE_LATENCY, 1000);
    dmg_prediction found = predict(&small, &link, 1, 2);
    NEAR(found.total_ns, 3000 + 3000);
    NEAR(found.parts_ns[DMG_PREDICT_BARRIERS], 3000);
    /* Four of them have half as much each, and are as unbalanced; one alone has all, and no barriers. */
    NEAR(predict(&small, &link, 1, 4).total_ns, 1500 + 3000);
    NEAR(predict(&small, &link, 1, 1).total_ns, 4000);
}

static void what_every_compute_node_reads_whole_is_not_divided(void)
{
    small_run small;
    begin(&small, 1);
    small.shares[0].mapped_bytes = 1000;
    small.shares[0].mapped_spans = 1;
    small.shares[0].mapped_waits = 1;
    small.superstep.whole_bytes = 600;
    dmg_link_settings link = link_of(DMG_LINK_CHANNEL_READ_BANDWIDTH, 1);
    NEAR(predict(&small, &link, 1, 1).total_ns, 1000);
    NEAR(predict(&small, &link, 1, 4).total_ns, 600 + 100);
}

/* ---- what always holds ---- */

static double real_of(uint64_t *random, double most)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (double)(*random >> 11) * 0x1p-53 * most;
}

static void draw_share(uint64_t *random, dmg_predict_share *share)
{
    share->busy_ns = real_of(random, 1e6);
    share->post_ns = real_of(random, 1.2) * share->busy_ns;
    share->barrier_ns = real_of(random, 1e5);
    share->message_wait_ns = real_of(random, 1e5);
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        share->operations[kind] = floor(real_of(random, 1000));
        share->bytes[kind] = share->operations[kind] * floor(real_of(random, 10000));
        share->rounds[kind] = floor(real_of(random, 1) * share->operations[kind]);
        share->serial_rounds[kind] = share->rounds[kind] / (1 + floor(real_of(random, 4)));
    }
    share->mapped_spans = floor(real_of(random, 1000));
    share->mapped_bytes = share->mapped_spans * floor(real_of(random, 1000));
    share->mapped_lines = share->mapped_bytes / 64 + share->mapped_spans;
    share->mapped_waits = floor(real_of(random, 100));
    share->mapped_atomics = floor(real_of(random, 100));
}

static void draw_link(uint64_t *random, dmg_link_settings *link)
{
    *link = (dmg_link_settings){.name = "drawn", .line_bytes = real_of(random, 1) < 0.5 ? 1 : 64};
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        link->cells[cell] = cell <= DMG_LINK_MESSAGE_LATENCY ? real_of(random, 5000) : 0.1 + real_of(random, 30);
    }
}

static void slower_links_are_never_faster(void)
{
    uint64_t random = dmg_test_seed() | 1;
    for (int trial = 0; trial < 300; trial++) {
        small_run small;
        begin(&small, 1 + (uint32_t)(trial % 3));
        small.superstep.barriers = trial % 4;
        for (uint32_t node = 0; node < small.run.cns; node++) {
            draw_share(&random, &small.shares[node]);
        }
        dmg_link_settings link;
        draw_link(&random, &link);
        uint32_t mns = 1 + (uint32_t)trial % 2;
        uint32_t cns = 1 + (uint32_t)trial % 5;
        double total = predict(&small, &link, mns, cns).total_ns;
        double bare = predict(&small, NULL, mns, cns).total_ns;
        CU_ASSERT_TRUE(isfinite(total) && total >= bare * (1 - 1e-9));
        for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
            dmg_link_settings worse = link;
            worse.cells[cell] *= cell <= DMG_LINK_MESSAGE_LATENCY ? 1.5 : 0.5;
            CU_ASSERT_TRUE(predict(&small, &worse, mns, cns).total_ns >= total * (1 - 1e-9));
        }
    }
}

static void a_link_without_latency_and_limits_leaves_what_was_measured(void)
{
    uint64_t random = dmg_test_seed() | 1;
    const dmg_link_settings perfect = {.name = "perfect", .line_bytes = 1};
    for (int trial = 0; trial < 100; trial++) {
        small_run small;
        begin(&small, 1);
        draw_share(&random, &small.shares[0]);
        double expected = small.shares[0].busy_ns + small.shares[0].message_wait_ns;
        NEAR(predict(&small, &perfect, 1, 1).total_ns, expected);
        NEAR(predict(&small, NULL, 1, 1).total_ns, expected);
    }
}

/* ---- reports ---- */

static const char kind_text[] = "{\"operations\": 10, \"bytes\": 1000, \"rounds\": 4, \"serial_rounds\": 1.0}";

/* What dmgraph run --json prints, as far as it is read; two compute nodes, two iterations. */
static json_t *make_report(void)
{
    char counters[2048];
    snprintf(counters, sizeof counters,
             "{\"read\": %s, \"write\": %s, \"cas\": %s, \"faa\": %s, \"message\": %s, \"rings\": 1, "
             "\"in_place_spans\": 5, \"in_place_bytes\": 500, \"in_place_lines\": 10, \"in_place_atomics\": 2, "
             "\"in_place_waits\": 3, \"waits\": 4, \"wait_ns\": 1000, \"message_wait_ns\": 300, \"post_ns\": 100, "
             "\"modelled_ns\": 0}",
             kind_text, kind_text, kind_text, kind_text, kind_text);
    json_t *counted = json_loads(counters, 0, NULL);
    json_t *row =
        json_pack("{s:s, s:i, s:i, s:i, s:O, s:[{s:i, s:i, s:O}, {s:i, s:i, s:O}]}", "direction", "pull", "barriers", 1,
                  "elapsed_ns", 20000, "barrier_ns", 400, "counters", counted, "compute_nodes", "elapsed_ns", 20000,
                  "barrier_ns", 100, "counters", counted, "elapsed_ns", 15000, "barrier_ns", 300, "counters", counted);
    json_t *node =
        json_pack("{s:f, s:f, s:i, s:O, s:[{s:i, s:i, s:i}, {s:i, s:i, s:i}]}", "run_seconds", 50e-6, "barrier_seconds",
                  1e-6, "barriers", 3, "run_operations", counted, "traffic", "operations", 30, "read_bytes", 700,
                  "write_bytes", 0, "operations", 10, "read_bytes", 100, "write_bytes", 200);
    json_t *report =
        json_pack("{s:s, s:{s:i}, s:{s:i}, s:{s:[{}, {}], s:[O, O]}, s:[O, O], s:{s:i}, s:n}", "algorithm", "bfs",
                  "settings", "threads", 2, "graph", "vertices", 10, "nodes", "memory_nodes", "compute_nodes", node,
                  node, "iterations", row, row, "result", "iterations", 2, "emulated_link");
    json_decref(counted);
    json_decref(row);
    json_decref(node);
    json_t *copy = json_deep_copy(report); /* nothing in it is shared */
    json_decref(report);
    return copy;
}

static void reports_are_read(void)
{
    json_t *report = make_report();
    CU_ASSERT_PTR_NOT_NULL_FATAL(report);
    dmg_predict_run run;
    CU_ASSERT_EQUAL_FATAL(dmg_predict_run_read(report, &run), DMG_OK);
    json_decref(report);
    CU_ASSERT_STRING_EQUAL(run.algorithm, "bfs");
    CU_ASSERT_STRING_EQUAL(run.link, "none");
    CU_ASSERT_EQUAL(run.mns, 2);
    CU_ASSERT_EQUAL(run.cns, 2);
    CU_ASSERT_EQUAL(run.workers, 2);
    CU_ASSERT_EQUAL(run.superstep_count, 3);
    CU_ASSERT_TRUE(run.has_node_rows);
    NEAR(run.measured_ns, 50000);
    NEAR(run.most_loaded, 0.75);
    const dmg_predict_share *share = &run.supersteps[1].shares[1];
    NEAR(share->busy_ns, 15000 - 300 - (1000 - 300) / 2.0); /* waits are of both workers */
    NEAR(share->post_ns, 50);
    NEAR(share->serial_rounds[DMG_OPERATION_READ], 1);
    NEAR(share->serial_rounds[DMG_OPERATION_MESSAGE], 0); /* its round was the barrier's */
    NEAR(share->mapped_lines, 10);
    NEAR(run.supersteps[1].whole_bytes, 320);
    NEAR(run.supersteps[0].barriers, 1);
    NEAR(run.supersteps[0].shares[0].busy_ns, 50000 - 2 * 20000 - 800); /* what the iterations do not have */
    NEAR(run.supersteps[0].lone_workers, 1);
    dmg_predict_run_free(&run);
}

/* Read it, predict from it; true when it was refused, which needs a sentence. */
static bool is_refused(const json_t *report)
{
    dmg_predict_run run;
    dmg_status status = dmg_predict_run_read(report, &run);
    if (status == DMG_OK) {
        dmg_link_settings link = link_of(DMG_LINK_READ_LATENCY, 500);
        dmg_prediction found;
        dmg_predict(&run, &link, 3, 3, &found);
        CU_ASSERT_TRUE(isfinite(found.total_ns) && found.total_ns >= 0);
    } else {
        CU_ASSERT_EQUAL(status, DMG_ERR_FORMAT);
        CU_ASSERT_TRUE(strlen(dmg_error_message()) > 10);
    }
    dmg_predict_run_free(&run);
    return status != DMG_OK;
}

typedef json_t *(*spoiler)(void);

static json_t *make_negative(void)
{
    return json_integer(-1);
}

static json_t *make_huge(void)
{
    return json_real(1e300);
}

static json_t *make_text(void)
{
    return json_string("many");
}

static json_t *make_list(void)
{
    return json_pack("[i, s]", 1, "x");
}

/* Spoil every member of an object, one at a time, and put it back. */
static uint32_t spoil_all(const json_t *report, json_t *container, spoiler spoil, uint32_t *tried)
{
    uint32_t refused = 0;
    json_t *whole = json_copy(container); /* putting a member back changes the order */
    const char *key;
    json_t *value;
    json_object_foreach(whole, key, value)
    {
        if (spoil) {
            json_object_set_new(container, key, spoil());
        } else {
            json_object_del(container, key);
        }
        refused += is_refused(report);
        (*tried)++;
        json_object_set(container, key, value);
    }
    json_decref(whole);
    return refused;
}

static void spoiled_reports_end_with_a_sentence(void)
{
    static const spoiler spoilers[] = {NULL, make_negative, make_huge, make_text, make_list};
    for (size_t i = 0; i < sizeof spoilers / sizeof spoilers[0]; i++) {
        json_t *report = make_report();
        json_t *row = json_array_get(json_object_get(report, "iterations"), 1);
        json_t *of_node = json_array_get(json_object_get(row, "compute_nodes"), 0);
        json_t *counters = json_object_get(of_node, "counters");
        json_t *nodes = json_object_get(report, "nodes");
        json_t *node = json_array_get(json_object_get(nodes, "compute_nodes"), 1);
        json_t *containers[] = {report,
                                json_object_get(report, "settings"),
                                json_object_get(report, "graph"),
                                json_object_get(report, "result"),
                                nodes,
                                node,
                                json_array_get(json_object_get(node, "traffic"), 0),
                                row,
                                of_node,
                                counters,
                                json_object_get(counters, "read")};
        uint32_t tried = 0;
        uint32_t refused = 0;
        for (size_t place = 0; place < sizeof containers / sizeof containers[0]; place++) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(containers[place]);
            refused += spoil_all(report, containers[place], spoilers[i], &tried);
        }
        CU_ASSERT_FALSE(is_refused(report));          /* all was put back */
        CU_ASSERT_TRUE(tried >= 45 && refused >= 40); /* some members are not read, or may be missing */
        json_decref(report);
    }
}

static void reports_of_something_else_are_refused(void)
{
    static const char *const texts[] = {"{}", "[]", "null", "{\"iterations\": []}",
                                        "{\"settings\": {\"threads\": 0}, \"iterations\": []}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *report = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        CU_ASSERT_TRUE(is_refused(report));
        json_decref(report);
    }
}

int main(int argc, char **argv)
{
    static const dmg_test cases[] = {DMG_TEST(computing_alone_takes_as_long_as_it_took),
                                     DMG_TEST(latency_alone_counts_rounds_that_follow_each_other),
                                     DMG_TEST(atomics_of_a_link_without_cost_a_read_and_a_write),
                                     DMG_TEST(rate_of_operations_alone_bounds),
                                     DMG_TEST(bytes_alone_bound),
                                     DMG_TEST(compute_nodes_share_a_memory_nodes_link),
                                     DMG_TEST(posting_overlaps_the_link_and_computing_does_not),
                                     DMG_TEST(posting_hides_no_more_than_handing_over_takes),
                                     DMG_TEST(bytes_of_messages_take_their_time),
                                     DMG_TEST(mapped_spans_move_lines_and_are_waited_for),
                                     DMG_TEST(bytes_of_other_tasks_come_meanwhile),
                                     DMG_TEST(messages_keep_what_the_memory_node_took),
                                     DMG_TEST(slowest_compute_node_and_barriers_make_an_iteration),
                                     DMG_TEST(what_every_compute_node_reads_whole_is_not_divided),
                                     DMG_TEST(slower_links_are_never_faster),
                                     DMG_TEST(a_link_without_latency_and_limits_leaves_what_was_measured),
                                     {NULL, NULL}};
    static const dmg_test reports[] = {DMG_TEST(reports_are_read),
                                       DMG_TEST(spoiled_reports_end_with_a_sentence),
                                       DMG_TEST(reports_of_something_else_are_refused),
                                       {NULL, NULL}};
    return dmg_suite_add("model", NULL, NULL, cases) != 0 || dmg_suite_add("reports", NULL, NULL, reports) != 0
               ? 1
               : dmg_suites_run(argc, argv);
}
