"""The LDBC Graphalytics example and test graphs against their reference outputs (DMGRAPH_DATA/conformance/graphalytics)."""

import itertools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import DATA, IS_THIN, check, dmgraph, finish, is_close, path_of, read_answer, require, sizes, skip  # noqa: E402

NEVER = 2**63 - 1  # what the reference says of an unreached vertex
RELATIVE = 1e-4    # Graphalytics' own tolerance


def read_properties(path):
    with open(path) as file:
        return dict(re.findall(r"^graph\.[^.\s]+\.([^\s=]+)\s*=\s*(.*?)\s*$", file.read(), re.M))


def read_reference(path):
    with open(path) as file:
        return {int(line.split()[0]): line.split()[1] for line in file if line.strip()}


def one(folder, name, algorithm, properties, configuration):
    reference = read_reference(os.path.join(folder, f"{name}-{algorithm.upper()}"))
    program = {"bfs": "bfs", "wcc": "cc", "pr": "pagerank", "sssp": "sssp"}[algorithm]
    options = ["--directed" if properties["directed"] == "true" else "--undirected"]
    if algorithm in ("bfs", "sssp"):
        options += ["--source", properties[algorithm + ".source-vertex"]]
    elif algorithm == "pr":
        options += ["--iterations", properties["pr.num-iterations"], "--damping", properties["pr.damping-factor"],
                    "--tolerance", 0]
    output = path_of("answer")
    dmgraph("run", program, os.path.join(folder, name + ".e"), "--format", "edge-list", *options, *configuration.arguments(), "--output", output, "--quiet")
    answer = read_answer(output)
    require(set(answer) == set(reference), "the vertices are others than the reference's")
    labels = {}
    for vertex, wanted in reference.items():
        got = answer[vertex][0]
        if algorithm == "bfs":
            good = int(got) == (-1 if int(wanted) == NEVER else int(wanted))
        elif algorithm == "wcc":
            good = labels.setdefault(wanted, got) == got  # any names will do, as long as they are one to one
        else:
            good = is_close(float(got), float(wanted.lower()), RELATIVE)
        require(good, f"vertex {vertex}: {got} instead of {wanted}")
    require(len(set(labels.values())) == len(labels), "two components have one name")


def main():
    if not DATA:
        skip("DMGRAPH_DATA is not set")
    folder = os.path.join(DATA, "conformance/graphalytics")
    deal = itertools.cycle(sizes())
    for name in sorted(file[:-11] for file in os.listdir(folder) if file.endswith(".properties")):
        properties = read_properties(os.path.join(folder, name + ".properties"))
        # The edge file alone says all only when each vertex has an edge.
        with open(os.path.join(folder, name + ".v")) as file:
            vertices = set(file.read().split())
        with open(os.path.join(folder, name + ".e")) as file:
            vertices -= {word for line in file for word in line.split()[:2]}
        for algorithm in ("bfs", "wcc", "pr", "sssp"):
            if algorithm in re.split(r"[,\s]+", properties["algorithms"]) and not vertices:
                for row in itertools.islice(deal, 2 if IS_THIN else 4):
                    check(f"{name} {algorithm} over {row}", one, folder, name, algorithm, properties, row)
    finish()


main()
