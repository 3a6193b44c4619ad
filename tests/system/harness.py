"""What the tests that run the program have in common: running it, cases, and the matrix of configurations.

A test program defines functions that call check() for each case and ends with finish(). Its last line is
"cases: P passed, F failed", which ./test adds up.

The environment:
  DMGRAPH_PROGRAM     the program to test (ctest sets it)
  DMGRAPH_DATA        a folder of real graphs and their answers; tests that need it are skipped without it
  DMGRAPH_TEST_DEPTH  full, or thin: fewer configurations, as the sanitizer builds are tested
  DMGRAPH_TEST_SEED   seed of random graphs; printed when a case fails
  DMGRAPH_TEST_FAULTS a folder for what faults were seen to do: docs/reliability.md is made of it (scripts/fault-table)
"""

import collections
import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

PROGRAM = os.environ.get("DMGRAPH_PROGRAM") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../build/release/cli/dmgraph")
DATA = os.environ.get("DMGRAPH_DATA")
IS_THIN = os.environ.get("DMGRAPH_TEST_DEPTH") == "thin"
SEED = int(os.environ.get("DMGRAPH_TEST_SEED", "20240229"))
# No test waits longer than this for one call, on a quiet machine.
TIMEOUT_SECONDS = 120
# What a small run may take on a quiet machine of two cores, and how much slower a machine may be that still counts.
QUIET_RUN_SECONDS = 0.3
SLOWNESS_MAX = 50
# How long a measurement of the machine holds.
FRESH_SECONDS = 5

# Exit codes of the program.
OK, INTERNAL, USAGE, MALFORMED, LIMIT, PEER, VERIFY, IO = range(8)

_counts = {"passed": 0, "failed": 0}
_started = time.monotonic()
_folder = None


class Failure(Exception):
    """A case that does not hold."""


def folder():
    """A folder for this test's files, removed by finish()."""
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="dmgraph-test-")
    return _folder


def path_of(name):
    return os.path.join(folder(), name)


# Who loads graphs into pools has an identity in a file, which would otherwise be made in the home of whoever runs the tests.
os.environ["DMGRAPH_IDENTITY"] = path_of("identity")


def write(name, content):
    """Write a file of this test; returns its path."""
    path = path_of(name)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def require(claim, text):
    if not claim:
        raise Failure(text)


def check(name, function, *arguments):
    """Run one case: it passes unless the function raises."""
    started = time.monotonic()
    try:
        function(*arguments)
    except Exception as error:  # whatever it is, the other cases are still run
        _counts["failed"] += 1
        print(f"  FAILED {name}: {error}")
        if not isinstance(error, Failure):
            traceback.print_exc(file=sys.stdout)
        print(f"  (DMGRAPH_TEST_SEED={SEED})")
    else:
        _counts["passed"] += 1
        print(f"  passed {name} ({time.monotonic() - started:.2f} s)")
    sys.stdout.flush()


def finish():
    """Clean up, print the count, and exit."""
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
    print(f"{time.monotonic() - _started:.1f} s")
    print(f"cases: {_counts['passed']} passed, {_counts['failed']} failed")
    sys.exit(0 if _counts["failed"] == 0 and _counts["passed"] > 0 else 1)


def is_sanitized():
    """Sanitizers need more address space than there is, and keep freed memory."""
    with open(PROGRAM, "rb") as file:
        content = file.read()
    return b"__asan_init" in content or b"__tsan_init" in content


def skip(why):
    """Leave without a case; ctest knows the code as "skipped"."""
    shutil.rmtree(folder(), ignore_errors=True)
    print(f"skipped: {why}")
    print("cases: 0 passed, 0 failed")
    sys.exit(77)


# ---- deadlines ----
#
# A test says what is enough on a quiet machine. It gets so much more as a small run of the program under test, whose processes
# start, connect and meet, takes longer now; so a sanitized program gets more, too. What must happen is given up only after the
# machine was measured once more; what must not happen, or is found by a time-out that the program is given, is scaled alike.

_measured = {"at": None, "last": [1.0, 1.0]}


