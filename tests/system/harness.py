"""What the tests that run the program have in common: running it, cases, and the matrix of configurations.

A test program defines functions that call check() for each case and ends with finish(). Its last line is
"cases: P passed, F failed", which ./test adds up.

The environment:
  DMGRAPH_PROGRAM     the program to test (ctest sets it)
  DMGRAPH_DATA        a folder of real graphs and their answers; tests that need it are skipped without it
  DMGRAPH_TEST_DEPTH  full, or thin: fewer configurations, as the sanitizer builds are tested
  DMGRAPH_TEST_SEED   seed of random graphs; printed when a case fails
"""

import collections
import itertools
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
# No test waits longer than this for one call; sanitizers and a busy machine are slow.
TIMEOUT_SECONDS = 240

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


def skip(why):
    """Leave without a case; ctest knows the code as "skipped"."""
    print(f"skipped: {why}")
    print("cases: 0 passed, 0 failed")
    sys.exit(77)


Run = collections.namedtuple("Run", "code out err")


def dmgraph(*arguments, timeout=TIMEOUT_SECONDS, expect=OK, **options):
    """Run the program to its end. `expect` is the exit code that must come, or None for any."""
    command = [PROGRAM, *map(str, arguments)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command)}: still running after {timeout} s") from None
    run = Run(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    if expect is not None and run.code != expect:
        raise Failure(f"{' '.join(command)}: exit code {run.code} instead of {expect}\n{run.out[-1500:]}{run.err[-3000:]}")
    return run


def one_line(text):
    """An error is told in one line."""
    lines = [line for line in text.splitlines() if line]
    require(len(lines) == 1, f"one line was expected on the standard error, not {len(lines)}:\n{text[-3000:]}")
    return lines[0]


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


def pairwise(*dimensions):
    """
    Few rows that cover each pair of values of any two dimensions: a greedy cover. The first row has the first value of each
    dimension. Deterministic.
    """
    rng = random.Random(7)
    pairs = set()
    for (i, a), (j, b) in itertools.combinations(enumerate(dimensions), 2):
        pairs |= {(i, x, j, y) for x in a for y in b}

    def covered(row):
        return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}

    candidates = list(itertools.product(*dimensions))
    rows = [candidates[0]]
    pairs -= covered(candidates[0])
    rng.shuffle(candidates)
    while pairs:
        best = max(candidates, key=lambda row: len(pairs & covered(row)))
        rows.append(best)
        pairs -= covered(best)
    return rows


def configurations(directions=("auto", "push", "pull"), densities=("auto", "dense", "sparse")):
    """Rows that cover all pairs of transport, nodes, threads, direction and density."""
    return [Configuration(*row) for row in pairwise(TRANSPORTS, MNS, CNS, THREADS, directions, densities)]


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
