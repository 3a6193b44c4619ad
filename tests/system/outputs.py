"""Where a command writes: never over what it reads, and what could not be written is an error that says why."""

import os
import signal
import stat
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fault"))

from harness import IO, LIMIT, OK, PROGRAM, USAGE, check, dmgraph, finish, one_line, path_of, require, write  # noqa: E402
from watch import Watched  # noqa: E402

LINES = "".join(f"{i} {(i * 7 + 1) % 400}\n" for i in range(400))
PIPE_CLOSED = 128 + signal.SIGPIPE
SECONDS = 120


def graph(name="g.el", content=LINES):
    return write(name, content)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def shell(command, expect, **names):
    """A line of sh, with the program as $D and files by name. Bounded."""
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                          env={**os.environ, "D": PROGRAM, **names})
    require(done.returncode == expect, f"{command}: exit code {done.returncode} instead of {expect}: "
            f"{done.stdout[-500:]!r} {done.stderr[-1500:]!r}")
    return done


def others():
    return {name for name in os.listdir(os.path.dirname(path_of("x")))}


# ---- never over an input ----

def refused(path, *words):
    before = content(path)
    facts = os.stat(path)
    files = others()
    run = dmgraph(*words, expect=USAGE)
    line = one_line(run.err)
    require("name another output" in line and run.out == "", f"it does not say what to do: {line}{run.out}")
    require(content(path) == before and os.stat(path).st_ino == facts.st_ino, "the input was replaced")
    require(others() == files, f"something was left: {others() - files}")


def commands_on(g):
    """What would write to the input, by each command and way to say the path."""
    folder = os.path.dirname(g)
    links = path_of("links")
    os.makedirs(links, exist_ok=True)
    symbolic, hard, chain = (os.path.join(links, name) for name in ("symbolic", "hard", "chain"))
    os.symlink("../" + os.path.basename(g), symbolic)
    os.symlink("symbolic", chain)
    os.link(g, hard)
    ways = {"itself": g, "a relative path": os.path.relpath(g), "dots": f"{folder}/links/../{os.path.basename(g)}",
            "a symbolic link": symbolic, "a chain of links": chain, "a hard link": hard}
    for name, way in ways.items():
        yield f"convert to {name}", ("convert", g, way)
        yield f"convert from {name}", ("convert", way, g)
        yield f"run --output of {name}", ("run", "cc", g, "--output", way)
    yield "compare --output", ("compare", g, "cc", "--runs-only", "--rounds", 1, "--output", symbolic)
    yield "compare --csv", ("compare", g, "cc", "--runs-only", "--rounds", 1, "--csv", hard)


def never_over_an_input():
    g = graph()
    for name, words in commands_on(g):
        check(f"{name} is refused", refused, g, *words)
    numbers = graph("beside.csv")
    check("the numbers beside a report are refused", refused, numbers, "compare", numbers, "cc", "--runs-only", "--rounds",
          1, "--output", path_of("beside.html"))
    binary = path_of("own.dmg")
    dmgraph("convert", g, binary)
    check("a binary form is no exception", refused, binary, "convert", binary, binary)
    profile = write("own.link", content_of_a_profile())
    check("a link profile is an input of run", refused, profile, "run", "cc", g, "--link", profile, "--link-mode", "account",
          "--output", profile)
    check("a link profile is an input of compare", refused, profile, "compare", g, "cc", "--runs-only", "--rounds", 1, "--with",
          f"cxl_shm,{profile}", "--with", "cxl_shm,none", "--csv", profile)
    edges = graph("pair.e")
    vertices = write("pair.v", "".join(f"{i}\n" for i in range(400)))
    check("a file beside the graph belongs to it", refused, vertices, "convert", edges, vertices)
    check("an appending standard output is refused", appended, g)
    fitted = write("there.link", "kept")
    check("a profile that is there is not replaced by a fit", fitted_over, fitted)


def content_of_a_profile():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/links")
    return content(os.path.join(folder, "polar-cxl.link"))


def appended(g):
    before = content(g)
    done = shell('"$D" run cc "$G" --output - >>"$G"', USAGE, G=g)
    require(b"name another output" in done.stderr, f"{done.stderr}")
    require(content(g) == before, "the input was written to")


def fitted_over(path):
    line = one_line(dmgraph("perf", "--fit", path, expect=USAGE).err)
    require("File exists" in line and content(path) == b"kept", line)


# ---- what a path leads to ----

