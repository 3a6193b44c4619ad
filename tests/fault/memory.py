"""A control group that runs out of memory in the middle of a run: the launcher says that it was the memory.

Needs control groups of memory that may be made here (version 1 or 2); is skipped elsewhere.
"""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from groups import into, make_group, remove_group, start_hogs  # noqa: E402
from harness import LIMIT, PROGRAM, check, communicate, finish, one_line, path_of, require, saw_fault, skip, wait_until  # noqa: E402
from watch import is_alive, processes, read  # noqa: E402

FAULT = ("a node killed for its group's limit of memory", "one-shot run: compute", "cxl_shm")


def node_pids(launcher, kind):
    return [pid for pid in processes() if is_alive(pid) and kind in read(f"/proc/{pid}/cmdline").split(b"\0") and
            f"PPid:\t{launcher}\n".encode() in read(f"/proc/{pid}/status")]


def begin_endless(group):
    graph = path_of("graph.el")
    with open(graph, "w") as file:
        file.writelines(f"{vertex} {(vertex * 7 + 1) % 5000}\n" for vertex in range(5000))
    command = [PROGRAM, "run", "pagerank", graph, "--iterations", "4000000000", "--tolerance", "0", "--threads", "1",
               "--cns", "2", "--quiet"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True, preexec_fn=into(group))


def nodes_at_work(run):
    return wait_until("compute nodes", lambda: len(node_pids(run.pid, b"compute-node")) == 2 and
                      node_pids(run.pid, b"compute-node") + node_pids(run.pid, b"memory-node"))


def end_all(*begun):
    for process in begun:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()


def a_compute_node_killed_for_its_groups_limit_says_memory(group):
    run = begin_endless(group)
    hogs = []
    try:
        nodes_at_work(run)
        began = time.monotonic()
        hogs = start_hogs(group)
        out, err = communicate(run, 20)
        err = err.decode(errors="replace")
        require(run.returncode == LIMIT, f"exit code {run.returncode}: {err}")
        sentence = one_line(err)
        require("node" in sentence and "killed by signal 9" in sentence and
                "limit of memory was reached" in sentence, sentence)
        saw_fault(*FAULT, run.returncode, err, time.monotonic() - began)
    finally:
        end_all(run, *hogs)


def a_launcher_killed_for_its_groups_limit_is_said_to_have_been(group):
    run = begin_endless(group)
    hogs = []
    try:
        nodes = nodes_at_work(run)
        with open(f"/proc/{run.pid}/oom_score_adj", "w") as file:
            file.write("1000")  # the kernel is to take this one before all others
        hogs = start_hogs(group)
        out, err = communicate(run, 20)
        err = err.decode(errors="replace")
        require(run.returncode == -signal.SIGKILL, f"exit code {run.returncode}: {err}")
        sentence = one_line(err)
        require(f"the launcher (pid {run.pid}) is gone" in sentence and "limit of memory was reached" in sentence, sentence)
        wait_until("the end of its nodes", lambda: not any(map(is_alive, nodes)))
    finally:
        end_all(run, *hogs)


def a_launcher_that_somebody_killed_is_not_said_to_have_lacked_memory(group):
    run = begin_endless(group)
    try:
        nodes = nodes_at_work(run)
        run.send_signal(signal.SIGKILL)
        out, err = communicate(run, 20)
        require(err == b"", err)
        wait_until("the end of its nodes", lambda: not any(map(is_alive, nodes)))
    finally:
        end_all(run)


def main():
    group = make_group()
    if not group:
        saw_fault(*FAULT, None, "", 0)
        skip("no control group of memory that counts its kills can be made here")
    try:
        for function in (a_compute_node_killed_for_its_groups_limit_says_memory,
                         a_launcher_killed_for_its_groups_limit_is_said_to_have_been,
                         a_launcher_that_somebody_killed_is_not_said_to_have_lacked_memory):
            check(function.__name__, function, group)
    finally:
        remove_group(group)
    finish()


main()
