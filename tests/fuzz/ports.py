"""What strangers send to the ports of memory nodes: nothing, noise, and real conversations that were cut, changed or mixed up.

Usage: ports.py TRANSPORT [HOST]     with MEMORY for a file of its own, as in cxl_shm:path=MEMORY

Memory nodes of a pool over TRANSPORT (at HOST, for those who listen by TCP) are found by their process ids, and every socket on which
they listen by what the kernel says, whatever the pool thinks. A real run goes through a relay first, which records what is said.
After every few bursts a real client is served. At the end the memory nodes are the same processes, rest, and have as many
descriptors as before and no more memory.

  DMGRAPH_FUZZ_SECONDS   how long to go on, 8 unless given, or 2 where time is short
  DMGRAPH_TEST_SEED      the seed, which is printed when something fails
"""

import collections
import json
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fault"))

from harness import (IS_THIN, PROGRAM, SEED, Failure, check, dmgraph, finish, folder, is_sanitized, require, wait_until,  # noqa: E402
                     write)
from watch import is_alive, processes, read, socket_inodes  # noqa: E402

TRANSPORT = (sys.argv[1] if len(sys.argv) > 1 else "cxl_shm").replace("MEMORY", f"/dev/shm/dmgraph-test-{uuid.uuid4()}")
HOST = sys.argv[2] if len(sys.argv) > 2 else None
SECONDS = float(os.environ.get("DMGRAPH_FUZZ_SECONDS", "2" if IS_THIN else "8"))
RUNTIME = os.path.join(folder(), "runtime")
os.mkdir(RUNTIME, 0o700)
MARK = f"DMGRAPH_TEST_PORTS={uuid.uuid4()}"
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME, MARK.split("=")[0]: MARK.split("=")[1]}
GRAPH = write("ring.el", "".join(f"{i} {(i + 1) % 300}\n" for i in range(300)))
CROWD = 1100
NOBODY = 65534
BURSTS_PER_LOOK = 20
# What a memory node may have more of its own memory after thousands of strangers: what the allocator keeps, no more.
GROWTH_BYTES_MAX = 8 << 20
# A node that rests uses less than this part of a core; one that spins uses all of it, or the half that others leave.
RESTING = 0.2
REST_SECONDS = 0.5


def run(*words, **options):
    return dmgraph(*words, env=ENVIRONMENT, **options)


def nodes(kind):
    return sorted(pid for pid in processes() if MARK.encode() in read(f"/proc/{pid}/environ") and is_alive(pid) and
                  kind.encode() in read(f"/proc/{pid}/cmdline").split(b"\0"))


# ---- ports ----

Port = collections.namedtuple("Port", "family type address")


def inet_address(text, is_ipv6):
    host, port = text.split(":")
    words = struct.unpack(f"<{len(host) // 8}I", b"".join(struct.pack(">I", int(host[i:i + 8], 16)) for i in range(0, len(host), 8)))
    packed = b"".join(struct.pack(">I", word) for word in words)
    name = socket.inet_ntop(socket.AF_INET6 if is_ipv6 else socket.AF_INET, packed)
    anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    return anywhere.get(name, name), int(port, 16)


def listening_ports(pid):
    """Every socket of the process to which somebody can connect."""
    inodes = socket_inodes(pid)
    ports = []
    for line in read("/proc/net/unix").decode(errors="replace").splitlines()[1:]:
        words = line.split(maxsplit=7)
        if words[6] in inodes and int(words[3], 16) & 0x10000:
            kind = {1: socket.SOCK_STREAM, 2: socket.SOCK_DGRAM, 5: socket.SOCK_SEQPACKET}[int(words[4], 16)]
            name = words[7] if len(words) == 8 else ""
            ports.append(Port(socket.AF_UNIX, kind, "\0" + name[1:] if name.startswith("@") else name))
    for family, file in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in read(f"/proc/net/{file}").decode().splitlines()[1:]:
            words = line.split()
            if words[9] in inodes and words[3] == "0A":
                ports.append(Port(family, socket.SOCK_STREAM, inet_address(words[1], family == socket.AF_INET6)))
    return ports


