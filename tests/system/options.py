"""Every option of the program's help does what it says, and what makes no sense is refused with exit code 2."""

import json
import math
import os
import re

import reference
from harness import (LIMIT, OK, USAGE, VERIFY, check, compare, dmgraph, finish, is_close, one_line, path_of, read_answer, require,
                     write)

LINES = [(1, 2, 5), (2, 3, 4), (1, 3, 100), (3, 4, 1), (4, 4, 1), (3, 4, 6), (5, 6, 2)]
GRAPH = write("small.el", "".join(f"{u} {v} {w}\n" for u, v, w in LINES))
PLAIN = reference.Graph(LINES)
tested = set()


def option(name):
    """Mark an option as tested by the case that follows."""
    tested.add(name)
    return "--" + name


def answer_of(algorithm, *options, graph=GRAPH):
    dmgraph("run", algorithm, graph, *options, "--output", path_of("answer"), "--quiet")
    return read_answer(path_of("answer"))


def settings_of(*options, algorithm="cc"):
    """The run's echo of its settings."""
    report = json.loads(dmgraph("run", algorithm, GRAPH, *options, "--json").out)
    return report["settings"] if "settings" in report else report


def find(value, key):
    """The first value under this key, however deep."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find(item, key)
            if found is not None:
                return found
    return None


def numbers_are_taken():
    settings = settings_of(option("mns"), 2, option("cns"), 3, option("threads"), 2, option("partitions"), 6, option("tasks"), 2,
                           option("transport"), "cxl_shm")
    for name, value in (("mns", 2), ("cns", 3), ("threads", 2), ("partitions", 6), ("tasks", 2), ("transport", "cxl_shm")):
        require(find(settings, name) == value, f"{name} is {find(settings, name)} in {settings}")


def sizes_and_times_are_taken():
    settings = settings_of(option("cache"), "64M", option("memory"), "96M", option("peer-timeout"), "1500ms")
    require(find(settings, "cache") == 64 << 20, settings)
    require(find(settings, "memory") == 96 << 20, settings)
    require(find(settings, "peer-timeout") == 1.5, settings)


def shapes_of_the_store():
    """The answer does not depend on how wide index entries are, or of how many tiny-chunks partitions are made."""
    lines = [(u, (u * u + k) % 700) for u in range(700) for k in range(u % 40)]  # lists in place, and out of place at any width
    graph = write("shapes.el", "".join(f"{u} {v}\n" for u, v in lines))
    wanted = reference.bfs(reference.Graph(lines), 3)
    for entry_bytes in (16, 32, 64, 128):
        answer = answer_of("bfs", option("index-entry-bytes"), entry_bytes, "--source", 3, "--cns", 3, "--partitions", 7,
                           graph=graph)
        compare(answer, wanted)
        settings = settings_of("--index-entry-bytes", entry_bytes)
        require(find(settings, "index-entry-bytes") == str(entry_bytes), settings)
    for chunks in (1, 5, 16384):
        compare(answer_of("bfs", option("tiny-chunks"), chunks, "--source", 3, "--cns", 3, graph=graph), wanted)
    require(find(settings_of("--tiny-chunks", 77), "tiny-chunks") == 77, "--tiny-chunks is not echoed")
    for words in (("--index-entry-bytes", 24), ("--tiny-chunks", 0), ("--tiny-chunks", 16385)):
        one_line(dmgraph("run", "bfs", graph, *words, expect=USAGE).err)


SWITCHES = ("merge-activation", "batch-activation", "merge-index", "batch-index", "merge-lists", "batch-lists")


def spans_by_purpose(*words, graph):
    report = json.loads(dmgraph("run", "cc", graph, "--threads", 1, "--direction", "push", "--density", "dense", "--json", "--verify",
                                *words).out)
    return {name: count["operations"] + count["in_place_spans"]
            for name, count in report["operations"]["run"]["purposes"].items()}


def mechanisms_of_retrieval():
    lines = [(u, v) for u in range(0, 3000, 3) for v in (u + 1, (u * 7 + 3) % 3000)]
    graph = write("retrieval.el", "".join(f"{u} {v}\n" for u, v in lines))
    usual = spans_by_purpose(graph=graph)
    for name in SWITCHES:
        other = spans_by_purpose(option("without"), name, graph=graph)
        if name.startswith("batch"):
            require(other == usual, (name, usual, other))
        settings = settings_of("--without", name)
        require([one for one in SWITCHES if find(settings, one) == "off"] == [name], (name, settings))
        # As it was said until now.
        require(spans_by_purpose("--" + name, "off", graph=graph) == other, name)
    settings = settings_of("--system", "dmg-base", "--without", "merge-lists,batch-index")
    require([one for one in SWITCHES if find(settings, one) == "off"] == ["batch-index", "merge-lists"], settings)
    require(all(find(settings_of("--system", "dmg-base", "--without", "none"), one) == "on" for one in SWITCHES), "none")
    for wrong in ("merge-lists,", "embed", "merge-lists,none", "cns"):
        error = one_line(dmgraph("run", "cc", graph, "--without", wrong, expect=USAGE).err)
        require("--without" in error and all(name in error for name in SWITCHES), error)
    require(usual["lists"] == 0, usual)
    require(spans_by_purpose("--without", "merge-index", graph=graph)["index"] > 10 * usual["index"], "index")
    require(spans_by_purpose("--without", "merge-activation", graph=graph)["streams"] > usual["streams"], "streams")
    apart = spans_by_purpose("--embed", "off", graph=graph)
    require(apart["lists"] > 0 and apart["index"] == usual["index"], apart)
    single = spans_by_purpose(option("embed"), "off", "--without", "merge-lists", graph=graph)
    require(single["lists"] > 10 * apart["lists"], single)
    one_line(dmgraph("run", "cc", graph, "--embed", "perhaps", expect=USAGE).err)


def long_lists_in_segments():
    lines = [(u, v) for u in (0, 1) for v in range(2, 2000)] + [(v, 0) for v in range(2, 2000)]
    graph = write("hubs.el", "".join(f"{u} {v}\n" for u, v in lines))

    def work(*words):
        return json.loads(dmgraph("run", "cc", graph, "--threads", 1, "--json", "--verify", *words).out)["work_balance"]

    require(work(option("reschedule-degree"), 0)["segments"] == 0, "segments without re-scheduling")
    usual, small = work("--reschedule-degree", 1000), work("--reschedule-degree", 100)
    require(usual["segments"] > 0 and usual["lists_cut"] > 0, usual)
    require(small["segments"] > 5 * usual["segments"], (usual, small))
    require(usual["workers"] == 1 and usual["busy_ns_max"] == usual["busy_ns"] and usual["arcs_mean"] == usual["arcs"], usual)
    report = json.loads(dmgraph("run", "cc", graph, option("cache-index"), "on", "--embed", "off", "--json", "--verify").out)
    cache = report["nodes"]["compute_nodes"][0]["cache"]["peak_bytes_by_purpose"]
    require(cache["index"] > 0 and cache["index"] % 12 == 0, cache)
    alone = work(option("steal-segments"), "off", "--threads", 2)
    require(alone["segments_stolen"] == 0 and alone["workers"] == 2, alone)


def segments_fit_into_the_buffers_that_they_are_copied_to():
    star = write("star.el", "".join(f"0 {v} {v % 7}\n{v} 0 1\n" for v in range(1, 40001)))

    def run(transport, edges, expect=OK):
        return dmgraph("run", "sssp", star, "--transport", transport, "--threads", 2, "--direction", "push", "--reschedule-degree", edges,
                       "--verify", "--quiet", expect=expect)

    for transport in ("ucx", "ucx:data=message"):
        run(transport, 16384)
        for edges in (16385, 32768):
            line = one_line(run(transport, edges, expect=USAGE).err)
            require(str(edges) in line and "between 1 and 16384" in line, line)
    run("cxl_shm", 32768)  # lists are read where they lie


def whole_systems():
    """What each is stands in systems.py."""
    for system in ("dmg", "dmg-base", "fam-graph", "fully-cached"):
        compare(answer_of("bfs", option("system"), system, "--source", 1), reference.bfs(PLAIN, 1))


def placement():
    for words in ((option("pin-threads"),), (option("prefault"),), (option("numa-node"), 0),
                  (option("page-size"), "2M", option("allow-fallback"))):
        answer = answer_of("cc", *words)
        compare(answer, reference.components(PLAIN))


def trust_of_the_network():
    run = dmgraph("run", "cc", GRAPH, "--quiet", "--transport", "ucx:messages=tcp", option("trust-network"))
    require("anybody who can connect" in one_line(run.err), run.err)
    for transport in ("cxl_shm", "ucx"):
        line = one_line(dmgraph("run", "cc", GRAPH, "--transport", transport, "--trust-network", expect=USAGE).err)
        require("trust-network" in line, line)


def a_cache_that_is_too_small():
    path = write("wide.el", "".join(f"{i} {i + 1}\n" for i in range(100000)))
    run = dmgraph("run", "pagerank", path, "--cache", 4096, expect=LIMIT)
    line = one_line(run.err)
    require("cache" in line, line)


def a_memory_node_that_is_too_small():
    path = write("wide.el", "".join(f"{i} {i + 1}\n" for i in range(300000)))
    run = dmgraph("run", "cc", path, "--memory", "1M", expect=LIMIT)
    one_line(run.err)


def source():
    for vertex in (1, 3, 5):
        compare(answer_of("bfs", option("source"), vertex), reference.bfs(PLAIN, vertex))
    compare(answer_of("bfs"), reference.bfs(PLAIN, 1))


def pagerank_options():
    answer = answer_of("pagerank", option("iterations"), 3, option("damping"), 0.6, option("tolerance"), 0)
    compare(answer, reference.pagerank(PLAIN, 3, 0.6), 1e-6)
    answer = answer_of("pagerank", "--tolerance", 1e9)
    compare(answer, reference.pagerank(PLAIN, 1), 1e-6)
    answer = answer_of("pagerank", "--tolerance", 1e-13)
    compare(answer, reference.pagerank(PLAIN, 300), 1e-6)


def directions():
    wanted = reference.bfs(PLAIN, 1)
    for direction in ("auto", "push", "pull"):
        for density in ("auto", "dense", "sparse"):
            if (direction, density) != ("pull", "sparse"):
                compare(answer_of("bfs", option("direction"), direction, option("density"), density), wanted)


def ways_of_updating():
    wanted = reference.bfs(PLAIN, 1)
    for transport in ("cxl_shm", "ucx", "ucx:data=message"):
        for updates in ("auto", "direct", "valrd-node", "valrd-owner"):
            answer = answer_of("bfs", option("updates"), updates, "--transport", transport, "--cns", 2, "--mns", 2)
            compare(answer, wanted)


def references():
    wanted = reference.bfs(PLAIN, 1)
    for edges in (0, 1, 7):
        details = (option("reference-degree"), 1, option("reference-buffer"), 32) if edges else ()
        compare(answer_of("bfs", "--reference-edges", edges, *details, "--direction", "push", "--density", "dense", "--cns", 3), wanted)
        answer = answer_of("bfs", option("reference-edges"), edges, "--direction", "push", "--density", "dense", "--cns", 2)
        compare(answer, wanted)


def cachings():
    wanted = reference.bfs(PLAIN, 1)
    run = dmgraph("run", "bfs", GRAPH, "--source", 1, "--cns", 3, "--json")
    vertices = json.loads(run.out)["graph"]["vertices"]
    for caching in ("partition", "full"):
        compare(answer_of("bfs", option("caching"), caching, "--density", "dense", "--cns", 3), wanted)
        run = dmgraph("run", "bfs", GRAPH, option("caching"), caching, "--density", "dense", "--cns", 3, "--json")
        cached = sum(node["cache"]["peak_bytes_by_purpose"]["attributes"] for node in json.loads(run.out)["nodes"]["compute_nodes"])
        require(cached == 8 * vertices * (3 if caching == "full" else 1), f"{caching}: {cached} bytes for {vertices} vertices")


def passed_of(path, algorithm, *options):
    """What a run reports of updates and segments that left a partition."""
    report = json.loads(dmgraph("run", algorithm, path, *options, "--direction", "push", "--density", "dense", "--undirected", "--cns",
                                3, "--threads", 2, "--verify", "--json").out)
    for row in report["iterations"]:
        require(row["passed"]["sent"] == row["passed"]["taken"], row)
        require(row["references"] == row["passed"]["sent"]["refrd"]["items"], row)
        require(row["updates_remote"] == sum(row["passed"]["sent"][method]["items"] for method in ("direct", "valrd-node", "valrd-owner")), row)
    return report["updates"], report["updates"]["passed"]["sent"]


def devices_of_tests_are_in_no_program():
    for key in ("line-cache=1", "leave-out=atomics"):
        error = dmgraph("run", "bfs", GRAPH, "--transport", f"cxl_shm:coherence=none,{key}", expect=USAGE).err
        require(f"no parameter '{key.split('=')[0]}'" in one_line(error), error)


def batches_are_as_large_as_asked_for():
    path = write("cross.el", "".join(f"{u} {(u * 7 + k * 31) % 600}\n" for u in range(600) for k in range(u % 20)))
    for updates in ("valrd-node", "valrd-owner"):
        for size, items_a_batch in ((32, 2), ("1M", None)):
            settings, sent = passed_of(path, "bfs", option("value-buffer"), size, "--updates", updates)
            require(settings["method"] == updates, settings)
            require(settings["value_message_bytes"] <= settings["value_buffer_bytes"], settings)
            batches = sent[updates]
            require(batches["items"] > 1000 and batches["bytes"] == 12 * batches["items"], sent)
            if items_a_batch:
                require(batches["buffers"] * items_a_batch >= batches["items"], sent)
            else:
                require(batches["buffers"] < batches["items"] / 10, sent)
    for size, items_a_batch in ((32, 1), (48, 2), ("4K", 170)):
        settings, sent = passed_of(path, "cc", option("reference-buffer"), size, "--reference-edges", 1)
        batches = sent["refrd"]
        require(batches["items"] > 100 and batches["bytes"] == 24 * batches["items"], sent)
        require(batches["buffers"] * items_a_batch >= batches["items"], sent)
    for name in ("reference-buffer", "value-buffer"):
        for size in ("31", "1025K"):
            require("--" + name in dmgraph("run", "bfs", path, "--" + name, size, expect=USAGE).err, name)


def lists_that_are_short_go_by_value():
    path = write("star.el", "".join(f"{u} {100 + (u * 13 + k * 7) % 500}\n" for u in range(10) for k in range(20 + u)))
    counts = []
    for degree in (1, 7, 24, 1000):
        _, sent = passed_of(path, "cc", option("reference-degree"), degree, "--reference-edges", 1)
        counts.append(sent["refrd"]["items"])
    require(counts[0] == counts[1] > counts[2] > counts[3] == 0, counts)


def partial_sums():
    for partials in ("auto", "array", "value"):
        answer = answer_of("pagerank", option("partials"), partials, "--direction", "pull", "--cns", 2, "--tolerance", 1e-8)
        compare(answer, reference.pagerank(PLAIN, 300), 1e-6)


def precisions():
    for precision in ("auto", "single", "double"):
        answer = answer_of("pagerank", option("precision"), precision, "--tolerance", 1e-8)
        compare(answer, reference.pagerank(PLAIN, 300), 1e-6)


def ranks_add_up():
    """By default within 1e-8, on small graphs and on large ones where one vertex gives most, and they settle."""
    leaves = 40000
    graphs = {"pair": "1 2\n", "star of 3": "1 2\n2 1\n1 3\n3 1\n", "small": "".join(f"{u} {v}\n" for u, v, _ in LINES),
              "star": "".join(f"0 {leaf}\n{leaf} 0\n" for leaf in range(1, leaves + 1))}
    for name, text in graphs.items():
        path = write("ranks.el", text)
        for flags in ((), ("--cns", 2), ("--cns", 3, "--partitions", 2), ("--cns", 2, "--partials", "value")):
            report = json.loads(dmgraph("run", "pagerank", path, *flags, "--verify", "--json", "--output", path_of("answer")).out)
            ranks = [float(words[0]) for words in read_answer(path_of("answer")).values()]
            require(abs(math.fsum(ranks) - 1) < 1e-8, f"{name} {flags}: the ranks add up to {math.fsum(ranks):.12f}")
            require(abs(report["result"]["sum"] - 1) < 1e-8, f"{name} {flags}: it says that they add up to {report['result']['sum']}")
            iterations = report["result"]["iterations"]
            require(iterations < 200, f"{name} {flags}: {iterations} iterations, and 132 suffice for the star")
    # A limit that has no room for the doubles is kept, and single precision with it.
    def cache(*flags):
        report = json.loads(dmgraph("run", "pagerank", path_of("ranks.el"), "--threads", 1, "--verify", "--json", *flags).out)
        return report["nodes"]["compute_nodes"][0]["cache"]["peak_bytes"], report["result"]["iterations"]

    single, _ = cache("--precision", "single", "--tolerance", 1e-3)
    double, _ = cache()
    require(double - single == 4 * (leaves + 1), f"{double} - {single} bytes are not 4 a vertex")
    tight, iterations = cache("--cache", single)
    require(tight == single and iterations == 1000, f"{tight} bytes of {single}, {iterations} iterations")


def the_format_is_what_it_is_called():
    """A text that looks like METIS' format is read as an edge list when that is asked for, by every command."""
    path = write("ring.graph", "4 4\n2 4\n1 3\n2 4\n1 3\n")
    flags = (option("format"), "edge-list")
    require(len(answer_of("cc", *flags, graph=path)) == 4, "the ring has 4 vertices")
    require(json.loads(dmgraph("info", "graph", path, *flags, "--json").out)["arcs"] == 5, "each line is an arc")
    dmgraph("convert", path, path_of("ring.dmg"), *flags)
    for given in ("auto", "binary"):
        require(len(answer_of("cc", *(("--format", given)), graph=path_of("ring.dmg"))) == 4, "the converted ring has 4 vertices")


