"""
Real graphs against answers that other programs computed (DMGRAPH_DATA/expected): depths, components, ranks and distances.

Each NAME.json names a graph file and holds checksums of the integer answers over all vertices; NAME.vertex.tsv.xz has all answers, of
large graphs those of some vertices. The answers are of the graph without repeated arcs.

  expected.py integers|floats
"""

import hashlib
import itertools
import json
import lzma
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import (DATA, IS_THIN, MALFORMED, Failure, check, dmgraph, finish, is_close, one_line, path_of,  # noqa: E402
                     read_answer, require, sizes, skip)

FORMATS = ("el", "wel", "mtx")
ARCS_MAX = 60000 if IS_THIN else 10**9
# Graphs with more arcs than this take minutes to converge when every access is a message.
MESSAGE_ARCS_MAX = 100000
# One vertex's last bits may differ where a sum has very many terms; the values have 12 digits.
RELATIVE = 1e-6


def read_table(name):
    """{column: {id: text}}"""
    with lzma.open(os.path.join(DATA, "expected", name + ".vertex.tsv.xz"), "rt") as file:
        columns = file.readline().split()[1:]
        table = {column: {} for column in columns}
        for line in file:
            words = line.rstrip("\n").split("\t")
            for column, word in zip(columns, words[1:]):
                table[column][int(words[0])] = word
    return table


def checksum(answer):
    digest = hashlib.sha256()
    for vertex, words in answer.items():
        digest.update(f"{vertex} {words[0]}\n".encode())
    return digest.hexdigest()


def run(facts, algorithm, configuration, *options):
    output = path_of("answer")
    flags = [] if facts["format"] == "mtx" else ["--directed" if facts["directed"] else "--undirected"]
    dmgraph("run", algorithm, os.path.join(DATA, facts["file"]), *flags, "--dedup", *configuration.arguments(), *options,
            "--output", output, "--quiet")
    answer = read_answer(output)
    os.unlink(output)
    require(len(answer) == facts["vertices"], f"{len(answer)} vertices instead of {facts['vertices']}")
    return answer


def compare_integers(facts, table, column, answer):
    for vertex, wanted in table[column].items():
        require(answer[vertex][0] == wanted, f"vertex {vertex}: {answer[vertex][0]} instead of {wanted}")
    require(checksum(answer) == facts[column]["sha256"], "the checksum over all vertices differs")


def compare_floats(table, column, answer):
    for vertex, wanted in table[column].items():
        got = answer[vertex][0]
        require(is_close(float(got), float(wanted), RELATIVE), f"vertex {vertex}: {got} instead of {wanted}")


def bfs(facts, table, letter, configuration):
    source = facts["src" + letter]
    answer = run(facts, "bfs", configuration, "--source", source)
    for vertex, (depth, parent) in answer.items():
        require((depth == "-1") == (parent == "-1"), f"vertex {vertex} has depth {depth} and parent {parent}")
        if vertex != source and depth != "-1":
            require(int(answer[int(parent)][0]) == int(depth) - 1, f"vertex {vertex} lies not one step behind its parent")
    compare_integers(facts, table, "bfs" + letter, answer)


def cc(facts, table, configuration):
    compare_integers(facts, table, "wcc", run(facts, "cc", configuration))


def pagerank(facts, table, column, configuration, *options):
    compare_floats(table, column, run(facts, "pagerank", configuration, *options))


def sssp(facts, table, letter, configuration):
    compare_floats(table, "sssp" + letter, run(facts, "sssp", configuration, "--source", facts["src" + letter]))


def negative(facts, configuration):
    refused = dmgraph("run", "sssp", os.path.join(DATA, facts["file"]), *configuration.arguments(), expect=MALFORMED)
    line = one_line(refused.err)
    require(facts["file"] + ":" in line and "negative" in line, line)


def main():
    if not DATA:
        skip("DMGRAPH_DATA is not set")
    rows = itertools.cycle(sizes())
    fast_rows = itertools.cycle(row for row in sizes() if row.transport != "ucx:data=message")
    folder = os.path.join(DATA, "expected")
    names = sorted(name[:-5] for name in os.listdir(folder) if name.endswith(".json"))
    require(names, f"no answers in {folder}")
    for name in names:
        with open(os.path.join(folder, name + ".json")) as file:
            facts = json.load(file)
        if facts["format"] not in FORMATS or facts["arcs_distinct"] > ARCS_MAX:
            continue
        table = read_table(name)

        def case(word, function, *arguments, is_long=False):
            row = next(fast_rows if is_long and facts["arcs_distinct"] > MESSAGE_ARCS_MAX else rows)
            check(f"{name}: {word} over {row}", function, facts, *arguments[:-1], row, *arguments[-1])

        if sys.argv[1] == "integers":
            case("depths from A", bfs, table, "A", ())
            case("depths from B", bfs, table, "B", ())
            case("components", cc, table, ())
        else:
            case("ranks after 10 iterations", pagerank, table, "pr10", ("--iterations", 10, "--tolerance", 0))
            case("ranks at the end", pagerank, table, "pr", ("--tolerance", 1e-12), is_long=True)
            if "ssspA" in table:
                case("distances from A", sssp, table, "A", ())
                case("distances from B", sssp, table, "B", ())
            elif "sssp" in facts:
                case("negative weights are refused", negative, ())
    finish()


try:
    main()
except Failure as error:
    sys.exit(str(error))
