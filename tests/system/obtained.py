"""What was asked for of memory and cores and is not there is an error, in every command; reports say what was got; and large segments
are made in any time that they take.

Cases that need a machine of their own (a small /dev/shm, few pieces of shared memory) run in namespaces, where the system lets us.
"""

import ctypes
import errno
import json
import os
import platform
import pty
import resource
import select
import shutil
import struct
import subprocess
import time

from harness import (IS_THIN, LIMIT, OK, PROGRAM, USAGE, check, dmgraph, finish, is_sanitized, one_line, path_of, require,
                     write)

GRAPH = write("small.el", "1 2\n2 3\n")
RUNTIME = path_of("runtime")
os.mkdir(RUNTIME, 0o700)
ENVIRONMENT = {**os.environ, "XDG_RUNTIME_DIR": RUNTIME}
TRANSPORTS = ("cxl_shm", "ucx", "ucx:data=message")
MISSING_NODE = 1023


def run(*words, **options):
    return dmgraph(*words, env=ENVIRONMENT, **options)


# Commands that make segments, without the options about them.
COMMANDS = {
    "run": ("run", "cc", GRAPH),
    "pool start": ("pool", "start", "--name", "p", "--memory", "16M"),
    "perf": ("perf", "--operations", "read", "--sizes", 64, "--depths", 1, "--duration", "10ms"),
}


def refused(words, transport, code, *texts, **options):
    line = one_line(run(*words, "--transport", transport, expect=code, **options).err)
    for text in texts:
        require(text in line, f"'{text}' is not in: {line}")


def huge_pages(size_kib):
    try:
        with open(f"/sys/kernel/mm/hugepages/hugepages-{size_kib}kB/free_hugepages") as file:
            return int(file.read())
    except OSError:
        return 0


def nodes_and_pages_that_are_missing(words):
    for transport in TRANSPORTS:
        refused((*words, "--numa-node", MISSING_NODE), transport, USAGE, f"NUMA node {MISSING_NODE}", "numactl")
        for size, kib in (("2M", 2048), ("1G", 1 << 20)):
            if huge_pages(kib) == 0:
                line = one_line(run(*words, "--transport", transport, "--page-size", size, expect=None).err)
                require("huge pages" in line or "in pages of" in line, line)


def comparing_passes_it_on():
    line = one_line(run("compare", GRAPH, "--output", path_of("report.html"), "--numa-node", MISSING_NODE, expect=USAGE).err)
    require("NUMA node" in line, line)
    require(not os.path.exists(path_of("report.html")), "a report was written")


def the_hint_names_the_pages_of_all_nodes():
    if huge_pages(2048):
        return
    with open("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") as file:
        there = int(file.read())
    refused(("run", "cc", GRAPH, "--mns", 3, "--memory", "10M", "--page-size", "2M"), "cxl_shm", LIMIT,
            "3 memory nodes", "15 huge pages", f"echo {there + 15} >")


def devices_that_are_missing():
    before = set(os.listdir("/dev"))
    for words in COMMANDS.values():
        for more in ((), ("--allow-fallback",)):
            refused((*words, *more), "cxl_shm:path=/dev/dax7.7", USAGE, "/dev/dax7.7", "/dev/shm")
    os.symlink("/dev", path_of("devices"))
    refused(COMMANDS["run"], f"cxl_shm:path={path_of('devices')}/dax7.7", USAGE, "dax7.7")
    refused((*COMMANDS["pool start"], "--bind", "/dev/dax7.7"), "cxl_shm", USAGE, "/dev/dax7.7")
    refused((*COMMANDS["run"], "--output", "/dev/dax7.7"), "cxl_shm", USAGE, "/dev/dax7.7")
    refused(("perf", "--fit", "/dev/dax7.7"), "cxl_shm", USAGE, "/dev/dax7.7")
    new = set(os.listdir("/dev")) - before
    require(not [name for name in new if "dax" in name], f"made in /dev: {new}")


def memory_files_have_their_own_pages():
    path = f"/dev/shm/dmgraph-test-{os.getpid()}"
    refused((*COMMANDS["run"], "--page-size", "2M"), f"cxl_shm:path={path}", USAGE, path, "pages of 4 KiB")
    require(not os.path.exists(path), path)
    with open(path, "wb") as file:
        file.truncate(32 << 20)
    try:
        refused((*COMMANDS["run"], "--page-size", "2M"), f"cxl_shm:path={path}", USAGE, path, "pages of 4 KiB")
        run(*COMMANDS["run"], "--transport", f"cxl_shm:path={path}", "--quiet")
    finally:
        os.unlink(path)


