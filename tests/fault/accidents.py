"""Accidents of long-lived pools: what is known afterwards, what is found again, and what ends at once.

Usage: accidents.py TRANSPORT
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from groups import into, make_group, remove_group, start_hogs  # noqa: E402
from harness import (OK, PEER, PROGRAM, USAGE, check, communicate, dmgraph, finish, folder, is_sanitized, one_line, path_of, require,  # noqa: E402
                     time_out, wait_until, write)
from watch import held_by_others, is_alive, processes, read, shared_memory  # noqa: E402

TRANSPORT = sys.argv[1] if len(sys.argv) > 1 else "cxl_shm"
RUNTIME = os.path.join(folder(), "runtime")
POOLS = os.path.join(RUNTIME, "dmgraph")
os.mkdir(RUNTIME, 0o700)
MARK = f"DMGRAPH_TEST_ACCIDENTS={uuid.uuid4()}"
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME, MARK.split("=")[0]: MARK.split("=")[1]}
ENDLESS = ("--iterations", 4000000000, "--tolerance", 0, "--threads", 1, "--quiet")
GRAPH = write("graph.el", "".join(f"{vertex} {(vertex * 7 + 1) % 2000}\n" for vertex in range(2000)))


def run(*words, **options):
    return dmgraph(*words, env=ENVIRONMENT, **options)


def members(kind):
    """Living processes of these tests of one kind: "memory-node", "compute-node", "pool-keeper"."""
    return sorted(pid for pid in processes() if MARK.encode() in read(f"/proc/{pid}/environ") and is_alive(pid) and
                  kind.encode() in read(f"/proc/{pid}/cmdline").split(b"\0"))


def status(pool="p", expect=OK, **options):
    return json.loads(run("pool", "status", pool, "--json", expect=expect, **options).out)


class Pool:
    """A pool for one case, of which nothing is left behind it."""

    def __init__(self, name="p", mns=2, **options):
        self.name = name
        self.words = ["pool", "start", "--name", name, "--transport", TRANSPORT, "--mns", mns, "--memory", "16M", "--quiet"]
        for option, value in options.items():
            self.words += ["--" + option.replace("_", "-"), value]

    def __enter__(self):
        run(*self.words)
        self.pids = [node["pid"] for node in status(self.name)["memory_nodes"]]
        return self

    def __exit__(self, kind, value, trace):
        stopped = run("pool", "stop", self.name, expect=None)
        for process in members("memory-node"):
            os.kill(process, signal.SIGKILL)
        if kind is None:
            require(stopped.code == OK, f"pool stop: {stopped.err}")
            require(os.listdir(POOLS) == [], f"left in the folder: {os.listdir(POOLS)}")


class Computing:
    """A run without an end on a graph in the pool p."""

    def __init__(self):
        run("load", GRAPH, "--pool", "p", "--as", "graph", "--quiet")
        free = self.allocated()
        self.launcher = subprocess.Popen([PROGRAM, *map(str, ("run", "pagerank", "graph", "--pool", "p", "--cns", 2, *ENDLESS))],
                                         env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, start_new_session=True)
        wait_until("a run", lambda: len(members("compute-node")) == 2 and self.allocated() > free)

    @staticmethod
    def allocated():
        return sum(node["allocated_bytes"] for node in status()["memory_nodes"])

    def end(self):
        """Its one line, when it has ended as it is to when a memory node is lost to it."""
        out, err = communicate(self.launcher, 30)
        require(self.launcher.returncode == PEER and not out, f"exit code {self.launcher.returncode}: {out} {err}")
        wait_until("the end of its nodes", lambda: not members("compute-node"))
        return one_line(err.decode(errors="replace"))


# ---- a launcher without its hold on the pool ----

def a_launcher_that_was_given_up_ends_its_computation():
    """It is stopped alone: its compute nodes go on, and would do so for ever."""
    with Pool(peer_timeout=time_out(0.6), log_level="info"):
        computing = Computing()
        nodes = members("compute-node")
        computing.launcher.send_signal(signal.SIGSTOP)
        wait_until("the end of its lease", lambda: read(os.path.join(POOLS, "p.log")).count(b"lease_expired") == 2)
        require(members("compute-node") == nodes, "its compute nodes did not go on")
        computing.launcher.send_signal(signal.SIGCONT)
        line = computing.end()
        require("the launcher lost its hold on the pool p: memory node " in line and
                "silent for longer than the peer timeout" in line, line)
        run("run", "cc", "graph", "--pool", "p", "--quiet")


def a_memory_node_that_dies_ends_a_computation():
    with Pool() as pool:
        computing = Computing()
        os.kill(pool.pids[1], signal.SIGKILL)
        line = computing.end()
        require("memory node 1 " in line, line)


# ---- why a memory node died ----

def told_of(pool, node, wanted):
    """What status and every command say of a dead node; the reason for people."""
    shown = run("pool", "status", "p", "--json", expect=PEER)
    died = json.loads(shown.out)["memory_nodes"][node]["died"]
    require(died and wanted in died["why"] and abs(died["at"] - time.time()) < 3600, f"{wanted}: {died}")
    for words in (("pool", "status", "p"), ("run", "cc", "graph", "--pool", "p"), ("list", "--pool", "p")):
        line = one_line(run(*words, expect=PEER).err)
        require(f"memory node {node} (pid {pool.pids[node]}) of the pool 'p' is dead ({died['why']} at 20" in line, line)
    require(f"pid {pool.pids[node]}, dead ({died['why']} at 20" in run("pool", "status", "p", expect=PEER).out, "the table")
    log = read(os.path.join(POOLS, "p.log")).decode()
    require(sum(f"memory node {node}: died pid={pool.pids[node]} why=\"{died['why']}\"" in line
                for line in log.splitlines()) == 1, log)
    return died["why"]


def a_signal_that_killed_a_memory_node_is_told():
    crashed = "crashed with SIG"
    faults = () if is_sanitized() else (  # which take these signals for themselves
        (signal.SIGSEGV, crashed + "SEGV (Segmentation fault)"), (signal.SIGBUS, crashed + "BUS (Bus error)"))
    for number, wanted in (*faults, (signal.SIGKILL, "killed by SIGKILL"), (signal.SIGABRT, crashed + "ABRT (Aborted)"),
                           (signal.SIGTERM, f"ended by SIGTERM, which process {os.getpid()} of user {os.getuid()} sent")):
        with Pool() as pool:
            keeper, = members("pool-keeper")
            os.kill(pool.pids[1], number)
            wait_until("its end", lambda: not is_alive(pool.pids[1]))
            why = told_of(pool, 1, wanted)
            # Nothing of a machine that may be short of memory for others.
            require(why == wanted or number == signal.SIGKILL or "core dumped" in why, why)
            require(members("pool-keeper") == [keeper], "the keeper is gone, or there is another one")
        wait_until("the keeper's end", lambda: not members("pool-keeper"))


def a_computation_says_why_its_memory_node_died():
    with Pool() as pool:
        computing = Computing()
        os.kill(pool.pids[0], signal.SIGKILL)
        line = computing.end()
        require("memory node 0 " in line and "(killed by SIGKILL" in line, line)


def all_nodes_may_die():
    """The last one's end is put down, too, and nobody is left."""
    with Pool() as pool:
        for pid in pool.pids:
            os.kill(pid, signal.SIGKILL)
        wait_until("the keeper's end", lambda: not members("memory-node") and not members("pool-keeper"))
        for node in status(expect=PEER)["memory_nodes"]:
            require("killed by SIGKILL" in node["died"]["why"], node)


