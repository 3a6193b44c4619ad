"""Limits of open files: what runs, pools and measurements need is said before they start; a pool that had none left serves on.

Usage: descriptors.py TRANSPORT
"""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fault"))

from harness import (LIMIT, OK, PEER, PROGRAM, SEED, check, communicate, dmgraph, finish, folder, one_line,  # noqa: E402
                     path_of, require, time_out, wait_until, write)
from watch import is_alive, processes, read, socket_inodes  # noqa: E402

TRANSPORT = sys.argv[1] if len(sys.argv) > 1 else "cxl_shm"
RUNTIME = os.path.join(folder(), "runtime")
os.mkdir(RUNTIME, 0o700)
MARK = f"DMGRAPH_TEST_DESCRIPTORS={uuid.uuid4()}"
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME, MARK.split("=")[0]: MARK.split("=")[1]}
# What the program leaves for what comes and goes.
SPARE = 8
# The connections of a launcher, and of a compute node beside one a thread.
LAUNCHER_CHANNELS = 2
NODE_CHANNELS = 2
# Memory nodes, compute nodes, threads: among these are some where each kind of process needs most.
SHAPES = ((2, 2, 2), (1, 3, 4), (3, 1, 4), (1, 6, 1), (2, 4, 1), (4, 1, 1))
ENDLESS = ("--iterations", 4000000000, "--tolerance", 0)

_rng = random.Random(SEED)
GRAPH = write("graph.el", "".join(f"{_rng.randrange(2000)} {_rng.randrange(2000)}\n" for _ in range(20000)))


def limited(count):
    """For a process between its start and the program's: a hard limit."""
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def run(*words, **options):
    return dmgraph(*words, env=ENVIRONMENT, **options)


def begin(*words, **options):
    return subprocess.Popen([PROGRAM, *map(str, words)], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True, **options)


def ours():
    """Processes of these tests, by what they are: {pid: words}."""
    found = {}
    for pid in processes():
        if MARK.encode() in read(f"/proc/{pid}/environ").split(b"\0") and is_alive(pid):
            found[pid] = read(f"/proc/{pid}/cmdline").decode(errors="replace").split("\0")
    return found


def nodes(kind):
    return sorted(pid for pid, words in ours().items() if kind in words)


def one_shot(mns, cns, threads, *more):
    return ("run", "pagerank", GRAPH, "--transport", TRANSPORT, "--mns", mns, "--cns", cns, "--threads", threads, "--quiet",
            "--no-progress", *more)


def refusal(error):
    """Its one line, beside what some transports warn of at the start."""
    return one_line("\n".join(line for line in error.splitlines() if not line.startswith("dmgraph: warning: ")))


def needed(error):
    """The number in the one line of a refusal, and who needs so many."""
    line = refusal(error)
    found = re.fullmatch(r"dmgraph: (?:compare: )?(a memory node|a compute node|this program) needs (\d+) file descriptors over \S+, and a "
                         r"process may have \d+ here: raise the limit \(`ulimit -n (\d+)`\)(, or .*)?", line)
    require(found and found[2] == found[3], line)
    return int(found[2]), found[1]


