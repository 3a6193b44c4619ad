"""What the runners of the paper's figures have in common: running the program, tables, plots, and findings.

A runner is a module in figures/ with NAME (of its files), TITLE and run(bench). It begins with a comment that says what the
paper shows, and what is shown here. It gets a Bench, and tells what it found with bench.finding(): the figure as measured here
beside the paper's own, and whether the *direction* holds. Times of two cores say little about an RDMA cluster, so most findings
compare exact counts (operations, bytes, work of a thread), or the time that an emulated link would have taken, which follows from
such counts (docs/links.md).
"""

import collections
import csv
import json
import os
import platform
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("read", "write", "cas", "faa", "message")
# The paper's NIC. Accounted for, not waited for: its time follows from the counts, whatever this machine is busy with.
LINK = ("--link", "rdma-cx5", "--link-mode", "account")


class Unavailable(Exception):
    """A figure cannot be shown by this program or on this machine; the text says why."""


class ProgramError(Exception):
    """The program failed; the text is what it said."""


Finding = collections.namedtuple("Finding", "figure what here paper holds basis note")


def ratio(a, b):
    """a / b, or infinity."""
    return a / b if b else float("inf")


def times(value):
    """A ratio as people read it."""
    if value == float("inf"):
        return "inf"
    return f"{value:.2g}x" if value < 10 else f"{value:,.0f}x"


def percent(value):
    return f"{100 * value:.1f} %"


def operations(counters):
    """Remote operations of all kinds; mapped spans count too, where the pool is mapped."""
    return sum(counters[kind]["operations"] for kind in KINDS) + counters["in_place_spans"]


def moved_bytes(counters):
    return sum(counters[kind]["bytes"] for kind in KINDS) + counters["in_place_bytes"]


def link_seconds(report):
    """
    What the emulated link costs the iterations: of a worker, as its operations wait for each other, or of the busiest link when
    that is more. It follows from counts, so it is the same on a busy machine; computing is not in it.
    """
    link = report["emulated_link"]
    return max(link["accounted_seconds"], link["busy_seconds"])


def largest_cache(report):
    """The most that any compute node kept."""
    return max(node["cache"]["peak_bytes"] for node in report["nodes"]["compute_nodes"])


def machine():
    """One line about where this runs."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores ({model}), {memory:.0f} GiB, Linux {platform.release()}"


class Bench:
    """One call of the runner: its settings, its files, what it found."""

    def __init__(self, program, output, graph, scale, transport, is_quick):
        self.program = program
        self.output = output
        self.scale = scale
        self.transport = transport
        self.is_quick = is_quick
        self.findings = []
        self.figure = None
        self.calls = 0
        self.kept = {}
        os.makedirs(output, exist_ok=True)
        self.graph = graph or self.kronecker(scale)

    # ---- graphs ----

    def kronecker(self, scale):
        """A Graph500 Kronecker graph, undirected, 16 edges a vertex id, in the binary form; made once."""
        path = os.path.join(self.output, f"kron-{scale}.dmg")
        if not os.path.exists(path):
            self.call("generate", "kron", "--scale", scale, path, "--quiet")
        return path

    # ---- the program ----

    def call(self, *arguments, timeout=1800):
        """Run the program; what it printed."""
        command = [self.program, *map(str, arguments)]
        self.calls += 1
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, text=True)
        if done.returncode != 0:
            raise ProgramError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def run(self, algorithm, *options, graph=None, transport=None, link=True, mns=2):
        """Run an algorithm; its report. The same call is made once, however many figures want it."""
        words = ["run", algorithm, graph or self.graph, "--transport", transport or self.transport, "--mns", mns, *options]
        if algorithm == "pagerank" and "--iterations" not in options:
            words += ["--iterations", 10]  # as in the paper
        if link:
            words += LINK
        key = tuple(map(str, words))
        if key not in self.kept:
            self.kept[key] = json.loads(self.call(*words, "--json", "--no-progress"))
        return self.kept[key]

    def has_option(self, *names):
        """Whether `dmgraph run` knows these options."""
        if "help" not in self.kept:
            self.kept["help"] = self.call("run", "--help-all")
        return all(f"--{name} " in self.kept["help"] or f"--{name}\n" in self.kept["help"] for name in names)

    def need(self, *names):
        for name in names:
            if not self.has_option(name):
                raise Unavailable(f"this program has no --{name}")

    # ---- what comes out ----

    def table(self, name, header, rows):
        """Write a CSV file; rows as they are printed too, when there are few."""
        with open(os.path.join(self.output, name + ".csv"), "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows(rows)
        if len(rows) <= 40:
            texts = [header] + [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
            widths = [max(len(str(row[column])) for row in texts) for column in range(len(header))]
            for row in texts:
                print("  " + "  ".join(str(cell).rjust(width) for cell, width in zip(row, widths)))

    def plot(self, name, *csvs):
        """Draw figures/NAME.gp with the variables `output` and `folder`; left out when there is no gnuplot."""
        if not shutil.which("gnuplot"):
            return
        script = os.path.join(HERE, "figures", name + ".gp")
        image = os.path.join(self.output, name + ".svg")
        done = subprocess.run(["gnuplot", "-e", f"output='{image}'; folder='{self.output}'; here='{os.path.dirname(script)}'", script],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise ProgramError(f"gnuplot {script}: {done.stderr.strip()}")

    def finding(self, what, here, paper, holds, basis, note=""):
        """
        One thing that the figure shows: `here` and `paper` are texts, `holds` whether the direction is the paper's (None: not
        to be decided here), `basis` what it stands on: counts, emulated link, or time.
        """
        self.findings.append(Finding(self.figure, what, here, paper, holds, basis, note))
        verdict = {True: "holds", False: "DOES NOT HOLD", None: "not decided here"}[holds]
        print(f"  * {what}: {here}; the paper: {paper}; direction {verdict} (by {basis})" + (f". {note}" if note else ""))
        sys.stdout.flush()

    def show(self, module):
        """Run one figure's runner. True unless it broke; one that is unavailable says so."""
        started = time.monotonic()
        self.figure = module.NAME
        print(f"== {module.TITLE}")
        sys.stdout.flush()
        is_good = True
        try:
            module.run(self)
        except Unavailable as error:
            print(f"  not shown: {error}")
            self.findings.append(Finding(self.figure, module.TITLE, "not shown", "", None, "", str(error)))
        except (ProgramError, subprocess.TimeoutExpired, KeyError) as error:
            print(f"  FAILED: {type(error).__name__}: {error}")
            self.findings.append(Finding(self.figure, module.TITLE, "failed", "", False, "", f"{type(error).__name__}: {error}"))
            is_good = False
        print(f"  ({time.monotonic() - started:.1f} s)\n")
        sys.stdout.flush()
        return is_good

    def write_findings(self):
        """findings.csv for programs, findings.md for people."""
        with open(os.path.join(self.output, "findings.csv"), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Finding._fields)
            writer.writerows(self.findings)
        with open(os.path.join(self.output, "findings.md"), "w") as file:
            file.write(f"{time.strftime('%Y-%m-%d')}; {machine()}; graph {os.path.basename(self.graph)}; "
                       f"{self.transport}; {self.call('version').strip()}\n\n")
            file.write("| figure | what | here | paper | direction | by |\n|---|---|---|---|---|---|\n")
            for finding in self.findings:
                verdict = {True: "holds", False: "**does not hold**", None: "-"}[finding.holds]
                note = f" ({finding.note})" if finding.note else ""
                file.write(f"| {finding.figure} | {finding.what}{note} | {finding.here} | {finding.paper} | {verdict} | "
                           f"{finding.basis} |\n")
