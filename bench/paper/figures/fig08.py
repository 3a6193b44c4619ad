# Fig. 8, the time of the slowest thread against the mean.
#
# The paper: BFS on the baseline (one compute node, 16 threads, work stealing, vertices never split): the slowest thread takes
# several times the mean, with and without coroutines.
# Here: arcs that each worker walked, the most by the mean, with hubs never split (--reschedule-degree 0): on two cores the
# threads take turns, so their times say nothing, but the work of each is exact. The largest piece of work that one worker had to
# do alone bounds what any stealing can do.

from common import Unavailable, times

NAME = "fig08"
TITLE = "Fig. 8: the most loaded thread against the mean"


def imbalance(report):
    """(most, mean, largest task) of the arcs that a worker walked, over all compute nodes."""
    workers = [worker for node in report["nodes"]["compute_nodes"] for worker in node.get("workers", [])]
    if not workers:
        raise Unavailable("this program does not report the work of each worker")
    arcs = [worker["arcs"] for worker in workers]
    return max(arcs), sum(arcs) / len(arcs), max(worker["largest_task"] for worker in workers)


def run(bench):
    bench.need("reschedule-degree")
    rows = []
    for tasks in (1, 4):
        report = bench.run("bfs", "--cns", 1, "--threads", 8, "--tasks", tasks, "--direction", "push", "--reschedule-degree", 0)
        rows.append((tasks, *imbalance(report)))
    bench.table("fig08", ["tasks_in_flight", "most_arcs", "mean_arcs", "largest_task"], rows)
    for tasks, most, mean, largest in rows:
        bench.finding(f"arcs of the most loaded thread by the mean, {tasks} task{'s' if tasks > 1 else ''} in flight",
                      times(most / mean if mean else 0), "several times (of time)", most > 1.1 * mean, "time",
                      f"the largest single task has {largest:,} arcs")