def connect(port, seconds=5):
    """A connection, or None when there is none to be had: the backlog of a flood may be full."""
    connection = socket.socket(port.family, port.type)
    connection.settimeout(seconds)
    try:
        connection.connect(port.address)
    except OSError:
        connection.close()
        return None
    return connection


# ---- the relay ----

class Relay:
    """Stands at an address of its own, passes on what is said both ways, descriptors too, and keeps it."""

    def __init__(self, port):
        self.port = port
        self.conversations = []
        self.listener = socket.socket(port.family, port.type)
        if port.family == socket.AF_UNIX:
            self.listener.bind(f"\0dmgraph-relay-{uuid.uuid4()}")
        else:
            self.listener.bind((port.address[0], 0))
        self.listener.listen(64)
        self.is_ended = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def address(self):
        name = self.listener.getsockname()
        if self.port.family == socket.AF_UNIX:
            return "@" + name[1:].decode()
        return f"[{name[0]}]:{name[1]}" if self.port.family == socket.AF_INET6 else f"{name[0]}:{name[1]}"

    def serve(self):
        others = {}  # a socket's partner, its conversation, and who speaks at it
        while not self.is_ended:
            ready, _, _ = select.select([self.listener, *others], [], [], 0.1)
            for speaker in ready:
                if speaker is self.listener:
                    client, _ = self.listener.accept()
                    server = connect(self.port)
                    if server is None:
                        client.close()
                        continue
                    server.setblocking(True)
                    said = []
                    self.conversations.append(said)
                    others[client] = (server, said, "client")
                    others[server] = (client, said, "server")
                elif speaker in others:
                    self.pass_on(speaker, others)
        for left in others:
            left.close()
        self.listener.close()

    @staticmethod
    def pass_on(speaker, others):
        hearer, said, who = others[speaker]
        try:
            if speaker.family == socket.AF_UNIX:
                text, descriptors, _, _ = socket.recv_fds(speaker, 65536, 4)
            else:
                text, descriptors = speaker.recv(65536), []
            if text:
                said.append((who, text))
                if descriptors:
                    socket.send_fds(hearer, [text], descriptors)
                else:
                    hearer.sendall(text)
                for descriptor in descriptors:
                    os.close(descriptor)
                return
        except OSError:
            pass
        for ended in (speaker, hearer):
            del others[ended]
            ended.close()

    def end(self):
        self.is_ended = True
        self.thread.join()


def record(port):
    """What clients of a real run say and hear at this port."""
    with open(os.path.join(RUNTIME, "dmgraph", "p.pool")) as file:
        pool = json.load(file)
    relay = Relay(port)
    backend = pool["transport"].split(":")[0]
    pool["name"] = "relayed"
    pool["nodes"][0]["address"] = f"{backend}:{relay.address()}"
    path = os.path.join(RUNTIME, "dmgraph", "relayed.pool")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(pool, file)
    try:
        run("run", "cc", "ring", "--pool", "relayed", "--cns", 1, "--verify", "--quiet")
    finally:
        os.unlink(path)
        relay.end()
    spoken = [said for said in relay.conversations if any(who == "client" for who, _ in said)]
    require(spoken, "the relay heard nothing")
    token = bytes.fromhex(pool["token"])
    for said in spoken:
        heard = b"".join(text for _, text in said)
        require(not any(token[at:at + 4] in heard for at in range(len(token) - 3)), "the secret went over the wire")
    return spoken


# ---- bursts ----

def send(connection, text):
    try:
        connection.sendall(text)
        return True
    except OSError:
        return False


def listen(connection, seconds):
    connection.settimeout(seconds)
    try:
        return connection.recv(65536)
    except OSError:
        return b""


def zeros(rng, port, _):
    connection = connect(port)
    if connection:
        send(connection, bytes(rng.choice((1, 64, 80, 112, 128, 4096))))
        listen(connection, 0.002)
        connection.close()


def noise(rng, port, _):
    connection = connect(port)
    for _ in range(rng.randrange(1, 5)):
        if connection and not send(connection, rng.randbytes(rng.randrange(1, 5000))):
            break
    if connection:
        connection.close()


def hang_up(rng, port, _):
    for _ in range(20):
        connection = connect(port)
        if connection:
            if port.family != socket.AF_UNIX and rng.random() < 0.5:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            connection.close()


