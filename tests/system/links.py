"""Runs over emulated links: the answers do not depend on them, and what was emulated is said."""

import json

from harness import IS_THIN, MALFORMED, USAGE, VERIFY, check, dmgraph, finish, one_line, path_of, require, write

LINKS = [("polar-cxl", "spin"), ("polar-rdma", "spin"), ("polar-rdma", "account"), ("cxl2-switch", "account")]
TRANSPORTS = ["cxl_shm", "ucx", "ucx:data=message"]
GRAPH = path_of("kron.dmg")
dmgraph("generate", "kron", "--scale", 8, "--weighted", GRAPH)


def answers_are_the_same(algorithm, transport, link, mode):
    for nodes in (("--cns", 1, "--threads", 2), ("--cns", 2, "--mns", 2, "--threads", 1)):
        dmgraph("run", algorithm, GRAPH, "--transport", transport, "--link", link, "--link-mode", mode, *nodes, "--verify", "--quiet")


def the_link_is_named():
    out = dmgraph("run", "bfs", GRAPH, "--link", "rdma-cx5", "--link-mode", "account").out
    require("emulated link 'rdma-cx5', accounting" in out and "accounted, not waited for" in out, out)


def time_runs_ahead_only_when_accounting():
    for mode in ("spin", "account"):
        report = json.loads(dmgraph("run", "bfs", GRAPH, "--link", "polar-rdma", "--link-mode", mode, "--json").out)
        accounted = report["operations"]["run"]["modelled_ns"]
        require((accounted > 0) == (mode == "account"), f"{mode}: {accounted} ns")


def links_are_listed():
    listed = {link["name"]: link for link in json.loads(dmgraph("info", "links", "--json").out)}
    require({"polar-cxl", "polar-rdma", "rdma-cx5", "rdma-cx6", "cxl2-switch", "cxl-appliance", "dram"} <= set(listed), str(list(listed)))
    for link in listed.values():
        for name, cell in link["cells"].items():
            require(cell["provenance"], f"{link['name']}: {name} comes from nowhere")
    require("polar-cxl" in dmgraph("info", "links").out, "the table does not have polar-cxl")


def files_of_users():
    latencies = "".join(f"{kind}_latency_ns = 100 | guessed\n" for kind in ("read", "write", "atomic", "message"))
    mine = write("mine.link", "title = mine\n" + latencies)
    require("emulated link 'mine'" in dmgraph("run", "cc", GRAPH, "--link", mine).out, "it is not named")
    broken = write("broken.link", latencies + "read_latency_ns = 5\n")
    require("broken.link:5" in one_line(dmgraph("run", "cc", GRAPH, "--link", broken, expect=MALFORMED).err), "the line is not named")
    one_line(dmgraph("run", "cc", GRAPH, "--link", path_of("missing.link"), expect=USAGE).err)


def profile_with_tails():
    """RDMA-like, so that most machines can emulate it, with percentiles."""
    cells = {"read_latency": 4500, "read_p99": 6000, "read_p999": 20000, "write_latency": 4500, "write_p99": 6000, "atomic_latency": 4500, "message_latency": 9000}
    return write("tails.link", "".join(f"{name}_ns = {value} | made up\n" for name, value in cells.items()) + "channel_rate_mops = 1 | made up\n")


def wrong_links_are_never_proven():
    """A link of twice the latency, and one without limits, are held against the right numbers: a verdict of any kind, but not that they are right."""
    run = dmgraph("perf", "--calibrate", "--link", profile_with_tails(), "--json", expect=None)
    require(run.code in (0, VERIFY), f"exit code {run.code}: {run.err}")
    verdicts = {row["link"]: row["verdict"] for row in json.loads(run.out) if "link" in row}
    require({"tails", "twice as slow", "no limits"} <= set(verdicts), str(verdicts))
    for link in ("twice as slow", "no limits"):
        require(verdicts[link] != "pass" and "did not notice" not in verdicts[link], f"{link}: {verdicts[link]}")


def tails_do_not_change_answers():
    for mode in ("spin", "account"):
        for transport in ("cxl_shm", "ucx"):
            dmgraph("run", "bfs", GRAPH, "--transport", transport, "--link", profile_with_tails(), "--link-mode", mode, "--verify", "--quiet")
    descending = write("descending.link", "".join(f"{name}_ns = {value} | made up\n" for name, value in {"read_latency": 500, "read_p99": 400, "write_latency": 1, "atomic_latency": 1, "message_latency": 1}.items()))
    require("ascend" in one_line(dmgraph("run", "bfs", GRAPH, "--link", descending, expect=MALFORMED).err), "it is not said")


for algorithm in ("bfs", "cc", "pagerank", "sssp"):
    for transport in TRANSPORTS:
        for link, mode in LINKS:
            check(f"{algorithm} over {transport}, {link}, {mode}", answers_are_the_same, algorithm, transport, link, mode)
for function in (the_link_is_named, time_runs_ahead_only_when_accounting, links_are_listed, files_of_users, tails_do_not_change_answers):
    check(function.__name__, function)
if not IS_THIN:  # sanitizers make every link slow
    check("wrong_links_are_never_proven", wrong_links_are_never_proven)
finish()