def links_are_kept():
    target = write("target.txt", "old")
    link = path_of("to-target")
    os.symlink("target.txt", link)
    dmgraph("run", "cc", graph(), "--output", link)
    require(os.path.islink(link) and content(target).startswith(b"0 0\n"), "the link's target did not get the answer")


def links_to_nothing_make_their_target():
    link = path_of("to-nothing")
    os.makedirs(path_of("deep"), exist_ok=True)
    os.symlink("deep/made.txt", link)
    dmgraph("run", "cc", graph(), "--output", link)
    require(os.path.islink(link) and content(path_of("deep/made.txt")).startswith(b"0 0\n"), "the target was not made")


def links_in_a_circle_are_an_error():
    os.symlink("round-b", path_of("round-a"))
    os.symlink("round-a", path_of("round-b"))
    line = one_line(dmgraph("run", "cc", graph(), "--output", path_of("round-a"), expect=IO).err)
    require("Too many levels of symbolic links" in line, line)


def permissions_are_kept():
    for mode in (0o600, 0o640, 0o755):
        path = write("private.txt", "old")
        os.chmod(path, mode)
        dmgraph("run", "cc", graph(), "--output", path)
        require(stat.S_IMODE(os.stat(path).st_mode) == mode, f"{mode:o} became {os.stat(path).st_mode:o}")
        require(content(path).startswith(b"0 0\n"), "the answer is missing")


def protected_files_are_refused():
    path = write("protected.txt", "old")
    os.chmod(path, 0o444)
    if os.access(path, os.W_OK):
        return  # root may
    line = one_line(dmgraph("run", "cc", graph(), "--output", path, expect=IO).err)
    require("Permission denied" in line and content(path) == b"old", line)


def answer():
    path = path_of("expected.txt")
    dmgraph("run", "cc", graph(), "--output", path)
    return content(path)


def descriptors_get_what_files_get():
    wanted = answer()
    for name, command in (("/dev/stdout", '"$D" run cc "$G" --output /dev/stdout >"$O"'),
                          ("the file of standard output", '"$D" run cc "$G" --output "$O" >"$O"'),
                          ("/dev/fd/3", '"$D" run cc "$G" --output /dev/fd/3 --quiet 3>"$O"'),
                          ("/proc/self/fd/7", '"$D" run cc "$G" --output /proc/self/fd/7 --quiet 7>"$O"'),
                          ("a pipe", '"$D" run cc "$G" --output /dev/stdout 2>/dev/null | cat >"$O"')):
        path = path_of("by-descriptor.txt")
        shell(command, OK, G=graph(), O=path)
        require(content(path) == wanted, f"{name}: something else than the answer")


def what_is_appended_to_stays():
    path = write("appended.txt", "first\n")
    shell('"$D" run cc "$G" --output /dev/stdout >>"$O"', OK, G=graph(), O=path)
    require(content(path) == b"first\n" + answer(), "what was there, or the answer, is lost")


def descriptors_that_are_not_open():
    for path in ("/dev/fd/99", "/dev/fd/0"):
        done = shell('"$D" run cc "$G" --output "$O" </dev/null', IO, G=graph(), O=path)
        require(b"not open for writing" in done.stderr, f"{done.stderr}")


def named_pipes_wait_for_their_reader():
    path = path_of("pipe")
    os.mkfifo(path)
    got = []

    def read():
        got.append(content(path))
    for words in (("run", "cc", graph(), "--output", path), ("convert", graph(), path)):
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        dmgraph(*words)
        reader.join(SECONDS)
        require(stat.S_ISFIFO(os.stat(path).st_mode), "the pipe was replaced")
    require(got[0] == answer(), "the pipe had another answer")
    dmgraph("convert", graph(), path_of("direct.dmg"))
    require(got[1] == content(path_of("direct.dmg")), "the binary form through a pipe is another one")