def refused_at(path, *texts):
    for transport in (f"cxl_shm:path={path}", f"cxl_shm:coherence=none,path={path}"):
        refused(COMMANDS["run"], transport, USAGE, path, *texts)


def memory_files_of_others_are_refused():
    """Who may write to the file, or has made it, would write into the graphs."""
    path = f"/dev/shm/dmgraph-test-{os.getpid()}"
    other = path + ".other"
    with open(path, "wb") as file:
        file.truncate(32 << 20)
    try:
        for mode in (0o620, 0o602, 0o666):
            os.chmod(path, mode)
            refused_at(path, "others may write", f"{mode:04o}", "chmod go-w")
        os.chmod(path, 0o640)
        os.link(path, other)
        refused_at(path, "2 names")
        os.unlink(other)
        os.symlink(path, other)
        refused_at(other, "symbolic link")
        os.unlink(other)
        os.mkfifo(other, 0o600)
        refused_at(other, "neither a file nor a device")
        run(*COMMANDS["run"], "--transport", f"cxl_shm:path={path}", "--quiet")
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            refused_at(path, "belongs to the user 65534")
    finally:
        for name in (path, other):
            if os.path.lexists(name):
                os.unlink(name)


def memory_files_are_reserved_when_they_are_made():
    """A file system that fills up later ends no memory node: all of its pages are there from the start."""
    path = f"/dev/shm/dmgraph-test-{os.getpid()}"
    run("pool", "start", "--name", "reserved", "--memory", "16M", "--transport", f"cxl_shm:path={path}", "--quiet")
    try:
        about = os.stat(path)
        require(about.st_size >= 16 << 20 and about.st_blocks * 512 >= about.st_size,
                f"{about.st_blocks * 512} of {about.st_size} bytes are there")
        require(about.st_mode & 0o077 == 0, oct(about.st_mode))
    finally:
        run("pool", "stop", "reserved", "--quiet")


# ---- threads ----

SYS_SCHED_SETAFFINITY = {"x86_64": 203, "aarch64": 122}.get(platform.machine())


def forbid_pinning():
    """Have the kernel refuse sched_setaffinity to this process and its children."""
    def instruction(code, jump_true, jump_false, value):
        return struct.pack("HBBI", code, jump_true, jump_false, value)

    program = (instruction(0x20, 0, 0, 0) + instruction(0x15, 0, 1, SYS_SCHED_SETAFFINITY) +
               instruction(0x06, 0, 0, 0x00050000 | errno.EPERM) + instruction(0x06, 0, 0, 0x7FFF0000))
    buffer = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("HxxxxxxQ", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.create_string_buffer(whole, len(whole))) != 0:
        os._exit(99)


def threads_that_may_not_be_bound():
    pinned = ("run", "cc", GRAPH, "--pin-threads", "--threads", 2)
    refused(pinned, "cxl_shm", USAGE, "binding worker", "core", "Operation not permitted", preexec_fn=forbid_pinning)
    report = json.loads(run(*pinned, "--allow-fallback", "--json", preexec_fn=forbid_pinning).out)
    bound = 0 if len(os.sched_getaffinity(0)) > 1 else 2
    require(report["nodes"]["compute_nodes"][0]["pinned_workers"] == bound, report["nodes"]["compute_nodes"])
    require(report["settings"]["pin-threads"] is (bound == 2), report["settings"])
    summary = run(*pinned, "--allow-fallback", preexec_fn=forbid_pinning)
    require(f"{bound} of 2 bound to a core" in summary.out and "binding worker" in summary.err, summary.out + summary.err)
    report = json.loads(run(*pinned, "--cns", 2, "--json").out)
    require([node["pinned_workers"] for node in report["nodes"]["compute_nodes"]] == [2, 2], report["nodes"])
    require(report["settings"]["pin-threads"] is True, report["settings"])


def a_load_binds_its_threads_or_fails():
    run("pool", "start", "--name", "p", "--memory", "16M", "--quiet")
    try:
        words = ("load", GRAPH, "--pool", "p", "--as", "g", "--pin-threads", "--threads", 2)
        line = one_line(run(*words, expect=USAGE, preexec_fn=forbid_pinning).err)
        require("binding worker" in line, line)
        require(run("list", "--pool", "p", "--json").out.strip() == "[]", "a graph was loaded")
        run(*words, "--allow-fallback", "--quiet", preexec_fn=forbid_pinning)
    finally:
        run("pool", "stop", "p")


