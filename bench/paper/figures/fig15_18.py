# Fig. 15 to 18, computation time of FAM-Graph, DMG-Base and DMG by compute nodes.
#
# The paper: four graphs, 4 memory nodes, 16 threads a compute node. With one compute node DMG is 0.91 to 2.71 times as fast as
# FAM-Graph; from one to four it gains 1.47 to 3.13 times; DMG-Base is up to two orders of magnitude slower.
# Here: bfs, cc and pagerank (2 iterations: all are alike) on one graph; wall time (all threads share this machine's cores, so more compute
# nodes bring nothing), remote operations (exact), and the time of an emulated ConnectX-5.

from common import link_seconds, largest_cache, moved_bytes, operations, ratio, times

NAME = "fig15_18"
TITLE = "Fig. 15-18: three systems by compute nodes"
ALGORITHMS = ("bfs", "cc", "pagerank")


def options(algorithm, system, cns):
    few = ("--iterations", 2) if algorithm == "pagerank" else ()
    return ("--system", system, "--cns", cns, "--threads", 1, *few)


def measure(bench):
    """{(algorithm, system, cns): report}; Fig. 19 uses the same runs."""
    bench.need("system")
    counts = (1, 4) if bench.is_quick else (1, 2, 4)
    found = {}
    for algorithm in ALGORITHMS:
        found[algorithm, "fam-graph", 1] = bench.run(algorithm, *options(algorithm, "fam-graph", 1), mns=1)
        for system in ("dmg-base", "dmg"):
            for cns in counts:
                found[algorithm, system, cns] = bench.run(algorithm, *options(algorithm, system, cns))
    return found


def run(bench):
    found = measure(bench)
    rows = []
    for (algorithm, system, cns), report in found.items():
        counters = report["operations"]["run"]
        rows.append((algorithm, system, cns, report["seconds"]["iterations"], link_seconds(report), operations(counters),
                     moved_bytes(counters), report["result"]["iterations"], largest_cache(report)))
    bench.table("fig15_18", ["algorithm", "system", "cns", "wall_seconds", "link_seconds", "remote_operations", "bytes",
                             "iterations", "largest_cache_bytes"], rows)
    for algorithm in ALGORITHMS:
        dmg, base, fam = (found[algorithm, "dmg", 4], found[algorithm, "dmg-base", 4], found[algorithm, "fam-graph", 1])
        alone = found[algorithm, "dmg", 1]
        counts = [operations(report["operations"]["run"]) for report in (base, dmg)]
        bench.finding(f"{algorithm}: remote operations of dmg-base by those of dmg, 4 compute nodes", times(ratio(*counts)),
                      "up to two orders of magnitude (of time)", counts[0] > counts[1], "counts",
                      f"{counts[0]:,} and {counts[1]:,}")
        bench.finding(f"{algorithm}: link time of dmg-base by that of dmg, 4 compute nodes",
                      times(ratio(link_seconds(base), link_seconds(dmg))), "1.7x to 320x",
                      link_seconds(base) > link_seconds(dmg), "emulated link")
        bench.finding(f"{algorithm}: link time of fam-graph by that of dmg, one compute node each",
                      times(ratio(link_seconds(fam), link_seconds(alone))), "0.91x to 2.71x",
                      link_seconds(fam) > 0.9 * link_seconds(alone), "emulated link")
        walls = [report["seconds"]["iterations"] for report in (base, dmg)]
        bench.finding(f"{algorithm}: wall time of dmg-base by that of dmg on this machine, 4 compute nodes", times(ratio(*walls)),
                      "1.7x to 320x", walls[0] > walls[1], "time")
    bench.plot("fig15_18")