def a_pipe_without_a_reader_can_be_interrupted():
    path = path_of("unread")
    os.mkfifo(path)
    process = subprocess.Popen([PROGRAM, "run", "cc", graph(), "--output", path], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        require(process.returncode == 128 + signal.SIGINT, f"exit code {process.returncode}")
    finally:
        process.kill()


def graphs_go_to_the_standard_output():
    dmgraph("convert", graph(), path_of("plain.dmg"))
    dmgraph("generate", "kron", "--scale", 8, path_of("kron.dmg"))
    for command, wanted in (('"$D" convert "$G" - >"$O"', "plain.dmg"), ('"$D" convert "$G" - | cat >"$O"', "plain.dmg"),
                            ('"$D" convert "$G" /dev/stdout >"$O"', "plain.dmg"),
                            ('"$D" generate kron --scale 8 - >"$O"', "kron.dmg")):
        done = shell(command, OK, G=graph(), O=path_of("piped.dmg"))
        require(content(path_of("piped.dmg")) == content(path_of(wanted)), f"{command}: not the binary form alone")
        require(b"vertices" in done.stderr, f"{command}: the summary is lost")
    for words in (("convert", graph(), "-"), ("generate", "kron", "--scale", 8, "-"), ("run", "cc", graph(), "--output", "-"),
                  ("run", "cc", graph(), "--output", "/dev/stdout")):
        require("both want the standard output" in one_line(dmgraph(*words, "--json", expect=USAGE).err), f"{words}")


def two_outputs_are_two_files():
    page = path_of("one.html")
    line = one_line(dmgraph("compare", graph(), "cc", "--runs-only", "--rounds", 1, "--output", page, "--csv",
                            os.path.dirname(page) + "/./one.html", expect=USAGE).err)
    require("the numbers are to be written there" in line, line)


def where_outputs_lead():
    for function in (links_are_kept, links_to_nothing_make_their_target, links_in_a_circle_are_an_error, permissions_are_kept,
                     protected_files_are_refused, descriptors_get_what_files_get, what_is_appended_to_stays,
                     descriptors_that_are_not_open, named_pipes_wait_for_their_reader,
                     a_pipe_without_a_reader_can_be_interrupted, graphs_go_to_the_standard_output, two_outputs_are_two_files):
        check(function.__name__.replace("_", " "), function)


# ---- what cannot be written ----

PRINTERS = {
    "version": '"$D" version', "help": '"$D" help', "help of a command": '"$D" help run', "--help": '"$D" run --help',
    "info links": '"$D" info links', "info transports": '"$D" info transports --json', "info graph": '"$D" info graph "$G"',
    "info graph --json": '"$D" info graph "$G" --json', "a summary": '"$D" run cc "$G"', "a report": '"$D" run cc "$G" --json',
    "a table": '"$D" run cc "$G" --table --quiet', "an answer": '"$D" run cc "$G" --output -',
    "an answer by name": '"$D" run cc "$G" --output /dev/stdout', "a binary form": '"$D" convert "$G" -',
    "a conversion's summary": '"$D" convert "$G" "$O"', "a generator's summary": '"$D" generate kron --scale 8 "$O"',
    "predictions": '"$D" predict "$R"', "measurements": '"$D" perf --operations read --sizes 8 --depths 1 --duration 1ms',
    "measurements in CSV": '"$D" perf --operations read --sizes 8 --depths 1 --duration 1ms --csv'}


def names():
    report = path_of("report.json")
    if not os.path.exists(report):
        write("report.json", dmgraph("run", "cc", graph(), "--json").out)
    return {"G": graph(), "O": path_of("unimportant.dmg"), "R": report}


def complaints(done):
    """What a measurement thinks of itself on a busy machine is none."""
    return [text for text in done.stderr.decode().splitlines() if text.startswith("dmgraph:") and not text.startswith("dmgraph: check of")]


def told_as_one_line(command, reason):
    """The summary is on the standard error too, where the answer has the standard output."""
    done = shell(command, IO, **names())
    line = one_line("\n".join(complaints(done)))
    require(reason in line, f"the reason is not told: {line}")


def outputs_that_fail():
    for name, command in PRINTERS.items():
        check(f"{name} to a full disk", told_as_one_line, f"{command} >/dev/full", "No space left on device")
        check(f"{name} to a closed output", told_as_one_line, f"{command} >&-", "it is not open for writing")
    for name, command in (("an answer", '"$D" run cc "$G" --output /dev/full'),
                          ("a binary form", '"$D" convert "$G" /dev/full'),
                          ("a report", '"$D" compare "$G" cc --runs-only --rounds 1 --with cxl_shm,none '
                                       '--with cxl_shm,polar-cxl --cns 1 --csv /dev/full'),
                          ("a fitted profile", '"$D" perf --fit /dev/full')):
        check(f"{name} to a full device", told_as_one_line, command, "No space left on device")
    check("a file that reaches its limit", limited_files)
    check("a summary that has no place on the standard error", shell, '"$D" run cc "$G" --output - >/dev/null 2>&-', IO)


def limited_files():
    """The limit of files' sizes ends no process by its signal, and leaves none of them."""
    large = path_of("large.dmg")
    dmgraph("generate", "kron", "--scale", 13, large)
    files = others()
    for command, code, reason in (('ulimit -f 64; "$D" convert "$L" "$O.el"', IO, "File too large"),
                                  ('ulimit -f 64; "$D" run cc "$L" --output "$O.txt"', LIMIT, "(`ulimit -f`)")):
        done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
                              env={**os.environ, "D": PROGRAM, "L": large, "O": path_of("limited")})
        require(done.returncode == code, f"{command}: {done.returncode}: {done.stderr}")
        require(reason in one_line(done.stderr.decode()), f"{done.stderr}")
    require(others() == files, f"something was left: {others() - files}")


