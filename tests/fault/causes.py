"""
Failures that several compute nodes meet, each in its own way and in any order: what is told is the first one's reason, once, and the
exit code is that of the reason. They race, so each case is repeated.
"""

import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../system"))

from harness import IS_THIN, LIMIT, OK, check, dmgraph, finish, one_line, path_of, require  # noqa: E402

TRANSPORTS = ("cxl_shm", "ucx")
TIMES = 2 if IS_THIN else 3
GRAPH = path_of("kron.dmg")


def require_reason(run, words):
    """A reason among `words`, with the name of one node in front."""
    require(run.code == LIMIT, f"exit code {run.code}: {run.err}")
    line = one_line(run.err)
    require(any(word in line for word in words), f"another reason than {words}: {line}")
    require(len(re.findall(r"compute node \d+: ", line)) == 1, f"a node tells of another one: {line}")
    require(run.out == "", run.out)


def too_small(words, transport, cns, memory, reasons):
    for _ in range(TIMES):
        require_reason(dmgraph("run", *words, GRAPH, "--transport", transport, "--mns", 1, "--cns", cns, "--threads", 1, "--memory",
                               memory, expect=None), reasons)


def every_size_below_what_is_needed(transport):
    """From a pool that cannot hold the arcs to one that lacks room for the last array: never anything but a lack of room."""
    kinds = set()
    for kib in range(1024, 16384, 1024 if IS_THIN else 512):
        run = dmgraph("run", "pagerank", GRAPH, "--transport", transport, "--mns", 1, "--cns", 2, "--threads", 1, "--iterations", 1,
                      "--memory", f"{kib}K", expect=None)
        if run.code == OK:
            break
        require_reason(run, ("no room for an extent", "no more than"))
        kinds.add(re.sub(r"[0-9]+", "N", run.err)[:60])
    require(run.code == OK, "no size was enough")
    require(len(kinds) >= 2, f"all sizes failed in the same step: {kinds}")


def small_pools():
    for transport in TRANSPORTS:
        for cns in (2, 3):
            check(f"a pool that is smaller than the arcs, {cns} compute nodes over {transport}", too_small, ("cc",), transport, cns,
                  "2M", ("no more than",))
            check(f"a pool without room for all lists, {cns} compute nodes over {transport}", too_small, ("cc",), transport, cns, "5M",
                  ("no room for an extent",))
        check(f"every size below what is needed over {transport}", every_size_below_what_is_needed, transport)


def small_caches(transport):
    for size in ("4K", "64K", "256K"):
        for _ in range(TIMES):
            require_reason(dmgraph("run", "bfs", GRAPH, "--transport", transport, "--cns", 3, "--threads", 1, "--cache", size,
                                   expect=None), ("cache", "--cache"))


def small_long_lived_pools(transport):
    folder = tempfile.mkdtemp(prefix="dmgraph-test-")
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
    try:
        dmgraph("pool", "start", "--name", "small", "--memory", "2M", "--transport", transport, env=environment)
        for _ in range(TIMES):
            require_reason(dmgraph("load", GRAPH, "--pool", "small", "--as", "large", "--cns", 2, "--threads", 1, env=environment,
                                   expect=None), ("no more than", "no room"))
        require("large" not in dmgraph("list", "--pool", "small", env=environment).out, "the graph is listed")
    finally:
        dmgraph("pool", "stop", "small", env=environment, expect=None)
        shutil.rmtree(folder, ignore_errors=True)


def main():
    dmgraph("generate", "kron", "--scale", 15, "--edge-factor", 16, "--seed", 1, GRAPH)
    small_pools()
    for transport in TRANSPORTS:
        check(f"a cache that is too small over {transport}", small_caches, transport)
        check(f"a long-lived pool that is too small over {transport}", small_long_lived_pools, transport)
    finish()


if __name__ == "__main__":
    main()
