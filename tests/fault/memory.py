"""A control group that runs out of memory in the middle of a run: the launcher says that it was the memory.

Needs control groups of memory that may be made here (version 1 or 2); is skipped elsewhere.
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import LIMIT, PROGRAM, check, communicate, finish, one_line, path_of, require, skip, wait_until  # noqa: E402
from watch import is_alive, processes, read  # noqa: E402

LIMIT_BYTES = 256 << 20
# The kernel takes who has most, and nodes before others: no hog may have much.
HOGS = 12
HOG = """
import time
kept = []
for piece in range(24):
    kept.append(bytearray(b"x") * (1 << 20))
    time.sleep(0.001)
time.sleep(60)
"""


def make_group():
    """A group of our own with a limit, and the file that holds the limit; None where that cannot be done."""
    for mount, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = f"{mount}/dmgraph-test-{os.getpid()}"
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            with open(f"{group}/{limit}", "w") as file:
                file.write(str(LIMIT_BYTES))
            counts = read(f"{group}/memory.events") + read(f"{group}/memory.oom_control")
            if b"oom_kill " in counts:
                return group
        except OSError:
            pass
        os.rmdir(group)
    return None


def into(group):
    def enter():
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    return enter


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
        for _ in range(HOGS):
            hogs.append(subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=into(group)))
        out, err = communicate(run, 20)
        err = err.decode(errors="replace")
        require(run.returncode == LIMIT, f"exit code {run.returncode}: {err}")
        sentence = one_line(err)
        require("node" in sentence and "killed by signal 9" in sentence and
                "limit of memory was reached" in sentence, sentence)
    finally:
        for process in (run, *hogs):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def main():
    group = make_group()
    if not group:
        skip("no control group of memory that counts its kills can be made here")
    try:
        check("a_compute_node_killed_for_its_groups_limit_says_memory",
              a_compute_node_killed_for_its_groups_limit_says_memory, group)
    finally:
        wait_until("the group to be empty", lambda: not read(f"{group}/cgroup.procs").strip())
        os.rmdir(group)
    finish()


main()
