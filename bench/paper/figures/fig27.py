# Fig. 27, the three ways of updating, iteration by iteration.
#
# The paper (4 compute nodes): in dense iterations the collaborative update (CO) is about as fast as caching everything (FC), with a
# fourth of the cache; in sparse ones the direct remote update (DR) is the fastest, as it neither loads nor merges a cache.
# Here: bytes and operations of each iteration with each of the three, and the cache each takes.

from common import moved_bytes, operations, ratio, times

NAME = "fig27"
TITLE = "Fig. 27: direct, collaborative and fully cached updates by iteration"


def run(bench):
    bench.need("caching")
    methods = (("DR", ("--density", "sparse")), ("CO", ("--density", "dense")), ("FC", ("--density", "dense", "--caching", "full")))
    rows, caches, seconds = [], {}, {}
    for algorithm in ("bfs", "cc"):
        for name, words in methods:
            report = bench.run(algorithm, "--cns", 4, "--threads", 1, "--direction", "push", *words)
            caches[algorithm, name] = max(node["cache"]["peak_bytes_by_purpose"]["attributes"]
                                          for node in report["nodes"]["compute_nodes"])
            for number, row in enumerate(report["iterations"], 1):
                rows.append((algorithm, name, number, row["active_vertices"], operations(row["counters"]), moved_bytes(row["counters"]),
                             row["counters"]["modelled_ns"] / 1e9, row["elapsed_ns"] / 1e9))
    bench.table("fig27", ["algorithm", "method", "iteration", "active_vertices", "remote_operations", "bytes", "link_seconds",
                          "wall_seconds"], rows)
    for algorithm in ("bfs", "cc"):
        found = {(method, number): (active, bytes_moved) for name, method, number, active, _, bytes_moved, _, _ in rows if name == algorithm}
        common = [number for number in range(1, 1000) if all((method, number) in found for method in ("DR", "CO", "FC"))]
        sparsest = min(common, key=lambda number: found["DR", number][0])
        densest = max(common, key=lambda number: found["DR", number][0])
        moved = {method: [found[method, number][1] for number in (sparsest, densest)] for method in ("DR", "CO", "FC")}
        bench.finding(f"{algorithm}: bytes moved in the sparsest iteration, DR by CO and by FC",
                      f"{times(ratio(moved['DR'][0], moved['CO'][0]))}, {times(ratio(moved['DR'][0], moved['FC'][0]))}", "DR is the fastest",
                      moved["DR"][0] <= moved["FC"][0], "counts")
        bench.finding(f"{algorithm}: bytes moved in the densest iteration, CO by FC and by DR",
                      f"{times(ratio(moved['CO'][1], moved['FC'][1]))}, {times(ratio(moved['CO'][1], moved['DR'][1]))}",
                      "CO as fast as FC or faster, and than DR", moved["CO"][1] < 1.5 * moved["FC"][1], "counts")
        bench.finding(f"{algorithm}: attributes in the cache, FC by CO", times(ratio(caches[algorithm, "FC"], caches[algorithm, "CO"])), "4x",
                      caches[algorithm, "FC"] > caches[algorithm, "CO"], "counts")
    bench.plot("fig27")
