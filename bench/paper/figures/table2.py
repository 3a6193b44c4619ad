# Table 2, the share of updates that leave a partition, and what direct remote updates cost.
#
# The paper: chunk-based partitions for 4 compute nodes, one iteration with all vertices active: 1.83 to 54.1 % of the updates are
# remote for real graphs (72 % for R-MAT), and the iteration is 19.4 to 39.6 times slower than with local updates alone.
# Here: a PageRank iteration in push mode with all remote updates direct, against the same with every attribute cached
# (--caching full), or one compute node where that is not known. The share of remote updates is exact; the slowdown is that of the
# emulated ConnectX-5.

from common import link_seconds, operations, percent, ratio, times

NAME = "table2"
TITLE = "Table 2: remote updates and their cost (4 compute nodes, all vertices active)"


def run(bench):
    push = ("--threads", 1, "--direction", "push", "--density", "dense", "--iterations", 1)
    direct = bench.run("pagerank", *push, "--cns", 4, "--updates", "direct", "--reference-edges", 0)
    if bench.has_option("caching"):
        local = bench.run("pagerank", *push, "--cns", 4, "--caching", "full")
        against = "all attributes cached"
    else:
        local = bench.run("pagerank", *push, "--cns", 1)
        against = "one compute node, whose share of the arcs is four times as large"
    row = direct["iterations"][0]
    share = row["updates_remote"] / (row["updates_remote"] + row["updates_local"])
    slowdown = ratio(link_seconds(direct), link_seconds(local))
    more = ratio(operations(direct["operations"]["run"]), operations(local["operations"]["run"]))
    bench.table("table2", ["graph", "remote_share", "slowdown", "operations_ratio", "operations_a_remote_update"],
                [(bench.graph.rsplit("/", 1)[-1], share, slowdown, more,
                  ratio(operations(direct["operations"]["run"]), row["updates_remote"]))])
    bench.finding("updates that leave the partition", percent(share), "1.83 to 54.1 %; R-MAT 72.0 %", 0.01 < share < 1, "counts")
    bench.finding("slowdown by direct remote updates", times(slowdown), "19.4x to 39.6x", slowdown > 2, "emulated link",
                  f"against {against}; operations: {times(more)}")
