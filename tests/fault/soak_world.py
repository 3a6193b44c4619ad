"""
What a soak works on: a pool that lives long, two users who share it, their graphs with answers that are known, their jobs, and what is
measured of the memory nodes.

Nothing is ever signalled but a process whose environment has this soak's mark, through a descriptor of that process, so that an id
that somebody else got meanwhile is never meant.
"""

import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

import reference  # noqa: E402
from harness import (LIMIT, OK, PROGRAM, Failure, communicate, compare, dmgraph, is_sanitized, one_line, path_of,  # noqa: E402
                     read_answer, require, slowness, wait_until, write)
from watch import held_by_others, is_alive, processes, read, shared_memory  # noqa: E402

MARK = f"DMGRAPH_TEST_SOAK={uuid.uuid4()}"
JOB = "DMGRAPH_TEST_SOAK_JOB"
POOL = "soak"
MNS = 2
MEMORY = "96M"
# A lease on a quiet machine. A machine that is so much slower that ten seconds are not enough is none to test leases on.
LEASE_SECONDS = 2
LEASE_SECONDS_MAX = 10
# Everything that must come; only what hangs takes so long.
PATIENCE_SECONDS = 60
# Ranks have converged after so many iterations, so that the known answer holds for any larger number.
CONVERGED = 200
# Of memory of its own a memory node may have this much more than at the first checkpoint: its allocator's pieces, records in its log.
RESIDENT_SLACK_BYTES = 4 << 20

# A segment that is the node's own is in huge pages, of which the kernel fills up whole ones, and keeps what is free beside a used part.
HUGE_SLACK_BYTES = 8 << 20

Graph = collections.namedtuple("Graph", "path source answers")
Fault = collections.namedtuple("Fault", "job target action")


def send(pid, number):
    """Signal a process of this soak; whether there was one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if MARK.encode() not in read(f"/proc/{pid}/environ"):
            return False
        signal.pidfd_send_signal(process, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(process)


def make_graph(name, vertices, edges, seed, has_ranks=True):
    """A random graph in the program's own form, and what is known of it, computed by tests/system/reference.py."""
    rng = random.Random(seed)
    ids = rng.sample(range(10 * vertices), vertices)
    arcs = [(ids[int(vertices * rng.random() ** 2)], ids[rng.randrange(vertices)]) for _ in range(edges)]
    text = write(f"{name}.el", "".join(f"{u} {v}\n" for u, v in arcs))
    path = path_of(f"{name}.dmg")
    dmgraph("convert", text, path, "--quiet")
    os.unlink(text)
    graph = reference.Graph(arcs)
    source = arcs[0][0]
    answers = {"bfs": reference.bfs(graph, source), "cc": reference.components(graph), "sssp": reference.shortest_paths(graph, source)}
    if has_ranks:  # which cost seconds
        answers["pagerank"] = reference.pagerank(graph, CONVERGED)
    return Graph(path, source, answers)


def require_answer(path, graph, algorithm):
    compare(read_answer(path), graph.answers[algorithm], None if algorithm in ("bfs", "cc") else 1e-6)


class User:
    """Somebody with a home and an identity of his own, who has a copy of the pool's file."""

    def __init__(self, name, runtime):
        self.name = name
        self.kept = f"kept-{name}"
        self.folder = path_of(f"home-{name}")
        self.temporary = os.path.join(self.folder, "tmp")
        os.makedirs(self.temporary, 0o700)
        mark, value = MARK.split("=")
        self.environment = {
            **os.environ, mark: value, "XDG_RUNTIME_DIR": runtime, "HOME": self.folder, "TMPDIR": self.temporary,
            "XDG_STATE_HOME": os.path.join(self.folder, "state"), "DMGRAPH_IDENTITY": os.path.join(self.folder, "identity")}

    def call(self, *words, **options):
        return dmgraph(*words, env=self.environment, timeout=PATIENCE_SECONDS, **options)

    def begin(self, *words):
        return Job(self, words)


