"""
Where nodes listen and what UCX is told: who opens no port at all, fixed ports, IPv6, and UCX's variables in the environment.

A variable that UCX would take over either passes, as docs/hardware.md lists it, or is named and has no effect; some would abort
a process, or make a call of UCX never return.
"""

import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fault"))

from harness import (OK, PROGRAM, USAGE, check, communicate, compare, dmgraph, finish, one_line, path_of, read_answer, require,  # noqa: E402
                     wait_until, write)
from watch import processes, read, socket_inodes  # noqa: E402

RUNTIME = path_of("runtime")
os.mkdir(RUNTIME, 0o700)
HOME = path_of("home")
os.mkdir(HOME)
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("UCX_")}
CLEAN |= {"XDG_RUNTIME_DIR": RUNTIME, "HOME": HOME}
GRAPH = write("ring.el", "".join(f"{i} {(i + 1) % 300}\n" for i in range(300)))
PATIENCE_SECONDS = 60


def run(*words, environment=None, **options):
    return dmgraph(*words, env={**CLEAN, **(environment or {})}, timeout=PATIENCE_SECONDS, **options)


def answer(*words, **options):
    out = path_of(f"answer-{uuid.uuid4()}")
    done = run("run", "cc", GRAPH, "--quiet", "--output", out, *words, **options)
    compare(read_answer(out), {vertex: 0 for vertex in range(300)})
    return done


# Below those that systems give to whoever asks for any port: other tests do, all the time.
PORTS = range(20000, 30000)


def free_port(family=socket.AF_INET, host="127.0.0.1"):
    for port in random.sample(PORTS, 100):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, port))
            return port
    raise OSError(f"{host} has no free port")


# ---- ports ----

LISTENS = "0A"


def nodes_of(kind, ancestor):
    """Processes below this one that are nodes of this kind."""
    stats = {pid: read(f"/proc/{pid}/stat") for pid in processes()}
    parents = {pid: int(stat.rpartition(b")")[2].split()[1]) for pid, stat in stats.items() if stat}
    found = {ancestor}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return sorted(pid for pid in found if kind.encode() in read(f"/proc/{pid}/cmdline").split(b"\0"))
        found |= more


def open_ports(pid):
    """The hosts and ports, in hexadecimal, at which a process takes what strangers send: TCP that listens, and any UDP."""
    own = socket_inodes(pid)
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in read(f"/proc/net/{table}").decode().splitlines()[1:]:
            fields = row.split()
            if fields[9] in own and (fields[3] == LISTENS or table.startswith("udp")):
                found.append(f"{table} {fields[1]}")
    return sorted(found)


LOOPBACK = "0100007F"


@contextlib.contextmanager
def busy_run(*words, **options):
    """A run that is at work: its process, and the ids of its memory nodes and its compute nodes."""
    run_words = ("run", "pagerank", GRAPH, "--quiet", "--mns", 2, "--cns", 2, "--threads", 1, "--iterations", 1000000000, *words)
    busy = subprocess.Popen([PROGRAM, *map(str, run_words)], env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, start_new_session=True, **options)
    try:
        # Three channels a compute node, each with two memory nodes, beside what it has with the launcher.
        wait_until("a run", lambda: len(nodes_of("compute-node", busy.pid)) == 2 and
                   all(len(socket_inodes(pid)) > 6 for pid in nodes_of("compute-node", busy.pid)))
        yield busy, nodes_of("memory-node", busy.pid), nodes_of("compute-node", busy.pid)
    finally:
        busy.terminate()
        _, busy.said = communicate(busy)


def ports_while_it_runs(*words):
    """The ports of each memory node and of each compute node, while a run is at work; all it says on its standard error."""
    with busy_run(*words) as (busy, *nodes):
        ports = [[open_ports(pid) for pid in pids] for pids in nodes]
        require(open_ports(busy.pid) == [], "the launcher listens")
    return *ports, busy.said.decode()


def pieces_of(pids):
    """Number and mode of the pieces of System V's shared memory that these processes have made."""
    rows = [row.split() for row in read("/proc/sysvipc/shm").decode().splitlines()[1:]]
    return {int(row[1]): int(row[2], 8) & 0o777 for row in rows if int(row[4]) in pids}