def half_open(_, port, __):
    connection = connect(port)
    if connection:
        connection.shutdown(socket.SHUT_WR)
        listen(connection, 0.01)
        connection.close()


def mutate(rng, text):
    text = bytearray(text)
    for _ in range(rng.choice((1, 1, 2, 8))):
        kind = rng.randrange(5)
        at = rng.randrange(len(text)) if text else 0
        if kind == 0 and text:
            text[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and text:
            text[at:at + 8] = rng.choice((b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7))
        elif kind == 2:
            text[at:at] = rng.randbytes(rng.randrange(1, 64))
        elif kind == 3:
            del text[at:at + rng.randrange(1, 64)]
        else:
            text = text[:at]
    return bytes(text)


def replay(rng, port, conversations):
    """A real conversation, cut somewhere, with some of what was said changed, left out or said twice."""
    connection = connect(port)
    if not connection:
        return
    said = rng.choice(conversations)
    end = rng.randrange(1, min(len(said), 12) + 1)
    how = rng.random()
    for who, text in said[:end]:
        if who == "server" and rng.random() < 0.9:
            listen(connection, 0.005)
            continue
        if how < 0.6 and rng.random() < 0.5:
            text = mutate(rng, text)
        for _ in range(rng.choice((1, 1, 1, 0, 2)) if how > 0.5 else 1):
            send(connection, text)
    if rng.random() < 0.5:
        listen(connection, 0.005)
    connection.close()


BURSTS = (zeros, noise, hang_up, half_open, replay, replay, replay)


def bursts_of_another_user(seed, ports, conversations):
    """The same from a process of nobody's; its exit code says that all was tried."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setresuid(NOBODY, NOBODY, NOBODY)
            rng = random.Random(seed)
            for _ in range(BURSTS_PER_LOOK):
                rng.choice(BURSTS)(rng, rng.choice(ports), conversations)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    require(os.waitstatus_to_exitcode(status) == 0, "the other user did not come to an end")


# ---- what must hold ----

def cpu_seconds(pid):
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_bytes(pid):
    found = re.search(rb"RssAnon:\s*(\d+) kB", read(f"/proc/{pid}/status"))
    return int(found.group(1)) * 1024 if found else 0


def descriptor_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def rests(pid):
    before = cpu_seconds(pid)
    time.sleep(REST_SECONDS)
    return cpu_seconds(pid) - before < RESTING * REST_SECONDS


def is_served():
    run("run", "cc", "ring", "--pool", "p", "--cns", 1, "--verify", "--quiet")


class Case:
    """A pool with a graph, and what its memory nodes were like before any stranger came."""

    def __enter__(self):
        words = ["pool", "start", "--name", "p", "--mns", 1, "--memory", "32M", "--transport", TRANSPORT, "--log-level", "info"]
        run(*words, *(["--bind", HOST] if HOST else []))
        try:
            run("load", GRAPH, "--pool", "p", "--as", "ring")
            is_served()
            self.pids = nodes("memory-node")
            self.ports = [port for pid in self.pids for port in listening_ports(pid)]
            require(self.pids and self.ports, "no memory node listens")
            self.conversations = record(self.ports[0])
            is_served()
            for pid in self.pids:
                wait_until("a memory node at rest", lambda pid=pid: rests(pid))
            self.before = {pid: (descriptor_count(pid), own_bytes(pid)) for pid in self.pids}
        except Exception:
            self.stop()
            raise
        return self

    def stop(self):
        stopped = run("pool", "stop", "p", expect=None)
        for pid in nodes("memory-node"):
            os.kill(pid, signal.SIGKILL)
        return stopped

    def __exit__(self, kind, value, trace):
        stopped = self.stop()
        require(kind is not None or stopped.code == 0, f"pool stop: {stopped.err}")

    def look(self):
        require(nodes("memory-node") == self.pids, f"memory nodes {self.pids} are {nodes('memory-node')} now: {self.log()}")
        is_served()

    def look_at_rest(self):
        self.look()
        for pid, (descriptors, memory) in self.before.items():
            wait_until("a memory node at rest", lambda pid=pid: rests(pid))
            wait_until("the descriptors of before", lambda pid=pid, wanted=descriptors: descriptor_count(pid) <= wanted)
            grown = own_bytes(pid) - memory
            require(grown <= GROWTH_BYTES_MAX or is_sanitized(), f"the memory node grew by {grown} bytes")

    @staticmethod
    def log():
        return read(os.path.join(RUNTIME, "dmgraph", "p.log")).decode(errors="replace")


# ---- cases ----

def noise_and_broken_conversations_leave_memory_nodes_serving():
    rng = random.Random(SEED)
    with Case() as case:
        end = time.monotonic() + SECONDS
        looks = count = 0
        while looks == 0 or time.monotonic() < end:
            if os.geteuid() == 0 and looks % 3 == 2:
                bursts_of_another_user(rng.random(), case.ports, case.conversations)
            else:
                for _ in range(BURSTS_PER_LOOK):
                    rng.choice(BURSTS)(rng, rng.choice(case.ports), case.conversations)
            count += BURSTS_PER_LOOK
            case.look()
            looks += 1
        case.look_at_rest()
        print(f"    {count} bursts at {len(case.ports)} ports, {len(case.conversations)} conversations recorded")


def crowd(port, is_nobody):
    """Many who say nothing, in a process of their own, until each was cut off; its exit code is 0 then."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (2 * CROWD, max(2 * CROWD, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
            if is_nobody:
                os.setresuid(NOBODY, NOBODY, NOBODY)
            silent = []
            while len(silent) < CROWD:
                connection = connect(port, 30)
                if connection is None:
                    time.sleep(0.01)
                else:
                    silent.append(connection)
            poll = select.poll()
            waiting = {connection.fileno() for connection in silent}
            for number in waiting:
                poll.register(number, select.POLLIN)
            while waiting:
                for number, _ in poll.poll(60000):
                    poll.unregister(number)
                    waiting.discard(number)
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child):
    found, status = os.waitpid(child, os.WNOHANG)
    if found:
        require(os.waitstatus_to_exitcode(status) == 0, "the crowd came to no end")
    return found == child


