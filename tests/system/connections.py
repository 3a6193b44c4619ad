"""
Where nodes listen and what UCX is told: fixed ports, IPv6, and UCX's variables in the environment.

A variable that UCX would take over either passes, as docs/hardware.md lists it, or is named and has no effect; some would abort
a process, or make a call of UCX never return.
"""

import os
import socket
import sys
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import OK, USAGE, check, compare, dmgraph, finish, one_line, path_of, read_answer, require, write  # noqa: E402

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


def free_port(family=socket.AF_INET, host="127.0.0.1"):
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


# ---- ports ----

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
        require(error.code != OK and "is the port taken" in one_line(error.err), error.err)


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


def a_ucx_pool_listens_at_a_global_ipv6_address():
    pool_at("ucx", global_ipv6(), global_ipv6())
    pool_at("ucx:data=message", global_ipv6(), global_ipv6())


def an_ipv6_address_that_ucx_cannot_use_is_refused_with_the_reason():
    for host in ("::1", "[::1]", "fe80::1"):
        error = run("pool", "start", "--name", "p", "--memory", "16M", "--transport", "ucx", "--bind", host, expect=USAGE)
        require("loopback nor link-local addresses of IPv6" in one_line(error.err), error.err)


def an_address_that_is_none_is_refused():
    for host in ("[::1", "::1]", "[]", "1:2"):
        error = run("pool", "start", "--name", "p", "--memory", "16M", "--transport", f"cxl_shm:path=/dev/shm/dmgraph-{uuid.uuid4()}",
                    "--bind", host, expect=USAGE)
        require("address" in one_line(error.err), error.err)


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
             an_ipv6_address_that_ucx_cannot_use_is_refused_with_the_reason, an_address_that_is_none_is_refused,
             a_variable_that_may_not_pass_is_named_and_has_no_effect, all_of_them_are_named_in_one_line, a_pool_names_them_too,
             variables_that_pass_are_not_spoken_of, without_ucx_nothing_is_said,
             a_file_of_ucx_settings_is_refused_where_it_could_hurt]
    if has_ipv6():
        cases.append(a_pool_listens_at_an_ipv6_address)
    if global_ipv6():
        cases.append(a_ucx_pool_listens_at_a_global_ipv6_address)
    for function in cases:
        check(function.__name__, function)
    finish()


main()
