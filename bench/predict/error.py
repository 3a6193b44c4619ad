#!/usr/bin/env python3
"""The error of `dmgraph predict`: predictions from one run against runs over emulated links.

For each transport, number of compute nodes and algorithm it runs without a link (or over --base LINK) and over each link, in turns,
several times. The run whose time is the median, of those without the link, is what is predicted from; the median time over the link is what it is
compared with. docs/predict.md has the table of such a run, and how to read it.

    chrt -r 20 python3 bench/predict/error.py --program build/release/cli/dmgraph
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ALGORITHMS = {"bfs": [], "cc": [], "pagerank": ["--iterations", "10"], "sssp": []}
LINKS = ["polar-cxl", "polar-rdma", "rdma-cx5", "cxl-appliance", "cxl2-switch"]
BAR = 0.20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/cli/dmgraph", help="the dmgraph program")
    parser.add_argument("--graph", help="a graph file (default: a Kronecker graph of --scale)")
    parser.add_argument("--scale", type=int, default=16)
    parser.add_argument("--links", default=",".join(LINKS))
    parser.add_argument("--base", default="none", help="the link that is predicted from")
    parser.add_argument("--transports", default="cxl_shm,ucx")
    parser.add_argument("--algorithms", default=",".join(ALGORITHMS))
    parser.add_argument("--cns", default="1,2")
    parser.add_argument("--predict-cns", action="store_true", help="predict all numbers of compute nodes from the last of --cns")
    parser.add_argument("--mns", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mode", default="auto", choices=["auto", "spin", "account"], help="of the emulated links")
    parser.add_argument("--csv", help="write all figures to this file")
    return parser.parse_args()


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = Path(folder)
        self.graph = options.graph or str(self.folder / "kron.dmg")
        self.links = options.links.split(",")
        if not options.graph:
            self.call("generate", "kron", "--scale", options.scale, "--weighted", self.graph)

    def call(self, *words):
        done = subprocess.run([self.options.program, *map(str, words)], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"dmgraph {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def run(self, transport, algorithm, cns, link):
        words = ["run", algorithm, self.graph, *ALGORITHMS[algorithm], "--transport", transport, "--cns", cns, "--mns", self.options.mns, "--threads", 1, "--json"]
        if link != "none":
            words += ["--link", link, "--link-mode", self.options.mode]
        text = self.call(*words)
        report = json.loads(text)
        emulated = report["emulated_link"]
        seconds = emulated["iteration_seconds"] if emulated else report["seconds"]["iterations"]
        return seconds, text, report["nodes"]["transport"]["chosen"]

    def predict(self, text, cns):
        path = self.folder / "run.json"
        path.write_text(text)
        found = json.loads(self.call("predict", path, "--link", self.options.links, "--cns", cns, "--json"))
        return dict(zip(self.links, found["predictions"]))

    def measure(self, transport, algorithm, cns):
        """Runs in turns: of what is predicted from, and over each link."""
        runs = {link: [] for link in dict.fromkeys([self.options.base, *self.links])}
        for _ in range(self.options.repeats):
            for link in runs:
                runs[link].append(self.run(transport, algorithm, cns, link))
        return {link: sorted(of_link, key=lambda run: run[0]) for link, of_link in runs.items()}


def main():
    options = arguments()
    rows = []
    counts = [int(count) for count in options.cns.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        print(f"graph {bench.graph if options.graph else f'Kronecker, scale {options.scale}'}, {options.mns} memory nodes, 1 thread a compute node, base: {options.base}, medians of {options.repeats}")
        print(f"{'transport':9} {'algorithm':9} {'CNs':>3} {'link':14} {'mode':8} {'measured':>11} {'predicted':>11} {'pred/meas':>9} {'spread':>7}  bound by")
        for transport in options.transports.split(","):
            for algorithm in options.algorithms.split(","):
                measured = {cns: bench.measure(transport, algorithm, cns) for cns in counts}
                for cns in counts:
                    base = measured[counts[-1] if options.predict_cns else cns][options.base]
                    predicted = bench.predict(base[len(base) // 2][1], cns)
                    for link in bench.links:
                        if link == options.base:
                            continue
                        times = [run[0] for run in measured[cns][link]]
                        median = statistics.median(times)
                        mode = "account" if "accounting" in measured[cns][link][0][2] else "spin"
                        row = predicted[link]
                        ratio = row["seconds"] / median
                        spread = (times[-1] - times[0]) / median
                        rows.append([transport, algorithm, cns, link, mode, median, row["seconds"], ratio, spread, row["bound"]])
                        print(f"{transport:9} {algorithm:9} {cns:3} {link:14} {mode:8} {median * 1e3:8.2f} ms {row['seconds'] * 1e3:8.2f} ms {ratio:9.2f} {spread:6.0%}  {row['bound']}", flush=True)
    errors = [abs(row[7] - 1) for row in rows]
    within = sum(error <= BAR for error in errors)
    print(f"\nwithin {BAR:.0%}: {within} of {len(rows)}; median error {statistics.median(errors):.1%}, largest {max(errors):.1%}")
    for link in bench.links:
        of_link = [abs(row[7] - 1) for row in rows if row[3] == link]
        if of_link:
            print(f"  {link:14} median error {statistics.median(of_link):6.1%}, within {BAR:.0%}: {sum(error <= BAR for error in of_link)} of {len(of_link)}")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow("transport algorithm compute_nodes link mode measured_seconds predicted_seconds ratio spread bound".split())
            writer.writerows(rows)


main()
