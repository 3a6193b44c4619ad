# Fig. 20, start-up; and partitioning (section 5.4.3).
#
# The paper: DMG's start-up is 2.8 % of Gemini's, 19.7 % with its preprocessing, which is done once; tiny-chunks are cut into
# partitions in less than a second, while cutting by vertices takes tens to hundreds of seconds.
# Here, without Gemini: the steps from the binary form (the preprocessing, done once by 'dmgraph convert') to a graph in the pool,
# in megabytes of the file a second beside `cat FILE >/dev/null` in the same minute; and the time of partitioning for graphs of
# different sizes, which depends on the number of tiny-chunks alone.

import os
import subprocess
import time

from common import ratio, times

NAME = "fig20"
TITLE = "Fig. 20: start-up, and partitioning"


def evict(path):
    """Drop a file from the page cache, so that the next reader waits for the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cat_mb_s(path):
    started = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        subprocess.run(["cat", path], stdout=nothing, check=True)
    return os.path.getsize(path) / 1e6 / (time.monotonic() - started)


def run(bench):
    rows = []
    for transport in ("cxl_shm", "ucx"):
        for cached in (False, True):
            if not cached:
                evict(bench.graph)
            else:
                cat_mb_s(bench.graph)
            speed = cat_mb_s(bench.graph)
            if not cached:
                evict(bench.graph)
            # A call of its own each time: reports are kept by their words.
            report = bench.run("bfs", "--cns", 2, "--threads", 1, "--prefault", "--tasks", 4 if cached else 3, transport=transport,
                               link=False)
            loading = report["loading"]
            rows.append((transport, "page cache" if cached else "disk", loading["file_bytes"] / 1e6, speed, loading["read_mb_s"],
                         loading["load_mb_s"], loading["partition_ns"] / 1e6, report["seconds"]["start"]))
    bench.table("fig20", ["transport", "file_in", "file_mb", "cat_mb_s", "map_mb_s", "load_mb_s", "partition_ms", "start_nodes_s"], rows)
    for transport, where, _, cat, mapped, loaded, _, _ in rows:
        both = 1 / (1 / mapped + 1 / loaded)
        bench.finding(f"loading the binary form from {where} over {transport}, MB/s (map, then load)", f"{both:,.0f}", "-", None, "time",
                      f"cat {cat:,.0f}; map and check {mapped:,.0f}, into the pool {loaded:,.0f}")
    chunks = []
    for scale in ((10, 14) if bench.is_quick else (10, 14, 18)):
        graph = bench.kronecker(scale)
        report = bench.run("bfs", "--cns", 4, "--threads", 1, graph=graph, link=False)
        chunks.append((report["graph"]["arcs"], report["loading"]["tiny_chunks"], report["loading"]["partition_ns"] / 1e6,
                       report["loading"]["repartition_ns"] / 1e6))
    report = bench.run("bfs", "--cns", 4, "--threads", 1, link=False)
    chunks.append((report["graph"]["arcs"], report["loading"]["tiny_chunks"], report["loading"]["partition_ns"] / 1e6,
                   report["loading"]["repartition_ns"] / 1e6))
    bench.table("fig20_partition", ["arcs", "tiny_chunks", "partition_ms", "repartition_ms"], chunks)
    slowest = max(row[2] for row in chunks)
    bench.finding("partitioning, the slowest of these graphs", f"{slowest:.3f} ms", "less than a second", slowest < 1000, "time",
                  f"{ratio(chunks[-1][0], chunks[0][0]):,.0f} times the arcs, {times(ratio(chunks[-1][1], chunks[0][1]))} the tiny-chunks")