def readers_that_leave():
    """What others do: no word, and the code of SIGPIPE."""
    for name, command in PRINTERS.items():
        check(f"{name} that nobody reads", left_reader, command)
    for transport in ("cxl_shm", "ucx"):
        check(f"an answer over {transport} that is read in part", read_in_part, transport)
    check("a measurement ends with its reader", measured_in_part)


def left_reader(command):
    end, begin = os.pipe()
    os.close(end)
    try:
        done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=begin, stderr=subprocess.PIPE,
                              timeout=SECONDS, env={**os.environ, "D": PROGRAM, **names()})
    finally:
        os.close(begin)
    require(done.returncode == PIPE_CLOSED, f"exit code {done.returncode}: {done.stderr}")
    require(not complaints(done), f"it is not quiet: {done.stderr}")


def read_in_part(transport):
    """Its reader leaves when the nodes are still there; they end, and leave nothing."""
    large = path_of("read.dmg")
    dmgraph("generate", "kron", "--scale", 16, "--edge-factor", 2, large)
    run = Watched("run", "cc", large, "--transport", transport, "--mns", 2, "--cns", 2, "--threads", 1, "--output", "-")
    try:
        require(len(run.process.stdout.readline().split()) == 2, "the answer has another first line")
        run.process.stdout.close()
        err = run.process.stderr.read()
        run.process.wait(SECONDS)
        require(run.process.returncode == PIPE_CLOSED and err == b"", f"exit code {run.process.returncode}: {err}")
        run.require_nothing_left()
    finally:
        run.stop()


def measured_in_part():
    """Without an end when its reader is gone, it would take minutes."""
    process = subprocess.Popen([PROGRAM, "perf", "--operations", "read", "--duration", "1s", "--sizes",
                                ",".join(str(8 * size) for size in range(1, 31)), "--thread-counts", "1"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.wait(50)
    finally:
        process.kill()
    require(process.returncode == PIPE_CLOSED and err == b"", f"exit code {process.returncode}: {err}")


# ---- closed standard descriptors ----

def closed_descriptors():
    wanted = answer()
    for closed in ("<&-", "2>&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
        def run(closed=closed):
            path = path_of("closed.txt")
            shell(f'"$D" run cc "$G" --cns 2 --quiet --output "$O" {closed}', OK, G=graph(), O=path)
            require(content(path) == wanted, "another answer")
        check(f"a file gets its answer with {closed}", run)
    for closed in ("<&-", "<&- 2>&-"):
        def run_to_output(closed=closed):
            done = shell(f'"$D" run cc "$G" --cns 2 --quiet --output - {closed}', OK, G=graph())
            require(done.stdout == wanted, "another answer")
        check(f"the standard output gets its answer with {closed}", run_to_output)
    check("log lines of nodes that have no place are no failure of theirs", lost_log_lines)
    check("a report from a closed input is an error", closed_input)


def lost_log_lines():
    """The answer is whole, and at most the exit code says that a line of the program itself found no place."""
    for place in ("2>&-", "2>/dev/full"):
        path = path_of("logged.txt")
        if os.path.exists(path):
            os.remove(path)
        shell(f'"$D" run cc "$G" --cns 2 --quiet --log-level debug --transport ucx --output "$O" {place}; '
              f'code=$?; [ $code = {OK} ] || [ $code = {IO} ]', OK, G=graph(), O=path)
        require(content(path) == answer(), "another answer")


def closed_input():
    done = shell('"$D" predict - <&-', IO)
    require(b"Bad file descriptor" in done.stderr, f"{done.stderr}")


def main():
    never_over_an_input()
    where_outputs_lead()
    outputs_that_fail()
    readers_that_leave()
    closed_descriptors()
    finish()


if __name__ == "__main__":
    main()