# ---- what was got ----

def placement_stands_in_reports():
    page = os.sysconf("SC_PAGESIZE")
    for transport in TRANSPORTS:
        asked = ("run", "cc", GRAPH, "--transport", transport, "--mns", 2, "--numa-node", 0, "--prefault")
        for node in json.loads(run(*asked, "--json").out)["nodes"]["memory_nodes"]:
            segment = node["segment"]
            require(segment["numa_node"] == 0 and segment["prefaulted"] is True and segment["page_bytes"] == page, segment)
            require(segment["bytes"] >= node["segment_bytes"], segment)
        summary = run(*asked).out
        require("segments: pages of 4.0 KiB, on NUMA node 0, all touched" in summary or page != 4096, summary)
    segment = json.loads(run("run", "cc", GRAPH, "--json").out)["nodes"]["memory_nodes"][0]["segment"]
    require(segment["numa_node"] is None and segment["prefaulted"] is False, segment)
    segment = json.loads(run(*COMMANDS["perf"], "--numa-node", 0, "--json").out)["segment"]
    require(segment["numa_node"] == 0 and segment["prefaulted"] is True, segment)
    run(*COMMANDS["pool start"], "--numa-node", 0, expect=OK)
    run("pool", "stop", "p")


def less_is_said_where_it_is_allowed():
    for transport in TRANSPORTS:
        words = ("run", "cc", GRAPH, "--transport", transport, "--numa-node", MISSING_NODE, "--allow-fallback")
        done = run(*words, "--json")
        report = json.loads(done.out)
        require(report["nodes"]["memory_nodes"][0]["segment"]["numa_node"] is None, report["nodes"]["memory_nodes"])
        require(report["settings"]["numa-node"] is None, report["settings"])
        require(f"NUMA node {MISSING_NODE}" in one_line(done.err), done.err)
        require("on no NUMA node in particular" in run(*words).out, "the summary does not say it")
        if not huge_pages(2048):
            done = run("run", "cc", GRAPH, "--transport", transport, "--page-size", "2M", "--allow-fallback", "--json")
            report = json.loads(done.out)
            require(report["nodes"]["memory_nodes"][0]["segment"]["page_bytes"] == os.sysconf("SC_PAGESIZE"), report["nodes"])
            require(report["settings"]["page-size"] == "default", report["settings"])
            require("2048 KiB" in one_line(done.err), done.err)


# ---- room ----

def limits_of_a_process_are_named():
    def limit(kind, size):
        return lambda: resource.setrlimit(kind, (size, size))

    for transport in ("cxl_shm", "ucx"):
        refused(("run", "cc", GRAPH, "--memory", "64M"), transport, LIMIT, "ulimit -f", "32 MiB",
                preexec_fn=limit(resource.RLIMIT_FSIZE, 32 << 20))
        if not is_sanitized():
            refused(("run", "cc", GRAPH, "--memory", "4G"), transport, LIMIT, "ulimit -v", "1024.0 MiB",
                    preexec_fn=limit(resource.RLIMIT_AS, 1 << 30))
    if not is_sanitized():
        done = run("run", "cc", GRAPH, "--transport", "ucx", "--threads", 2, expect=LIMIT,
                   preexec_fn=limit(resource.RLIMIT_AS, 80 << 20))
        require("ulimit -v" in one_line(done.err), done.err)


def more_than_the_machine_has():
    for transport in ("cxl_shm", "ucx:data=message"):
        refused(("run", "cc", GRAPH, "--memory", "100T"), transport, LIMIT, "in all", "this machine", "--memory")
    refused(("pool", "start", "--name", "giant", "--memory", "100T"), "cxl_shm", LIMIT, "in all", "this machine")
    for transport in ("cxl_shm", "ucx"):
        done = run("run", "cc", GRAPH, "--transport", transport, "--prefault", "--memory", "100T", expect=LIMIT)
        line = one_line(done.err)
        require("left" in line and "MiB" in line, line)


