"""Graphs that can be read once: named pipes, the standard input, process substitution. Each is opened once, or a run would hang."""

import json
import os
import subprocess
import threading

from harness import IO, IS_THIN, PROGRAM, USAGE, Failure, check, dmgraph, finish, one_line, path_of, require, write

TEXT = "1 2\n2 3\n7 8\n"
COMPONENTS = {"1": "1", "2": "1", "3": "1", "7": "7", "8": "7"}
# Opening a pipe twice hung in one of eight runs: so many runs find it.
REPEATS = 6 if IS_THIN else 24
SECONDS = 120


def run(arguments, stdin=subprocess.DEVNULL, content=None, expect=0, **options):
    """Like dmgraph(), with something on the standard input."""
    given = {"input": content} if content is not None else {"stdin": stdin}
    command = [PROGRAM, *map(str, arguments)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS, **given, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command)}: still running after {SECONDS} s") from None
    text = done.stderr.decode(errors="replace")
    require(done.returncode == expect, f"{' '.join(command)}: exit code {done.returncode} instead of {expect}: {text[-2000:]}")
    return done.stdout, text


def components(output):
    words = [line.split() for line in output.decode().splitlines()]
    require({word[0]: word[1] for word in words} == COMPONENTS, f"the components are {words}")


def feed(path, content):
    """Write into a named pipe once a reader is there. A reader that leaves is not this thread's trouble: the case says what came."""
    def write_all():
        try:
            with open(path, "wb") as pipe:
                pipe.write(content)
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=write_all, daemon=True)
    thread.start()
    return thread


def through_pipe(content, arguments, expect=0):
    """The command with "PIPE" replaced by a named pipe through which the content comes."""
    path = path_of("pipe")
    if not os.path.exists(path):
        os.mkfifo(path)
    thread = feed(path, content)
    done = run([path if word == "PIPE" else word for word in arguments], expect=expect)
    thread.join(SECONDS)
    require(not thread.is_alive(), "nobody read the pipe to its end")
    return done


CC = ["run", "cc", "PIPE", "--quiet", "--output", "-"]


def named_pipe(content):
    for _ in range(REPEATS):
        components(through_pipe(content, CC)[0])


def binary_form():
    dmgraph("convert", write("graph.el", TEXT), path_of("graph.dmg"))
    with open(path_of("graph.dmg"), "rb") as file:
        return file.read()


def standard_input(content):
    words = ["-" if word == "PIPE" else word for word in CC]
    components(run(words, content=content)[0])
    with open(write("stdin", content), "rb") as file:
        components(run(words, stdin=file)[0])
    words = ["/dev/stdin" if word == "PIPE" else word for word in CC]
    components(run(words, content=content)[0])


def standard_input_from_where_it_stands():
    """What a program before has read is not read again."""
    content = b"9 9\n" * 100
    with open(write("stdin", content + TEXT.encode()), "rb", buffering=0) as file:
        file.read(len(content))
        components(run(["run", "cc", "-", "--quiet", "--output", "-"], stdin=file)[0])


def closed_standard_input():
    done = subprocess.run(["/bin/sh", "-c", 'exec "$0" run cc - <&-', PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS)
    require(done.returncode == IO, f"exit code {done.returncode}")
    require("standard input is closed" in one_line(done.stderr.decode()), done.stderr)


def substitution():
    command = f"'{PROGRAM}' run cc <(printf '1 2\\n2 3\\n'; printf '7 8\\n') --quiet --output -"
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS)
    require(done.returncode == 0, done.stderr)
    components(done.stdout)


def every_command(content):
    """Each command that takes a GRAPH, from a pipe and from the standard input."""
    for word in ("PIPE", "-"):
        def go(*arguments, expect=0):
            given = [word if argument == "GRAPH" else argument for argument in arguments]
            return through_pipe(content, given, expect) if word == "PIPE" else run(given, content=content, expect=expect)

        facts = json.loads(go("info", "graph", "GRAPH", "--json")[0])
        require(facts["vertices"] == 5 and facts["arcs"] == 3, f"{facts}")
        require(facts["file_bytes"] == len(content), f"{facts['file_bytes']} bytes instead of {len(content)}")
        require(facts["file"] == ("standard input" if word == "-" else path_of("pipe")), facts["file"])
        go("convert", "GRAPH", path_of("copy.dmg"))
        components(run(["run", "cc", path_of("copy.dmg"), "--quiet", "--output", "-"])[0])
        answer = json.loads(go("run", "bfs", "GRAPH", "--source", "7", "--undirected", "--dedup", "--cns", "2", "--json")[0])
        require(answer["result"]["reached"] == 2, f"{answer['result']}")
        _, errors = go("run", "bfs", "GRAPH", "--source", "4", expect=USAGE)
        require("4 is no vertex of " + ("standard input" if word == "-" else path_of("pipe")) in one_line(errors), errors)
        compared = json.loads(go("compare", "GRAPH", "cc", "--cns", "1", "--rounds", "1", "--runs-only", "--with", "cxl_shm,none",
                                 "--with", "cxl_shm:coherence=none,none", "--json", "--no-progress")[0])
        require(compared["graph"]["vertices"] == 5, f"{compared['graph']}")


def binary_form_through_a_pipe():
    """Its header is written last, so it is made elsewhere first; who reads the pipe does not see that."""
    whole, _ = run(("convert", write("graph.el", TEXT), "-"))
    require(whole == binary_form(), f"{len(whole)} other bytes")
    components(run(["run", "cc", "-", "--quiet", "--output", "-"], content=whole)[0])


def main():
    text = TEXT.encode()
    binary = binary_form()
    for what, content in (("an edge list", text), ("the binary form", binary)):
        check(f"{what} comes through a named pipe, each time", named_pipe, content)
        check(f"{what} comes from the standard input, a pipe or a file", standard_input, content)
        check(f"{what} comes from a pipe and the standard input into every command", every_command, content)
    check("a standard input is read from where it stands", standard_input_from_where_it_stands)
    check("a standard input that is closed is an error, not the empty graph", closed_standard_input)
    check("a graph comes from a process substitution", substitution)
    check("the binary form goes through a pipe", binary_form_through_a_pipe)
    finish()


main()
