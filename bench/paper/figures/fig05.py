# Fig. 5, the sizes of reads while a graph is retrieved.
#
# The paper: a BFS over twitter-2010 whose contiguous reads are merged, but whose lists stand apart from the index: over 94 % of
# the reads are of 256 bytes or less, where an RDMA NIC is bound by its operations, not by its bandwidth.
# Here: the same with one compute node, every list out of place (--embed off), sparse push iterations; the reads of the index and
# of the lists by their sizes, from exact counters. And what the in-place index makes of it.

from common import percent

NAME = "fig05"
TITLE = "Fig. 5: sizes of reads during a BFS"


def histogram(report):
    """Reads of index entries and lists by the power of two that bounds their size."""
    counters = report["operations"]["run"]
    parts = counters.get("purposes", {})
    chosen = [part["sizes"] for name, part in parts.items() if name in ("index", "lists")]
    return [sum(column) for column in zip(*chosen)] if chosen else counters["sizes"]


def share_up_to(sizes, limit):
    total = sum(sizes)
    return sum(count for bucket, count in enumerate(sizes) if 1 << bucket <= limit) / total if total else 0


def run(bench):
    bench.need("embed")
    options = ("--cns", 1, "--threads", 2, "--direction", "push", "--density", "sparse")
    apart = histogram(bench.run("bfs", *options, "--embed", "off"))
    embedded = histogram(bench.run("bfs", *options))
    rows = [(1 << bucket, share_up_to(apart, 1 << bucket), share_up_to(embedded, 1 << bucket))
            for bucket in range(2, 21)]
    bench.table("fig05", ["bytes", "cdf_lists_apart", "cdf_embedded"], rows)
    small = share_up_to(apart, 256)
    bench.finding("reads of at most 256 bytes, lists apart from the index", percent(small), "over 94 %", small > 0.5, "counts",
                  "the share falls with the degree: this graph's vertices have more edges in the mean" if small < 0.94 else "")
    bench.finding("reads with the edges of small vertices in the index", f"{sum(embedded):,} instead of {sum(apart):,}",
                  "fewer, larger", sum(embedded) < sum(apart), "counts")
    bench.plot("fig05")
