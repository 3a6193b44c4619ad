"""
Odd and broken inputs (DMGRAPH_DATA/faulty and the Matrix Market collections in DMGRAPH_DATA/conformance): what is good is read, what is not is
refused with one line that says where, and nothing crashes.
"""

import csv
import itertools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import (DATA, LIMIT, MALFORMED, OK, check, compare, dmgraph, finish, is_close, one_line, path_of,  # noqa: E402
                     read_answer, require, sizes, skip)

FORMATS = ("el", "wel", "mtx")
# Formats that are not read, and are refused as such, good files and bad ones; but for what is an edge list all the same.
FOREIGN = ("metis", "gr", "sg", "gemini", "graphalytics")
EDGE_LISTS = ("text_as.gemini.bin", "unsorted_dup.e")
# Where the collection leaves more than one right behaviour: the codes that are.
FREE = {
    "comments_all_styles.el": (OK, MALFORMED),
    "cr_only.el": (OK, MALFORMED),
    "utf8_bom.el": (OK, MALFORMED),
    "single_percent_header.mtx": (OK, MALFORMED),
    "plain_with_gz_suffix.el.gz": (OK, MALFORMED),
    "huge_size_line.mtx": (MALFORMED, LIMIT),
    "neg_weight.wel": (OK,),  # refused by sssp alone, see below
}
# What is wrong in these cannot be pinned to a line.
WITHOUT_LINE = (".gz", "huge_size_line.mtx", "fewer_entries.mtx")


def program(path, algorithm, *options, configuration, expect=OK):
    output = path_of("answer")
    run = dmgraph("run", algorithm, path, *options, *configuration.arguments(), "--output", output, "--quiet", expect=expect)
    if run.code != OK:
        return run, None
    return run, read_answer(output)


def verdict(folder, row, configuration):
    path = os.path.join(folder, row["file"])
    wanted = FREE.get(row["file"], (MALFORMED,) if row["verdict"] == "error" else (OK,))
    run, answer = program(path, "cc", configuration=configuration, expect=None)
    require(run.code in wanted, f"exit code {run.code} instead of {wanted}: {run.err[-1000:]}")
    if run.code != OK:
        line = one_line(run.err)
        require(row["file"] in line, f"the file is not named: {line}")
        if not row["file"].endswith(WITHOUT_LINE):
            require(re.search(re.escape(row["file"]) + r":\d+", line), f"no line is named: {line}")
        named = re.match(r"line (\d+)", row["right behaviour"])
        if named and not row["file"].endswith(WITHOUT_LINE):
            require(f"{row['file']}:{named.group(1)}:" in line, f"line {named.group(1)} is not named: {line}")
        return
    count = re.search(r"(?:^|\W)n=(\d+)", row["right behaviour"])
    if count:
        require(len(answer) == int(count.group(1)), f"{len(answer)} vertices instead of {count.group(1)}")


def values(folder, name, algorithm, options, expected, configuration):
    _, answer = program(os.path.join(folder, name), algorithm, *options, configuration=configuration)
    compare(answer, expected, 1e-6, 0)


def star(folder, configuration):
    _, answer = program(os.path.join(folder, "star100k.el.xz"), "bfs", "--undirected", configuration=configuration)
    depths = [int(words[0]) for words in answer.values()]
    require(max(depths) <= 2 and min(depths) == 0, "a star has no vertex farther than two steps")


def negative(folder, configuration):
    run, _ = program(os.path.join(folder, "neg_weight.wel"), "sssp", configuration=configuration, expect=MALFORMED)
    require("neg_weight.wel:2" in one_line(run.err), run.err)
    for algorithm in ("bfs", "pagerank"):
        program(os.path.join(folder, "neg_weight.wel"), algorithm, configuration=configuration)


def read_or_refused(path, must_refuse):
    run = dmgraph("info", "graph", path, expect=None)
    require(run.code in ((MALFORMED, LIMIT) if must_refuse else (OK, MALFORMED, LIMIT)), f"exit code {run.code}: {run.err[-1000:]}")
    if run.code != OK:
        require(os.path.basename(path) in one_line(run.err), run.err)


def foreign(folder, name):
    run = dmgraph("info", "graph", os.path.join(folder, name), expect=OK if name in EDGE_LISTS else MALFORMED)
    if run.code != OK:
        line = one_line(run.err)
        require(name in line and re.search("dmgraph does not (read|know)", line) and "??" not in line, line)


def main():
    if not DATA:
        skip("DMGRAPH_DATA is not set")
    folder = os.path.join(DATA, "faulty")
    rows = itertools.cycle(sizes())
    with open(os.path.join(folder, "FAULTY.tsv"), newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["format"] in FORMATS:
                check(f"{row['file']}: {row['verdict']}", verdict, folder, row, next(rows))
            elif row["format"] in FOREIGN:
                check(f"{row['file']}: refused as foreign", foreign, folder, row["file"])
    facts = (
        ("zero_weights.wel", "sssp", (), {0: 0, 1: 0, 2: 0, 3: 7}),
        ("big_weight_sum.wel", "sssp", (), {0: 0, 1: 2147483647, 2: 4294967294, 3: 6442450941}),
        ("pr_loop_sink.el", "pagerank", ("--tolerance", 1e-13), {0: .0375, 1: .069375, 2: .0375, 3: .855625}),
    )
    for name, algorithm, options, expected in facts:
        check(f"{name}: known values", values, folder, name, algorithm, options, expected, next(rows))
    check("a hub of 100,000", star, folder, next(rows))
    check("a negative weight is refused by sssp alone", negative, folder, next(rows))
    # Of these the Matrix Market files named so are broken in ways that matter to a graph.
    broken = {f"mangled{number}.mtx" for number in (1, 2, 3, 4, 8, 11, 12, 15, 16)} | {"mangle1.mtx", "mangle2.mtx", "mangle3.mtx", "mangle4.mtx"}
    for place in ("binary", "webgraph-orig"):
        for name in sorted(os.listdir(os.path.join(DATA, place))):
            check(f"{place}/{name}: refused as foreign", foreign, os.path.join(DATA, place), name)
    for collection in ("lagraph", "suitesparse-cholmod"):
        place = os.path.join(DATA, "conformance", collection)
        for name in sorted(os.listdir(place)):
            if name.endswith(".mtx"):
                check(f"{collection}/{name} is {'refused' if name in broken else 'read or refused'}", read_or_refused,
                      os.path.join(place, name), name in broken)
    finish()


main()
