# Fig. 28, more threads, and re-scheduling of hubs.
#
# The paper: with 64 threads, splitting the lists of hubs among workers (degree above 1,024) makes BFS on twitter-2010 47 % and
# PageRank on clueweb12 41 % faster than a central work list.
# Here, on few cores, the work of each thread in exact counts: the edges of the most loaded worker by the mean, and the largest
# piece of work that cannot be divided, with and without re-scheduling, for 1 to 16 threads.

from common import times
from figures import fig08

NAME = "fig28"
TITLE = "Fig. 28: threads and re-scheduling"


def run(bench):
    bench.need("reschedule-degree")
    rows = []
    for threads in ((4,) if bench.is_quick else (2, 4, 8, 16)):
        for name, words in (("+Per-Thread", ("--reschedule-degree", 0)), ("+Re-Schedule", ("--reschedule-degree", 1024))):
            report = bench.run("bfs", "--cns", 1, "--threads", threads, "--direction", "push", *words)
            most, mean, largest = fig08.imbalance(report)
            balance = report["work_balance"]
            rows.append((threads, name, most, mean, most / mean if mean else 0, largest, balance["lists_cut"], balance["segments"]))
    bench.table("fig28", ["threads", "step", "most_arcs", "mean_arcs", "imbalance", "largest_task", "lists_cut", "segments"], rows)
    without, with_it = rows[-2:]
    bench.finding(f"arcs of the most loaded of {without[0]} threads by the mean, without and with re-scheduling",
                  f"{times(without[4])}, {times(with_it[4])}", "47 % and 41 % faster with it", None, "time",
                  "which thread of those that share two cores gets the work is chance")
    bench.finding("arcs of the largest step of one task, without and with re-scheduling", f"{without[5]:,}, {with_it[5]:,}",
                  "hubs are cut at 1,024", None, "counts",
                  "a step has all arcs that fit a buffer of 128 KiB, so the longest lists come in pieces in any case")
    bench.finding("hubs that were cut, and the segments that they became", f"{with_it[6]:,}, {with_it[7]:,}", "hubs are cut at 1,024",
                  with_it[7] > with_it[6] > 0 == without[6], "counts")
    bench.plot("fig28")