def slowness(anew=False):
    """How many times slower than a quiet machine this one is now: the worse of the last two measurements, at least 1."""
    now = time.monotonic()
    if anew or _measured["at"] is None or now - _measured["at"] > FRESH_SECONDS:
        started = time.monotonic()
        command = [PROGRAM, "run", "cc", write("measured.el", "1 2\n2 3\n"), "--transport", "ucx", "--mns", "1", "--cns", "2",
                   "--threads", "1", "--quiet", "--no-progress", "--peer-timeout", "60s"]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           timeout=SLOWNESS_MAX * QUIET_RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            pass
        took = (time.monotonic() - started) / QUIET_RUN_SECONDS
        _measured["last"] = [_measured["last"][1], min(max(took, 1.0), SLOWNESS_MAX)]
        _measured["at"] = time.monotonic()
    return max(_measured["last"])


def time_out(quiet_seconds):
    """A time-out for an option of the program, --peer-timeout say."""
    return f"{math.ceil(1000 * quiet_seconds * slowness())}ms"


class Deadline:
    """A bounded wait: so many seconds of a quiet machine."""

    def __init__(self, quiet_seconds):
        self.quiet_seconds = quiet_seconds
        self.started = time.monotonic()

    def passed_seconds(self):
        return time.monotonic() - self.started

    def left_seconds(self):
        """How long to wait on; 0 when the time is over, for which the machine was measured once more."""
        left = self.quiet_seconds * max(_measured["last"]) - self.passed_seconds()
        if left <= 0:
            left = self.quiet_seconds * slowness(anew=True) - self.passed_seconds()
        return max(left, 0)


def communicate(process, seconds=TIMEOUT_SECONDS, given=None):
    """Wait for a process and what it prints, as bytes; one that does not end is killed, and a failure. `given` is its input."""
    deadline = Deadline(seconds)
    left = deadline.left_seconds()
    while left > 0:
        try:
            return process.communicate(given, timeout=left)
        except subprocess.TimeoutExpired:
            given = None  # it was taken over
            left = deadline.left_seconds()
    process.kill()
    process.communicate()
    raise Failure(f"{' '.join(map(str, process.args))}: still running after {deadline.passed_seconds():.0f} s")


def wait_until(what, condition, seconds=30):
    """Poll until the condition gives something that is true, and return that."""
    deadline = Deadline(seconds)
    pause = 0.002
    while True:
        result = condition()
        if result:
            return result
        if deadline.left_seconds() == 0:
            raise Failure(f"{what}: not within {deadline.passed_seconds():.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


Run = collections.namedtuple("Run", "code out err")


def command_run(command, timeout=TIMEOUT_SECONDS, given=None, **options):
    """Run any command to its end; `given` (bytes) is its input."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL if given is None else subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options) as process:
        out, err = communicate(process, timeout, given)
    return Run(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def dmgraph(*arguments, timeout=TIMEOUT_SECONDS, expect=OK, **options):
    """Run the program to its end. `expect` is the exit code that must come, or None for any. All times are a quiet machine's."""
    command = [PROGRAM, *map(str, arguments)]
    run = command_run(command, timeout, **options)
    if expect is not None and run.code != expect:
        raise Failure(f"{' '.join(command)}: exit code {run.code} instead of {expect}\n{run.out[-1500:]}{run.err[-3000:]}")
    return run


def one_line(text):
    """An error is told in one line."""
    lines = [line for line in text.splitlines() if line]
    require(len(lines) == 1, f"one line was expected on the standard error, not {len(lines)}:\n{text[-3000:]}")
    return lines[0]


# ---- what faults do ----

_rows = None


def saw_fault(fault, phase, transport, code, error, seconds):
    """
    Put down what a fault was seen to do, where that is asked for: the exit code, the error, and the seconds until all was told and
    given back. A negative code is the signal that ended the process; None says that the fault came too late, or cannot be had here.
    """
    global _rows
    place = os.environ.get("DMGRAPH_TEST_FAULTS")
    if not place:
        return
    if _rows is None:
        os.makedirs(place, exist_ok=True)
        words = [os.path.splitext(os.path.basename(sys.argv[0]))[0], *sys.argv[1:]]
        _rows = open(os.path.join(place, "-".join(words).replace("/", "_") + ".jsonl"), "w")
    _rows.write(json.dumps({"fault": fault, "phase": phase, "transport": transport, "code": code, "error": error.strip(),
                            "seconds": seconds, "is_thin": IS_THIN}) + "\n")
    _rows.flush()


# ---- configurations ----

TRANSPORTS = ("cxl_shm", "cxl_shm:coherence=none", "ucx", "ucx:data=message")
MNS = (1, 2)
CNS = (1, 2, 3)
THREADS = (1, 2)


class Configuration(collections.namedtuple("Configuration", "transport mns cns threads direction density")):
    def arguments(self):
        words = ["--transport", self.transport, "--mns", self.mns, "--cns", self.cns, "--threads", self.threads]
        if self.direction != "auto":
            words += ["--direction", self.direction]
        if self.density != "auto":
            words += ["--density", self.density]
        return words

    def __str__(self):
        text = f"{self.transport} {self.mns}x{self.cns}x{self.threads}"
        for word in (self.direction, self.density):
            if word != "auto":
                text += " " + word
        return text


def pairwise(*dimensions, is_legal=lambda row: True):
    """
    Few rows that cover each pair of values of any two dimensions that a legal row has: a greedy cover. The first row has the first
    value of each dimension. Deterministic.
    """
    rng = random.Random(7)
    pairs = set()
    for (i, a), (j, b) in itertools.combinations(enumerate(dimensions), 2):
        pairs |= {(i, x, j, y) for x in a for y in b}

    def covered(row):
        return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}

    candidates = list(filter(is_legal, itertools.product(*dimensions)))
    pairs &= set().union(*map(covered, candidates))
    rows = [candidates[0]]
    pairs -= covered(candidates[0])
    rng.shuffle(candidates)
    while pairs:
        best = max(candidates, key=lambda row: len(pairs & covered(row)))
        rows.append(best)
        pairs -= covered(best)
    return rows