def silent_connections_expire_and_are_counted():
    with Case() as case:
        for number, port in enumerate(case.ports):
            is_nobody = os.geteuid() == 0 and number % 2 == 1
            child = crowd(port, is_nobody)
            try:
                case.look()
                wait_until("the end of all silent connections", lambda child=child: ended(child), 60)
            except Failure:
                os.kill(child, signal.SIGKILL)
                raise
        case.look_at_rest()
        counts = [int(found) for found in re.findall(r"strangers .*expired=(\d+)", case.log())]
        require(counts and max(counts) >= CROWD // 2, f"not counted: {case.log()}")


def compute_nodes_listen_nowhere():
    with Case() as case:
        words = ["run", "pagerank", "ring", "--pool", "p", "--cns", "2", "--iterations", "4000000000", "--tolerance", "0", "--threads", "1"]
        with subprocess.Popen([PROGRAM, *words], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as launcher:
            try:
                found = wait_until("two compute nodes", lambda: len(nodes("compute-node")) == 2 and nodes("compute-node"))
                wait_until("iterations", lambda: all(cpu_seconds(pid) > 0.1 for pid in found))
                for pid in (*found, launcher.pid):
                    require(not listening_ports(pid), f"process {pid} listens at {listening_ports(pid)}")
                require(listening_ports(case.pids[0]), "nothing is found where something listens")
            finally:
                launcher.kill()
        wait_until("the end of the compute nodes", lambda: not nodes("compute-node"))


def main():
    check(f"{TRANSPORT}: compute_nodes_listen_nowhere", compute_nodes_listen_nowhere)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    check(f"{TRANSPORT}: noise_and_broken_conversations_leave_memory_nodes_serving",
          noise_and_broken_conversations_leave_memory_nodes_serving)
    if hard == resource.RLIM_INFINITY or hard >= 2 * CROWD:
        check(f"{TRANSPORT}: silent_connections_expire_and_are_counted", silent_connections_expire_and_are_counted)
    else:
        print(f"  not run: a crowd of {CROWD}, with {hard} open files allowed")
    finish()


main()