class Job:
    """A call of the program that goes on, and all of its processes."""

    def __init__(self, user, words):
        self.words = words
        self.user = user
        self.mark = f"{JOB}={uuid.uuid4()}".encode()
        name, value = self.mark.decode().split("=")
        self.process = subprocess.Popen([PROGRAM, *map(str, words)], env={**user.environment, name: value}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def members(self):
        """Its living processes. One that is ending has no environment any more, and is not counted."""
        return [pid for pid in processes() if self.mark in read(f"/proc/{pid}/environ") and is_alive(pid)]

    def compute_nodes(self):
        return sorted(pid for pid in self.members() if b"compute-node" in read(f"/proc/{pid}/cmdline").split(b"\0"))

    def has_ended(self):
        return self.process.poll() is not None

    def end(self, seconds=PATIENCE_SECONDS):
        """Wait for its launcher, and then for all that it started; (exit code, standard error)."""
        _, err = communicate(self.process, seconds)
        wait_until(f"the end of all processes of {self}", lambda: not self.members(), seconds)
        return self.process.returncode, err.decode(errors="replace")

    def kill(self):
        for number in (signal.SIGKILL, signal.SIGCONT):
            for pid in self.members():
                send(pid, number)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(30)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()

    def __str__(self):
        return f"{self.user.name}: {' '.join(map(str, self.words))}"


class World:
    """The pool, its users, and their graphs."""

    def __init__(self, transport, seed):
        self.transport = transport
        # The same for every transport, so that graphs and identities are made once.
        runtime = path_of(f"runtime-{uuid.uuid4()}")
        os.mkdir(runtime, 0o700)
        self.pools = os.path.join(runtime, "dmgraph")
        self.users = [User(f"{name}-{uuid.uuid4().hex[:6]}", runtime) for name in ("first", "second")]
        self.graphs = {user.name: make_graph(user.kept, 1500, 12000, f"{seed}/{index}") for index, user in enumerate(self.users)}
        self.large = make_graph(f"large-{uuid.uuid4().hex[:6]}", 12000, 150000, f"{seed}/large", False)
        self.tiny = write("tiny.el", "1 2\n2 3\n")
        self.lease_seconds = 0
        self.full = None
        self.baseline = None
        self.pools_made = 0

    # ---- the pool ----

    def start_pool(self):
        self.lease_seconds = min(LEASE_SECONDS * slowness(), LEASE_SECONDS_MAX)
        self.shared_memory_before = shared_memory()
        self.users[0].call("pool", "start", "--name", POOL, "--transport", self.transport, "--mns", MNS, "--memory", MEMORY,
                           "--peer-timeout", f"{round(1000 * self.lease_seconds)}ms")
        self.pools_made += 1
        self.baseline = None
        self.load_kept()

    def stop_pool(self):
        """Also one whose memory nodes are dead; nothing of it is left."""
        for pid in self.memory_nodes():
            send(pid, signal.SIGCONT)
        self.users[0].call("pool", "stop", POOL)
        wait_until("the end of all processes of the pool", lambda: not self.processes(), PATIENCE_SECONDS)
        wait_until("that no memory of the pool is left", lambda: not self.left(), PATIENCE_SECONDS)

    def processes(self):
        return [pid for pid in processes() if MARK.encode() in read(f"/proc/{pid}/environ") and is_alive(pid)]

    def memory_nodes(self):
        return sorted(pid for pid in self.processes() if b"memory-node" in read(f"/proc/{pid}/cmdline").split(b"\0"))

    def load_kept(self):
        for user in self.users:
            user.call("load", self.graphs[user.name].path, "--pool", POOL, "--as", user.kept, "--threads", 1, "--quiet")
        self.full = self.memory()

    def state(self):
        return json.loads(self.users[0].call("pool", "status", POOL, "--json").out)

    def memory(self):
        """What is allocated on each memory node, and how much of it waits for somebody's end."""
        return [(node["allocated_bytes"], node.get("quarantined_bytes", 0)) for node in self.state()["memory_nodes"]]

    def has_graph(self, name):
        return any(graph["name"] == name for graph in self.state()["graphs"])

    def await_memory(self, wanted, what):
        try:
            wait_until(what, lambda: self.memory() == wanted, PATIENCE_SECONDS)
        except Failure as failure:
            raise Failure(f"{failure}: (allocated, quarantined) is {self.memory()} instead of {wanted}") from None

    # ---- jobs ----

    def run_words(self, name, graph, algorithm, out, cns, *options):
        words = ["run", algorithm, name, "--pool", POOL, "--cns", cns, "--threads", 1, "--verify", "--quiet", "--output", out, *options]
        if algorithm in ("bfs", "sssp"):
            words += ["--source", graph.source]
        if algorithm == "pagerank" and not options:
            words += ["--iterations", CONVERGED, "--tolerance", 0]
        return words

    def verify(self, user, name, graph, algorithm, cns=2):
        """A run that must succeed with the known answer, and has nothing to say."""
        out = path_of(f"answer-{uuid.uuid4()}")
        done = user.call(*self.run_words(name, graph, algorithm, out, cns))
        require(done.err == "", f"a run that went well said {done.err}")
        require_answer(out, graph, algorithm)
        os.unlink(out)

    def verify_kept(self, user, algorithm):
        self.verify(user, user.kept, self.graphs[user.name], algorithm)

    def load_large(self, user, name):
        """Load; whether there was room. Only what waits for the end of somebody may take it."""
        done = user.call("load", self.large.path, "--pool", POOL, "--as", name, "--threads", 1, "--quiet", expect=None)
        require(done.code in (OK, LIMIT), f"load: exit code {done.code}: {done.err}")
        if done.code == LIMIT:
            require("wait for the end of process" in one_line(done.err), f"there is no room, and no quarantine: {done.err}")
        return done.code == OK

    def tidy(self, user):
        """What a load left that died is gone after the next load of the same user."""
        user.call("load", self.tiny, "--pool", POOL, "--as", f"tidy-{user.name}", "--threads", 1, "--quiet")
        user.call("unload", f"tidy-{user.name}", "--pool", POOL, "--quiet")

    def remove(self, user, name):
        """Unload a graph if it is there; the hold of a run that died ends with its connections."""
        if self.has_graph(name):
            wait_until(f"the release of {name}", lambda: user.call("unload", name, "--pool", POOL, "--quiet", expect=None).code == OK,
                       PATIENCE_SECONDS)

    # ---- what has to be flat ----

    def left(self):
        """Shared memory that was not there before the pool was, and that nobody else holds; of other tests, too, for a moment."""
        memory = shared_memory() - self.shared_memory_before
        others = held_by_others(MARK.encode()) if memory else ""
        return sorted(name for name in memory if f"/dev/shm/{name}" not in others)

    def measure(self):
        """What is compared exactly, and the memory that is each node's own."""
        exact = {"memory": self.memory(), "graphs": self.state()["graphs"], "files of pools": sorted(os.listdir(self.pools)),
                 "processes": len(self.processes()), "temporary files": [os.listdir(user.temporary) for user in self.users]}
        resident = []
        for index, pid in enumerate(self.memory_nodes()):
            status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").decode().splitlines())
            exact[f"descriptors of memory node {index}"] = len(os.listdir(f"/proc/{pid}/fd"))
            exact[f"threads of memory node {index}"] = int(status["Threads"])
            shared, own = segment_bytes(pid)
            exact[f"pages of memory node {index}"] = shared if is_sanitized() else shared + own
            mapped = re.findall(rb"/dev/shm/\S+", read(f"/proc/{pid}/maps"))
            exact[f"files in memory of memory node {index}"] = len(set(mapped))
            resident.append((int(status["RssAnon"].split()[0]) << 10) - own)
        return exact, resident

    def checkpoint(self):
        """With nothing loaded, all is as at the first checkpoint of this pool; then the graphs are loaded again."""
        for user in self.users:
            self.remove(user, user.kept)
            self.tidy(user)
        self.await_memory([(0, 0)] * MNS, "an empty pool")
        if self.baseline is None:
            wait_until("pages to be given back", lambda: self.settled()[0] == self.measure()[0], PATIENCE_SECONDS)
            self.baseline = self.measure()
        exact, resident = self.baseline
        now = self.measure()

        def is_flat():
            nonlocal now
            now = self.measure()
            # Counts may be lower, since the connection of the call before is closed a moment later, and are then the measure. Pages
            # may be more by those that the kernel adds.
            for what, value in now[0].items():
                if isinstance(value, int) and value < exact[what] and not what.startswith("pages"):
                    exact[what] = value
            slack = HUGE_SLACK_BYTES if self.transport == "ucx:data=message" else 0
            return all(value <= exact[what] + slack if what.startswith("pages") else value == exact[what]
                       for what, value in now[0].items())

        try:
            wait_until("a flat pool", is_flat, PATIENCE_SECONDS)
        except Failure:
            raise Failure("not as at the first checkpoint: " + "; ".join(
                f"{what}: {now[0][what]} instead of {exact[what]}" for what in exact if now[0].get(what) != exact[what])) from None
        for index, (before, after) in enumerate(zip(resident, now[1])):
            require(after <= before + RESIDENT_SLACK_BYTES or is_sanitized(),
                    f"memory node {index} has {after} bytes of its own instead of {before}")
        self.load_kept()
        return now

    def settled(self):
        """A measurement two seconds ago, after which memory that is free has gone back to the system."""
        before = self.measure()
        time.sleep(2)
        return before

    def give_up(self):
        """After something wrong: end all that is left, so that the soak can go on with a new pool."""
        for number in (signal.SIGKILL, signal.SIGCONT):
            for pid in self.processes():
                send(pid, number)
        wait_until("the end of all processes", lambda: not self.processes(), PATIENCE_SECONDS)
        self.users[0].call("pool", "stop", POOL, expect=None)
        self.users[0].call("pool", "clean", expect=None)

    def log(self):
        return read(os.path.join(self.pools, f"{POOL}.log")).decode(errors="replace")


def segment_bytes(pid):
    """Bytes of the pages that a memory node's segment has, of its large mappings: those that are shared, whoever touched them, and its own,
    as the segment is where all goes by message (and as much else that a sanitizer has)."""
    shared = own = 0
    for line in read(f"/proc/{pid}/smaps").decode().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            begin, end = (int(word, 16) for word in words[0].split("-"))
            is_segment = end - begin >= 64 << 20
            is_shared = "s" in words[1]
        elif is_segment and is_shared and words[0] == "Size:":
            shared += os.stat(f"/proc/{pid}/map_files/{begin:x}-{end:x}").st_blocks * 512
        elif is_segment and not is_shared and words[0] == "Rss:":
            own += int(words[1]) << 10
    return shared, own