def a_killed_keeper_takes_nothing_with_it():
    with Pool() as pool:
        keeper, = members("pool-keeper")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(keeper, number)  # it has a task as long as there are nodes
        run("load", GRAPH, "--pool", "p", "--as", "graph", "--quiet")
        require(members("pool-keeper") == [keeper], "a signal has ended the keeper")
        os.kill(keeper, signal.SIGKILL)
        wait_until("its end", lambda: not is_alive(keeper))
        run("run", "cc", "graph", "--pool", "p", "--quiet")
        os.kill(pool.pids[0], signal.SIGKILL)
        wait_until("a node's end", lambda: not is_alive(pool.pids[0]))
        nodes = status(expect=PEER)["memory_nodes"]
        require(nodes[0]["died"] is None and not nodes[0]["alive"], nodes[0])
        require(nodes[1]["died"] is None and nodes[1]["alive"], nodes[1])


def a_memory_node_that_was_killed_for_its_groups_limit_says_memory():
    group = make_group()
    if not group:
        print("  (no control group of memory that counts its kills can be made here)")
        return
    hogs = []
    try:
        # Of what was populated over ucx little counts as the node's own, so that the kernel takes the hogs first.
        run("pool", "start", "--name", "p", "--transport", "cxl_shm", "--memory", "100M", "--prefault", "--quiet",
            preexec_fn=into(group))
        pid, = (node["pid"] for node in status()["memory_nodes"])
        hogs = start_hogs(group)
        wait_until("the node's end", lambda: not is_alive(pid))
        node, = status(expect=PEER)["memory_nodes"]
        require(node["died"]["why"].startswith("killed by SIGKILL: ") and "limit of memory was reached" in node["died"]["why"], node)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
        run("pool", "stop", "p", expect=None)
        remove_group(group)


