# Fig. 24, merged and batched retrieval, step by step.
#
# The paper (one compute node): merging and batching the reads of the index (+OPT-IDX), then those of the lists (+OPT-EDGE), then
# small lists in the index (+EMBED) speed bfs, cc and pagerank up by 2.48 to 4.74 times in all.
# Here: the same steps, each with remote operations (exact) and the time of an emulated ConnectX-5. pagerank reads all entries in sequence anyway.

from common import link_seconds, operations, ratio, times

NAME = "fig24"
TITLE = "Fig. 24: merging, batching and embedding"
INDEX = ("merge-activation", "batch-activation", "merge-index", "batch-index")
LISTS = ("merge-lists", "batch-lists")


def run(bench):
    bench.need("without", "embed")
    steps = (("BASE", ("--without", ",".join(INDEX + LISTS), "--embed", "off")), ("+OPT-IDX", ("--without", ",".join(LISTS), "--embed", "off")),
             ("+OPT-EDGE", ("--embed", "off")), ("+EMBED", ()))
    rows = []
    for algorithm in ("bfs", "cc", "pagerank"):
        for name, words in steps:
            few = ("--iterations", 2) if algorithm == "pagerank" else ()
            report = bench.run(algorithm, "--cns", 1, "--threads", 2, "--direction", "push", *few, *words)
            rows.append((algorithm, name, operations(report["operations"]["run"]), report["operations"]["run"]["rings"],
                         link_seconds(report)))
        base, *_, last = [row for row in rows if row[0] == algorithm]
        bench.finding(f"{algorithm}: remote operations without any of it, by those with all", times(ratio(base[2], last[2])),
                      "2.48x to 4.74x (of time)", base[2] > last[2], "counts")
        bench.finding(f"{algorithm}: time without any of it, by that with all", times(ratio(base[4], last[4])), "2.48x to 4.74x",
                      base[4] > last[4], "emulated link")
    bench.table("fig24", ["algorithm", "step", "remote_operations", "rings", "link_seconds"], rows)
    bench.plot("fig24")
