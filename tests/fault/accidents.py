"""Accidents of long-lived pools: what is known afterwards, what is found again, and what ends at once.

Usage: accidents.py TRANSPORT
"""

import json
import os
import signal
import subprocess
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import (OK, PEER, PROGRAM, check, communicate, dmgraph, finish, folder, one_line, path_of, require,  # noqa: E402
                     time_out, wait_until, write)
from watch import is_alive, processes, read  # noqa: E402

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


def main():
    for function in (a_launcher_that_was_given_up_ends_its_computation, a_memory_node_that_dies_ends_a_computation):
        check(function.__name__, function)
    finish()


main()
