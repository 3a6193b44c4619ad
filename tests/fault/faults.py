"""
Nodes that die or stop, and interrupted runs, in every phase: one clear error line, the right exit code, nothing left behind.

  faults.py killed_nodes|stopped_nodes|suspended|interrupted
"""

import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import (IS_THIN, OK, PEER, check, dmgraph, finish, one_line, path_of, require, slowness, time_out,  # noqa: E402
                     saw_fault, wait_until)
from watch import Watched  # noqa: E402

TRANSPORTS = ("cxl_shm", "ucx", "ucx:data=message")
# Its messages, sockets and leases are those of cxl_shm: a few cases show that nothing else waits for ever.
SOFTWARE_COHERENCE = "cxl_shm:coherence=none"
MNS = 2
CNS = 2
# Seconds between the start of the nodes and the fault: connecting, loading, start values, iterations.
PHASES = (0, 0.03, 0.1, 0.3, 0.7, 2)
if IS_THIN:
    PHASES = (0, 0.3, 2)
GRAPH = path_of("kron.dmg")


# What ends by itself after a second or so, on a quiet machine.
ITERATIONS = {"cxl_shm": 3000, "ucx": 2000, "ucx:data=message": 800, SOFTWARE_COHERENCE: 2500}
SMALL_GRAPH = path_of("small.dmg")
# A silence begins with the last sign of life: this much before a fault, or less.
LATE_SECONDS = 2


def told_silence(line):
    """The silence that an error tells, in seconds, or None."""
    told = re.search(r"(?:did not answer|has not answered) for ([0-9.]+) s", line)
    return float(told.group(1)) if told else None


def name_of(kind, signal_number):
    """What a fault is called in docs/reliability.md."""
    who = {None: "the launcher", "memory-node": "a memory node", "compute-node": "a compute node"}[kind]
    what = {signal.SIGKILL: "killed (SIGKILL)", signal.SIGSTOP: "stopped for good (SIGSTOP)"}
    return f"{who} {what.get(signal_number, f'gets {signal_number.name}')}"


def phase_of(seconds):
    """What a run of these tests does so long after its start."""
    return "one-shot run: " + ("start" if seconds == 0 else "connect, load" if seconds < 0.3 else "compute")


def start(transport, *options):
    """A run that never ends by itself."""
    return Watched("run", "pagerank", GRAPH, "--transport", transport, "--mns", MNS, "--cns", CNS, "--threads", 1,
                   "--iterations", 4000000000, "--tolerance", 0, *options)


def with_fault(transport, kind, which, signal_number, phase, options, codes, has_error):
    run = start(transport, *options)
    try:
        victim = run.process.pid
        if kind is None:
            run.wait_for_nodes("memory-node", MNS)
        else:
            nodes = run.wait_for_nodes(kind, MNS if kind == "memory-node" else CNS)
            victim = nodes[which]
        time.sleep(phase)
        require(run.process.poll() is None, f"the run ended before the fault: {run.process.poll()}")
        os.kill(victim, signal_number)
        began = time.monotonic()
        code, _, err = run.end()
        require(code in codes, f"exit code {code} instead of {codes}: {err}")
        if has_error:
            line = one_line(err)
            require("node" in line, f"the error does not name the node: {line}")
            silence = told_silence(line)
            require(silence is None or silence <= time.monotonic() - began + LATE_SECONDS, f"so long has nobody waited: {line}")
        run.require_nothing_left()
        saw_fault(name_of(kind, signal_number), phase_of(phase), transport, code, err, time.monotonic() - began)
    finally:
        run.stop()


def node_case(word, transport, kind, which, signal_number, phase, *options):
    check(f"{word} {kind} {which} {phase} s after its start over {transport}", with_fault, transport, kind, which,
          signal_number, phase, options, (PEER,), True)


def killed_nodes():
    for transport in TRANSPORTS:
        for index, phase in enumerate(PHASES):
            node_case("kill -9 of", transport, "memory-node", index % MNS, signal.SIGKILL, phase)
            node_case("kill -9 of", transport, "compute-node", index % CNS, signal.SIGKILL, phase)
    for kind in ("memory-node", "compute-node"):
        node_case("kill -9 of", SOFTWARE_COHERENCE, kind, 1, signal.SIGKILL, PHASES[-1])


def stopped_nodes():
    for transport in TRANSPORTS:
        for index, phase in enumerate(PHASES[::2]):
            node_case("SIGSTOP of", transport, "memory-node", index % MNS, signal.SIGSTOP, phase, "--peer-timeout", time_out(2))
        node_case("SIGSTOP of", transport, "compute-node", 1, signal.SIGSTOP, PHASES[-1], "--peer-timeout", time_out(2))
    node_case("SIGSTOP of", SOFTWARE_COHERENCE, "memory-node", 1, signal.SIGSTOP, 0.3, "--peer-timeout", time_out(2))


def suspend(transport, phase, *options):
    """Launcher and nodes are stopped for much longer than the peer timeout, and continued, as a batch system does it."""
    run = Watched("run", "pagerank", SMALL_GRAPH, "--transport", transport, "--mns", MNS, "--cns", CNS, "--threads", 1,
                  "--iterations", ITERATIONS[transport], "--tolerance", 0, "--verify", "--peer-timeout", time_out(0.6), *options)
    try:
        run.wait_for_nodes("compute-node", CNS)
        time.sleep(phase)
        os.kill(run.process.pid, signal.SIGSTOP)  # first, so that it starts nothing meanwhile
        everybody = run.members()
        require(len(everybody) == 2 + MNS + CNS, f"the run has {len(everybody)} processes: has it ended already?")
        for pid in everybody:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2.4 * slowness())
        for pid in everybody:
            os.kill(pid, signal.SIGCONT)
        began = time.monotonic()
        code, out, err = run.end()
        require(code == OK and err == "", f"exit code {code}: {err}")
        require("verified" in out, f"the answer was not verified: {out}")
        run.require_nothing_left()
        saw_fault("all of a run stopped longer than the lease, and continued", phase_of(phase), transport, code, err,
                  time.monotonic() - began)
    finally:
        run.stop()


