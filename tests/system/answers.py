"""
One algorithm's answers against the serial reference, on all graphs, over all pairs of transport, nodes, threads, direction and
density.

  answers.py bfs|cc|pagerank|sssp
"""

import itertools
import math
import sys

import reference
from graphs import all_cases
from harness import (IS_THIN, check, compare, configurations, dmgraph, finish, is_close, path_of, read_answer, require)

ITERATIONS = 12


def run(algorithm, case, configuration, *flags):
    output = path_of("answer")
    dmgraph("run", algorithm, case.path, *case.flags, *configuration.arguments(), *flags, "--output", output, "--quiet")
    return read_answer(output)


def wanted(algorithm, graph, source):
    if algorithm == "bfs":
        return reference.bfs(graph, source) if graph.ids else {}
    if algorithm == "cc":
        return reference.components(graph)
    if algorithm == "pagerank":
        return reference.pagerank(graph, ITERATIONS)
    return reference.shortest_paths(graph, source) if graph.ids else {}


def flags_of(algorithm, source):
    if algorithm == "pagerank":
        return ["--iterations", ITERATIONS, "--tolerance", 0]
    return ["--source", source] if source is not None else []


def one(algorithm, case, configuration, source, expected):
    answer = run(algorithm, case, configuration, *flags_of(algorithm, source))
    compare(answer, expected, 1e-6 if algorithm in ("pagerank", "sssp") else None)
    if algorithm == "pagerank" and answer:
        require(is_close(math.fsum(float(words[0]) for words in answer.values()), 1), "the ranks do not add up to 1")


def without_repeats_and_loops(algorithm, case, configuration):
    graph = case.graph.without_repeats().without_loops()
    source = case.sources[0] if algorithm in ("bfs", "sssp") else None
    answer = run(algorithm, case, configuration, *flags_of(algorithm, source), "--dedup", "--no-loops")
    compare(answer, wanted(algorithm, graph, source), 1e-6 if algorithm in ("pagerank", "sssp") else None)


def converged(case, configuration):
    answer = run("pagerank", case, configuration, "--tolerance", 1e-12, "--damping", 0.5)
    compare(answer, reference.pagerank(case.graph, 60, 0.5), 1e-6)


def main():
    algorithm = sys.argv[1]
    all_rows = configurations(algorithm)
    deal = itertools.cycle(all_rows)
    # The graphs with some of everything meet every row; the others are dealt a few rows each, in turn.
    everything = ("random_directed", "skewed_directed", "grid_undirected")
    for case in all_cases():
        rows = all_rows
        if IS_THIN:
            rows = list(itertools.islice(deal, 5 if case.name in everything else 2))
        elif case.name not in everything:
            rows = list(itertools.islice(deal, 5))
        sources = (case.sources or [None]) if algorithm in ("bfs", "sssp") else [None]
        answers = [wanted(algorithm, case.graph, source) for source in sources]
        for row, (source, expected) in zip(rows, itertools.cycle(zip(sources, answers))):
            from_source = "" if source is None else f" from {source}"
            check(f"{algorithm} on {case.name}{from_source} over {row}", one, algorithm, case, row, source, expected)
        if case.name in ("random_directed", "repeats", "loops_only", "random_undirected_float_weights"):
            row = next(deal)
            check(f"{algorithm} on {case.name} without repeats and loops over {row}",
                  without_repeats_and_loops, algorithm, case, row)
        if algorithm == "pagerank" and case.name in ("random_directed", "matrix_with_isolated", "star_inward"):
            row = next(deal)
            check(f"pagerank converges on {case.name} over {row}", converged, case, row)
    finish()


main()
