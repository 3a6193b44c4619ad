# Fig. 22 and 23, the size of an index entry, and the bytes of a segment's length.
#
# The paper: entries of 32 and 64 bytes speed BFS up by 1.2 to 1.4 times over 16 for little more memory, larger ones cost more
# memory than they bring; with 4 partitions, 92.6 to 97.4 % of the segments' lengths take one byte.
# Here: memory of the pool, remote operations and the time of an emulated ConnectX-5 of a BFS for 16 to 128 bytes, one compute node; and the lengths
# of the segments that 4 partitions cut the lists of this graph into, counted from the file.

import array
import bisect
import struct

from common import Unavailable, link_seconds, operations, percent, ratio, times

NAME = "fig22_23"
TITLE = "Fig. 22 and 23: size of index entries, bytes of segment lengths"
IN_PLACE_EDGES = 7  # in 32 bytes
MARK = b"\x89DMG\r\n\x1a\n"  # of the binary form (docs/formats.md)
SECTIONS_AT = 104


def lists_of(path):
    """(offsets, destinations) of a graph in the binary form (docs/formats.md)."""
    with open(path, "rb") as file:
        header = file.read(4096)
        if header[:8] != MARK:
            raise Unavailable("the lengths of segments are counted from a graph in the binary form")
        arrays = []
        for index, kind in ((0, "Q"), (1, "I")):
            at, count = struct.unpack_from("<QQ", header, SECTIONS_AT + 24 * index)
            file.seek(at)
            arrays.append(array.array(kind, file.read(count)))
    return arrays


def length_bytes(path, partitions):
    """How many segments of out-of-place lists have lengths of 1, 2, 3 and 4 bytes; partitions of equal cost."""
    offsets, destinations = lists_of(path)
    vertices = len(offsets) - 1
    arcs, cost, bounds = offsets[-1], 8 * (partitions - 1), []
    for partition in range(1, partitions):
        wanted = (arcs + cost * vertices) * partition / partitions
        bounds.append(bisect.bisect_left(range(vertices), wanted, key=lambda vertex: offsets[vertex] + cost * vertex))
    counts = [0] * 4
    for vertex in range(vertices):
        first, last = offsets[vertex], offsets[vertex + 1]
        if last - first <= IN_PLACE_EDGES:
            continue
        start = first
        for bound in bounds + [vertices]:
            end = bisect.bisect_left(destinations, bound, start, last)
            length = end - start
            counts[0 if length < 1 << 6 else 1 if length < 1 << 14 else 2 if length < 1 << 22 else 3] += 1
            start = end
    return counts


def run(bench):
    bench.need("index-entry-bytes")
    rows = []
    for entry_bytes in (16, 32, 64, 128):
        report = bench.run("bfs", "--cns", 1, "--threads", 2, "--direction", "push", "--index-entry-bytes", entry_bytes)
        memory = sum(node["peak_bytes"] for node in report["nodes"]["memory_nodes"])
        rows.append((entry_bytes, memory, operations(report["operations"]["run"]), link_seconds(report)))
    bench.table("fig22", ["entry_bytes", "pool_bytes", "remote_operations", "link_seconds"], rows)
    bench.finding("pool memory with entries of 128 bytes, by that with 16", times(ratio(rows[3][1], rows[0][1])), "about 1.6x to 2x",
                  rows[3][1] > rows[1][1], "counts")
    bench.finding("remote operations of a BFS with entries of 16 bytes, by those with 32", times(ratio(rows[0][2], rows[1][2])),
                  "1.2x to 1.4x (of time)", rows[0][2] > rows[1][2], "counts",
                  "lists of neighbours are merged anyway, so what stands in the index saves little on a graph of such degrees")
    bench.finding("the same of 32 and 128 bytes", times(ratio(rows[1][2], rows[3][2])), "no more gain (of time)", None, "counts")
    counts = length_bytes(bench.graph, 4)
    bench.table("fig23", ["bytes", "segments"], list(enumerate(counts, 1)))
    share = counts[0] / sum(counts) if sum(counts) else 1
    bench.finding("segment lengths of one byte, 4 partitions", percent(share), "92.6 to 97.4 %", share > 0.5, "counts")
    bench.plot("fig22_23")
