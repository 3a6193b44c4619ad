"""
A soak: random faults, one after another, while two users load, run and unload in one pool that goes on living.

  soak.py [--minutes M] [--faults N] [--transport T[,T...]] [--seed S] [--first STEP] [--few] [--events FILE]

  --minutes M       for so long (30), shared out among the transports
  --faults N        at most so many faults over each transport (no limit)
  --transport T,T   cxl_shm,ucx,ucx:data=message
  --seed S          what is done, and when, follows from it and from the number of the step alone; printed
  --first STEP      begin with this step: what a step does can be seen again without those before
  --few             one fault of each target, for a test that takes seconds
  --events FILE     every event as a line of JSON (plans, signals, ends, checkpoints)

Each step begins a job of one user and another of his neighbour, does something to the first (kills, stops and continues, interrupts its
launcher, one of its compute nodes, or all of them; now and then a memory node), and then requires: whoever says that he succeeded has
the known answer; whoever failed has a documented exit code and one line of error; the neighbour is not concerned; all ends in bounded
time; the pool has exactly the memory that it had, and both users' graphs are intact. Checkpoints compare what must stay flat.

It ends with 0 when nothing was wrong. Beside the program's exit codes, a process that a signal ends before it listens has that signal's.
"""

import argparse
import collections
import json
import os
import random
import signal
import statistics
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import OK, PEER, SEED, Failure, check, finish, one_line, path_of, require, wait_until  # noqa: E402
from soak_world import CONVERGED, PATIENCE_SECONDS, POOL, Fault, World, require_answer, send  # noqa: E402

TRANSPORTS = ("cxl_shm", "ucx", "ucx:data=message")
ALGORITHMS = ("bfs", "cc", "pagerank", "sssp")
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT, "hup": signal.SIGHUP}
FAULTS = tuple(
    Fault(job, target, action) for job, target, actions in (
        ("run", "launcher", ("kill", "term", "int", "hup", "stop-short", "stop-long")),
        ("run", "compute-node", ("kill", "term", "stop-short", "stop-long")),
        ("run", "all", ("kill", "stop-short", "stop-long")),
        ("load", "launcher", ("kill", "term", "int", "stop-long")),
        ("load", "compute-node", ("kill", "stop-short", "stop-long")),
        ("load", "all", ("kill", "stop-long")),
        ("unload", "launcher", ("kill", "term")),
        ("run", "memory-node", ("stop-short", "stop-long")))
    for action in actions)
# After these a pool is made anew, so they come only at the end of some rounds.
DEADLY = (Fault("run", "memory-node", "kill"), Fault("load", "memory-node", "kill"), Fault("run", "memory-node", "term"))
FEW = (Fault("run", "compute-node", "kill"), Fault("load", "launcher", "kill"), Fault("run", "all", "stop-long"),
       Fault("run", "launcher", "term"), Fault("run", "memory-node", "kill"), Fault("run", "launcher", "stop-short"))
# So many iterations are a second or two on a quiet machine.
ITERATIONS = {"cxl_shm": 6000, "ucx": 3000, "ucx:data=message": 1200}
STEPS_BETWEEN_CHECKPOINTS = 12
# A stop that is shorter than the lease, and one that is longer, as parts of it.
SHORT, LONG = 0.3, 1.6
WRONG_MAX = 8


def fault_of(seed, step, is_few):
    """Every fault once in a round, in an order that follows from the seed; every second round ends with a memory node's death."""
    if is_few:
        return FEW[step % len(FEW)]
    length = 2 * len(FAULTS) + 1
    pair, place = divmod(step, length)
    if place == length - 1:
        return DEADLY[pair % len(DEADLY)]
    turn, place = divmod(place, len(FAULTS))
    order = list(FAULTS)
    random.Random(f"{seed}/{pair}/{turn}").shuffle(order)
    return order[place]


def codes_of(fault):
    """Exit codes that the job may have, beside 0 with the right answer."""
    if fault.target in ("launcher", "all") and fault.action in SIGNALS:
        number = SIGNALS[fault.action]
        return (-number, 128 + number)
    return () if fault.action == "stop-short" else (PEER,)


