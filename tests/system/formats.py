"""The same graph in every form that the program reads gives the same answer; the converter and the generator."""

import gzip
import hashlib
import json
import lzma
import os
import random
import shutil
import subprocess

import reference
from graphs import edge_list, matrix_market
from harness import SEED, check, compare, dmgraph, finish, path_of, read_answer, require, write

RNG = random.Random(SEED)
LINES = [(RNG.randrange(1, 200), RNG.randrange(1, 200), RNG.randrange(1, 50)) for _ in range(1500)] + [(1, 200, 3)]
TEXT = edge_list(LINES)


def distances(path, *options):
    dmgraph("run", "sssp", path, "--source", LINES[0][0], *options, "--output", path_of("answer"), "--quiet")
    return read_answer(path_of("answer"))


def same(path, graph, *options):
    compare(distances(path, *options), reference.shortest_paths(graph, LINES[0][0]), 1e-6)


def text_variants():
    """(what, file name, content)"""
    yield "tabs", "tabs.el", TEXT.replace(" ", "\t")
    yield "CRLF", "crlf.el", TEXT.replace("\n", "\r\n")
    yield "no last newline", "open.el", TEXT[:-1]
    yield "comments and blank lines", "comments.el", "# one\n% two\n\n" + TEXT.replace("\n", "\n\n", 3) + "   \n# end"
    yield "blanks before, between and behind", "blanks.el", TEXT.replace(" ", "  \t").replace("\n", "  \n  ")
    yield "a comment of 300,000 characters", "long.el", "# " + "x" * 300000 + "\n" + TEXT
    yield "gzip", "graph.el.gz", gzip.compress(TEXT.encode())
    yield "gzip in two members", "members.el.gz", gzip.compress(TEXT[:4000].encode()) + gzip.compress(TEXT[4000:].encode())
    yield "xz", "graph.el.xz", lzma.compress(TEXT.encode())
    yield "gzip by another name", "disguised", gzip.compress(TEXT.encode())
    yield "a name with spaces", "a name with spaces.el", TEXT
    if shutil.which("zstd"):
        packed = subprocess.run(["zstd", "-q", "-c"], input=TEXT.encode(), stdout=subprocess.PIPE, check=True).stdout
        yield "zstd", "graph.el.zst", packed


def matrix_variants():
    distinct = reference.Graph(LINES).without_repeats().lines
    general = matrix_market(200, distinct, False, "integer")
    yield "Matrix Market", "general.mtx", general, reference.Graph(distinct)
    yield "Matrix Market with CRLF", "crlf.mtx", general.replace("\n", "\r\n"), reference.Graph(distinct)
    yield "Matrix Market in capitals", "capitals.mtx", general.replace(
        "%%MatrixMarket matrix coordinate integer general", "%%MatrixMarket MATRIX Coordinate Integer GENERAL"), reference.Graph(distinct)
    yield "Matrix Market with real values", "real.mtx", general.replace("integer", "real"), reference.Graph(distinct)
    halves = reference.Graph(LINES, False).without_repeats().lines
    yield ("symmetric Matrix Market", "symmetric.mtx", matrix_market(200, halves, True, "integer"),
           reference.Graph(halves, False, range(1, 201)))


def converted(direction):
    source = write("source.el", TEXT)
    binary = path_of(f"converted{direction}.dmg")
    dmgraph("convert", source, binary, direction)
    same(binary, reference.Graph(LINES, direction == "--directed"))


def converted_cleaned():
    binary = path_of("clean.dmg")
    dmgraph("convert", write("source.el", TEXT), binary, "--dedup", "--no-loops")
    graph = reference.Graph(LINES).without_repeats().without_loops()
    same(binary, graph)
    facts = json.loads(dmgraph("info", "graph", binary, "--json").out)
    require(str(len(graph.arcs)) in json.dumps(facts), f"{len(graph.arcs)} arcs are not in {facts}")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def generated():
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        dmgraph("generate", "kron", "--scale", 9, "--edge-factor", 8, "--seed", seed, path_of(f"{name}.dmg"))
    require(digest(path_of("a.dmg")) == digest(path_of("b.dmg")), "one seed gives two graphs")
    require(digest(path_of("a.dmg")) != digest(path_of("c.dmg")), "two seeds give one graph")
    for algorithm in ("bfs", "cc", "pagerank", "sssp"):
        dmgraph("run", algorithm, path_of("a.dmg"), "--mns", 2, "--cns", 2, "--verify", "--quiet")


def generated_weighted():
    dmgraph("generate", "kron", "--scale", 8, "--weighted", path_of("w.dmg"))
    dmgraph("run", "sssp", path_of("w.dmg"), "--verify", "--quiet", "--output", path_of("answer"))
    finite = [float(words[0]) for words in read_answer(path_of("answer")).values() if words[0] != "inf"]
    require(max(finite) > 8, "no distance is longer than hops would be")


def weights_come_out_as_they_went_in():
    """Also out of the binary form and over several compute nodes; they are kept in 32 bits."""
    weights = ("0.1", "0.3", "2.5", "7", "123.456", "1e-05", "99999.9", "0.333333", "1e+10")
    path = write("star.wel", "".join(f"0 {leaf} {weight}\n" for leaf, weight in enumerate(weights, 1)))
    dmgraph("convert", path, path_of("star.dmg"))
    for graph in (path, path_of("star.dmg")):
        for flags in ((), ("--cns", 2, "--transport", "ucx")):
            dmgraph("run", "sssp", graph, "--source", 0, *flags, "--verify", "--output", path_of("answer"), "--quiet")
            answer = {vertex: words[0] for vertex, words in read_answer(path_of("answer")).items()}
            for leaf, weight in enumerate(weights, 1):
                require(answer[leaf] == ("10000000000" if weight == "1e+10" else weight), f"{weight} came out as {answer[leaf]}")
    path = write("chain.wel", "0 1 0.1\n1 2 0.2\n2 3 0.3333333333\n")
    dmgraph("run", "sssp", path, "--source", 0, "--output", path_of("answer"), "--quiet")
    require(float(read_answer(path_of("answer"))[2][0]) == 0.1 + 0.2, "distances are sums of the decimals")
    facts = json.loads(dmgraph("info", "graph", path, "--json").out)
    require(0 < facts["weight_rounding"] < 6e-8, f"a weight of ten digits is rounded by {facts['weight_rounding']}")


def over_an_old_file():
    """What stood there before is replaced as a whole."""
    path = write("old.dmg", "x" * 10**6)
    dmgraph("convert", write("tiny.el", "0 1\n"), path)
    require(os.path.getsize(path) < 10**6, "the old file's end is still there")
    dmgraph("run", "cc", path, "--quiet")


def main():
    for what, name, content in text_variants():
        check(f"an edge list with {what} is read", same, write(name, content), reference.Graph(LINES))
    for what, name, content, graph in matrix_variants():
        graph = reference.Graph(graph.lines, graph.is_directed, range(1, 201))
        check(f"{what} is read", same, write(name, content), graph)
    for direction in ("--directed", "--undirected"):
        check(f"convert {direction} keeps the graph", converted, direction)
    check("convert --dedup --no-loops cleans the graph", converted_cleaned)
    check("weights come out as they went in", weights_come_out_as_they_went_in)
    check("convert replaces a file", over_an_old_file)
    check("generate kron gives one graph a seed, and right answers on it", generated)
    check("generate kron --weighted gives weights", generated_weighted)
    finish()


main()