def nodes_of_a_launcher_that_was_killed_for_its_groups_limit_end():
    """One-shot, and in a pool, whose own nodes are in no group and go on."""
    group = make_group()
    if not group:
        print("  (no control group of memory that counts its kills can be made here)")
        return
    before = shared_memory()
    try:
        with Pool(peer_timeout=time_out(2)) as pool:
            run("load", GRAPH, "--pool", "p", "--as", "graph", "--quiet")
            free = Computing.allocated()
            for words in (("pagerank", GRAPH, "--transport", TRANSPORT), ("pagerank", "graph", "--pool", "p")):
                launcher = subprocess.Popen([PROGRAM, "run", *map(str, (*words, "--cns", 2, *ENDLESS))], env=ENVIRONMENT,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            start_new_session=True, preexec_fn=into(group))
                hogs = []
                try:
                    wait_until("compute nodes", lambda: len(members("compute-node")) == 2)
                    # The kernel takes it before all others.
                    with open(f"/proc/{launcher.pid}/oom_score_adj", "w") as file:
                        file.write("1000")
                    hogs = start_hogs(group)
                    communicate(launcher, 30)
                    require(launcher.returncode == -signal.SIGKILL, f"exit code {launcher.returncode}")
                    wait_until("the end of its nodes", lambda: not members("compute-node") and members("memory-node") == pool.pids)
                finally:
                    for process in (launcher, *hogs):
                        process.kill()
                        process.wait()
            wait_until("that all memory is free again", lambda: Computing.allocated() == free)
        wait_until("the memory to be given back", lambda: not {
            name for name in shared_memory() - before if f"/dev/shm/{name}" not in held_by_others(MARK.encode())}, 10)
    finally:
        remove_group(group)


# ---- pools whose folder went away ----

def listed(environment=ENVIRONMENT):
    return {pool["pool"]: pool for pool in json.loads(dmgraph("pool", "list", "--json", env=environment).out)}


def start(*words, environment=ENVIRONMENT):
    dmgraph("pool", "start", "--transport", TRANSPORT, "--memory", "16M", "--quiet", "--name", *words, env=environment)


def false_node(record):
    """A process that looks like a memory node of a pool, with a record of one that differs in its name; but that names others."""
    script = path_of("memory-node")
    with open(script, "w") as file:
        file.write("import time\ntime.sleep(600)\n")
    held = os.memfd_create("dmgraph-pool:false")
    other_token = re.sub(rb'"token":"(.)', lambda digit: b'"token":"' + (b"1" if digit[1] == b"0" else b"0"), record)
    os.write(held, other_token.replace(b'"lost"', b'"false"'))
    os.dup2(held, 64)
    try:
        return subprocess.Popen(["dmgraph", "memory-node", "--control-fd=3"], executable=sys.executable, cwd=folder(),
                                pass_fds=(64,), preexec_fn=lambda: os.dup2(64, 4, inheritable=True))
    finally:
        os.close(held)
        os.close(64)


