"""
What processes leave in memory when they are killed: nothing where one of them lives on to remove it; and where all are killed at
once, what 'pool clean' finds, removes and names. What others hold, and what the user made, stays.
"""

import mmap
import os
import random
import re
import signal
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import (IS_THIN, OK, PEER, SEED, Failure, check, dmgraph, finish, one_line, path_of, require, write)  # noqa: E402
from watch import Watched, held_by_others, is_alive, wait_until  # noqa: E402

GRAPH = path_of("kron.dmg")
ENDLESS = ("--iterations", 4000000000, "--tolerance", 0, "--threads", 1)
ROUNDS = 3 if IS_THIN else 8
# What a memory node's file has, and no other: see transport/cxl_shm/leftovers.c.
MADE_BY_A_NODE = 0o1600
RUNTIME = path_of("runtime")
os.mkdir(RUNTIME, 0o700)
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME}
RANDOM = random.Random(SEED)


def run(*words, **options):
    return dmgraph(*words, env=ENVIRONMENT, **options)


class Memory:
    """Files in /dev/shm for memory nodes; removed behind the case, if they are there still."""

    def __init__(self, count=1):
        self.paths = [f"/dev/shm/dmgt-{uuid.uuid4().hex[:10]}" for _ in range(count)]
        self.transport = "cxl_shm:path=" + "+".join(self.paths)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for path in self.paths:
            if os.path.exists(path):
                os.unlink(path)

    def there(self):
        return [path for path in self.paths if os.path.exists(path)]

    def require_gone(self):
        wait_until("the end of the segments' files", lambda: not self.there(), 30)


def start(transport, *options, mns=2):
    return Watched("run", "pagerank", GRAPH, "--transport", transport, "--mns", mns, "--cns", 1, *ENDLESS, *options)