def configurations(algorithm):
    """Rows that cover all pairs of transport, nodes, threads, direction and density that the algorithm takes."""
    directions = ("auto", "push") if algorithm == "sssp" else ("auto", "push", "pull")
    densities = ("auto", "dense") if algorithm == "pagerank" else ("auto", "dense", "sparse")
    rows = pairwise(TRANSPORTS, MNS, CNS, THREADS, directions, densities,
                    is_legal=lambda row: row[-2:] != ("pull", "sparse"))  # a sparse iteration pushes
    return [Configuration(*row) for row in rows]


def sizes():
    """Rows that cover all pairs of transport, nodes and threads, with the engine choosing the rest."""
    return [Configuration(*row, "auto", "auto") for row in pairwise(TRANSPORTS, MNS, CNS, THREADS)]


# ---- answers ----

def read_answer(path):
    """The lines of an output file, as {id: [words]}; ids must ascend."""
    answer = {}
    last = -1
    with open(path) as file:
        for line in file:
            if line.startswith("#"):
                continue
            words = line.split()
            number = int(words[0])
            require(number > last, f"{path}: id {number} stands behind {last}")
            last = number
            answer[number] = words[1:]
    return answer


def is_close(got, wanted, relative=1e-6):
    if got == wanted:
        return True  # infinities, too
    return abs(got - wanted) <= relative * max(abs(got), abs(wanted))


def compare(answer, expected, relative=None, column=None):
    """
    The answer ({id: [words]}) is the expected one ({id: value} or {id: (values)}). `relative` is a tolerance for floats; without it
    all values are integers and equal. `column` picks one word of the answer.
    """
    require(len(answer) == len(expected), f"{len(answer)} vertices instead of {len(expected)}")
    for vertex, wanted in expected.items():
        require(vertex in answer, f"vertex {vertex} is missing")
        words = answer[vertex] if column is None else answer[vertex][column:column + 1]
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if relative is None:
            good = [int(word) for word in words] == list(wanted)
        else:
            good = len(words) == len(wanted) and all(is_close(float(a), b, relative) for a, b in zip(words, wanted))
        require(good, f"vertex {vertex}: {' '.join(words)} instead of {' '.join(map(str, wanted))}")