def a_pool_outlives_its_folder():
    """It is listed, used and stopped; one that has its files, and what only looks like a node, are left alone."""
    before = shared_memory()
    elsewhere = {**ENVIRONMENT, "XDG_RUNTIME_DIR": os.path.join(folder(), "elsewhere")}
    os.mkdir(elsewhere["XDG_RUNTIME_DIR"], 0o700)
    start("lost", "--mns", "2")
    start("kept", environment=elsewhere)
    stranger = None
    try:
        run("load", GRAPH, "--pool", "lost", "--as", "graph", "--quiet")
        pids = [node["pid"] for node in status("lost")["memory_nodes"]]
        stranger = false_node(read(f"/proc/{pids[0]}/fd/4"))
        shutil.rmtree(RUNTIME)
        require(listed()["lost"] == {**listed()["lost"], "pids": pids, "alive": 2, "folder": POOLS, "has_files": False}, listed())
        require(set(listed()) == {"lost"} and listed(elsewhere)["kept"]["has_files"] and set(listed(elsewhere)) == {"kept"},
                f"{listed()} {listed(elsewhere)}")
        require(f"its files went away with {POOLS}: 'dmgraph pool stop lost' ends it" in run("pool", "list").out, "the list")
        require("found by its processes" in run("pool", "status", "lost").out, "the status")
        require(not status("lost")["has_files"], "the status")
        require(f"left alone: the pool lost is alive, and its files went away with {POOLS}" in run("pool", "clean").out, "clean")
        run("run", "cc", "graph", "--pool", "lost", "--verify", "--quiet")
        # The folder comes back with the next session.
        os.mkdir(RUNTIME, 0o700)
        error = run("pool", "start", "--name", "lost", expect=USAGE).err
        require("files went away" in one_line(error), error)
        os.kill(pids[1], signal.SIGKILL)
        wait_until("its end", lambda: not is_alive(pids[1]))
        require("(killed by SIGKILL" in one_line(run("run", "cc", "graph", "--pool", "lost", expect=PEER).err), "a reason")
        error = dmgraph("pool", "stop", "lost", env=elsewhere, expect=USAGE).err
        require("there is no pool 'lost'" in one_line(error), error)
        out = run("pool", "stop", "lost").out
        require(f"stopped the pool lost, whose files had gone with {POOLS}: 2 memory nodes, 1 of them dead before" in out, out)
        require(not any(is_alive(pid) for pid in pids), "a node is alive")
        require(not listed() and "there is no pool" in run("pool", "list").out, listed())
        one_line(run("pool", "stop", "lost", expect=USAGE).err)
        start("lost")  # the name is free
        run("pool", "stop", "lost", "--quiet")
        require(os.listdir(POOLS) == [], os.listdir(POOLS))
        kept, = (node["pid"] for node in json.loads(dmgraph("pool", "status", "kept", "--json", env=elsewhere).out)["memory_nodes"])
        require(is_alive(kept) and stranger.poll() is None, "a process that is none of the pool's was ended")
        dmgraph("pool", "stop", "kept", "--quiet", env=elsewhere)
        wait_until("the keepers' end", lambda: not members("pool-keeper") and not members("memory-node"))
        wait_until("the memory to be given back", lambda: not {
            name for name in shared_memory() - before if f"/dev/shm/{name}" not in held_by_others(MARK.encode())}, 10)
    finally:
        if stranger:
            stranger.kill()
            stranger.wait()
        for pid in members("memory-node"):
            os.kill(pid, signal.SIGKILL)
        os.makedirs(RUNTIME, 0o700, exist_ok=True)


def a_job_without_a_runtime_folder_finds_the_pool():
    """As cron starts one: XDG_RUNTIME_DIR is not set, and the pool's files are in another folder."""
    name = f"cron-{uuid.uuid4().hex[:12]}"
    bare = {key: value for key, value in ENVIRONMENT.items() if key != "XDG_RUNTIME_DIR"}
    start(name)
    try:
        require(listed(bare)[name]["folder"] == POOLS and listed(bare)[name]["has_files"], listed(bare))
        dmgraph("load", GRAPH, "--pool", name, "--as", "graph", "--quiet", env=bare)
        dmgraph("run", "cc", "graph", "--pool", name, "--quiet", env=bare)
        require(json.loads(dmgraph("pool", "status", name, "--json", env=bare).out)["folder"] == POOLS, "the status")
    finally:
        dmgraph("pool", "stop", name, "--quiet", env=bare)
    require(os.listdir(POOLS) == [] and name not in listed(bare), f"{os.listdir(POOLS)} {listed(bare)}")
    wait_until("the end of its processes", lambda: not members("pool-keeper") and not members("memory-node"))


def main():
    for function in (a_launcher_that_was_given_up_ends_its_computation, a_memory_node_that_dies_ends_a_computation,
                     a_signal_that_killed_a_memory_node_is_told, a_computation_says_why_its_memory_node_died, all_nodes_may_die,
                     a_killed_keeper_takes_nothing_with_it,
                     *((a_memory_node_that_was_killed_for_its_groups_limit_says_memory,) if TRANSPORT == "cxl_shm" else ()),
                     nodes_of_a_launcher_that_was_killed_for_its_groups_limit_end, a_pool_outlives_its_folder, a_job_without_a_runtime_folder_finds_the_pool):
        check(function.__name__, function)
    finish()


main()
