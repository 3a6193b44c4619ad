"""Long-lived pools: started, filled, used by many runs with any number of compute nodes, and ended; and what dies in between.

Usage: pools.py TRANSPORT [given_up]     with the second word, only what becomes of runs that are given up
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fault"))

from harness import (IS_THIN, LIMIT, MALFORMED, OK, PEER, PROGRAM, SEED, USAGE, Failure, check, communicate, compare,  # noqa: E402
                     dmgraph, finish, folder, one_line, path_of, read_answer, require, saw_fault, time_out, wait_until, write)
from watch import held_by_others, is_alive, processes, read, shared_memory, socket_inodes, unix_sockets  # noqa: E402

TRANSPORT = sys.argv[1] if len(sys.argv) > 1 else "cxl_shm"
RUNTIME = os.path.join(folder(), "runtime")
POOLS = os.path.join(RUNTIME, "dmgraph")
os.mkdir(RUNTIME, 0o700)
MARK = f"DMGRAPH_TEST_POOLS={uuid.uuid4()}"
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME, MARK.split("=")[0]: MARK.split("=")[1]}
ENDLESS = ("--iterations", 4000000000, "--tolerance", 0, "--threads", 1)


def run(*words, **options):
    return dmgraph(*words, env=ENVIRONMENT, **options)


def run_as(identity, *words, **options):
    """The same as somebody else, who has this user's rights in the system and another identity in pools."""
    return dmgraph(*words, env={**ENVIRONMENT, "DMGRAPH_IDENTITY": path_of(identity)}, **options)