def edges_have_directions():
    compare(answer_of("bfs", option("directed"), "--source", 3), reference.bfs(PLAIN, 3))
    compare(answer_of("bfs", option("undirected"), "--source", 3), reference.bfs(reference.Graph(LINES, False), 3))


def a_symmetric_matrix_is_undirected():
    path = write("half.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    compare(answer_of("bfs", "--source", 1, graph=path), reference.bfs(reference.Graph([(2, 1), (3, 2)], False), 1))


def weights_are_left_out():
    answer = answer_of("sssp", option("unweighted"), "--source", 1)
    compare(answer, reference.shortest_paths(reference.Graph([(u, v) for u, v, _ in LINES]), 1), 0)


def weights_are_used():
    compare(answer_of("sssp", "--source", 1), reference.shortest_paths(PLAIN, 1), 0)


def weights_that_would_matter_are_not_lost_in_silence():
    """PageRank has no weighted form: it says so, and how to say that this is meant. The others have none that would matter."""
    dmgraph("convert", GRAPH, path_of("weighted.dmg"))
    symmetric = write("weighted.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 2 4\n")
    for graph in (GRAPH, path_of("weighted.dmg"), symmetric):
        run = dmgraph("run", "pagerank", graph, "--json")
        line = one_line(run.err)
        require("warning" in line and "weights_not_used" in line and "--unweighted" in line and graph in line, line)
        report = json.loads(run.out)
        require(report["result"]["weights_not_used"] is True, f"{report['result']}")
        require(len(report["warnings"]) == 1 and "--unweighted" in report["warnings"][0], f"{report['warnings']}")
        require("weights not used: each arc counts 1" in dmgraph("run", "pagerank", graph).out, "the summary is silent")
        for silent in (("pagerank", graph, "--unweighted"), ("bfs", graph), ("cc", graph), ("sssp", graph)):
            run = dmgraph("run", *silent, "--json")
            report = json.loads(run.out)
            require(not run.err and not report["warnings"] and not report["result"]["weights_not_used"], f"{silent}: {run.err}")
        require(not dmgraph("run", "pagerank", graph, "--log-level", "none").err, "--log-level none is not silent")
    require(not dmgraph("run", "pagerank", write("unweighted.el", "1 2\n")).err, "there are no weights")
    run = dmgraph("compare", GRAPH, "pagerank", "--cns", 1, "--rounds", 1, "--runs-only", "--no-progress", "--with", "cxl_shm,none",
                  "--with", "cxl_shm:coherence=none,none")
    require("weights_not_used" in run.err, f"compare is silent: {run.err}")


def repeats_and_loops():
    answer = answer_of("pagerank", "--iterations", 5, "--tolerance", 0)
    compare(answer, reference.pagerank(PLAIN, 5), 1e-6)
    answer = answer_of("pagerank", option("dedup"), "--iterations", 5, "--tolerance", 0)
    compare(answer, reference.pagerank(PLAIN.without_repeats(), 5), 1e-6)
    answer = answer_of("pagerank", option("no-loops"), "--iterations", 5, "--tolerance", 0)
    compare(answer, reference.pagerank(PLAIN.without_loops(), 5), 1e-6)


def repeats_and_loops_are_reported():
    out = dmgraph("run", "cc", GRAPH).out
    require(re.search(r"repeat", out) and re.search(r"loop", out), f"neither repeats nor loops are spoken of:\n{out}")


def out_lists_only():
    compare(answer_of("bfs", option("out-lists-only")), reference.bfs(PLAIN, 1))


def output_to_the_standard_output():
    out = dmgraph("run", "bfs", GRAPH, option("output"), "-", option("quiet")).out
    lines = [line.split() for line in out.splitlines() if not line.startswith("#")]
    compare({int(words[0]): words[1:] for words in lines}, reference.bfs(PLAIN, 1))


def unreached():
    compare(answer_of("bfs", "--source", 6), reference.bfs(PLAIN, 6))
    answer = answer_of("sssp", "--source", 5)
    require(answer[1] == ["inf"] and answer[6] == ["2"], f"{answer}")


def verify():
    for algorithm in ("bfs", "cc", "pagerank", "sssp"):
        out = dmgraph("run", algorithm, GRAPH, option("verify"), "--cns", 2).out
        require("verif" in out, f"the summary does not say that it was verified:\n{out}")


def table():
    without = dmgraph("run", "bfs", GRAPH).out
    with_table = dmgraph("run", "bfs", GRAPH, option("table")).out
    require(len(with_table.splitlines()) >= len(without.splitlines()) + 4, f"no line an iteration:\n{with_table}")


def json_report():
    run = dmgraph("run", "pagerank", GRAPH, "--unweighted", option("json"), "--mns", 2, "--cns", 2)
    report = json.loads(run.out)
    for word in ("transport", "mns", "cns", "threads", "iterations"):
        require(word in json.dumps(report), f"{word} is not in {run.out}")
    require(run.err == "", f"the standard error is not empty: {run.err}")


def what_memory_nodes_did():
    """The updates that memory nodes say they applied are those that left the compute nodes, one by one."""
    lines = [(u, (u * 7 + k * k) % 500) for u in range(500) for k in range(u % 9)]
    graph = write("passed.el", "".join(f"{u} {v}\n" for u, v in lines))
    for transport in ("ucx", "cxl_shm"):
        report = json.loads(dmgraph("run", "pagerank", graph, "--json", "--transport", transport, "--mns", 2, "--cns", 2, "--direction",
                                    "push", "--updates", "valrd-node", "--reference-edges", 0, "--iterations", 3).out)
        nodes = report["nodes"]["memory_nodes"]
        sent = sum(row["updates_remote"] for row in report["iterations"])
        applied = sum(node["run"]["updates"] for node in nodes)
        require(applied == sent > 0, f"{sent} updates were sent, {applied} came")
        for node in nodes:
            require(node["load"]["updates"] == 0 and node["run"]["offload_cpu_ns"] > 0 and node["run"]["serve_cpu_ns"] > 0, f"{node}")
            require(node["run"]["update_messages"] < node["run"]["messages"], f"{node}")
        loading = report["loading"]
        require(loading["partitions"] == 2 and loading["tiny_chunks"] == 8 and loading["file_bytes"] > 0, f"{loading}")
        require(loading["partition_ns"] > 0 and loading["repartition_ns"] > 0 and 1 <= loading["partition_imbalance"] <= 2, f"{loading}")


def summary():
    run = dmgraph("run", "cc", GRAPH, "--mns", 2, "--cns", 2)
    for word in ("vertices", "load", "wait", "cache", "bytes", "tiny-chunks", "offload"):
        require(word in run.out.lower(), f"'{word}' is not in the summary:\n{run.out}")
    require(run.err == "", f"the standard error is not empty: {run.err}")


def quiet():
    run = dmgraph("run", "cc", GRAPH, "--quiet", option("no-progress"))
    require(run.out == "" and run.err == "", f"{run.out}{run.err}")


def log_level():
    require(dmgraph("run", "cc", GRAPH, option("log-level"), "none").err == "", "none is not silent")
    dmgraph("run", "cc", GRAPH, "--log-level", "debug")


def a_summary_never_mixes_with_an_answer():
    run = dmgraph("run", "cc", GRAPH, "--output", "-")
    for line in run.out.splitlines():
        require(re.fullmatch(r"#.*|\d+ \d+", line), f"not a line of the answer: {line}")


def generator_options():
    dmgraph("generate", "kron", option("scale"), 6, option("edge-factor"), 4, option("seed"), 3, option("weighted"), path_of("k.dmg"))
    out = dmgraph("info", "graph", path_of("k.dmg")).out
    require("weight" in out.lower(), out)


def info_of_a_graph():
    out = dmgraph("info", "graph", GRAPH).out
    require("6" in out and "7" in out, f"neither 6 vertices nor 7 arcs:\n{out}")


def info_of_transports():
    out = dmgraph("info", "transports").out
    require("cxl_shm" in out and "ucx" in out, out)
    json.loads(dmgraph("info", "transports", "--json").out)


def emulated_links():
    report = json.loads(dmgraph("run", "cc", GRAPH, option("link"), "polar-cxl", option("link-latency"), "900ns",
                                option("link-bandwidth"), 5, option("link-mops"), 2.5, option("link-mode"), "account", "--json").out)
    link = report["emulated_link"]
    require(link["emulated"] and link["name"] == "polar-cxl, changed", str(link))
    cells = link["cells"]
    require(cells["read_latency_ns"] == cells["atomic_latency_ns"] == 900, str(cells))
    require(cells["write_bandwidth_gbs"] == 5 and cells["read_rate_mops"] == 2.5, str(cells))
    require(link["accounted_seconds"] > 0, str(link))
    require("emulated link 'polar-cxl, changed', accounting" in report["nodes"]["transport"]["chosen"], str(report["nodes"]))
    require(json.loads(dmgraph("run", "cc", GRAPH, "--json").out)["emulated_link"] is None, "a link without --link")


def measurements():
    rows = json.loads(dmgraph("perf", option("operations"), "read,faa", option("sizes"), "8,4K", option("depths"), "1,4",
                              option("thread-counts"), "1,2", option("duration"), "2ms", "--json").out)["measurements"]
    require(len(rows) == 12, f"{len(rows)} rows")
    lines = dmgraph("perf", "--operations", "message", "--sizes", "8", "--depths", "1", "--duration", "2ms", option("csv")).out.splitlines()
    require(len(lines) == 2 and len(lines[0].split(",")) == len(lines[1].split(",")), str(lines))


def measurements_are_checked():
    """p50, 1/rate and the self-test's figure are held against each other at each point of depth 1 and one thread, and what does not agree is said."""
    report = json.loads(dmgraph("perf", "--operations", "read,touch,message", "--sizes", "8,4K", "--depths", "1,4", "--thread-counts", "1,2",
                                "--duration", "4ms", "--json").out)
    verdicts = {}
    for row in report["measurements"]:
        found = row["check"]
        require((found is not None) == (row["depth"] == row["threads"] == 1), str(row))
        if found:
            verdicts[found["verdict"]] = verdicts.get(found["verdict"], 0) + 1
            figures = [found[name] for name in ("p50_ns", "rate_ns", "self_test_ns")]
            require(figures[0] == row["p50_ns"], str(row))
            agrees = max(figures) - min(figures) <= 0.2 * max(figures) + found["clock_step_ns"]
            require((found["verdict"] == "agrees") == agrees, str(found))
    require(sum(verdicts.values()) == 6 and {name: count for name, count in report["check"].items() if count} == verdicts, f"{verdicts}, {report['check']}")
    few = ("perf", "--operations", "read,message", "--sizes", "64", "--depths", "1,4", "--duration", "4ms")
    lines = dmgraph(*few).out.splitlines()
    agree, points = re.search(r"^check .* at (\d+) of (\d+) points of depth 1", lines[-1]).groups()
    said = [line for line in lines if line.startswith("  check of ")]
    require(int(points) == 2 and len(said) == int(points) - int(agree), "\n".join(lines))
    run = dmgraph(*few, "--csv")
    verdicts = [line.split(",")[-1] for line in run.out.splitlines()[1:]]
    require(len(verdicts) == 4 and verdicts.count("") == 2, run.out)
    require(run.err.count("dmgraph: check of ") == 2 - verdicts.count("agrees"), run.err)
    require("nothing was checked" in dmgraph("perf", "--operations", "read", "--depths", "2", "--duration", "1ms").out, "it is not said")


def mapped_loads_have_arrived():
    """A load takes as long alone as in a chain in which each needs the one before: half of it, since a median lies below a mean. Disturbances make it longer."""
    for _ in range(3):
        run = dmgraph("perf", "--operations", "read,write,touch", "--sizes", "64", "--depths", "1", "--json")
        rows = json.loads(run.out)["measurements"]
        short = [row for row in rows if row["check"]["p50_ns"] < row["check"]["undisturbed_rate_ns"] / 2]
        if not short:
            return
    require(False, str(short))


def a_profile_is_fitted():
    dmgraph("perf", option("fit"), path_of("fitted.link"))
    out = dmgraph("run", "cc", GRAPH, "--link", path_of("fitted.link")).out
    require("emulated link 'fitted'" in out, out)
    dmgraph("perf", "--fit", path_of("fitted.link"), expect=USAGE)


def self_test_of_a_link():
    run = dmgraph("perf", option("calibrate"), "--link", "polar-rdma", "--csv", expect=None)
    require(run.code in (OK, VERIFY), f"exit code {run.code}: {run.err}")
    verdicts = [line.split(",")[-1] for line in run.out.splitlines()[1:]]
    require(len(verdicts) > 10, run.out)
    for verdict in verdicts:
        require(verdict.split(":")[0] in ("pass", "fail", "inconclusive", "not emulable here"), verdict)


def help_is_printed():
    for words in (("--help",), ("run", option("help")), ("run", option("help-all")), ("convert", "--help"), ("generate", "--help"), ("info", "--help")):
        run = dmgraph(*words)
        require("dmgraph" in run.out and run.err == "", f"{words}: {run.out}{run.err}")
    require(re.search(r"\d+\.\d+", dmgraph("--version").out), "no version")
    few, all_of_them = dmgraph("run", "--help").out, dmgraph("run", "--help-all").out
    require("--output" in few and "--reference-edges" not in few and "--help-all shows" in few, few)
    require("--output" in all_of_them and "--reference-edges" in all_of_them and "--merge-lists" not in all_of_them, all_of_them)


def every_memory_node_has_its_path():
    """A list of paths that is too short is refused: the other nodes would offer other memory than was asked for."""
    err = misuse("run", "cc", GRAPH, "--mns", 2, "--transport", f"cxl_shm:path=/dev/shm/dmgraph-test-{os.getpid()}")
    require("path=" in err and "memory node 1" in err, err)


def misuse(*words):
    run = dmgraph(*words, expect=USAGE)
    one_line(run.err)
    return run.err


def misuses():
    for words in (
            ("fly",), ("run",), ("run", "cc"), ("run", "sorting", GRAPH), ("run", "cc", GRAPH, "another"),
            ("run", "cc", GRAPH, "--mns"), ("run", "cc", GRAPH, "--mns", "0"), ("run", "cc", GRAPH, "--mns", "two"),
            ("run", "cc", GRAPH, "--cns", "-1"), ("run", "cc", GRAPH, "--threads", "0"), ("run", "cc", GRAPH, "--threads", "65"),
            ("run", "cc", GRAPH, "--cache", "much"), ("run", "cc", GRAPH, "--peer-timeout", "5"),
            ("run", "cc", GRAPH, "--directed", "--undirected"), ("run", "cc", GRAPH, "--direction", "sideways"),
            ("run", "pagerank", GRAPH, "--damping", "1.5"), ("run", "pagerank", GRAPH, "--tolerance", "-1"),
            ("run", "bfs", GRAPH, "--source", "99"), ("run", "bfs", GRAPH, "--source", "18446744073709551616"),
            ("run", "cc", GRAPH, option("pool"), "no-such-pool"), ("run", "cc", GRAPH, "--memory", "64M,64M"),
            ("run", "cc", GRAPH, "--transport", "pigeons"), ("run", "cc", GRAPH, "--transport", "ucx:wings=2"),
            ("convert", GRAPH), ("generate", "kron", "--scale", "99", path_of("x")), ("generate", "trees", path_of("x")),
            ("info",), ("info", "weather"), ("run", "cc", GRAPH, "--link", "string"), ("run", "cc", GRAPH, "--link-latency", "5"),
            ("perf", "--sizes", "8,,9"), ("perf", "--operations", "guess"), ("perf", "--depths", "0"), ("perf", "--csv", "--json")):
        try:
            misuse(*words)
        except Exception as error:
            raise type(error)(f"{' '.join(map(str, words))}: {error}") from error


# What not every algorithm takes, with a value, and which do.
OWN_OPTIONS = (("source", 1, ("bfs", "sssp")), ("iterations", 2, ("pagerank",)), ("tolerance", 1e-3, ("pagerank",)),
               ("damping", 0.5, ("pagerank",)), ("partials", "value", ("pagerank",)), ("precision", "double", ("pagerank",)),
               ("direction", "pull", ("bfs", "cc", "pagerank")), ("density", "sparse", ("bfs", "cc", "sssp")),
               ("direction", "push", ("bfs", "cc", "pagerank", "sssp")), ("density", "dense", ("bfs", "cc", "pagerank", "sssp")))


def options_of_other_algorithms_are_refused():
    for name, value, takers in OWN_OPTIONS:
        for algorithm in ("bfs", "cc", "pagerank", "sssp"):
            words = ("run", algorithm, GRAPH, option(name), value)
            if algorithm in takers:
                dmgraph(*words, "--quiet")
                continue
            error = misuse(*words)
            require(f"--{name}" in error and f"of {algorithm}," in error and all(taker in error for taker in takers), error)


def the_help_of_run_says_which_algorithm_takes_what():
    text = dmgraph("run", "--help").out
    text = text[text.index("algorithms, and what"):]
    for name, value, takers in OWN_OPTIONS[:-2]:
        word = f"--{name} {value}" if name in ("direction", "density") else f"--{name}"
        for algorithm in ("bfs", "cc", "pagerank", "sssp"):
            line = re.search(rf"^  {algorithm} .*\n +takes (.*)$", text, re.M).group(1)
            require((word in line.split(", ")) == (algorithm in takers), f"{algorithm}, {word}: {line}")


def options_without_an_effect_are_refused():
    compare_few = ("compare", GRAPH, "--runs-only", "--rounds", 1)
    for words, name in (
            (("run", "bfs", GRAPH, "--direction", "pull", "--density", "sparse"), "density"),
            (("run", "bfs", GRAPH, "--direction", "pull", "--out-lists-only"), "both directions"),
            (("run", "pagerank", GRAPH, "--direction", "push", "--partials", "value"), "partials"),
            (("run", "pagerank", GRAPH, "--direction", "push", "--precision", "single"), "precision"),
            (("run", "bfs", GRAPH, "--reference-edges", 0, "--reference-degree", 3), "reference-degree"),
            (("run", "bfs", GRAPH, "--system", "dmg-base", "--reference-buffer", "8K"), "reference-buffer"),
            (("run", "bfs", GRAPH, "--updates", "direct", "--value-buffer", "8K"), "value-buffer"),
            (("run", "bfs", GRAPH, "--reschedule-degree", 0, "--steal-segments", "off"), "steal-segments"),
            (("run", "bfs", GRAPH, "--link-mode", "account"), "link-mode"),
            (("run", "bfs", GRAPH, "--json", "--table"), "table"),
            (("generate", "kron", "--scale", 4, "--out-lists-only", path_of("none.dmg")), "out-lists-only"),
            (("perf", "--link-mode", "account"), "link-mode"),
            (("perf", "--fit", path_of("none.link"), "--sizes", "8"), "sizes"),
            (("perf", "--fit", path_of("none.link"), "--json"), "json"),
            (("perf", "--calibrate", "--duration", "1ms"), "duration"),
            (("perf", "--operations", "message", "--sizes", "32K"), "message"),
            (("perf", "--operations", "touch", "--depths", "16"), "touch"),
            (("perf", "--calibrate", "--link-mode", "account"), "link-mode"),
            (("compare", GRAPH, "bfs", "--runs-only", "--duration", "1ms"), "duration"),
            ((*compare_few, "--with", "cxl_shm,none", "--with", "ucx,none", "--link-mode", "spin"), "link-mode"),
            (("compare", GRAPH, "bfs", "cc", "--iterations", 3), "iterations"),
            (("compare", GRAPH, "cc", "--source", 1), "source")):
        error = misuse(*words)
        require(name in error, f"{words}: {error}")
    require(not os.path.exists(path_of("none.dmg")) and not os.path.exists(path_of("none.link")), "a file was written")


def a_comparison_gives_options_to_whom_they_belong():
    report = json.loads(dmgraph("compare", GRAPH, "bfs", "pagerank", "--source", 1, "--iterations", 3, "--runs-only", "--rounds", 1,
                                "--cns", 1, "--with", "cxl_shm,none", "--with", "ucx,none", "--json").out)
    require(report["runs"], "nothing was run")


def reports_are_not_silenced():
    for words in (("run", "cc", GRAPH), ("convert", GRAPH, path_of("c.dmg")), ("generate", "kron", "--scale", 4, path_of("k.dmg"))):
        json.loads(dmgraph(*words, "--json", "--quiet").out)


def a_near_miss_is_named():
    require("--threads" in misuse("run", "cc", GRAPH, "--thread", "2"), "--threads is not proposed")


def alternatives_of(text):
    """Words between bars, whatever their order; `--name VALUE` otherwise as it is."""
    return sorted(text.replace("\\|", "|").split("|"))


def page_of_docs(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs", name + ".md"), encoding="utf-8") as file:
        return file.read()


def rows_of_docs():
    """The options in the tables of docs/cli.md: signature by name, and what the row has beside it."""
    rows = {}
    for line in page_of_docs("cli").splitlines():
        if line.startswith("| `--"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for name, value in re.findall(r"`--([a-z-]+)(?: ([^`]+))?`", cells[0]):
                require(name not in rows, f"--{name} stands in two tables")
                rows[name] = (value, cells[1].strip("`") if len(cells) == 3 else None)
    return rows


def docs_say_what_the_help_of_run_says():
    """docs/cli.md has every option of `run` with the same values and the same default, and no other."""
    rows = rows_of_docs()
    help_text = dmgraph("run", "--help-all").out
    options = re.findall(r"^ +--([a-z-]+)(?: ([^ ]+))? +(\S.*)$", help_text, re.M)
    require({name for name, _, _ in options} == set(rows), set(rows) ^ {name for name, _, _ in options})
    for name, value, meaning in options:
        documented, default = rows[name]
        require(alternatives_of(documented) == alternatives_of(value), f"--{name} {value}: in docs/cli.md {documented}")
        expected = re.search(r"\(default: ([^;)]*)[^)]*\)$", meaning)
        require(not expected or default == expected[1], f"--{name}: the default is {meaning}, in docs/cli.md {default}")


def docs_have_every_option():
    """Options of other commands stand in docs/cli.md, too, or in the page of their command."""
    for words, page in (("load", "pools"), ("unload", "pools"), ("list", "pools"), ("pool", "pools"), ("convert", "formats"),
                        ("generate", "formats"), ("info", "formats"), ("perf", "perf"), ("compare", "compare"), ("predict", "predict")):
        text = page_of_docs("cli") + page_of_docs(page)
        names = set(re.findall(r"^ +--([a-z-]+)", dmgraph(words, "--help-all").out, re.M))
        require(names, f"the help of {words} names no options")
        missing = [name for name in names if not re.search(f"--{name}(?![a-z-])", text)]
        require(not missing, f"options of {words} that docs/cli.md and docs/{page}.md lack: {missing}")


def every_option_is_tested():
    documented = set()
    for words in (("run",), ("convert",), ("generate",), ("info",), ("perf",)):
        documented |= set(re.findall(r"^\s+--([a-z][a-z-]*)", dmgraph(*words, "--help-all").out, re.M))
    require(documented, "the help names no options")
    require(documented <= tested, f"options without a test: {sorted(documented - tested)}")


def main():
    for function in (
            numbers_are_taken, sizes_and_times_are_taken, shapes_of_the_store, whole_systems, mechanisms_of_retrieval,
            long_lists_in_segments, segments_fit_into_the_buffers_that_they_are_copied_to, placement, trust_of_the_network,
            a_cache_that_is_too_small, a_memory_node_that_is_too_small, source,
            pagerank_options, directions, ways_of_updating, references, batches_are_as_large_as_asked_for,
            lists_that_are_short_go_by_value, partial_sums, cachings, precisions, ranks_add_up,
            the_format_is_what_it_is_called, edges_have_directions, a_symmetric_matrix_is_undirected, weights_are_left_out, weights_are_used,
            weights_that_would_matter_are_not_lost_in_silence, repeats_and_loops,
            repeats_and_loops_are_reported, out_lists_only, output_to_the_standard_output, unreached, verify, table,
            json_report, what_memory_nodes_did, summary, quiet, log_level, a_summary_never_mixes_with_an_answer,
            generator_options, info_of_a_graph, info_of_transports, emulated_links, measurements, measurements_are_checked,
            mapped_loads_have_arrived, devices_of_tests_are_in_no_program, a_profile_is_fitted,
            self_test_of_a_link, help_is_printed, misuses, options_of_other_algorithms_are_refused,
            the_help_of_run_says_which_algorithm_takes_what, options_without_an_effect_are_refused,
            a_comparison_gives_options_to_whom_they_belong, reports_are_not_silenced, every_memory_node_has_its_path, a_near_miss_is_named, docs_say_what_the_help_of_run_says,
            docs_have_every_option, every_option_is_tested):
        check(function.__name__, function)
    finish()


main()