def modes_of_open_files(pid, name):
    """The modes of what a process has open under this name, but for what it closes meanwhile."""
    modes = []
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            path = f"/proc/{pid}/fd/{descriptor}"
            if name in os.readlink(path):
                modes.append(os.stat(path).st_mode & 0o777)
    return modes


def can_attach(number):
    """Whether another user of the same group can."""
    script = ("import ctypes, os; c = ctypes.CDLL(None, use_errno=True); c.shmat.restype = ctypes.c_void_p; "
              "os.setgroups([]); os.setresgid(*[os.getegid()] * 3); os.setresuid(65534, 65534, 65534); "
              f"at = c.shmat({number}, None, 0); print(at != ctypes.c_void_p(-1).value)")
    return subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout.strip() == b"True"


def shared_memory_of_ucx_is_closed_to_others():
    with busy_run("--transport", "ucx:data=sysv") as (_, memory_nodes, compute_nodes):
        for pids in (memory_nodes, compute_nodes):
            pieces = pieces_of(pids)
            require(pieces and set(pieces.values()) == {0o600}, f"modes: {[oct(mode) for mode in pieces.values()]}")
        if os.geteuid() == 0:
            require(not any(can_attach(number) for number in pieces_of(memory_nodes)), "another user has attached it")
    with busy_run("--transport", "ucx:data=posix", umask=0) as (_, memory_nodes, compute_nodes):
        modes = [mode for pid in memory_nodes + compute_nodes for mode in modes_of_open_files(pid, "ucx_shm_posix")]
        require(modes and set(modes) == {0o600}, f"modes: {[oct(mode) for mode in modes]}")


def on_one_host_nobody_opens_a_port():
    for transport in ("ucx", "ucx:data=message", "ucx:data=sysv", "cxl_shm"):
        memory_nodes, compute_nodes, _ = ports_while_it_runs("--transport", transport)
        require(memory_nodes == [[], []] and compute_nodes == [[], []], f"{transport}: {memory_nodes} {compute_nodes}")


def with_a_port_memory_nodes_alone_listen_and_on_loopback():
    for transport in ("ucx:port=0", "ucx:data=message,port=0,protect=encrypted"):
        memory_nodes, compute_nodes, _ = ports_while_it_runs("--transport", transport)
        require(all(len(ports) == 1 and ports[0].startswith(f"tcp {LOOPBACK}:") for ports in memory_nodes), str(memory_nodes))
        require(compute_nodes == [[], []], str(compute_nodes))


def tcp_of_ucx_is_open_to_this_host_and_says_so():
    memory_nodes, compute_nodes, err = ports_while_it_runs("--transport", "ucx:messages=tcp")
    require(all(f"tcp {LOOPBACK}:" in port for ports in memory_nodes + compute_nodes for port in ports), f"{memory_nodes} {compute_nodes}")
    warnings = [line for line in err.splitlines() if "ucx_tcp_is_open" in line]
    require(len(warnings) == 1 and "any user of this machine" in warnings[0], err)
    listed = run("info", "transports").out
    require(re.search(r"tcp/lo .*\n.*opens a port in every node", listed), listed)
    require(re.search(r"socket +yes +yes .*\n.*messages \(the default\)", listed), listed)


def beyond_this_host_tcp_of_ucx_wants_a_word():
    words = ("pool", "start", "--name", "p", "--memory", "16M", "--transport", "ucx:messages=tcp")
    for bind in ("0.0.0.0", "::"):
        error = run(*words, "--bind", bind, expect=USAGE).err.splitlines()[-1]
        require("--trust-network" in error and "messages=socket" in error, error)
    error = one_line(run("run", "cc", GRAPH, "--transport", "cxl_shm", "--trust-network", expect=USAGE).err)
    require("no parameter 'trust-network'" in error, error)
    run(*words, "--bind", "0.0.0.0", "--trust-network")
    try:
        require(":127.0.0.1:" not in run("pool", "status", "p").out, "the address is one that others cannot use")
        err = run("load", GRAPH, "--pool", "p", "--as", "ring").err
        require("anybody who can connect" in one_line(err), err)
        run("run", "cc", "ring", "--pool", "p", "--cns", 2, "--verify", "--quiet")
    finally:
        run("pool", "stop", "p", expect=None)


def a_fixed_port_serves_one_run_after_another():
    for transport in ("ucx", "ucx:data=message"):
        port = free_port()
        joined = "," if ":" in transport else ":"
        for _ in range(3):
            answer("--transport", f"{transport}{joined}port={port}", "--cns", 2)


