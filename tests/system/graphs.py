"""Graphs for the system tests: made from a seed, or small and factual. Each is a file and the same graph for the reference."""

import collections
import random

from harness import IS_THIN, SEED, write
from reference import Graph

# `flags` are what the program is told about the file; `sources` are start vertices worth testing.
Case = collections.namedtuple("Case", "name path flags graph sources is_weighted")

# Zachary's karate club (1977): who met whom outside the club; each pair once.
KARATE = {
    1: "2 3 4 5 6 7 8 9 11 12 13 14 18 20 22 32",
    2: "3 4 8 14 18 20 22 31",
    3: "4 8 9 10 14 28 29 33",
    4: "8 13 14",
    5: "7 11",
    6: "7 11 17",
    7: "17",
    9: "31 33 34",
    10: "34",
    14: "34",
    15: "33 34",
    16: "33 34",
    19: "33 34",
    20: "34",
    21: "33 34",
    23: "33 34",
    24: "26 28 30 33 34",
    25: "26 28 32",
    26: "32",
    27: "30 34",
    28: "34",
    29: "32 34",
    30: "33 34",
    31: "33 34",
    32: "33 34",
    33: "34",
}

# A dodecahedron's 20 corners: three neighbours each, diameter 5.
DODECAHEDRON = [(i, (i + 1) % 20) for i in range(20)] + [
    (0, 10), (1, 8), (2, 6), (3, 19), (4, 17), (5, 15), (7, 14), (9, 13), (11, 18), (12, 16)]


def edge_list(lines):
    return "".join(" ".join(map(str, line)) + "\n" for line in lines)


def matrix_market(count, lines, is_symmetric, field):
    """1-based coordinates; a symmetric one must have its lower triangle only."""
    head = f"%%MatrixMarket matrix coordinate {field} {'symmetric' if is_symmetric else 'general'}\n% made by a test\n"
    if is_symmetric:
        lines = [(max(line[:2]), min(line[:2]), *line[2:]) for line in lines]
    return head + f"{count} {count} {len(lines)}\n" + edge_list(lines)


def make(name, lines, is_directed=True, sources=None):
    graph = Graph(lines, is_directed)
    path = write(name + ".el", "# " + name + "\n" + edge_list(lines))
    if sources is None:
        sources = [graph.ids[0]] if graph.ids else []
    return Case(name, path, [] if is_directed else ["--undirected"], graph, sources, bool(lines) and len(lines[0]) > 2)


def make_matrix(name, count, lines, is_symmetric, sources):
    is_weighted = len(lines[0]) > 2
    graph = Graph(lines, not is_symmetric, range(1, count + 1))
    field = "integer" if is_weighted else "pattern"
    path = write(name + ".mtx", matrix_market(count, lines, is_symmetric, field))
    return Case(name, path, [], graph, sources, is_weighted)


def random_arcs(rng, ids, count, weight=None):
    """Uniform, with the loops and the repeats that come by chance, and some more of both."""
    lines = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.02 and lines:
            line = rng.choice(lines)[:2]
        elif kind < 0.04:
            line = (rng.choice(ids),) * 2
        else:
            line = (rng.choice(ids), rng.choice(ids))
        lines.append((*line, weight(rng)) if weight else tuple(line))
    return lines


def skewed_arcs(rng, count, arcs):
    """A few vertices have most of the arcs, in and out, as in real graphs."""
    def pick():
        return min(count - 1, int(count * rng.random() ** 4))
    return [(pick(), pick()) for _ in range(arcs)]


def grid(width, height, weight):
    lines = []
    for y in range(height):
        for x in range(width):
            here = y * width + x
            if x + 1 < width:
                lines.append((here, here + 1, weight()))
            if y + 1 < height:
                lines.append((here, here + width, weight()))
    return lines


def all_cases():
    rng = random.Random(SEED)
    cases = []

    gaps = sorted(rng.sample(range(10**9), 400))
    lines = random_arcs(rng, gaps, 3000, lambda r: r.randrange(0, 21))
    cases.append(make("random_directed", lines, True, [lines[0][0], gaps[-1]] if gaps[-1] in Graph(lines).out else [lines[0][0]]))
    lines = random_arcs(rng, range(500), 900, lambda r: round(r.uniform(0, 10), 3))
    cases.append(make("random_undirected_float_weights", lines, False))
    cases.append(make("skewed_directed", skewed_arcs(rng, 3000, 20000)))

    leaves = 500 if IS_THIN else 5000
    hub = 77
    cases.append(make("star_undirected", [(hub, 1000 + i) for i in range(leaves)], False, [hub, 1000 + leaves - 1]))
    cases.append(make("star_inward", [(1000 + i, hub) for i in range(leaves)], True, [1000, hub]))
    length = 100 if IS_THIN else 300
    cases.append(make("path", [(i, i + 1, 2) for i in range(length)], True, [0, length // 2]))
    cases.append(make("path_backward_undirected", [(i + 1, i) for i in range(length)], False, [length // 2]))
    cases.append(make("grid_undirected", grid(37, 29, lambda: rng.randrange(1, 10)), False, [0, 500]))
    cases.append(make("cycle", [(i, (i + 1) % 130) for i in range(130)], True, [64]))
    cases.append(make("complete", [(i, j) for i in range(48) for j in range(48) if i != j]))
    cases.append(make("loops_only", [(3, 3), (9, 9), (9, 9), (1, 1)]))
    cases.append(make("repeats", [(1, 2, 9), (1, 2, 4), (1, 2, 4), (2, 3, 1), (3, 1, 7), (3, 1, 2), (1, 1, 1)]))
    cases.append(make("two_components", [(10, 11), (11, 12), (30, 31), (31, 30)], True, [10, 30, 12]))
    cases.append(make("empty", []))
    cases.append(make("one_vertex", [(7, 7)]))
    cases.append(make("one_arc", [(8, 3)], True, [8, 3]))
    top = 2**64 - 1
    cases.append(make("huge_ids", [(top, 2**63), (2**63, 2**63 - 1), (2**63 - 1, 0), (0, top), (2**32, top - 1), (top - 1, top)],
                      True, [top, 2**32]))
    count = 900
    lines = [(u, v, w) for u, v, w in random_arcs(rng, range(1, 700), 800, lambda r: r.randrange(0, 100))]
    cases.append(make_matrix("matrix_with_isolated", count, lines, False, [lines[0][0], count]))
    distinct = sorted({(max(pair), min(pair)) for pair in random_arcs(rng, range(3, 60), 150)})
    cases.append(make_matrix("matrix_symmetric_with_isolated", 64, distinct, True, [distinct[0][0], 1]))
    cases.append(make("karate", [(u, int(v)) for u, row in KARATE.items() for v in row.split()], False, [1, 34, 17]))
    cases.append(make("dodecahedron", DODECAHEDRON, False, [0, 13]))
    if not IS_THIN:
        lines = skewed_arcs(rng, 20000, 120000)
        cases.append(make("skewed_undirected_large", [(u, v, (u * 31 + v * 17) % 50) for u, v in lines], False))
    return cases