class Soak:
    def __init__(self, transport, options, events):
        self.world = World(transport, options.seed)
        self.transport = transport
        self.options = options
        self.events = events
        self.step = options.first
        self.faults = 0
        self.missed = 0
        self.wrong = 0
        self.outcomes = collections.defaultdict(collections.Counter)
        self.seconds = collections.defaultdict(list)
        self.is_intact = False

    def tell(self, event, **facts):
        if self.events:
            self.events.write(json.dumps({"time": round(time.time(), 3), "transport": self.transport, "step": self.step, "event": event,
                                          **facts}) + "\n")
            self.events.flush()

    # ---- one step ----

    def begin_job(self, fault, user, rng):
        """The job that the fault is done to; its graph's name where it makes or removes one, its output where it has one."""
        world = self.world
        if fault.job == "run":
            out = path_of(f"out-{uuid.uuid4()}")
            words = world.run_words(user.kept, world.graphs[user.name], "pagerank", out, rng.choice((1, 2, 3)), "--iterations",
                                    max(CONVERGED, ITERATIONS[self.transport]), "--tolerance", 0)
            return user.begin(*words), None, out
        name = f"moving-{user.name}"
        if fault.job == "unload":
            require(world.load_large(user, name), "there is no room for a graph")
            return user.begin("unload", name, "--pool", POOL, "--quiet"), name, None
        return user.begin("load", world.large.path, "--pool", POOL, "--as", name, "--cns", rng.choice((1, 2)), "--threads", 1,
                          "--quiet"), name, None

    def victims(self, fault, job, rng):
        """Wait for who is concerned; the processes, none when the job was faster."""
        if fault.target == "launcher":
            return [] if job.has_ended() else [job.process.pid]
        nodes = wait_until("compute nodes", lambda: job.compute_nodes() or job.has_ended(), PATIENCE_SECONDS)
        if fault.target == "memory-node":
            return [rng.choice(self.world.memory_nodes())]
        if job.has_ended() or nodes is True:
            return []
        if fault.target == "compute-node":
            return [rng.choice(nodes)]
        send(job.process.pid, signal.SIGSTOP)  # first, so that it starts nothing meanwhile
        return [job.process.pid, *(pid for pid in job.members() if pid != job.process.pid)]

    def inject(self, fault, job, victims, neighbour, rng):
        """Do it; returns the names of the graphs that the neighbour loaded while others were stopped."""
        loaded = []
        number = SIGNALS.get(fault.action, signal.SIGSTOP)
        done = [send(pid, number) for pid in victims]
        self.tell("signal", number=int(number), pids=victims, done=done)
        if number != signal.SIGSTOP:
            return any(done), loaded
        began = time.monotonic()
        stop = self.world.lease_seconds * (LONG if fault.action == "stop-long" else SHORT)
        if fault.action == "stop-long" and fault.target != "memory-node":
            # What was given up is given away, if it is.
            time.sleep(1.2 * self.world.lease_seconds)
            for index in range(rng.choice((1, 2))):
                name = f"neighbour{index}-{neighbour.name}"
                if self.world.load_large(neighbour, name):
                    loaded.append(name)
        time.sleep(max(0, stop - (time.monotonic() - began)))
        for pid in victims:
            send(pid, signal.SIGCONT)
        self.tell("continued", after_seconds=round(time.monotonic() - began, 3), loaded=loaded)
        return any(done), loaded

    def require_end(self, job, codes, out, graph, who):
        code, err = job.end()
        self.tell("end", who=who, code=code, error=err.strip()[-600:])
        if code == OK:
            require(err == "", f"{who} went well and said: {err}")
            if out:
                require_answer(out, graph, "pagerank")
        else:
            require(code in codes, f"{who}: exit code {code} instead of {(OK, *codes)}: {err}")
            if code > 0:
                one_line(err)
            else:
                require(err == "", f"{who} was ended by a signal before it listened, and said: {err}")
        if out and os.path.exists(out):
            require(code == OK or code < 0 or code == PEER, f"{who} failed with {code} and left an output")
            os.unlink(out)
        return code

    def one_step(self, fault, rng):
        world = self.world
        user, neighbour = rng.sample(world.users, 2)
        delay = rng.random() * (0.8 if fault.job == "run" else 0.05) * min(world.lease_seconds / 2, 3)
        if fault.job == "unload":
            delay *= 0.6
        self.tell("plan", fault=fault, user=user.name, delay=round(delay, 4))
        job, name, out = self.begin_job(fault, user, rng)
        other_out = path_of(f"out-{uuid.uuid4()}")
        # Together more processes than two cores: 2 memory nodes, 2 launchers, and 3 to 5 compute nodes.
        other = neighbour.begin(*world.run_words(neighbour.kept, world.graphs[neighbour.name], "pagerank", other_out, 2, "--iterations",
                                                 max(CONVERGED, ITERATIONS[self.transport] // 3), "--tolerance", 0))
        try:
            if fault.target != "launcher":
                wait_until("compute nodes", lambda: job.compute_nodes() or job.has_ended(), PATIENCE_SECONDS)
            time.sleep(delay)
            victims = self.victims(fault, job, rng)
            began = time.monotonic()
            was_done, loaded = self.inject(fault, job, victims, neighbour, rng)
            code = self.require_end(job, codes_of(fault), out, world.graphs[user.name], "the job")
            is_memory_node = fault.target == "memory-node"
            self.require_end(other, (PEER,) if is_memory_node and fault.action != "stop-short" else (), other_out,
                             world.graphs[neighbour.name], "the neighbour's run")
            if not was_done:
                self.missed += 1
                self.tell("missed")
            if is_memory_node and fault.action in SIGNALS:
                self.make_anew()
            else:
                self.require_recovered(user, neighbour, name, loaded, rng)
            if was_done:
                kind = f"{fault.action} {fault.target} of a {fault.job}"
                self.faults += 1
                self.outcomes[kind][code] += 1
                self.seconds[kind].append(time.monotonic() - began - self.checked_seconds)
        finally:
            job.kill()
            other.kill()

    def make_anew(self):
        """A memory node is dead, and so is the pool: it says so, and another one takes its place."""
        world = self.world
        for user in world.users:
            error = user.call("run", "cc", user.kept, "--pool", POOL, "--quiet", expect=PEER).err
            require("memory node" in one_line(error), error)
        world.stop_pool()
        world.start_pool()
        self.checked_seconds = 0

    def require_recovered(self, user, neighbour, name, loaded, rng):
        """All memory is back, and everybody's graphs are what they were."""
        world = self.world
        began = time.monotonic()
        for graph in loaded:
            world.verify(neighbour, graph, world.large, rng.choice(sorted(world.large.answers)))
            world.remove(neighbour, graph)
        self.checked_seconds = time.monotonic() - began
        if name:
            world.remove(user, name)
            world.tidy(user)
        world.await_memory(world.full, "all memory to be free again")
        began = time.monotonic()
        for who in (neighbour, user):
            world.verify_kept(who, rng.choice(ALGORITHMS))
        require(world.memory() == world.full, f"runs left memory: {world.memory()} instead of {world.full}")
        self.checked_seconds += time.monotonic() - began

    # ---- all of them ----

    def guarded(self, name, function, *arguments):
        """A case of the test; after a failure everything is made anew, so that the next one does not suffer from it."""
        def run():
            try:
                function(*arguments)
            except BaseException as error:
                self.wrong += 1
                self.is_intact = False
                self.tell("wrong", what=str(error), log=self.world.log()[-4000:])
                raise
        check(name, run)
        if not self.is_intact and self.wrong:
            self.world.give_up()

    def ready(self):
        self.world.start_pool()
        self.world.checkpoint()
        self.is_intact = True

    def run(self, seconds):
        ends = time.monotonic() + seconds
        words = f"--transport {self.transport} --seed {self.options.seed}"
        while time.monotonic() < ends and self.faults + self.missed < self.options.faults and self.wrong < WRONG_MAX:
            if not self.is_intact:
                self.guarded(f"a pool over {self.transport}", self.ready)
                continue
            fault = fault_of(self.options.seed, self.step, self.options.few)
            self.guarded(f"step {self.step}: {fault.action} of {fault.target}, {fault.job} ({words} --first {self.step})", self.one_step,
                         fault, random.Random(f"{self.options.seed}/{self.step}"))
            self.step += 1
            if self.is_intact and (self.step - self.options.first) % STEPS_BETWEEN_CHECKPOINTS == 0:
                self.guarded(f"checkpoint over {self.transport}", self.checkpoint)
        if self.is_intact:
            self.guarded(f"last checkpoint over {self.transport}", self.checkpoint)
        if self.is_intact:
            self.guarded(f"end of the pool over {self.transport}", self.world.stop_pool)

    def checkpoint(self):
        exact, resident = self.world.checkpoint()
        self.tell("checkpoint", exact={what: str(value) for what, value in exact.items()}, resident=resident)

    def summary(self):
        print(f"\n{self.transport}: {self.faults} faults ({self.missed} came too late), {self.wrong} wrong, "
              f"{self.world.pools_made} pools; lease {self.world.lease_seconds:.1f} s")
        for kind in sorted(self.outcomes):
            codes = ", ".join(f"{count} x {code}" for code, count in sorted(self.outcomes[kind].items()))
            times = self.seconds[kind]
            print(f"  {kind:38} {len(times):4}  exit codes: {codes:28} recovered: median {statistics.median(times):.2f} s, "
                  f"max {max(times):.2f} s")
        sys.stdout.flush()


def require_cleared(world):
    if world.processes():
        world.give_up()


def main():
    parser = argparse.ArgumentParser(description="Random faults in a pool of two users; see the head of this file.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--faults", type=int, default=1 << 30)
    parser.add_argument("--transport", default=",".join(TRANSPORTS))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--events")
    options = parser.parse_args()
    transports = options.transport.split(",")
    if not set(transports) <= set(TRANSPORTS):
        parser.error(f"--transport: some of {', '.join(TRANSPORTS)}")
    print(f"seed {options.seed}")
    ends = time.monotonic() + 60 * options.minutes
    events = open(options.events, "a") if options.events else None
    soaks = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        for index, transport in enumerate(transports):
            soak = Soak(transport, options, events)
            soaks.append(soak)
            soak.run((ends - time.monotonic()) / (len(transports) - index))
    finally:
        for soak in soaks:  # also when it is interrupted
            require_cleared(soak.world)
    for soak in soaks:
        soak.summary()
    print(f"\nfaults: {sum(soak.faults for soak in soaks)}, wrong: {sum(soak.wrong for soak in soaks)}, seed {options.seed}")
    if events:
        events.close()
    finish()


if __name__ == "__main__":
    main()