def a_port_that_is_in_use_is_refused():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        error = run("run", "cc", GRAPH, "--transport", f"ucx:port={other.getsockname()[1]}", expect=None)
        require(error.code != OK and "exists already: another program listens there" in one_line(error.err), error.err)


# ---- IPv6 ----

def has_ipv6():
    try:
        free_port(socket.AF_INET6, "::1")
        return True
    except OSError:
        return False


def global_ipv6():
    """An address that UCX can use, or None: connecting a datagram socket sends nothing."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("2001:db8::1", 9))
            address = probe.getsockname()[0]
            return None if address == "::1" or address.startswith("fe80") else address
    except OSError:
        return None


def has_other_address():
    """Whether this machine has an address of IPv4 beside loopback: connecting a datagram socket sends nothing."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            return not probe.getsockname()[0].startswith("127.")
    except OSError:
        return False


def pool_at(transport, host, shown):
    run("pool", "start", "--name", "p", "--memory", "16M", "--transport", transport, "--bind", host)
    try:
        status = run("pool", "status", "p").out
        require(f":[{shown}]:" in status, status)
        run("load", GRAPH, "--pool", "p", "--as", "ring")
        run("run", "cc", "ring", "--pool", "p", "--cns", 2, "--verify", "--quiet")
    finally:
        run("pool", "stop", "p", expect=None)


def a_pool_listens_at_an_ipv6_address():
    memory = f"/dev/shm/dmgraph-test-{uuid.uuid4()}"
    for transport in (f"cxl_shm:path={memory}", f"cxl_shm:coherence=none,path={memory}"):
        for host in ("::1", "[::1]"):
            pool_at(transport, host, "::1")
            require(not os.path.exists(memory), "the memory is left")
    for transport in ("ucx", "ucx:data=message", "ucx:messages=tcp"):
        pool_at(transport, "::1", "::1")


def a_ucx_pool_listens_at_a_global_ipv6_address():
    pool_at("ucx", global_ipv6(), global_ipv6())
    pool_at("ucx:data=message", global_ipv6(), global_ipv6())


def an_address_that_is_none_is_refused():
    for host in ("[::1", "::1]", "[]", "1:2"):
        error = run("pool", "start", "--name", "p", "--memory", "16M", "--transport", f"cxl_shm:path=/dev/shm/dmgraph-{uuid.uuid4()}",
                    "--bind", host, expect=USAGE)
        require("address" in one_line(error.err), error.err)


# ---- protection ----

def connections_over_tcp_are_encrypted_when_that_is_asked_for():
    memory = f"/dev/shm/dmgraph-test-{uuid.uuid4()}"
    for protect in ("authenticated", "encrypted"):
        pool_at(f"cxl_shm:path={memory},protect={protect}", "::1", "::1")


def encryption_that_is_not_there_is_refused():
    error = run("run", "cc", GRAPH, "--transport", "cxl_shm:protect=encrypted", expect=USAGE)
    require("Unix socket" in one_line(error.err), error.err)
    error = run("run", "cc", GRAPH, "--transport", "cxl_shm:protect=yes", expect=USAGE)
    require("expected authenticated or encrypted" in one_line(error.err), error.err)


def a_client_that_wants_encryption_takes_no_less():
    memory = f"/dev/shm/dmgraph-test-{uuid.uuid4()}"
    run("pool", "start", "--name", "p", "--memory", "16M", "--transport", f"cxl_shm:path={memory}", "--bind", "127.0.0.1")
    try:
        path = os.path.join(RUNTIME, "dmgraph", "p.pool")
        with open(path) as file:
            pool = json.load(file)
        pool["transport"] += ",protect=encrypted"
        with open(path, "w") as file:
            json.dump(pool, file)
        error = run("load", GRAPH, "--pool", "p", "--as", "ring", expect=None)
        require(error.code != OK and "protects frames less than was asked for" in one_line(error.err), error.err)
    finally:
        run("pool", "stop", "p", expect=None)


# ---- UCX's environment ----

# What aborted nodes, what never ended, and what would just be taken over.
REFUSED = ("UCX_PROTO_ENABLE=y", "UCX_SOCKADDR_TLS_PRIORITY=rdmacm", "UCX_TCP_PORT_RANGE=9000-9001", "UCX_ATOMIC_MODE=device",
           "UCX_TLS=tcp", "UCX_ALLOC_PRIO=heap", "UCX_MEMTRACK_LIMIT=1", "UCX_LOG_LEVEL_TRIGGER=info", "UCX_NONSENSE=1")