def begin(*words):
    return subprocess.Popen([PROGRAM, *map(str, words)], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def end(process, seconds=30):
    out, err = communicate(process, seconds)
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def children(kind):
    """Processes of these tests that are nodes of this kind."""
    return sorted(pid for pid in processes() if MARK.encode() in read(f"/proc/{pid}/environ") and is_alive(pid) and
                  kind.encode() in read(f"/proc/{pid}/cmdline").split(b"\0"))


def status(pool="p"):
    """A node that has had no time to answer within the short time-outs of these pools is asked again."""
    def answer():
        told = run("pool", "status", pool, "--json", expect=None)
        require(told.code == OK or "does not answer" in told.err, told.err)
        return json.loads(told.out) if told.code == OK else None

    return wait_until("an answer of all memory nodes", answer)


def allocated(pool="p"):
    return [node["allocated_bytes"] for node in status(pool)["memory_nodes"]]


def graphs(pool="p"):
    return [graph["name"] for graph in json.loads(run("list", "--pool", pool, "--json").out)]


class Pool:
    """A pool for one case; stopped behind it, after which nothing of it is left."""

    def __init__(self, name="p", mns=2, memory="64M", **options):
        self.name = name
        words = ["pool", "start", "--name", name, "--transport", TRANSPORT, "--mns", mns, "--memory", memory]
        for option, value in options.items():
            words += ["--" + option.replace("_", "-"), *([] if value is True else [value])]
        self.words = words

    def __enter__(self):
        self.memory_before = shared_memory()
        run(*self.words)
        return self

    def __exit__(self, kind, value, trace):
        for process in children("compute-node"):
            os.kill(process, signal.SIGKILL)
        stopped = run("pool", "stop", self.name, expect=None)
        for process in children("memory-node"):
            os.kill(process, signal.SIGKILL)
        if kind is None:
            require(stopped.code == OK, f"pool stop: {stopped.err}")
            require(os.listdir(POOLS) == [], f"left in the folder: {os.listdir(POOLS)}")


def random_graph(name, vertices, edges, weights=None, gaps=True):
    rng = random.Random(SEED + vertices + edges)
    ids = rng.sample(range(10 * vertices), vertices) if gaps else list(range(vertices))
    lines = []
    for _ in range(edges):
        weight = f" {weights(rng)}" if weights else ""
        # Squared: some vertices have long lists.
        lines.append(f"{ids[int(vertices * rng.random() ** 2)]} {ids[rng.randrange(vertices)]}{weight}")
    return write(name, "\n".join(lines) + "\n")


SMALL = random_graph("small.el", 3000, 40000)
WEIGHTED = random_graph("weighted.wel", 2000, 20000, weights=lambda rng: rng.randrange(1, 100))
DENSE_IDS = random_graph("dense.el", 500, 4000, gaps=False)
NEIGHBOUR = random_graph("neighbour.el", 60000, 400000)
LARGE = random_graph("large.el", 60000, 600000)
SOURCE = next(line.split()[0] for line in open(SMALL))


def expected(path, algorithm, *words):
    """What a one-shot run answers."""
    out = path_of(f"expected-{uuid.uuid4()}")
    run("run", algorithm, path, *words, "--output", out, "--quiet")
    return read_answer(out)


def answer_of(algorithm, graph, *words, pool="p"):
    out = path_of(f"answer-{uuid.uuid4()}")
    run("run", algorithm, graph, "--pool", pool, *words, "--verify", "--output", out, "--quiet")
    return read_answer(out)


def same(answer, wanted, relative=None):
    kind = float if relative else int
    compare(answer, {vertex: tuple(kind(word) for word in words) for vertex, words in wanted.items()}, relative)


# ---- the course of things ----

def one_load_serves_any_number_of_compute_nodes():
    wanted = expected(SMALL, "bfs", "--source", SOURCE)
    components = expected(SMALL, "cc")
    with Pool():
        run("load", SMALL, "--pool", "p", "--as", "small", "--cns", 2)
        full = allocated()
        for cns in (1, 2, 3, 5, 8, 16, 17) if not IS_THIN else (1, 3, 16):
            same(answer_of("bfs", "small", "--source", SOURCE, "--cns", cns, "--threads", 1), wanted)
            same(answer_of("cc", "small", "--cns", cns, "--threads", 1), components)
            require(allocated() == full, f"{cns} compute nodes left memory: {allocated()} instead of {full}")


def more_compute_nodes_than_partitions_form_groups():
    wanted = {algorithm: expected(SMALL, algorithm) for algorithm in ("bfs", "cc", "pagerank", "sssp")}
    with Pool():
        run("load", SMALL, "--pool", "p", "--as", "small", "--partitions", 4)
        full = allocated()
        for cns, algorithm, members, words in (
                (8, "bfs", [4, 4], ()), (8, "cc", [4, 4], ("--density", "dense", "--direction", "push")), (7, "pagerank", [3, 4], ()),
                (16, "pagerank", [4, 4, 4, 4], ("--direction", "push")), (3, "sssp", [1, 1, 1], ("--caching", "full"))):
            out = path_of(f"groups-{uuid.uuid4()}")
            report = json.loads(run("run", algorithm, "small", "--pool", "p", "--cns", cns, "--threads", 1, "--verify", "--json",
                                    "--output", out, *words).out)
            same(read_answer(out), wanted[algorithm], 1e-6)
            nodes = report["nodes"]
            require(nodes["groups"] == {"count": len(members), "members": members}, nodes["groups"])
            places = [(node["group"], node["member"]) for node in nodes["compute_nodes"]]
            require(places == [(group, member) for group in range(len(members)) for member in range(members[group])], places)
            require(allocated() == full, f"{cns} compute nodes left memory: {allocated()} instead of {full}")
        out = run("run", "cc", "small", "--pool", "p", "--cns", 5, "--threads", 1).out
        require("5 compute nodes of 1 thread in 2 groups of 2 or 3, over" in out, out)
        out = run("run", "cc", "small", "--pool", "p", "--cns", 2, "--threads", 1, "--caching", "full").out
        require("2 compute nodes of 1 thread, each caching all attributes, over" in out, out)
        run("load", DENSE_IDS, "--pool", "p", "--as", "fine", "--partitions", 23)
        # More than have arrays of partial sums: the sums travel by value.
        same(answer_of("pagerank", "fine", "--cns", 23, "--threads", 1, "--direction", "pull"), expected(DENSE_IDS, "pagerank"), 1e-6)


def all_algorithms_and_kinds_of_graphs():
    with Pool(memory="64M,32M"):
        for name, path, words in (("s", SMALL, ()), ("u", SMALL, ("--undirected",)), ("w", WEIGHTED, ()),
                                  ("o", SMALL, ("--out-lists-only", "--partitions", 4)), ("d", DENSE_IDS, ())):
            run("load", path, "--pool", "p", "--as", name, *words)
            how = tuple(word for word in words if word == "--undirected")
            same(answer_of("bfs", name, "--cns", 2), expected(path, "bfs", *how))
            same(answer_of("sssp", name, "--cns", 2), expected(path, "sssp", *how), 1e-6)
            if name != "o":
                same(answer_of("cc", name, "--cns", 2), expected(path, "cc", *how))
                same(answer_of("pagerank", name, "--cns", 2), expected(path, "pagerank", *how), 1e-6)
        error = run("run", "cc", "o", "--pool", "p", expect=USAGE).err
        require("--out-lists-only" in one_line(error), error)
        require(graphs() == ["d", "o", "s", "u", "w"], graphs())
        entries = {graph["name"]: graph for graph in json.loads(run("list", "--pool", "p", "--json").out)}
        require(entries["w"]["weights"] == "int32" and entries["s"]["weights"] == "none", entries)
        require(entries["o"]["partitions"] == 4 and entries["s"]["partitions"] == 16, entries)
        require(entries["s"]["arcs"] == 40000 and entries["s"]["file"] == SMALL, entries)
        for name in ("s", "u", "w", "o", "d"):
            run("unload", name, "--pool", "p")
        require(sum(allocated()) == 0 and graphs() == [], f"{allocated()} {graphs()}")


def a_graph_comes_from_the_standard_input():
    with Pool():
        with open(WEIGHTED, "rb") as file:
            done = subprocess.run([PROGRAM, "load", "-", "--pool", "p", "--as", "piped"], env=ENVIRONMENT, input=file.read(),
                                  capture_output=True, timeout=60)
        require(done.returncode == 0, done.stderr)
        same(answer_of("sssp", "piped"), expected(WEIGHTED, "sssp"), 1e-6)
        require(json.loads(run("list", "--pool", "p", "--json").out)[0]["file"] == "standard input", "its name is the standard input's")
        line = one_line(run("run", "pagerank", "piped", "--pool", "p", "--quiet").err)
        require("weights_not_used" in line and "load the graph with --unweighted" in line, line)
        error = run("run", "cc", "piped", "--pool", "p", "--format", "edge-list", expect=USAGE).err
        require("--format" in one_line(error), error)


def empty_and_tiny_graphs():
    with Pool(mns=3):
        for name, content in (("empty", "# nothing\n"), ("loop", "7 7\n"), ("pair", "18446744073709551615 3\n")):
            path = write(f"{name}.el", content)
            run("load", path, "--pool", "p", "--as", name)
            for algorithm in ("bfs", "cc", "pagerank", "sssp"):
                answer_of(algorithm, name, "--cns", 3, "--threads", 1)
        require(run("run", "bfs", "pair", "--pool", "p", "--source", 3, "--output", "-", "--quiet").out.split("\n")[0] ==
                "3 0 3", "the smaller id is the source")
        error = run("run", "bfs", "pair", "--pool", "p", "--source", 4, expect=USAGE).err
        require("3 to 18446744073709551615 with gaps" in one_line(error), error)


def negative_weights_are_refused_by_their_line():
    path = write("negative.wel", "1 2 5\n2 3 -1\n")
    with Pool():
        run("load", path, "--pool", "p", "--as", "negative")
        error = run("run", "sssp", "negative", "--pool", "p", expect=MALFORMED).err
        require(f"{path}:2:" in one_line(error), error)
        answer_of("bfs", "negative")


def status_says_what_there_is():
    with Pool(memory="64M,32M") as pool:
        run("load", SMALL, "--pool", "p", "--as", "small")
        state = status()
        require([node["segment_bytes"] for node in state["memory_nodes"]] == [64 << 20, 32 << 20], state)
        require(all(node["alive"] and is_alive(node["pid"]) for node in state["memory_nodes"]), state)
        require(all(0 < node["allocated_bytes"] <= node["peak_bytes"] for node in state["memory_nodes"]), state)
        require([graph["name"] for graph in state["graphs"]] == ["small"], state)
        require(state["graphs"][0]["pool_bytes"] == sum(allocated()), state)
        text = run("pool", "status", "p").out
        require("alive" in text and "small" in text, text)
        report = json.loads(run("run", "cc", "small", "--pool", "p", "--json").out)
        require([node["pid"] for node in report["nodes"]["memory_nodes"]] ==
                [node["pid"] for node in state["memory_nodes"]], report["nodes"])
        require(report["graph"]["vertices"] == state["graphs"][0]["vertices"] and report["graph"]["pool"] == "p", report)
        summary = run("run", "cc", "small", "--pool", "p").out
        require("in the pool p" in summary, summary)
        # Closed to everybody else.
        require(os.stat(POOLS).st_mode & 0o777 == 0o700, "the folder's mode")
        file = os.path.join(POOLS, f"{pool.name}.pool")
        require(os.stat(file).st_mode & 0o777 == 0o600, "the file's mode")
        token = json.load(open(file))["token"].encode()
        require(not any(token in read(f"/proc/{pid}/cmdline") for pid in processes()), "the secret is to be seen")


def names_are_taken_once():
    with Pool():
        run("load", SMALL, "--pool", "p", "--as", "x")
        before = allocated()
        one_line(run("load", SMALL, "--pool", "p", "--as", "x", expect=USAGE).err)
        require(allocated() == before, "the second load left memory")
        one_line(run(*Pool().words, expect=USAGE).err)
        run(*Pool("q").words)
        run("load", SMALL, "--pool", "q", "--as", "x")
        run("unload", "x", "--pool", "p")
        require(graphs("q") == ["x"], "the pools are not apart")
        run("pool", "stop", "q")
        one_line(run("unload", "x", "--pool", "p", expect=USAGE).err)
        one_line(run("run", "cc", "x", "--pool", "p", expect=USAGE).err)


def misuse():
    with Pool():
        run("load", SMALL, "--pool", "p", "--as", "x")
        for words in (("load", SMALL, "--pool", "p"), ("load", SMALL, "--as", "y"), ("load", SMALL, "--pool", "none", "--as", "y"),
                      ("load", SMALL, "--pool", "p", "--as", "a/b"), ("load", SMALL, "--pool", "../p", "--as", "y"),
                      ("load", SMALL, "--pool", "p", "--as", "y", "--partitions", 65),
                      ("load", SMALL, "--pool", "p", "--as", "y", "--partitions", 1, "--cns", 65),
                      ("unload", "x"), ("list",), ("pool", "status", "none"), ("pool", "stop", "none"), ("pool",),
                      ("pool", "start"), ("pool", "start", "--name", "/tmp/x"), ("pool", "start", "--name", ".x"),
                      ("pool", "start", "--name", "y", "--mns", 3, "--memory", "4M,4M"),
                      ("pool", "start", "--name", "y", "--memory", "4M,"), ("pool", "start", "--name", "y", "--memory", "1K"),
                      ("pool", "start", "--name", "y", "--transport", "pigeons"),
                      ("run", "cc", "x", "--pool", "p", "--mns", 2), ("run", "cc", "x", "--pool", "p", "--undirected"),
                      ("run", "cc", "x", "--pool", "p", "--memory", "1G"), ("run", "cc", "y", "--pool", "p"),
                      ("run", "cc", "x", "--pool", "p", "--transport", "ucx"), ("run", "cc", "x", "--pool", "p", "--partitions", 2)):
            try:
                one_line(run(*words, expect=USAGE).err)
            except Failure as failure:
                raise Failure(f"{' '.join(map(str, words))}: {failure}") from None
        require(graphs() == ["x"] and os.path.exists(os.path.join(POOLS, "p.pool")), "misuse did something")
        require(sorted(os.listdir(POOLS)) == ["p.admin", "p.log", "p.pool"], os.listdir(POOLS))


def a_graph_larger_than_any_memory_node():
    path = random_graph("large.el", 20000, 600000)
    wanted = expected(path, "cc")
    with Pool(mns=4, memory="4M"):
        run("load", path, "--pool", "p", "--as", "large")
        require(sum(allocated()) > 4 << 20, "the graph is too small for this test")
        same(answer_of("cc", "large", "--cns", 2), wanted)
    with Pool(mns=1, memory="4M"):
        error = run("load", path, "--pool", "p", "--as", "large", expect=LIMIT).err
        require("memory node 0" in one_line(error), error)
        wait_until("an empty pool", lambda: sum(allocated()) == 0)
        require(graphs() == [], graphs())
        run("load", DENSE_IDS, "--pool", "p", "--as", "large")
    with Pool(mns=2, memory="3M,1M"):
        error = run("load", path, "--pool", "p", "--as", "large", expect=LIMIT).err
        require("memory node " in one_line(error), error)
        wait_until("an empty pool", lambda: sum(allocated()) == 0)
    with Pool(mns=2, memory="64M,1M"):
        run("load", path, "--pool", "p", "--as", "large")
        same(answer_of("cc", "large", "--cns", 2), wanted)


def memory_follows_the_sizes_of_the_nodes():
    """The hubs have the lowest ids: in turns of so many vertices, the first node would get far more than its share."""
    generator = random.Random(SEED)
    path = write("skewed.el", "".join(f"{int(30000 * generator.random() ** 4)} {generator.randrange(30000)}\n"
                                      for _ in range(600000)))
    wanted = expected(path, "cc")
    for memory, shares in (("64M", (1, 1, 1, 1)), ("256M,32M,64M,32M", (8, 1, 2, 1))):
        with Pool(mns=4, memory=memory):
            run("load", path, "--pool", "p", "--as", "skewed", "--cns", 2)
            exact = [sum(allocated()) * share / sum(shares) for share in shares]
            for node, bytes_there in enumerate(allocated()):
                require(abs(bytes_there - exact[node]) < 0.05 * exact[node] + 65536, f"{allocated()} instead of {exact}")
            same(answer_of("cc", "skewed", "--cns", 3, "--threads", 1), wanted)


def a_malformed_graph_leaves_nothing():
    with Pool():
        error = run("load", write("bad.el", "1 2\n1 x\n"), "--pool", "p", "--as", "bad", expect=MALFORMED).err
        require("bad.el:2" in one_line(error), error)
        require(graphs() == [] and sum(allocated()) == 0, "something is left")
        run("load", DENSE_IDS, "--pool", "p", "--as", "bad")


# ---- side by side ----

def jobs_side_by_side():
    wanted = expected(SMALL, "bfs", "--source", SOURCE)
    with Pool():
        run("load", SMALL, "--pool", "p", "--as", "small")
        full = allocated()
        for _ in range(1 if IS_THIN else 3):
            started = []
            for cns in (1, 2, 3):
                out = path_of(f"side-{uuid.uuid4()}")
                started.append((out, begin("run", "bfs", "small", "--pool", "p", "--source", SOURCE, "--cns", cns, "--threads", 1,
                                           "--verify", "--output", out)))
            for out, process in started:
                code, _, err = end(process)
                require(code == OK, err)
                same(read_answer(out), wanted)
        wait_until("that all memory is free again", lambda: allocated() == full)


def loads_side_by_side():
    with Pool():
        same_name = [begin("load", SMALL, "--pool", "p", "--as", "same") for _ in range(3)]
        others = [begin("load", SMALL, "--pool", "p", "--as", f"other{index}") for index in range(2)]
        codes = [end(process)[0] for process in same_name]
        require(sorted(codes) == [OK, USAGE, USAGE], f"codes {codes}")
        require([end(process)[0] for process in others] == [OK, OK], "another name is no trouble")
        require(graphs() == ["other0", "other1", "same"], graphs())
        for name in graphs():
            run("unload", name, "--pool", "p")
        wait_until("an empty pool", lambda: sum(allocated()) == 0)


def held(node):
    """Bytes of memory that a memory node's segment takes, whoever has touched its pages. It is shared, or, where all goes by message,
    the node's own, as much else is that a sanitizer has."""
    total = 0
    for line in read(f"/proc/{node}/smaps").decode().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            begin, end = (int(word, 16) for word in words[0].split("-"))
            is_large = end - begin >= 256 << 20
            is_shared = "s" in words[1]
        elif is_large and is_shared and words[0] == "Size:":
            total += os.stat(f"/proc/{node}/map_files/{begin:x}-{end:x}").st_blocks * 512
        elif is_large and not is_shared and TRANSPORT == "ucx:data=message" and words[0] == "Rss:":
            total += int(words[1]) << 10
    return total


def unloaded_graphs_give_their_pages_back():
    graph = random_graph("pages.el", 20000, 150000)
    with Pool(mns=1, memory="256M"):
        node, = children("memory-node")
        run("load", graph, "--pool", "p", "--as", "stays")
        before = allocated()[0]
        run("load", graph, "--pool", "p", "--as", "goes")
        taken = allocated()[0] - before
        require(taken > 1 << 20, f"a graph of 150,000 edges takes {taken} bytes")
        loaded = held(node)
        run("unload", "goes", "--pool", "p")
        wait_until("the pages to be given back", lambda: held(node) <= loaded - taken)
        same(answer_of("cc", "stays"), expected(graph, "cc"))
        run("load", graph, "--pool", "p", "--as", "again")
        same(answer_of("cc", "again"), expected(graph, "cc"))
    # Those that were asked for stay.
    with Pool(mns=1, memory="256M", prefault=True):
        node, = children("memory-node")
        run("load", graph, "--pool", "p", "--as", "goes")
        run("unload", "goes", "--pool", "p")
        time.sleep(1.5)
        require(held(node) >= 256 << 20, "pages that were to stay have gone")


def a_graph_in_use_is_not_unloaded():
    with Pool():
        run("load", SMALL, "--pool", "p", "--as", "small")
        run("load", DENSE_IDS, "--pool", "p", "--as", "smal")  # a name that another one begins with
        full = allocated()
        busy = begin("run", "pagerank", "small", "--pool", "p", *ENDLESS)
        wait_until("a run", lambda: allocated() != full)
        error = run("unload", "small", "--pool", "p", expect=USAGE).err
        require("in use" in one_line(error), error)
        run("unload", "smal", "--pool", "p")
        require(graphs() == ["small"], graphs())
        busy.send_signal(signal.SIGINT)
        code, _, err = end(busy)
        require(code == 130, f"{code} {err}")
        wait_until("the graph's release",
                   lambda: run("unload", "small", "--pool", "p", expect=None).code == OK)
        wait_until("an empty pool", lambda: sum(allocated()) == 0)


# ---- rights and limits ----

def a_graph_is_unloaded_by_its_owner_or_the_admin():
    with Pool():
        run_as("alice", "load", SMALL, "--pool", "p", "--as", "hers")
        run_as("bob", "load", DENSE_IDS, "--pool", "p", "--as", "his")
        full = allocated()
        line = one_line(run_as("bob", "unload", "hers", "--pool", "p", expect=USAGE).err)
        for words in ("'hers'", f"user {os.getuid()}", os.uname().nodename[:63], "--admin"):
            require(words in line, f"{words} in: {line}")
        require(graphs() == ["hers", "his"] and allocated() == full, "a refusal changed something")
        # Working on it needs no right.
        same(dict(read_answer_of(run_as, "bob", "bfs", "hers")), expected(SMALL, "bfs"))
        for graph in status()["graphs"]:
            require(graph["owner"]["user"] == os.getuid() and graph["owner"]["host"] == os.uname().nodename[:63], graph)
        require(f"(user {os.getuid()}) on" in run("list", "--pool", "p").out, "the list names no owner")
        require(status()["refused"]["rights"] > 0, status()["refused"])
        run_as("alice", "unload", "hers", "--pool", "p")
        run_as("alice", "unload", "his", "--pool", "p", "--admin")
        require(sum(allocated()) == 0 and graphs() == [], f"{allocated()} {graphs()}")
        # The pool's file lets in, and gives no more right than that.
        run_as("alice", "load", SMALL, "--pool", "p", "--as", "hers")
        os.rename(os.path.join(POOLS, "p.admin"), path_of("moved.admin"))
        line = one_line(run_as("bob", "unload", "hers", "--pool", "p", "--admin", expect=USAGE).err)
        require("admin secret" in line, line)
        os.rename(path_of("moved.admin"), os.path.join(POOLS, "p.admin"))
        os.chmod(os.path.join(POOLS, "p.admin"), 0o640)
        require("open to other users" in one_line(run("unload", "hers", "--pool", "p", "--admin", expect=USAGE).err), "it was used")
        os.chmod(os.path.join(POOLS, "p.admin"), 0o600)
        wrong = open(os.path.join(POOLS, "p.admin")).read()
        write("runtime/dmgraph/p.admin", ("0" if wrong[0] != "0" else "1") + wrong[1:])
        require("admin secret" in one_line(run("unload", "hers", "--pool", "p", "--admin", expect=USAGE).err), "any secret will do")
        secret = open(os.path.join(POOLS, "p.pool")).read()
        require(wrong not in secret, "the admin secret is in the pool's file")


def read_answer_of(runner, identity, algorithm, graph):
    out = path_of(f"answer-{uuid.uuid4()}")
    runner(identity, "run", algorithm, graph, "--pool", "p", "--verify", "--output", out, "--quiet")
    return read_answer(out)


def an_identity_is_made_once_and_is_private():
    home = path_of("home")
    os.makedirs(home)
    bare = {name: value for name, value in ENVIRONMENT.items() if name not in ("DMGRAPH_IDENTITY", "XDG_STATE_HOME", "HOME")}
    places = ((os.path.join(home, ".local/state/dmgraph/identity"), {"HOME": home}),
              (os.path.join(home, "state/dmgraph/identity"), {"HOME": home, "XDG_STATE_HOME": os.path.join(home, "state")}),
              (os.path.join(POOLS, "identity"), {}))
    with Pool(mns=1):
        for place, variables in places:
            def as_this(*words, **options):
                return dmgraph(*words, env={**bare, **variables}, **options)
            as_this("list", "--pool", "p")
            require(not os.path.exists(place), f"{place} was made by who loads nothing")
            as_this("load", DENSE_IDS, "--pool", "p", "--as", "g")
            made = open(place).read()
            require(os.stat(place).st_mode & 0o777 == 0o600 and os.stat(os.path.dirname(place)).st_mode & 0o777 == 0o700, place)
            require(len(made.strip()) == 64 and int(made, 16) > 0, made)
            one_line(run("unload", "g", "--pool", "p", expect=USAGE).err)
            os.chmod(place, 0o604)
            require("open to other users" in one_line(as_this("unload", "g", "--pool", "p", expect=USAGE).err), "it was believed")
            os.chmod(place, 0o600)
            as_this("unload", "g", "--pool", "p")
            require(open(place).read() == made, "it was made anew")
            with open(place, "w") as file:
                file.write("nonsense\n")
            require("no identity" in one_line(as_this("load", DENSE_IDS, "--pool", "p", "--as", "g", expect=MALFORMED).err), "nonsense")
            os.unlink(place)
        # Two that come first at the same time have the same.
        loads = [subprocess.Popen([PROGRAM, "load", DENSE_IDS, "--pool", "p", "--as", f"g{index}", "--threads", "1"],
                                  env={**bare, "HOME": home}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, start_new_session=True) for index in range(3)]
        for load in loads:
            code, _, err = end(load)
            require(code == OK, err)
        for index in range(3):
            dmgraph("unload", f"g{index}", "--pool", "p", env={**bare, "HOME": home})


def jobs_have_no_more_than_they_may():
    with Pool(mns=2, memory="32M", job_memory="3M", job_clients=2, job_channels=8):
        line = one_line(run("load", LARGE, "--pool", "p", "--as", "large", expect=LIMIT).err)
        require("lets one job have 3145728 of each memory node" in line, line)
        wait_until("an empty pool", lambda: sum(allocated()) == 0)
        run("load", DENSE_IDS, "--pool", "p", "--as", "g", "--threads", 1)
        for words, told in ((("--cns", 3, "--threads", 1), "2 compute nodes"), (("--cns", 2, "--threads", 3), "8 channels")):
            line = one_line(run("run", "cc", "g", "--pool", "p", *words, expect=LIMIT).err)
            require(told in line and "--job-" in line, line)
        answer_of("cc", "g", "--cns", 2, "--threads", 2)
        state = status()
        require(state["limits"] == {"job_memory_bytes": 3 << 20, "job_clients": 2, "job_channels": 8}, state["limits"])
        require(state["refused"]["memory"] > 0, state["refused"])
        text = run("pool", "status", "p").out
        require("3.0 MiB of each memory node, 2 compute nodes and 8 channels" in text and "times for memory" in text, text)


def status_says_who_has_what():
    with Pool():
        full, busy, nodes = endless_run(SMALL)
        job, = [job for job in status()["jobs"] if job["name"].startswith("run/")]
        require(job["clients"] == 2 and job["channels"] == 6 and job["bytes"] == sum(allocated()) - sum(full), job)
        require(job["owner"]["user"] == os.getuid() and not job["is_graph"], job)
        text = run("pool", "status", "p").out
        require(job["name"] in text, text)
        graph, = [job for job in status()["jobs"] if job["is_graph"]]
        require(graph["is_kept"] and graph["bytes"] == sum(full) and graph["clients"] == 0, graph)
        busy.send_signal(signal.SIGINT)
        end(busy)
        wait_until("the end of its job", lambda: [job["is_graph"] for job in status()["jobs"]] == [True])


# ---- what dies ----

def runs_that_die_leave_the_pool_as_it_was():
    with Pool(peer_timeout=time_out(2)):
        run("load", SMALL, "--pool", "p", "--as", "small")
        full = allocated()
        for victim, number in (("launcher", signal.SIGKILL), ("launcher", signal.SIGTERM), ("compute-node", signal.SIGKILL)):
            busy = begin("run", "pagerank", "small", "--pool", "p", "--cns", 2, *ENDLESS)
            wait_until("a run", lambda: allocated() != full and len(children("compute-node")) == 2)
            if victim == "launcher":
                busy.send_signal(number)
            else:
                os.kill(children(victim)[0], number)
            began = time.monotonic()
            code, _, err = end(busy)
            require(code == {"launcher": -9 if number == signal.SIGKILL else 143, "compute-node": PEER}[victim], f"{code} {err}")
            if number != signal.SIGKILL or victim != "launcher":
                one_line(err)
            wait_until("the end of its nodes", lambda: not children("compute-node"))
            wait_until("that all memory is free again", lambda: allocated() == full)
            saw(victim.replace("compute-node", "a compute node").replace("launcher", "the launcher") +
                (" killed (SIGKILL)" if number == signal.SIGKILL else f" gets {number.name}"), "pool: compute", code, err, began)
            answer_of("cc", "small", "--cns", 2, "--threads", 1)
        run("unload", "small", "--pool", "p")
        wait_until("an empty pool", lambda: sum(allocated()) == 0)


def loads_that_die_leave_nothing():
    path = random_graph("slow.el", 20000, 400000)
    run("convert", path, path_of("slow.dmg"), "--quiet")
    with Pool(peer_timeout=time_out(2)):
        rng = random.Random(SEED)
        for victim, number in (("launcher", signal.SIGINT), ("launcher", signal.SIGKILL), ("compute-node", signal.SIGKILL)) * (
                1 if IS_THIN else 3):
            load = begin("load", path_of("slow.dmg"), "--pool", "p", "--as", "slow", "--cns", 2, "--threads", 1)
            wait_until("nodes that load", lambda: children("compute-node") or load.poll() is not None)
            time.sleep(rng.random() * 0.1)
            nodes = children("compute-node")
            began = time.monotonic()
            if victim == "launcher":
                load.send_signal(number)
            elif nodes:
                try:
                    os.kill(nodes[-1], number)
                except ProcessLookupError:
                    pass
            code, _, err = end(load)
            wait_until("the end of its nodes", lambda: not children("compute-node"))
            if code == OK:
                run("unload", "slow", "--pool", "p")  # it was quicker
            elif number != signal.SIGKILL or victim != "launcher":
                one_line(err)
            if graphs():
                require(number == signal.SIGKILL and victim == "launcher", f"the load failed, and the graph is there: {err}")
                run("unload", "slow", "--pool", "p")
            wait_until("an empty pool", lambda: sum(allocated()) == 0)
            saw(f"the launcher {'killed (SIGKILL)' if number == signal.SIGKILL else 'gets ' + number.name}"
                if victim == "launcher" else "a compute node killed (SIGKILL)", "pool: load", code or None, err, began)
        wait_until("a free name", lambda: run("load", DENSE_IDS, "--pool", "p", "--as", "slow", expect=None).code == OK)


def has_connected(pid):
    """Whether a compute node has more sockets than the one to its launcher."""
    return len(socket_inodes(pid)) > 1


def a_compute_node_whose_launcher_was_killed_waits_for_no_other():
    """One that has come waits for the others of its job, who may never come."""
    with Pool():
        for _ in range(50):
            load = begin("load", SMALL, "--pool", "p", "--as", "never", "--cns", 2, "--threads", 1)
            started = []
            while len(started) < 3 and load.poll() is None:  # the launcher's witness comes first
                started = read(f"/proc/{load.pid}/task/{load.pid}/children").split()
            nodes = [int(pid) for pid in started[1:]]
            # Before it has become a compute node, it holds what its launcher holds.
            while load.poll() is None and b"compute-node" not in read(f"/proc/{nodes[-1]}/cmdline").split(b"\0"):
                pass
            if len(nodes) == 2 and load.poll() is None:
                os.kill(nodes[1], signal.SIGSTOP)  # it has hardly begun
                time.sleep(0.5)
                if is_alive(nodes[0]) and has_connected(nodes[0]) and not has_connected(nodes[1]):
                    break
                os.kill(nodes[1], signal.SIGCONT)
            end(load)
            run("unload", "never", "--pool", "p", expect=None)
        else:
            raise Failure("no compute node was stopped before it came")
        load.kill()
        wait_until("the end of the one that waited", lambda: not is_alive(nodes[0]), 15)
        # The one that was stopped has had SIGHUP from the kernel, as its process group lost its parent.
        os.kill(nodes[1], signal.SIGCONT)
        end(load)
        wait_until("an empty pool", lambda: sum(allocated()) == 0)


def a_memory_node_that_dies_in_a_run():
    with Pool(peer_timeout=time_out(2)):
        run("load", SMALL, "--pool", "p", "--as", "small")
        full = allocated()
        for step in ("run", "afterwards"):
            if step == "run":
                busy = begin("run", "pagerank", "small", "--pool", "p", "--cns", 2, *ENDLESS)
                wait_until("a run", lambda: allocated() != full and len(children("compute-node")) == 2)
                os.kill(status()["memory_nodes"][1]["pid"], signal.SIGKILL)
                began = time.monotonic()
                code, _, err = end(busy)
                require(code == PEER and "memory node 1" in one_line(err), f"{code} {err}")
                saw("a memory node killed (SIGKILL)", "pool: compute", code, err, began)
            else:
                for words in (("run", "cc", "small", "--pool", "p"), ("list", "--pool", "p"), ("pool", "status", "p"),
                              ("load", SMALL, "--pool", "p", "--as", "y"), ("unload", "small", "--pool", "p")):
                    began = time.monotonic()
                    error = run(*words, expect=PEER).err
                    require("memory node 1" in one_line(error) and "dead" in error, error)
                    saw("a memory node killed (SIGKILL)", "pool: idle, and then any command", PEER, error, began)
        require("dead" in run("pool", "status", "p", expect=PEER).out, "the status does not say it")
        require("1 of 2" in run("pool", "clean").out, "clean does not say why it leaves the pool")
        require("dead before" in run("pool", "stop", "p").out, "stop does not say it")
        run(*Pool().words)


def a_memory_node_that_dies_in_a_load():
    path = random_graph("slow.el", 20000, 400000)
    run("convert", path, path_of("slow.dmg"), "--quiet")
    with Pool(peer_timeout=time_out(2)):
        load = begin("load", path_of("slow.dmg"), "--pool", "p", "--as", "slow", "--cns", 2, "--threads", 1)
        wait_until("nodes that load", lambda: children("compute-node") or load.poll() is not None)
        os.kill(json.load(open(os.path.join(POOLS, "p.pool")))["nodes"][1]["pid"], signal.SIGKILL)
        began = time.monotonic()
        code, _, err = end(load)
        require(code in (OK, PEER), f"{code} {err}")
        if code == PEER:
            require("memory node 1" in one_line(err), err)
        saw("a memory node killed (SIGKILL)", "pool: load", code or None, err, began)


def a_stopped_memory_node_is_ended_by_force():
    with Pool(mns=1, peer_timeout=time_out(1)):
        pid = status()["memory_nodes"][0]["pid"]
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        error = run("list", "--pool", "p", expect=PEER).err
        one_line(error)
        saw("a memory node stopped for good (SIGSTOP)", "pool: idle, and then any command", PEER, error, began)
        require("killed" in run("pool", "stop", "p").out, "stop does not say it")
        require(not is_alive(pid), "it is alive")
        run(*Pool(mns=1).words)


def quarantined(pool="p"):
    return sum(node["quarantined_bytes"] for node in status(pool)["memory_nodes"])


# Where compute nodes reach a segment by themselves, what one had that was given up waits for its end.
WAITS = TRANSPORT != "ucx:data=message"


def saw(fault, phase, code, error, began):
    saw_fault(fault, phase, TRANSPORT, code, error, time.monotonic() - began)


def endless_run(graph, *options):
    """Load a graph and begin a run on it; what was allocated before, its launcher, and its two compute nodes, which are at work."""
    run("load", graph, "--pool", "p", "--as", "graph")
    full = allocated()
    busy = begin("run", "pagerank", "graph", "--pool", "p", "--cns", 2, *options, *ENDLESS)
    wait_until("a run", lambda: allocated() != full and len(children("compute-node")) == 2)
    return full, busy, children("compute-node")


def a_run_that_is_suspended_loses_its_lease_and_says_so():
    """The pool's nodes go on, so that what a run has in it is given up after the peer timeout, and the run hears of it."""
    with Pool(peer_timeout=time_out(1.2)):
        full, busy, nodes = endless_run(SMALL)
        everybody = [busy.pid, *nodes]
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        wait_until("the end of its leases", lambda: quarantined() > 0 if WAITS else allocated() == full)
        if WAITS:
            wait_until("all of it", lambda: all(sorted(node["quarantined_for"]) == nodes for node in status()["memory_nodes"]))
            state = status()["memory_nodes"]
            require([node["allocated_bytes"] - node["quarantined_bytes"] for node in state] == full, state)
            text = run("pool", "status", "p").out
            require(all(f"process {pid}" in text for pid in nodes), text)
        for pid in everybody:
            os.kill(pid, signal.SIGCONT)
        began = time.monotonic()
        code, _, err = end(busy)
        require(code == PEER, f"{code} {err}")
        line = one_line(err)
        require("silent for longer than the peer timeout" in line, line)
        wait_until("the end of the quarantine", lambda: allocated() == full)
        saw("all of a run stopped longer than the lease, and continued", "pool: compute", code, err, began)
        require(quarantined() == 0 and all(node["quarantined_for"] == [] for node in status()["memory_nodes"]), status())
        answer_of("cc", "graph", "--cns", 2, "--threads", 1)
        run("unload", "graph", "--pool", "p")


def a_run_that_was_stopped_overwrites_nothing():
    """What it had is given up when its lease is over; what it still writes, or sends, then must not get into others' graphs."""
    wanted = expected(NEIGHBOUR, "pagerank")
    for direction in ("push",) if IS_THIN else ("push", "pull"):
        with Pool(mns=1, memory="32M", peer_timeout=time_out(1.2)):
            full, busy, nodes = endless_run(LARGE, "--direction", direction)
            time.sleep(0.1)  # it is at work, wherever
            everybody = [busy.pid, *nodes]
            for pid in everybody:
                os.kill(pid, signal.SIGSTOP)
            wait_until("the end of its leases", lambda: sorted(status()["memory_nodes"][0]["quarantined_for"]) == nodes if WAITS
                       else allocated() == full)
            # As many as there is room for, so that all that was given up would be used again.
            loads = []
            error = ""
            while not error and len(loads) < 50:
                load = run("load", NEIGHBOUR, "--pool", "p", "--as", f"neighbour{len(loads)}", expect=None)
                require(load.code in (OK, LIMIT), load.err)
                error = one_line(load.err) if load.code == LIMIT else ""
                loads += [] if error else [f"neighbour{len(loads)}"]
            require(loads and error, f"{len(loads)} loads, and then {error}")
            if WAITS:
                require("wait for the end of process" in error and any(str(pid) in error for pid in nodes), error)
            for pid in everybody:
                os.kill(pid, signal.SIGCONT)
            began = time.monotonic()
            code, _, err = end(busy)
            require(code == PEER, f"{code} {err}")
            require("silent for longer than the peer timeout" in one_line(err), err)
            wait_until("the end of the quarantine", lambda: quarantined() == 0)
            saw("a run that was given up writes on, over what others loaded", "pool: compute", code, err, began)
            # The last makes room for what a run needs.
            run("unload", loads.pop(), "--pool", "p")
            for name in loads:
                same(answer_of("pagerank", name, "--threads", 1), wanted, 1e-6)
                run("unload", name, "--pool", "p")
            require(allocated() == full, f"{allocated()} instead of {full}")


def a_load_that_was_stopped_overwrites_nothing():
    """As a run: in the middle of its load it writes more than at any other time."""
    slow = path_of("slow.dmg")
    run("generate", "kron", "--scale", 16, slow, "--quiet")
    wanted = expected(NEIGHBOUR, "pagerank")
    with Pool(mns=1, memory="48M", peer_timeout=time_out(1.2)):
        node, = children("memory-node")
        sockets = len(socket_inodes(node))

        def stopped_in_the_middle():
            """Whether the load, whose processes are stopped, has memory, and a channel for each worker, and is not through."""
            jobs = [job for job in status()["jobs"] if job["name"].startswith("load/")]
            return len(jobs) == 1 and jobs[0]["channels"] == 6 and jobs[0]["bytes"] > 0 and not jobs[0]["is_kept"]

        rng = random.Random(SEED)
        for attempt in range(50):
            load = begin("load", slow, "--pool", "p", "--as", "slow", "--cns", 2, "--threads", 1)
            wait_until("nodes that load", lambda: len(children("compute-node")) == 2 or load.poll() is not None)
            time.sleep(rng.random() * 0.005 * attempt)
            nodes = children("compute-node")
            everybody = [load.pid, *nodes]
            for pid in everybody:
                try:
                    os.kill(pid, signal.SIGSTOP)
                except ProcessLookupError:
                    pass
            if load.poll() is None and len(nodes) == 2 and stopped_in_the_middle():
                break
            for pid in everybody:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
            end(load)
            run("unload", "slow", "--pool", "p", expect=None)
        else:
            raise Failure("no load was met in the middle")
        wait_until("the end of its leases", lambda: sorted(status()["memory_nodes"][0]["quarantined_for"]) == nodes if WAITS
                   else sum(allocated()) == 0)
        wait_until("the end of its connections", lambda: len(socket_inodes(node)) == sockets)
        loads = []
        while len(loads) < 50 and run("load", NEIGHBOUR, "--pool", "p", "--as", f"neighbour{len(loads)}", expect=None).code == OK:
            loads.append(f"neighbour{len(loads)}")
        require(len(loads) > 1, f"{len(loads)} loads")
        for pid in everybody:
            os.kill(pid, signal.SIGCONT)
        code, _, err = end(load)
        require(code == PEER, f"{code} {err}")
        require("silent for longer than the peer timeout" in one_line(err), err)
        wait_until("the end of the quarantine", lambda: quarantined() == 0)
        require(graphs() == sorted(loads), f"{graphs()} instead of {loads}")
        run("unload", loads.pop(), "--pool", "p")
        for name in loads:
            same(answer_of("pagerank", name, "--threads", 1), wanted, 1e-6)
            run("unload", name, "--pool", "p")
        require(sum(allocated()) == 0, f"{allocated()}")


def operations_are_the_same_whoever_is_kept_out():
    """What keeps a compute node out that was given up costs the others no operation."""
    def operations():
        report = json.loads(run("run", "bfs", "graph", "--pool", "p", "--cns", 1, "--threads", 1, "--tasks", 1, "--source", SOURCE,
                                "--json").out)
        run_of_it = report["operations"]["run"]
        return {**{name: (run_of_it[name]["operations"], run_of_it[name]["bytes"])
                   for name in ("read", "write", "cas", "faa", "message")},
                **{name: run_of_it[name] for name in ("in_place_spans", "in_place_bytes", "in_place_atomics", "purposes")}}

    with Pool(peer_timeout=time_out(1.2)):
        run("load", SMALL, "--pool", "p", "--as", "graph")
        before = operations()
        again = operations()
        require(before == again, f"they are not the same twice: {before} and {again}")
        run("unload", "graph", "--pool", "p")
        full, busy, nodes = endless_run(SMALL)
        for pid in [busy.pid, *nodes]:
            os.kill(pid, signal.SIGSTOP)
        wait_until("the end of its leases", lambda: quarantined() > 0 if WAITS else allocated() == full)
        during = operations()
        require(during == before, f"{during} instead of {before}")
        for pid in [busy.pid, *nodes]:
            os.kill(pid, signal.SIGCONT)
        require(end(busy)[0] == PEER, "it was not given up")


def a_stopped_run_that_is_killed_gives_back_what_waited():
    with Pool(peer_timeout=time_out(1.2)):
        full, busy, nodes = endless_run(SMALL)
        os.kill(nodes[0], signal.SIGSTOP)
        began = time.monotonic()
        code, _, err = end(busy)  # the launcher ends its nodes, the stopped one too
        wait_until("the end of the quarantine", lambda: allocated() == full)
        saw("a compute node stopped for good (SIGSTOP)", "pool: compute", code, err, began)
        require(quarantined() == 0, status())


def clean_removes_what_killed_pools_left():
    memory, sockets = shared_memory(), set(unix_sockets().values())
    run("pool", "clean")
    run(*Pool("dead").words)
    with Pool("alive", mns=1):
        run("load", SMALL, "--pool", "dead", "--as", "small")
        nodes = [node["pid"] for node in status("dead")["memory_nodes"]]
        for pid in nodes:
            os.kill(pid, signal.SIGKILL)
        # A process that is ending has no environment any more, and is not dead yet.
        wait_until("their end", lambda: not any(is_alive(pid) for pid in nodes))
        one_line(run("pool", "status", "dead", expect=PEER).err)
        error = run(*Pool("dead").words, expect=USAGE).err
        require("pool clean" in one_line(error), error)
        write("runtime/dmgraph/hostile.pool", "{}")
        os.chmod(os.path.join(POOLS, "hostile.pool"), 0o600)
        write("runtime/dmgraph/stray.log", "a log of no pool")
        write("runtime/dmgraph/stray.admin", "a secret of no pool")
        out = run("pool", "clean").out
        require("removed the pool dead" in out and "left alone: the pool alive is alive" in out, out)
        require("hostile.pool" in out and "stray.log" in out and "stray.admin" in out, out)
        require(sorted(os.listdir(POOLS)) == ["alive.admin", "alive.log", "alive.pool", "hostile.pool"], os.listdir(POOLS))
        os.unlink(os.path.join(POOLS, "hostile.pool"))
    require(not children("memory-node"), "a memory node is alive")

    def nothing_is_left():
        new_memory = shared_memory() - memory
        new_sockets = {inode: name for inode, name in unix_sockets().items() if name not in sockets}
        others = held_by_others(MARK.encode()) if new_memory or new_sockets else ""
        return not ({name for name in new_memory if f"/dev/shm/{name}" not in others} or
                    {inode for inode in new_sockets if f"socket:[{inode}]" not in others})

    # What another program makes may look like ours for a moment.
    wait_until("that no shared memory and no socket is left", nothing_is_left, 10)


def the_log_says_who_ended_a_memory_node():
    with Pool(mns=2):
        ended, killed = (node["pid"] for node in status()["memory_nodes"])
        log = os.path.join(POOLS, "p.log")
        os.kill(ended, signal.SIGTERM)
        os.kill(killed, signal.SIGKILL)
        wait_until("the nodes to end", lambda: not is_alive(ended) and not is_alive(killed))
        lines = read(log).decode().splitlines()
        for pid in (ended, killed):
            require(sum(f"started pid={pid}" in line for line in lines) == 1, f"{lines}")
        wanted = f"ended pid={ended} signal=15 sender_pid={os.getpid()} sender_user={os.getuid()}"
        require(sum(line.endswith(wanted) for line in lines) == 1, f"{wanted}: {lines}")
        require(not any(f"ended pid={killed}" in line for line in lines), f"{lines}")


def the_log_tells_at_debug_who_did_what():
    graph = write("told.el", "1 2\n2 3\n")
    with Pool(mns=1, log_level="debug"):
        run("load", graph, "--pool", "p", "--as", "told")
        run("load", graph, "--pool", "p", "--as", "told", expect=None)
        run("run", "bfs", "told", "--pool", "p", "--source", "1", "--quiet")
        run("unload", "told", "--pool", "p")
        log = read(os.path.join(POOLS, "p.log")).decode()
        lines = log.splitlines()
        for event in ("client_came", "client_gone", "job_joined", "catalog_put", "catalog_removed", "job_dropped"):
            found = [line for line in lines if f" debug: {event} " in line]
            require(found, f"no {event} in the log: {log}")
            require(all("client=" in line and "time=" in line and "pid=" in line for line in found), f"{found}")
        require(any("catalog_put" in line and "told" in line for line in lines), "the graph is not named")


def descriptors_are_limited_by_the_hard_limit_alone():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    require(hard > 256, f"the hard limit is {hard}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        with Pool(mns=1):
            node, = children("memory-node")
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            require(resource.prlimit(node, resource.RLIMIT_NOFILE) == (hard, hard), "the limit was not raised")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def a_file_that_is_open_to_others_is_not_believed():
    with Pool(mns=1):
        path = os.path.join(POOLS, "p.pool")
        for mode in (0o640, 0o606):
            os.chmod(path, mode)
            require("open to other users" in one_line(run("list", "--pool", "p", expect=USAGE).err), "it was believed")
        os.chmod(path, 0o600)
        os.chmod(POOLS, 0o750)
        require("open to other users" in one_line(run("list", "--pool", "p", expect=USAGE).err), "it was believed")
        os.chmod(POOLS, 0o700)
        content = json.load(open(path))
        token, pid = content["token"], content["nodes"][0]["pid"]
        content["token"] = "0" * 32
        write("runtime/dmgraph/p.pool", json.dumps(content))
        error = run("list", "--pool", "p", expect=None)
        require(error.code != OK and one_line(error.err), "a wrong token is let in")
        # A process that has got the id of a dead node is not touched.
        innocent = subprocess.Popen(["sleep", "600"])
        content["token"] = token
        content["nodes"][0]["pid"] = innocent.pid
        write("runtime/dmgraph/p.pool", json.dumps(content))
        require("dead before" in run("pool", "stop", "p").out, "it counts as alive")
        require(innocent.poll() is None, "an innocent process was ended")
        innocent.kill()
        innocent.wait()
        os.kill(pid, signal.SIGTERM)
        wait_until("its end", lambda: not is_alive(pid))
        run(*Pool(mns=1).words)


def an_interrupted_start_leaves_nothing():
    os.makedirs(POOLS, 0o700, exist_ok=True)
    rng = random.Random(SEED)
    for number in (signal.SIGINT, signal.SIGKILL) * (2 if IS_THIN else 6):
        start = begin(*Pool(mns=3).words)
        time.sleep(rng.random() * 0.15)
        start.send_signal(number)
        code, _, err = end(start)
        if code == OK:
            run("pool", "stop", "p")
        elif number == signal.SIGINT:
            require(code in (130, -2), f"{code} {err}")
            wait_until("the end of all nodes", lambda: not children("memory-node"))
            require(not os.path.exists(os.path.join(POOLS, "p.pool")), "the pool's file is left")
        else:
            # Whoever had detached is named by the file.
            time.sleep(0.2)
            run("pool", "stop", "p", expect=None)
            wait_until("the end of all nodes", lambda: not children("memory-node"))
        run("pool", "clean")
        require(os.listdir(POOLS) == [], os.listdir(POOLS))


GIVEN_UP = (a_run_that_is_suspended_loses_its_lease_and_says_so, a_run_that_was_stopped_overwrites_nothing,
            a_stopped_run_that_is_killed_gives_back_what_waited, a_load_that_was_stopped_overwrites_nothing,
            operations_are_the_same_whoever_is_kept_out)


def main():
    for function in GIVEN_UP if "given_up" in sys.argv[2:] else (
            one_load_serves_any_number_of_compute_nodes, more_compute_nodes_than_partitions_form_groups,
            all_algorithms_and_kinds_of_graphs, a_graph_comes_from_the_standard_input, empty_and_tiny_graphs,
            negative_weights_are_refused_by_their_line, status_says_what_there_is, names_are_taken_once, misuse,
            a_graph_larger_than_any_memory_node, memory_follows_the_sizes_of_the_nodes,
            a_malformed_graph_leaves_nothing, jobs_side_by_side, loads_side_by_side,
            a_graph_is_unloaded_by_its_owner_or_the_admin, an_identity_is_made_once_and_is_private,
            jobs_have_no_more_than_they_may, status_says_who_has_what, unloaded_graphs_give_their_pages_back,
            a_graph_in_use_is_not_unloaded, runs_that_die_leave_the_pool_as_it_was, loads_that_die_leave_nothing,
            a_compute_node_whose_launcher_was_killed_waits_for_no_other,
            a_memory_node_that_dies_in_a_run, a_memory_node_that_dies_in_a_load, a_stopped_memory_node_is_ended_by_force,
            *GIVEN_UP, clean_removes_what_killed_pools_left, a_file_that_is_open_to_others_is_not_believed,
            the_log_says_who_ended_a_memory_node, the_log_tells_at_debug_who_did_what,
            descriptors_are_limited_by_the_hard_limit_alone,
            an_interrupted_start_leaves_nothing):
        check(function.__name__, function)
    finish()


main()
