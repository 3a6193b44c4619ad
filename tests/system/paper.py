"""The runners of the paper's figures still work: a few of them on a tiny graph, with tables, findings and an exit code."""

import csv
import os
import sys

from harness import IS_THIN, PROGRAM, check, command_run, finish, path_of, require

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER = os.path.join(HERE, "../../bench/paper/run")
FIGURES = ("fig05", "table2", "fig22_23") if IS_THIN else ("fig05", "table2", "fig15_18", "fig19", "fig22_23", "fig28")


def run(*arguments, expect=0):
    done = command_run([sys.executable, "-B", RUNNER, "--program", PROGRAM, *map(str, arguments)])
    require(done.code == expect, f"exit code {done.code} instead of {expect}\n{done.out[-3000:]}{done.err[-2000:]}")
    return done.out


def figures_are_shown():
    output = path_of("paper")
    out = run("--quick", "--scale", 9, "--output", output, *FIGURES)
    require("not shown" not in out, out)
    with open(os.path.join(output, "findings.csv")) as file:
        findings = list(csv.DictReader(file))
    require({finding["figure"] for finding in findings} == set(FIGURES), f"findings of {findings}")
    for name in ("fig05", "table2", "fig22", "fig23"):
        with open(os.path.join(output, name + ".csv")) as file:
            rows = list(csv.reader(file))
        require(len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows), f"{name}.csv has {rows}")
    with open(os.path.join(output, "fig05.csv")) as file:
        shares = [float(row["cdf_lists_apart"]) for row in csv.DictReader(file)]
    require(shares == sorted(shares) and shares[-1] == 1, f"the shares of Fig. 5 are {shares}")


def figures_are_listed():
    out = run("--list", "--scale", 9, "--output", path_of("paper"))
    for name in FIGURES:
        require(name in out, out)


def what_is_unknown_is_refused():
    run("fig99", "--output", path_of("paper"), expect=2)


for function in (figures_are_shown, figures_are_listed, what_is_unknown_is_refused):
    check(function.__name__, function)
finish()
