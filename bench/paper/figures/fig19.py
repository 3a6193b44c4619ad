# Fig. 19, the cache that a compute node needs.
#
# The paper: with one compute node DMG takes 17 to 25 % of FAM-Graph's cache (4.0 to 5.9 times less); with four, 9.1 to 18.9 times
# less. The cache of a compute node falls to 30 to 34 % from one to four.
# Here: the measured peak of the largest compute node, which no formula knows, for pagerank (which caches most); buffers that do
# not grow with the graph (about 1 MB a task in flight) are in it, so small graphs show less, and what grows is shown apart.

from common import largest_cache, percent, ratio, times

from figures import fig15_18

NAME = "fig19"
TITLE = "Fig. 19: cache of a compute node"


def growing(report):
    """Of the largest compute node, what grows with the graph."""
    return max(sum(node["cache"]["peak_bytes_by_purpose"].get(name, 0) for name in ("attributes", "bitmap", "index"))
               for node in report["nodes"]["compute_nodes"])


def run(bench):
    found = fig15_18.measure(bench)
    rows = []
    for (algorithm, system, cns), report in found.items():
        if system != "dmg-base":
            fam = found[algorithm, "fam-graph", 1]
            purposes = report["nodes"]["compute_nodes"][0]["cache"]["peak_bytes_by_purpose"]
            rows.append((algorithm, system, cns, largest_cache(report), ratio(largest_cache(fam), largest_cache(report)), growing(report),
                         ratio(growing(fam), growing(report)), " ".join(f"{key}={value}" for key, value in purposes.items() if value)))
    bench.table("fig19", ["algorithm", "system", "cns", "cache_bytes", "times_less_than_fam_graph", "growing_bytes",
                          "growing_times_less", "by_purpose"], rows)
    for algorithm in fig15_18.ALGORITHMS:
        fam, one, four = (found[algorithm, system, cns] for system, cns in (("fam-graph", 1), ("dmg", 1), ("dmg", 4)))
        whole = [largest_cache(report) for report in (fam, one, four)]
        bench.finding(f"{algorithm}: cache of fam-graph by that of dmg with 4 compute nodes, buffers and all",
                      times(ratio(whole[0], whole[2])), "9.1x to 18.9x", whole[0] > whole[2], "counts",
                      f"{whole[0]:,} and {whole[2]:,} bytes")
        bench.finding(f"{algorithm}: of it what grows with the graph, fam-graph by dmg, one compute node",
                      times(ratio(growing(fam), growing(one))), "4.0x to 5.9x", growing(fam) > growing(one), "counts")
        bench.finding(f"{algorithm}: the same with 4 compute nodes", times(ratio(growing(fam), growing(four))), "9.1x to 18.9x",
                      growing(fam) >= 4 * growing(four), "counts", f"{growing(fam):,} and {growing(four):,} bytes")
        bench.finding(f"{algorithm}: the same of a compute node with 4 of them, by that with one", percent(ratio(growing(four), growing(one))),
                      "30 to 34 %", growing(four) < growing(one), "counts")
    bench.plot("fig19")
