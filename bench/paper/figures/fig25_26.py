# Fig. 25 and 26, redistribution by reference and by value, and what it asks of memory nodes.
#
# The paper (4 compute nodes): BASE updates everything outside the cached partition directly; +RefRD passes long segments by
# reference, +ValRD the rest by value: 3.6 to 44.4 times as fast in all. The memory node's core that applies values is busy for at
# most 44 % of the densest iteration.
# Here: dense push iterations in the same three steps: remote operations (exact), time of an emulated ConnectX-5, and the CPU time that memory nodes
# spent applying, by the time of the iterations. (All processes share this machine's cores, which lengthens the iterations.)

from common import link_seconds, operations, percent, ratio, times

NAME = "fig25_26"
TITLE = "Fig. 25 and 26: redistribution (RefRD, ValRD), and the memory nodes' CPU"
STEPS = (("BASE", ("--updates", "direct", "--reference-edges", 0)), ("+RefRD", ("--updates", "direct")), ("+ValRD", ("--updates", "valrd-node")))


def run(bench):
    rows = []
    for algorithm in ("bfs", "cc", "pagerank"):
        few = ("--iterations", 2) if algorithm == "pagerank" else ()
        for name, words in STEPS:
            report = bench.run(algorithm, "--cns", 4, "--threads", 1, "--direction", "push", "--density", "dense", *few, *words)
            nodes = report["nodes"]["memory_nodes"]
            cpu = max(node["run"]["offload_cpu_ns"] for node in nodes) / 1e9
            serve = max(node["run"]["serve_cpu_ns"] for node in nodes) / 1e9
            rows.append((algorithm, name, operations(report["operations"]["run"]), link_seconds(report),
                         sum(row["references"] for row in report["iterations"]), sum(node["run"]["updates"] for node in nodes),
                         ratio(cpu, report["seconds"]["iterations"]), ratio(serve, report["seconds"]["iterations"])))
        base, reference, value = rows[-3:]
        bench.finding(f"{algorithm}: remote operations of BASE by those of +RefRD, +ValRD",
                      f"{times(ratio(base[2], reference[2]))}, {times(ratio(base[2], value[2]))}", "1.6x to 7.7x, 3.6x to 44.4x (of time)",
                      base[2] > reference[2] > value[2], "counts")
        bench.finding(f"{algorithm}: link time of BASE by that of +RefRD, +ValRD",
                      f"{times(ratio(base[3], reference[3]))}, {times(ratio(base[3], value[3]))}", "1.6x to 7.7x, 3.6x to 44.4x",
                      base[3] > reference[3] and base[3] > value[3], "emulated link")
        bench.finding(f"{algorithm}: of a core for applying values, on the busiest memory node", percent(value[6]), "at most 44 %",
                      value[6] < 0.5, "time", f"serving besides: {percent(value[7])}")
    bench.table("fig25_26", ["algorithm", "step", "remote_operations", "link_seconds", "references", "values_applied",
                             "offload_cpu_share", "serve_cpu_share"], rows)
    bench.plot("fig25_26")
