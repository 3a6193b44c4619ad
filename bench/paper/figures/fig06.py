# Fig. 6, operations and bytes a second of reads by their size.
#
# The paper (perftest on a ConnectX-5 of 100 Gb/s): below 4 KB the rate of operations is flat, so the NIC is bound by it; above,
# the bandwidth is.
# Here: dmgraph perf over the emulated ConnectX-5 (one memory node, so that its share of the link is all of it), and over the
# transport as it is on this machine, where the same shape comes from the cost of an operation in software.

import csv
import io

from common import ratio, times

NAME = "fig06"
TITLE = "Fig. 6: operations and bandwidth of reads by size"
SIZES = (8, 32, 128, 512, 2048, 8192, 32768)


def measure(bench, *options):
    duration = "100ms" if bench.is_quick else "400ms"
    out = bench.call("perf", "--transport", bench.transport, "--operations", "read", "--sizes", ",".join(map(str, SIZES)),
                     "--depths", 16, "--duration", duration, "--csv", *options)
    found = {}
    for row in csv.DictReader(io.StringIO(out)):
        found[int(row["bytes"])] = (float(row["mops"]), float(row["gbs"]))
    return [found[size] for size in SIZES]


def run(bench):
    plain = measure(bench)
    link = measure(bench, "--link", "rdma-cx5", "--link-mode", "spin")
    rows = [(size, *a, *b) for size, a, b in zip(SIZES, plain, link)]
    bench.table("fig06", ["bytes", "mops", "gb_s", "mops_rdma_cx5", "gb_s_rdma_cx5"], rows)
    for name, points, basis in (("as it is", plain, "time"), ("emulated ConnectX-5", link, "emulated link")):
        flat = ratio(points[0][0], points[3][0])
        bench.finding(f"rate of operations at 8 bytes by that at 512 ({name})", times(flat), "about 1x (bound by operations)",
                      flat < 2, basis)
        gain = ratio(points[-1][1], points[3][1])
        bench.finding(f"bandwidth at 32 KiB by that at 512 bytes ({name})", times(gain), "several times", gain > 1.5, basis)
    bench.plot("fig06")