def open_now(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def connections(pid):
    """How many a memory node has, on one host: Unix sockets with an end elsewhere, in the state CONNECTED."""
    own = socket_inodes(pid)
    rows = [line.split() for line in read("/proc/net/unix").decode(errors="replace").splitlines()[1:]]
    return sum(row[6] in own and row[5] == "03" for row in rows)


def largest_need(mns, cns, threads):
    """What is needed, and by whom, as the program says it of the process that needs most."""
    return needed(run(*one_shot(mns, cns, threads), expect=LIMIT, preexec_fn=limited(16)).err)


# ---- one-shot runs ----

def a_run_that_needs_more_is_refused_before_anything_starts():
    traced = []
    with begin(*one_shot(2, 6, 8), preexec_fn=limited(64)) as refused:
        while refused.poll() is None:
            traced += nodes("memory-node") + nodes("compute-node")
        code, error = refused.returncode, refused.stderr.read().decode()
    require(code == LIMIT, f"exit code {code}: {error}")
    count, _ = needed(error)
    require(count > 64 and not traced, f"{count} are needed; started were {traced}")
    require("--cns" in error and "--threads" in error, error)


def what_is_needed_suffices(mns, cns, threads):
    count, _ = largest_need(mns, cns, threads)
    below = run(*one_shot(mns, cns, threads), expect=LIMIT, preexec_fn=limited(count - 1))
    require(needed(below.err)[0] == count, f"{count} are needed, but: {below.err}")
    run(*one_shot(mns, cns, threads, "--iterations", 3, "--verify"), preexec_fn=limited(count))


def children_of(pid):
    try:
        return {int(word) for thread in os.listdir(f"/proc/{pid}/task")
                for word in read(f"/proc/{pid}/task/{thread}/children").split()}
    except OSError:
        return set()


def peaks(iterations, mns, cns, threads):
    """The most descriptors that each process of a run was seen with, the launcher's first."""
    most = {}
    with begin(*one_shot(mns, cns, threads, "--iterations", iterations, "--tolerance", 0)) as process:
        while process.poll() is None:
            for pid in [process.pid, *children_of(process.pid)]:
                words = read(f"/proc/{pid}/cmdline").split(b"\0")
                if pid == process.pid or b"memory-node" in words or b"compute-node" in words:
                    most[pid] = max(most.get(pid, 0), open_now(pid))
        require(process.returncode == OK, process.stderr.read().decode())
    return list(most.values())


def what_is_needed_is_never_less_than_what_is_open(mns, cns, threads):
    limit = largest_need(mns, cns, threads)[0] - SPARE
    iterations, most = 100, []
    while len(most) < 1 + mns + cns and iterations < 10 ** 6:
        iterations *= 4
        most = peaks(iterations, mns, cns, threads)
    require(len(most) == 1 + mns + cns, f"{len(most)} processes were seen")
    require(max(most) <= limit, f"{limit} without what is spare; open were {most}")


def each_kind_of_process_is_the_one_that_needs_most_somewhere():
    kinds = {largest_need(*shape)[1] for shape in SHAPES}
    require(kinds == {"a memory node", "a compute node", "this program"}, f"only {kinds}")


# ---- measurements ----

def a_measurement_that_needs_more_is_refused():
    words = ("perf", "--transport", TRANSPORT, "--operations", "read", "--sizes", 8, "--depths", 1, "--duration", "50ms")
    count, _ = needed(run(*words, "--thread-counts", "2,60", expect=LIMIT, preexec_fn=limited(64)).err)
    require(count > 64, f"{count}")
    count, _ = needed(run(*words, "--thread-counts", 2, expect=LIMIT, preexec_fn=limited(16)).err)
    run(*words, "--thread-counts", 2, preexec_fn=limited(count))


def a_comparison_looks_for_all_its_runs_before_the_first():
    words = ("compare", path_of("no-such-graph.el"), "bfs", "--runs-only", "--with", f"{TRANSPORT},none", "--with",
             f"{TRANSPORT},polar-rdma", "--threads", 4, "--no-progress")
    error = run(*words, "--cns", "1,9", expect=LIMIT, preexec_fn=limited(64)).err
    require(needed(error)[0] > 64, error)
    # What would be enough for the first of them is.
    error = run(*words, "--cns", 1, expect=None, preexec_fn=limited(64))
    require("no-such-graph" in error.err, error.err)


# ---- pools ----

class Pool:
    """A pool whose memory nodes may have so many descriptors, with the graph in it; stopped behind it."""

    def __init__(self, limit=64, mns=1):
        self.limit = limit
        self.mns = mns

    def __enter__(self):
        run("pool", "start", "--name", "p", "--transport", TRANSPORT, "--mns", self.mns, "--memory", "64M",
            preexec_fn=limited(self.limit))
        run("load", GRAPH, "--pool", "p", "--as", "g", "--cns", 1, "--threads", 1, "--quiet")
        wait_until("the connections of the load to close", lambda: not any(map(connections, nodes("memory-node"))))
        return self

    def __exit__(self, kind, value, trace):
        stopped = run("pool", "stop", "p", expect=None)
        for pid in nodes("memory-node") + nodes("compute-node"):
            os.kill(pid, signal.SIGKILL)
        require(kind is not None or stopped.code == OK, f"pool stop: {stopped.err}")


def in_pool(cns, threads, *more):
    return ("run", "pagerank", "g", "--pool", "p", "--cns", cns, "--threads", threads, "--quiet", "--no-progress", *more)


def small_run():
    run(*in_pool(1, 1, "--iterations", 3))


def missing(error):
    """What is left and what is needed, from the one line of a refusal."""
    line = refusal(error)
    found = re.search(r"the pool p: memory node \d+ has (\d+) file descriptors left, and the compute nodes need (\d+)", line)
    require(found and int(found[1]) < int(found[2]) and "ulimit -n" in line, line)
    return int(found[1]), int(found[2])


def a_pool_that_cannot_serve_anybody_is_not_started():
    words = ("pool", "start", "--name", "p", "--transport", TRANSPORT, "--mns", 1, "--memory", "64M")
    count, _ = needed(run(*words, expect=LIMIT, preexec_fn=limited(16)).err)
    require(nodes("memory-node") == [], "a memory node is there")
    run(*words, preexec_fn=limited(count))
    run("pool", "stop", "p")


def a_pool_refuses_what_needs_more_than_is_left():
    with Pool(mns=2):
        for words in (in_pool(8, 4), ("load", GRAPH, "--pool", "p", "--as", "h", "--cns", 8, "--threads", 4)):
            traced = []
            with begin(*words) as refused:
                while refused.poll() is None:
                    traced += nodes("compute-node")
                code, error = refused.returncode, refused.stderr.read().decode()
            require(code == LIMIT and not traced, f"exit code {code}, started were {traced}: {error}")
            _, count = missing(error)
            require(count == 8 * (4 + 2) + SPARE, f"{count} are needed")
        small_run()
        graphs = [graph["name"] for graph in json.loads(run("list", "--pool", "p", "--json").out)]
        require(graphs == ["g"], f"{graphs}")


def holder_of(node, channels):
    """A run without an end, with so many channels and its launcher's, when all of them are open."""
    all_open = open_now(node) + channels + LAUNCHER_CHANNELS
    process = begin(*in_pool(1, channels - NODE_CHANNELS, *ENDLESS))
    wait_until("the run to connect", lambda: process.poll() is not None or open_now(node) >= all_open)
    require(process.poll() is None, f"the run has ended: {process.stderr.read().decode() if process.poll() is not None else ''}")
    return process


def end_holder(holder, node, before):
    holder.send_signal(signal.SIGTERM)
    communicate(holder)
    wait_until("the run's channels to close", lambda: open_now(node) <= before)


def what_others_have_taken_is_not_left():
    with Pool() as pool:
        node, = nodes("memory-node")
        before = open_now(node)
        # All that is left but what is spare, of which the next launcher takes its own.
        holder = holder_of(node, pool.limit - before - LAUNCHER_CHANNELS - SPARE)
        left, count = missing(run(*in_pool(1, 1), expect=LIMIT).err)
        require(left < count == 3 + SPARE, f"{left} are left, {count} are needed")
        end_holder(holder, node, before)
        small_run()


def a_pool_that_has_none_left_serves_on():
    with Pool() as pool:
        node, = nodes("memory-node")
        before = open_now(node)
        holder = holder_of(node, pool.limit - before - LAUNCHER_CHANNELS - SPARE)
        used = open_now(node)
        resource.prlimit(node, resource.RLIMIT_NOFILE, (used, used))
        for _ in range(2):
            refused = run(*in_pool(1, 1, "--peer-timeout", time_out(1)), expect=None)
            require(refused.code in (LIMIT, PEER), f"exit code {refused.code}: {refused.err}")
            refusal(refused.err)
        require(holder.poll() is None, "the run that was there has ended")
        end_holder(holder, node, before)
        small_run()


def runs_that_use_up_all_together_do_no_harm():
    with Pool() as pool:
        node, = nodes("memory-node")
        before = open_now(node)
        # Each finds enough; they look at the same time, and have not enough together.
        several = [begin(*in_pool(2, 5, *ENDLESS)) for _ in range(6)]
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and open_now(node) < pool.limit:
            time.sleep(0.001)
        for process in several:
            process.send_signal(signal.SIGTERM)
        for process in several:
            _, error = communicate(process)
            require(process.returncode in (LIMIT, PEER, 128 + signal.SIGTERM, -signal.SIGTERM),
                    f"exit code {process.returncode}: {error.decode()}")
        require(is_alive(node), "the memory node has ended")
        wait_until("their channels to close", lambda: open_now(node) <= before)
        small_run()


def main():
    check("refused", a_run_that_needs_more_is_refused_before_anything_starts)
    for shape in SHAPES:
        check(f"suffices {shape}", what_is_needed_suffices, *shape)
    for shape in SHAPES:
        check(f"never less {shape}", what_is_needed_is_never_less_than_what_is_open, *shape)
    check("kinds", each_kind_of_process_is_the_one_that_needs_most_somewhere)
    check("perf", a_measurement_that_needs_more_is_refused)
    check("compare", a_comparison_looks_for_all_its_runs_before_the_first)
    check("pool start", a_pool_that_cannot_serve_anybody_is_not_started)
    check("pool refuses", a_pool_refuses_what_needs_more_than_is_left)
    check("others", what_others_have_taken_is_not_left)
    check("none left", a_pool_that_has_none_left_serves_on)
    check("all together", runs_that_use_up_all_together_do_no_harm)
    finish()


main()
