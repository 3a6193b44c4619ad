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


def a_compute_node_killed_for_its_groups_limit_says_memory(group):
    graph = path_of("graph.el")
    with open(graph, "w") as file:
        file.writelines(f"{vertex} {(vertex * 7 + 1) % 5000}\n" for vertex in range(5000))
    command = [PROGRAM, "run", "pagerank", graph, "--iterations", "4000000000", "--tolerance", "0", "--threads", "1",
               "--cns", "2", "--quiet"]
    run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           start_new_session=True, preexec_fn=into(group))
    hogs = []
    try:
        wait_until("compute nodes", lambda: len(node_pids(run.pid, b"compute-node")) == 2 or run.poll() is not None)
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
        for process in (run, *hogs):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def main():
    group = make_group()
    if not group:
        saw_fault(*FAULT, None, "", 0)
        skip("no control group of memory that counts its kills can be made here")
    try:
        check("a_compute_node_killed_for_its_groups_limit_says_memory",
              a_compute_node_killed_for_its_groups_limit_says_memory, group)
    finally:
        remove_group(group)
    finish()


main()
