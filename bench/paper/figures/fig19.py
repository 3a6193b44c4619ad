# Fig. 19, the cache that a compute node needs.
#
# The paper: with one compute node DMG takes 17 to 25 % of FAM-Graph's cache (4.0 to 5.9 times less); with four, 9.1 to 18.9 times
# less. The cache of a compute node falls to 30 to 34 % from one to four.
# Here: the measured peak of the largest compute node, which no formula knows, for pagerank (which caches most); buffers that do
# not grow with the graph are in it, so small graphs show less.

from common import largest_cache, percent, ratio, times

from figures import fig15_18

NAME = "fig19"
TITLE = "Fig. 19: cache of a compute node"


def run(bench):
    found = fig15_18.measure(bench)
    rows = []
    for algorithm in fig15_18.ALGORITHMS:
        fam = largest_cache(found[algorithm, "fam-graph", 1])
        for (name, system, cns), report in found.items():
            if name == algorithm and system != "dmg-base":
                purposes = report["nodes"]["compute_nodes"][0]["cache"]["peak_bytes_by_purpose"]
                rows.append((algorithm, system, cns, largest_cache(report), ratio(fam, largest_cache(report)),
                             " ".join(f"{key}={value}" for key, value in purposes.items() if value)))
    bench.table("fig19", ["algorithm", "system", "cns", "cache_bytes", "times_less_than_fam_graph", "by_purpose"], rows)
    for algorithm in fig15_18.ALGORITHMS:
        fam, one, four = (largest_cache(found[algorithm, system, cns])
                          for system, cns in (("fam-graph", 1), ("dmg", 1), ("dmg", 4)))
        bench.finding(f"{algorithm}: cache of fam-graph by that of dmg, one compute node", times(ratio(fam, one)), "4.0x to 5.9x",
                      fam > one, "counts")
        bench.finding(f"{algorithm}: cache of fam-graph by that of dmg with 4 compute nodes", times(ratio(fam, four)),
                      "9.1x to 18.9x", fam >= 4 * four, "counts", f"{fam:,} and {four:,} bytes")
        bench.finding(f"{algorithm}: cache of a compute node with 4 of them, by that with one", percent(ratio(four, one)),
                      "30 to 34 %", four < one, "counts")
    bench.plot("fig19")