def short_stop(transport, kind):
    """One process stops for less than the lease: all wait for it, and nothing is lost."""
    run = Watched("run", "pagerank", SMALL_GRAPH, "--transport", transport, "--mns", MNS, "--cns", CNS, "--threads", 1,
                  "--iterations", ITERATIONS[transport], "--tolerance", 0, "--verify", "--peer-timeout", time_out(4))
    try:
        nodes = run.wait_for_nodes("compute-node", CNS)
        victim = run.process.pid if kind is None else nodes[0] if kind == "compute-node" else run.nodes(kind)[0]
        time.sleep(0.3)
        require(run.process.poll() is None, "the run ended before the fault")
        os.kill(victim, signal.SIGSTOP)
        time.sleep(0.8)
        os.kill(victim, signal.SIGCONT)
        began = time.monotonic()
        code, out, err = run.end()
        require(code == OK and err == "" and "verified" in out, f"exit code {code}: {err}{out}")
        run.require_nothing_left()
        who = name_of(kind, signal.SIGSTOP).split(" stopped")[0]
        saw_fault(f"{who} stopped shorter than the lease, and continued", "one-shot run: compute", transport, code, err,
                  time.monotonic() - began)
    finally:
        run.stop()


def short_timeout_and_busy_nodes(transport):
    """Nodes that are busy with their pages while they start: the run goes well, or one sentence says for how long one was silent."""
    run = Watched("run", "cc", SMALL_GRAPH, "--transport", transport, "--mns", MNS, "--memory", "256M", "--prefault",
                  "--peer-timeout", "300ms", "--quiet")
    try:
        code, _, err = run.end()
        require(code in (OK, PEER), f"exit code {code}: {err}")
        if code == PEER:
            line = one_line(err)
            silence = told_silence(line)
            require("node" in line and silence is not None and silence >= 0.3, f"it does not say who was silent for how long: {line}")
        run.require_nothing_left()
    finally:
        run.stop()


def suspended():
    for transport in ITERATIONS:
        for phase in (0, 0.3) if transport in TRANSPORTS[:2] and not IS_THIN else (0.1,):
            check(f"all stopped {phase} s after their start, and continued, over {transport}", suspend, transport, phase)
    for transport in TRANSPORTS:
        for kind in (None, "memory-node", "compute-node"):
            check(f"a short stop of the {kind or 'launcher'} over {transport}", short_stop, transport, kind)
    for transport in TRANSPORTS[:2]:
        check(f"a short peer timeout and busy nodes over {transport}", short_timeout_and_busy_nodes, transport)


def interrupted():
    for transport in TRANSPORTS:
        for phase in PHASES:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                check(f"{number.name} {phase} s after the start over {transport}", with_fault, transport, None, 0, number, phase,
                      (), (128 + number,), False)
            check(f"kill -9 of the launcher {phase} s after the start over {transport}", with_fault, transport, None, 0,
                  signal.SIGKILL, phase, (), (-signal.SIGKILL,), False)


def listens(pid, number):
    """Whether a process catches a signal, or has blocked it to take it later."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigBlk:", "SigCgt:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


def has_open(pid, path):
    folder = f"/proc/{pid}/fd"
    try:
        return any(os.path.realpath(os.path.join(folder, name)) == os.path.realpath(path) for name in os.listdir(folder))
    except OSError:
        return False


def interrupted_while_reading():
    """A large text file keeps the launcher busy before there are nodes."""
    path = path_of("large.el")
    with open(path, "w") as file:
        file.writelines(f"{i} {(i * 7919) % 3000017}\n" for i in range(3000000))
    for number in (signal.SIGINT, signal.SIGTERM):
        def interrupt(number=number):
            run = Watched("run", "cc", path)
            try:
                wait_until("the program to read the file and to listen for signals",
                           lambda: run.process.poll() is not None or (listens(run.process.pid, number) and has_open(run.process.pid, path)))
                require(run.process.poll() is None, "the file was read too fast for this test")
                run.process.send_signal(number)
                began = time.monotonic()
                code, _, err = run.end()
                require(code == 128 + number, f"exit code {code}: {err}")
                run.require_nothing_left()
                saw_fault(name_of(None, number), "one-shot run: read the file", "cxl_shm", code, err, time.monotonic() - began)
            finally:
                run.stop()
        check(f"{number.name} while the file is read", interrupt)


def main():
    dmgraph("generate", "kron", "--scale", 15 if IS_THIN else 17, "--edge-factor", 16, "--seed", 1, GRAPH)
    dmgraph("generate", "kron", "--scale", 12, "--seed", 1, SMALL_GRAPH)
    which = sys.argv[1]
    if which == "killed_nodes":
        killed_nodes()
    elif which == "stopped_nodes":
        stopped_nodes()
    elif which == "suspended":
        suspended()
    else:
        interrupted()
        interrupted_while_reading()
    finish()


if __name__ == "__main__":
    main()