def in_namespaces(script, *kinds):
    """Run the script, whose $1 is the program and $2 a graph, with namespaces of its own; None where that is refused."""
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *as_root, *kinds, "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        print("  (no namespaces here: left out)")
        return None
    done = subprocess.run([*command, script, "sh", PROGRAM, GRAPH], capture_output=True, env=ENVIRONMENT, timeout=240, check=False)
    return done.returncode, done.stdout.decode() + done.stderr.decode()


def nodes_share_a_small_shared_memory():
    for transport in ("ucx", "cxl_shm:path=/dev/shm/a+/dev/shm/b+/dev/shm/c"):
        words = f'"$1" run cc "$2" --quiet --transport {transport} --mns 3 --memory'
        done = in_namespaces(f"mount -t tmpfs -o size=64M none /dev/shm || exit 98; {words} 30M", "--mount")
        if done is None or done[0] == 98:
            return
        require(done[0] == LIMIT and "3 memory nodes" in done[1] and "/dev/shm" in done[1] and "64.0 MiB left" in done[1], done)
        done = in_namespaces(f"mount -t tmpfs -o size=64M none /dev/shm; {words} 12M", "--mount")
        require(done == (OK, ""), done)


def reasons_of_shared_memory_are_told_apart():
    run_ucx = '"$1" run cc "$2" --quiet --transport ucx'
    cases = (
        ("mount -t tmpfs -o size=64M,ro none /dev/shm || exit 98; " + run_ucx, "--mount", USAGE, "read-only"),
        ("mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 || exit 98; " + run_ucx, "--mount", USAGE, "mount a tmpfs"),
        ("echo 0 >/proc/sys/kernel/shmmni || exit 98; " + run_ucx + ":data=sysv", "--ipc", LIMIT, "kernel.shmmni"),
        ("echo 4096 >/proc/sys/kernel/shmmax || exit 98; " + run_ucx + ":data=sysv", "--ipc", LIMIT, "kernel.shmmax"),
        ("echo 5 >/proc/sys/kernel/shmall || exit 98; " + run_ucx + ":data=sysv", "--ipc", LIMIT, "kernel.shmall"),
    )
    for script, kind, code, text in cases:
        done = in_namespaces(script, kind)
        if done is not None and done[0] != 98:
            require(done[0] == code and text in done[1], (script, done))


# ---- large segments ----

def has_room(size):
    with open("/proc/meminfo") as file:
        available = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
    space = os.statvfs("/dev/shm")
    return available > 2 * size and space.f_bavail * space.f_frsize > size


def start_on_a_terminal(*words):
    """Exit code, and what a terminal shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PROGRAM, *map(str, words)], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    shown = b""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                taken = os.read(master, 65536)
            except OSError:  # the last writer is gone
                taken = b""
            shown += taken
            if not taken:
                break
        elif process.poll() is not None:
            break
    else:
        process.kill()
    os.close(master)
    return process.wait(60), shown.decode(errors="replace")


def segments_that_take_longer_than_the_peer_timeout():
    if IS_THIN or not has_room(3 << 30):
        print("  (too little memory here, or a sanitizer: left out)")
        return
    for transport in ("ucx", "cxl_shm"):
        code, shown = start_on_a_terminal("pool", "start", "--name", "large", "--transport", transport, "--mns", 2, "--memory", "1G",
                                          "--prefault", "--peer-timeout", "300ms")
        if code == OK:
            run("pool", "stop", "large")
        require(code == OK, f"{transport}: {code} {shown}")
        require("making the segments" in shown, f"{transport}: no progress is shown: {shown!r}")


def main():
    for name, words in COMMANDS.items():
        check(f"nodes_and_pages_that_are_missing: {name}", nodes_and_pages_that_are_missing, words)
    functions = [comparing_passes_it_on, the_hint_names_the_pages_of_all_nodes, devices_that_are_missing,
                 memory_files_have_their_own_pages, memory_files_of_others_are_refused,
                 memory_files_are_reserved_when_they_are_made, placement_stands_in_reports, less_is_said_where_it_is_allowed,
                 limits_of_a_process_are_named, more_than_the_machine_has, nodes_share_a_small_shared_memory,
                 reasons_of_shared_memory_are_told_apart, segments_that_take_longer_than_the_peer_timeout]
    if SYS_SCHED_SETAFFINITY:
        functions += [threads_that_may_not_be_bound, a_load_binds_its_threads_or_fails]
    for function in functions:
        check(function.__name__, function)
    finish()


main()
