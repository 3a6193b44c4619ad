"""dmgraph predict: from the report of a run to times on other links and numbers of nodes."""

import csv
import io
import json
import os
import shutil

from harness import IO, MALFORMED, USAGE, check, dmgraph, finish, one_line, path_of, require, write

GRAPH = path_of("kron.dmg")
dmgraph("generate", "kron", "--scale", 9, "--weighted", GRAPH)
PARTS = {"compute", "latency", "operations", "bytes", "messages", "barriers"}


def report_of(algorithm, *options):
    return dmgraph("run", algorithm, GRAPH, "--json", "--threads", 1, "--mns", 2, *options).out


def predict(report, *options):
    return json.loads(dmgraph("predict", write("run.json", report), "--json", *options).out)


def rows_add_up(algorithm, transport, cns):
    report = report_of(algorithm, "--transport", transport, "--cns", cns)
    found = predict(report, "--link", "polar-rdma", "--link", "dram", "--mns", "1,2", "--cns", "1,2,4")
    run = json.loads(report)
    require(found["run"]["algorithm"] == algorithm and found["run"]["compute_nodes"] == cns, str(found["run"]))
    require(abs(found["run"]["seconds"] - run["seconds"]["iterations"]) < 1e-6, "it measured something else")
    require(len(found["predictions"]) == 12, f"{len(found['predictions'])} rows")
    for row in found["predictions"]:
        require(set(row["parts_seconds"]) == PARTS and row["bound"] in PARTS, str(row))
        require(abs(sum(row["parts_seconds"].values()) - row["seconds"]) <= 1e-9, str(row))
        require(row["parts_seconds"]["barriers"] == 0 or row["compute_nodes"] > 1, str(row))
    require(found["not_known"], "it knows everything")


def slower_links_take_longer():
    report = report_of("bfs")
    times = [predict(report, "--link-latency", f"{latency}ms")["predictions"][0]["seconds"] for latency in (1, 2, 4)]
    require(times[0] < times[1] < times[2], str(times))
    counters = json.loads(report)["operations"]["run"]
    rounds = counters["in_place_waits"] + counters["in_place_atomics"] + sum(counters[kind]["serial_rounds"] for kind in ("read", "write", "cas", "faa"))
    # A message that was waited for longer than that, on a busy machine, takes no longer for the link.
    messages = counters["message"]["serial_rounds"]
    require(2e-3 * (rounds - 1) < times[2] - times[1] < 2e-3 * (rounds + messages + 1), f"{times} of {rounds} rounds and {messages} messages")


def counts_do_not_depend_on_the_link():
    """What is predicted from is the same over every link: it would make no sense otherwise."""
    keys = ("in_place_waits", "in_place_lines", "in_place_atomics", "in_place_spans")
    for transport in ("cxl_shm", "ucx"):
        counted = []
        for link in ([], ["--link", "polar-rdma", "--link-mode", "account"]):
            run = json.loads(report_of("pagerank", "--iterations", 3, "--transport", transport, *link))["operations"]["run"]
            counted.append([run[key] for key in keys] + [run[kind] for kind in ("read", "write")])
        require(counted[0] == counted[1], str(counted))


def sparse_updates_in_place_are_predicted_from_a_run_that_locks_nothing():
    """Over a link without atomics across compute nodes updates go to owners, and --updates valrd-owner does the same without the link."""
    keys = ("in_place_waits", "in_place_lines", "in_place_atomics", "in_place_spans", "read", "write")
    sparse = ("--cns", 2, "--density", "sparse")
    for cns in (1, 2):
        over_link, alike, usual = (json.loads(report_of("bfs", "--cns", cns, "--density", "sparse", *words)) for words in
                                   (("--link", "polar-cxl", "--link-mode", "account"), ("--updates", "valrd-owner"), ()))
        counted = [[report["operations"]["run"][key] for key in keys] for report in (over_link, alike, usual)]
        require(counted[0] == counted[1], str(counted))
        require(counted[0][2] == 0 and counted[2][2] > 0, str(counted))
        require(over_link["nodes"]["transport"]["atomics"] == "caller_lock" and usual["nodes"]["transport"]["atomics"] == "caller",
                str(over_link["nodes"]["transport"]))
    for words, link, is_said in (((), "polar-cxl", True), ((), "polar-rdma", False), (("--updates", "valrd-owner"), "polar-cxl", False)):
        told = " ".join(predict(report_of("bfs", *sparse, *words), "--link", link)["not_known"])
        require(("--updates valrd-owner" in told) == is_said, f"{words} {link}: {told}")


def formats_agree():
    path = write("run.json", report_of("cc"))
    options = ("--link", "rdma-cx5,polar-cxl", "--link-mops", 5)
    rows = json.loads(dmgraph("predict", path, "--json", *options).out)["predictions"]
    table = list(csv.DictReader(io.StringIO(dmgraph("predict", path, "--csv", *options).out)))
    require([row["link"] for row in table] == [row["link"] for row in rows] == ["rdma-cx5, changed", "polar-cxl, changed"], str(table))
    for left, right in zip(table, rows):
        require(abs(float(left["seconds"]) - right["seconds"]) < 1e-8 and left["bound"] == right["bound"], f"{left} {right}")
    text = dmgraph("predict", path, *options).out
    require("bound by" in text and "polar-cxl, changed" in text and "not known" in text, text)


def names_of_links_are_anybodys():
    path = write("run.json", report_of("bfs"))
    link = path_of('a "b".link')
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/links/polar-cxl.link"), link)
    table = list(csv.DictReader(io.StringIO(dmgraph("predict", path, "--csv", "--link", link).out)))
    require([(row["algorithm"], row["link"]) for row in table] == [("bfs", 'a "b"')] and float(table[0]["seconds"]) > 0, str(table))


def all_profiles_without_a_link():
    names = {row["link"] for row in predict(report_of("bfs"))["predictions"]}
    require({"dram", "polar-cxl", "polar-rdma", "cxl2-switch"} <= names, str(names))


def the_standard_input():
    report = report_of("bfs")
    table = dmgraph("predict", "-", "--link", "dram", "--csv", given=report.encode()).out
    require(table.count("\n") == 2, table)


def what_is_no_report():
    good = report_of("bfs")
    for text in ("", "{", "[]", "{}", good[: len(good) // 2], good.replace('"serial_rounds"', '"rounds_of_old"'), good.replace('"elapsed_ns": ', '"elapsed_ns": -')):
        one_line(dmgraph("predict", write("bad.json", text), expect=MALFORMED).err)
    one_line(dmgraph("predict", path_of("missing.json"), expect=IO).err)
    path = write("run.json", good)
    for options in (["--link", "nonesuch"], ["--link", "dram,,polar-cxl"], ["--cns", "0"], ["--cns", "2,x"], ["--mns", "9999"], ["--json", "--csv"]):
        one_line(dmgraph("predict", path, *options, expect=USAGE).err)


for algorithm, transport in (("bfs", "cxl_shm"), ("cc", "cxl_shm"), ("pagerank", "cxl_shm"), ("sssp", "cxl_shm"), ("bfs", "ucx"), ("pagerank", "ucx")):
    check(f"{algorithm} over {transport}", rows_add_up, algorithm, transport, 1 if algorithm == "cc" else 2)
for function in (slower_links_take_longer, counts_do_not_depend_on_the_link, sparse_updates_in_place_are_predicted_from_a_run_that_locks_nothing, formats_agree, names_of_links_are_anybodys, all_profiles_without_a_link, the_standard_input, what_is_no_report):
    check(function.__name__, function)
finish()