PASSING = ("UCX_LOG_LEVEL=error", "UCX_HANDLE_ERRORS=none", "UCX_MEM_MMAP_HOOK_MODE=none", "UCX_IB_SL=1", "UCX_RC_PATH_MTU=1024",
           "UCX_POSIX_USE_PROC_LINK=n")


def variables(*settings):
    return dict(setting.split("=", 1) for setting in settings)


def a_variable_that_may_not_pass_is_named_and_has_no_effect():
    for setting in REFUSED:
        err = answer("--transport", "ucx", "--cns", 2, environment=variables(setting)).err
        require(f'names="{setting.split("=")[0]}"' in one_line(err), err)


def all_of_them_are_named_in_one_line():
    names = sorted(setting.split("=")[0] for setting in REFUSED)
    err = one_line(answer("--transport", "ucx:data=message", environment=variables(*REFUSED, *PASSING)).err)
    require(all(name in err for name in names) and "UCX_IB_SL" not in err, err)
    for words in (("info", "transports"), ("compare", "missing.el", "--with", "ucx,none", "--with", "cxl_shm,none")):
        err = run(*words, environment=variables(*REFUSED), expect=None).err
        require(len([line for line in err.splitlines() if "ucx_variables_ignored" in line]) == 1, err)


def a_pool_names_them_too():
    run("pool", "start", "--name", "p", "--memory", "16M", "--transport", "ucx")
    try:
        for words in (("load", GRAPH, "--pool", "p", "--as", "ring"), ("list", "--pool", "p"), ("run", "cc", "ring", "--pool", "p")):
            err = run(*words, environment=variables("UCX_TCP_PORT_RANGE=9000-9001")).err
            require(err.count("UCX_TCP_PORT_RANGE") == 1, err)
    finally:
        run("pool", "stop", "p", expect=None)


def variables_that_pass_are_not_spoken_of():
    for setting in PASSING:
        err = answer("--transport", "ucx", environment=variables(setting)).err
        require(err == "", err)


def without_ucx_nothing_is_said():
    require(answer("--transport", "cxl_shm", environment=variables(*REFUSED)).err == "", "cxl_shm does not read them")


def a_file_of_ucx_settings_is_refused_where_it_could_hurt():
    write("home/ucx.conf", "# a comment\n[section]\nUCX_LOG_LEVEL=error\n  UCX_PROTO_ENABLE = y\n")
    err = one_line(run("run", "cc", GRAPH, "--transport", "ucx", expect=USAGE).err)
    require("ucx.conf" in err and "UCX_PROTO_ENABLE" in err, err)
    answer("--transport", "cxl_shm")
    write("home/ucx.conf", "# UCX_PROTO_ENABLE=y\nUCX_LOG_LEVEL=error\nUCX_TLS=posix\n")
    require(answer("--transport", "ucx").err == "", "what passes passes by a file too")
    os.unlink(os.path.join(HOME, "ucx.conf"))


def main():
    cases = [a_fixed_port_serves_one_run_after_another, a_port_that_is_in_use_is_refused,
             shared_memory_of_ucx_is_closed_to_others,
             on_one_host_nobody_opens_a_port, with_a_port_memory_nodes_alone_listen_and_on_loopback,
             tcp_of_ucx_is_open_to_this_host_and_says_so, an_address_that_is_none_is_refused,
             a_variable_that_may_not_pass_is_named_and_has_no_effect, all_of_them_are_named_in_one_line, a_pool_names_them_too,
             variables_that_pass_are_not_spoken_of, without_ucx_nothing_is_said,
             a_file_of_ucx_settings_is_refused_where_it_could_hurt, encryption_that_is_not_there_is_refused,
             a_client_that_wants_encryption_takes_no_less]
    if has_ipv6():
        cases += [a_pool_listens_at_an_ipv6_address, connections_over_tcp_are_encrypted_when_that_is_asked_for]
    if has_other_address():
        cases.append(beyond_this_host_tcp_of_ucx_wants_a_word)
    if global_ipv6():
        cases.append(a_ucx_pool_listens_at_a_global_ipv6_address)
    for function in cases:
        check(function.__name__, function)
    finish()


main()