def kill_all(run):
    """All at once, as a machine's last moment: stopped first, so that none sees another's end."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in run.members():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
    run.process.wait(30)
    wait_until("their end", lambda: not run.members())


def clean_until_named(make_leftover):
    """
    'pool clean' removes the leftover and names it. Another test that cleans at the same time may be faster: then once more.
    """
    for _ in range(5):
        path = make_leftover()
        said = run("pool", "clean").out
        require(not os.path.exists(path), f"{path} is there still: {said}")
        if path in said:
            return said
    raise Failure(f"it was removed, and nobody says so: {said}")


# ---- named segments ----

def a_killed_memory_node_leaves_no_file():
    with Memory(2) as memory:
        for which in (0, 1):
            watched = start(memory.transport)
            try:
                nodes = watched.wait_for_nodes("memory-node", 2)
                wait_until("the segments", lambda: len(memory.there()) == 2)
                wait_until("compute nodes", lambda: watched.nodes("compute-node"))
                os.kill(nodes[which], signal.SIGKILL)
                code, _, err = watched.end()
                require(code == PEER and "memory node" in one_line(err), f"{code} {err}")
                require(memory.there() == [], f"left: {memory.there()}")
                watched.require_nothing_left()
            finally:
                watched.stop()


def a_killed_launcher_leaves_no_file():
    for options in ((), ("--prefault", "--memory", "64M")):
        for _ in range(ROUNDS):
            with Memory(2) as memory:
                watched = start(memory.transport, *options)
                try:
                    time.sleep(RANDOM.random() * 0.3)
                    watched.process.kill()
                    watched.end()
                    watched.require_nothing_left()
                    memory.require_gone()
                finally:
                    watched.stop()


def a_killed_start_of_a_pool_leaves_no_file():
    for _ in range(ROUNDS):
        with Memory(2) as memory:
            starting = Watched("pool", "start", "--name", "p", "--mns", 2, "--memory", "32M", "--transport", memory.transport)
            try:
                time.sleep(RANDOM.random() * 0.15)
                starting.process.kill()
                starting.end()
                # Whoever had detached lives on, and the pool's file names it.
                there = {"env": {**os.environ, "XDG_RUNTIME_DIR": starting.folder}, "expect": None}
                wait_until("the end of all nodes",
                           lambda: dmgraph("pool", "stop", "p", **there).code == OK or not starting.members())
                wait_until("the end of all nodes", lambda: not starting.members())
                memory.require_gone()
            finally:
                starting.stop()


def a_pool_whose_nodes_were_killed_is_removed_with_its_memory():
    for end in ("clean", "stop"):
        with Memory(2) as memory:
            run("pool", "start", "--name", "p", "--mns", 2, "--memory", "16M", "--transport", memory.transport)
            pids = [int(pid) for pid in re.findall(r"pid (\d+)", run("pool", "status", "p").out)]
            require(len(pids) == 2 and len(memory.there()) == 2, f"{pids} {memory.there()}")
            require(all(os.stat(path).st_mode & 0o7777 == MADE_BY_A_NODE for path in memory.paths), "the files' mode")
            run("pool", "clean")
            require(len(memory.there()) == 2, "the memory of living nodes was removed")
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            wait_until("their end", lambda: not any(is_alive(pid) for pid in pids))
            said = run("pool", *([end] if end == "clean" else [end, "p"])).out
            require(memory.there() == [], f"left: {memory.there()}: {said}")
            require(not os.listdir(os.path.join(RUNTIME, "dmgraph")), "the pool's file is left")


def a_file_that_the_user_made_stays():
    with Memory(1) as memory:
        path = memory.paths[0]
        for mode in (0o600, 0o644):
            with open(path, "wb") as file:
                file.truncate(64 << 20)
            os.chmod(path, mode)
            watched = start(memory.transport, "--memory", "32M", mns=1)
            try:
                watched.wait_for_nodes("compute-node", 1)
                kill_all(watched)
            finally:
                watched.stop()
            run("pool", "clean")
            facts = os.stat(path)
            require((facts.st_mode & 0o7777, facts.st_size) == (mode, 64 << 20), "another file")
            run("run", "cc", GRAPH, "--transport", memory.transport, "--memory", "32M", "--quiet")
            require(os.path.exists(path), "a run removed it")


def what_all_killed_processes_left_is_cleaned_or_used_again():
    def leave(memory):
        watched = start(memory.transport, "--memory", "32M", mns=1)
        try:
            watched.wait_for_nodes("compute-node", 1)
            kill_all(watched)
        finally:
            watched.stop()
        return memory.paths[0]

    with Memory(1) as memory:
        leave(memory)
        # The next one makes it anew, in its own size, and removes it.
        run("run", "cc", GRAPH, "--transport", memory.transport, "--memory", "48M", "--verify", "--quiet")
        require(memory.there() == [], "it was taken for the user's file")
        said = clean_until_named(lambda: leave(memory))
        require("which no process holds" in said, said)
        require("nothing to clean" not in said, said)


def a_socket_that_a_killed_node_left_is_taken_over():
    path = path_of("socket")

    def start_pool(expect=OK):
        return run("pool", "start", "--name", "p", "--memory", "16M", "--bind", path, expect=expect)

    start_pool()
    pid = int(re.search(r"pid (\d+)", run("pool", "status", "p").out).group(1))
    # Not while it lives, also for another pool's node.
    error = run("pool", "start", "--name", "q", "--memory", "16M", "--bind", path, expect=None)
    require(error.code != OK and "exists already" in one_line(error.err) and os.path.exists(path), error.err)
    os.kill(pid, signal.SIGKILL)
    wait_until("its end", lambda: not is_alive(pid))
    run("pool", "clean")
    start_pool()
    run("pool", "stop", "p")
    require(not os.path.exists(path), "the socket is left")
    # Another file of that name stays.
    write("socket", "mine")
    require(start_pool(None).code != OK and os.path.getsize(path) == 4, "a file of the user was taken")
    os.unlink(path)


# ---- UCX's files ----

def ucx_files():
    return {name for name in os.listdir("/dev/shm") if name.startswith("ucx_shm_posix_")}


def killed_starts_over_ucx_leave_nothing():
    """The launcher alone: its nodes finish what they make, and end."""
    for _ in range(ROUNDS):
        watched = start("ucx", "--memory", "200M")
        try:
            time.sleep(RANDOM.random() * 0.4)
            watched.process.kill()
            watched.end()
            watched.require_nothing_left()
        finally:
            watched.stop()


def starts_over_ucx_that_are_killed_as_a_whole_are_cleaned():
    for _ in range(ROUNDS):
        watched = start("ucx", "--memory", "200M")
        try:
            time.sleep(RANDOM.random() * 0.4)
            kill_all(watched)
            run("pool", "clean")
            watched.require_nothing_left()
        finally:
            watched.stop()


def a_segment_that_was_being_made_is_cleaned_and_named():
    def leave():
        for _ in range(20):
            before = ucx_files()
            watched = start("ucx", "--memory", "400M", mns=1)
            try:
                watched.wait_for_nodes("memory-node", 1)
                wait_until("a file", lambda: ucx_files() - before or watched.nodes("compute-node"))
                kill_all(watched)
            finally:
                watched.stop()
            new = ucx_files() - before
            others = held_by_others(watched.mark) if new else ""
            for name in new:
                path = f"/dev/shm/{name}"
                if path not in others and os.path.exists(path) and os.stat(path).st_size > 1 << 20:
                    return path
        raise Failure("no kill came while a segment was being made")

    said = clean_until_named(leave)
    require("which no process holds" in said, said)


def what_a_process_holds_stays():
    def file_of(kind):
        path = f"/dev/shm/{kind}{uuid.uuid4().hex[:8]}"
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.ftruncate(descriptor, 2 << 20)
        if kind != "ucx_shm_posix_":
            os.chmod(path, MADE_BY_A_NODE)
        return path, descriptor

    for kind in ("ucx_shm_posix_", "dmgraph-test-"):
        path, descriptor = file_of(kind)
        mapped = None
        try:
            run("pool", "clean")
            require(os.path.exists(path), "an open file was removed")
            mapped = mmap.mmap(descriptor, 2 << 20)
            os.close(descriptor)
            descriptor = None
            run("pool", "clean")
            require(os.path.exists(path), "a mapped file was removed")
            mapped.close()
            run("pool", "clean")
            require(not os.path.exists(path), "what nobody holds is there still")
        finally:
            if descriptor is not None:
                os.close(descriptor)
            if os.path.exists(path):
                os.unlink(path)


def other_files_stay():
    others = []
    try:
        for name, mode in (("dmgraph-test-", 0o600), ("dmgraph-test-", 0o1644), ("dmgraph-test-", MADE_BY_A_NODE), ("shm_posix_ucx_", 0o660)):
            path = f"/dev/shm/{name}{uuid.uuid4().hex}"
            others.append(path)
            with open(path, "w") as file:
                file.write("mine")
            os.chmod(path, mode)
        link, target = f"/dev/shm/ucx_shm_posix_{uuid.uuid4().hex}", write("target", "mine")
        others += [link, target]
        os.symlink(target, link)
        run("pool", "clean")
        require(all(os.path.lexists(path) for path in others), "a file of the user was removed")
    finally:
        for path in others:
            if os.path.lexists(path):
                os.unlink(path)


def main():
    dmgraph("generate", "kron", "--scale", 12, "--seed", 1, GRAPH)
    for function in (
            a_killed_memory_node_leaves_no_file, a_killed_launcher_leaves_no_file, a_killed_start_of_a_pool_leaves_no_file,
            a_pool_whose_nodes_were_killed_is_removed_with_its_memory, a_file_that_the_user_made_stays,
            what_all_killed_processes_left_is_cleaned_or_used_again, a_socket_that_a_killed_node_left_is_taken_over, killed_starts_over_ucx_leave_nothing,
            starts_over_ucx_that_are_killed_as_a_whole_are_cleaned, a_segment_that_was_being_made_is_cleaned_and_named,
            what_a_process_holds_stays, other_files_stay):
        check(function.__name__, function)
    finish()


main()
