"""
Watch a run from outside: its processes, and what it may leave behind in /dev/shm, among sockets and among files.

Other programs may run on the machine, so a thing counts as left behind only when no living process of somebody else holds it: the
processes of a run are known by a word in their environment.
"""

import os
import re
import subprocess
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import PROGRAM, Failure, communicate, path_of, wait_until  # noqa: E402

MARK = "DMGRAPH_TEST_RUN"
# How long to wait for what must come, on a quiet machine. Not a measurement: only a hang takes so long.
PATIENCE_SECONDS = 30


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid):
    state = re.search(rb"\) (\S)", read(f"/proc/{pid}/stat"))
    return bool(state) and state.group(1) not in (b"Z", b"X")


def shared_memory():
    return set(os.listdir("/dev/shm"))


def unix_sockets():
    """{inode: name} of all sockets that have a name."""
    sockets = {}
    for line in read("/proc/net/unix").decode(errors="replace").splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) == 8:
            sockets[words[6]] = words[7]
    return sockets


def descriptors(pid):
    """What a process has open: paths, and "socket:[INODE]" and its likes. An OSError when it has ended."""
    links = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            pass  # it is closed by now
    return links


def socket_inodes(pid):
    return {link[8:-1] for link in descriptors(pid) if link.startswith("socket:[")}


def held_by_others(mark):
    """What processes without the mark hold open or have mapped, as one text of paths and socket inodes."""
    held = []
    for pid in processes():
        if mark in read(f"/proc/{pid}/environ"):
            continue
        held.append(read(f"/proc/{pid}/maps").decode(errors="replace"))
        try:
            held += descriptors(pid)
        except OSError:
            pass
    return "\n".join(held)


class Watched:
    """A run of the program in a folder of its own, with everything that it starts."""

    def __init__(self, *arguments):
        self.mark = f"{MARK}={uuid.uuid4()}".encode()
        self.shared_memory_before = shared_memory()
        self.sockets_before = set(unix_sockets().values())
        self.folder = path_of(self.mark.decode().replace("=", "-"))
        os.mkdir(self.folder)
        name, value = self.mark.decode().split("=")
        environment = {**os.environ, name: value, "TMPDIR": self.folder, "XDG_RUNTIME_DIR": self.folder}
        self.process = subprocess.Popen([PROGRAM, *map(str, arguments)], env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def members(self):
        """All living processes of the run, the launcher too."""
        return [pid for pid in processes() if self.mark in read(f"/proc/{pid}/environ") and is_alive(pid)]

    def nodes(self, kind):
        """Its living processes of one kind, "memory-node" or "compute-node", in the order of their start."""
        kind = kind.encode()
        return sorted(pid for pid in self.members() if kind in read(f"/proc/{pid}/cmdline").split(b"\0"))

    def wait_for_nodes(self, kind, count):
        def ready():
            if self.process.poll() is not None:
                raise Failure(f"the run ended by itself: {self.end()}")
            nodes = self.nodes(kind)
            return nodes if len(nodes) == count else None
        return wait_until(f"{count} processes that are a {kind}", ready)

    def end(self, seconds=PATIENCE_SECONDS):
        """Wait for the launcher; returns (exit code, standard output, standard error)."""
        out, err = communicate(self.process, seconds)
        return self.process.returncode, out.decode(errors="replace"), err.decode(errors="replace")

    def require_nothing_left(self):
        wait_until("the end of all processes of the run", lambda: not self.members())

        def is_clean():
            new_memory = shared_memory() - self.shared_memory_before
            new_sockets = {inode: name for inode, name in unix_sockets().items() if name not in self.sockets_before}
            if new_memory or new_sockets:
                others = held_by_others(self.mark)
                new_memory = {name for name in new_memory if f"/dev/shm/{name}" not in others}
                new_sockets = {name for inode, name in new_sockets.items() if f"socket:[{inode}]" not in others}
            self.left = sorted(new_memory) + sorted(new_sockets) + os.listdir(self.folder)
            return not self.left

        try:
            # What another program makes and names may look like ours for a moment; what stays is looked at twice.
            wait_until("a clean machine", is_clean, 10)
        except Failure:
            raise Failure(f"left behind: {' '.join(map(str, self.left))}") from None

    def stop(self):
        """Kill whatever is left, after a case."""
        for pid in self.members():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        if self.process.poll() is None:
            self.process.wait(10)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
