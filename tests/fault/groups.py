"""Control groups of memory for tests: made where that is allowed (version 1 or 2), and filled by hogs that are small themselves."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import wait_until  # noqa: E402
from watch import read  # noqa: E402

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


def remove_group(group):
    wait_until("the group to be empty", lambda: not read(f"{group}/cgroup.procs").strip())
    os.rmdir(group)


def start_hogs(group):
    """Processes that want more than the group has; for the caller to end."""
    return [subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=into(group)) for _ in range(HOGS)]
