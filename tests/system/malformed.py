"""Malformed inputs: exit code 3 and one line that names the file, the line, and what was expected."""

import bz2
import gzip
import lzma
import os
import re
import shutil
import subprocess
import threading
import time

from harness import (IO, LIMIT, MALFORMED, PROGRAM, USAGE, check, communicate, dmgraph, finish, one_line, path_of, require,
                     saw_fault, write)

BANNER = "%%MatrixMarket matrix coordinate "

# (what, file name, content, line)
TEXTS = (
    ("a word as an id", "word.el", "0 1\n1 x\n", 2),
    ("a word behind a number", "glued.el", "0 1x\n", 1),
    ("a negative id", "negative.el", "# a comment\n0 1\n-1 2\n", 3),
    ("a decimal id", "decimal.el", "0.5 1\n", 1),
    ("an id beyond 64 bits", "large.el", "0 1\n18446744073709551616 1\n", 2),
    ("one column", "one.el", "0 1\n2\n1 2\n", 2),
    ("a comment behind the edge", "behind.el", "0 1\n1 2 # two\n", 2),
    ("a weight that is missing", "missing.el", "0 1 5\n1 2\n", 2),
    ("a weight that comes late", "late.el", "0 1\n1 2 5\n", 2),
    ("a weight that is no number", "nan.el", "0 1 1\n1 2 nan\n", 2),
    ("a weight that is not finite", "inf.el", "0 1 1\n1 2 inf\n", 2),
    ("a weight that is a word", "weight.el", "0 1 1\n1 2 heavy\n", 2),
    ("more columns than three", "four.el", "0 1 2 3\n", 1),
    ("a byte that is no text", "zero.el", b"0 1\n1 \0 2\n", 2),
    ("a broken line far down", "far.el", "".join(f"{i} {i + 1}\n" for i in range(50000)) + "1:2\n", 50001),
    ("a broken last line without its end", "end.el", "0 1\n1 2\n2", 3),
    ("a broken line behind CRLF lines", "crlf.el", "0 1\r\n1 2\r\n2 ?\r\n", 3),
    ("an unknown object", "object.mtx", "%%MatrixMarket tensor coordinate real general\n1 1 0\n", 1),
    ("a dense matrix", "array.mtx", "%%MatrixMarket matrix array real general\n1 1\n1.0\n", 1),
    ("complex numbers", "complex.mtx", BANNER + "complex general\n1 1 1\n1 1 1 1\n", 1),
    ("an unknown symmetry", "symmetry.mtx", BANNER + "real crooked\n1 1 1\n1 1 1\n", 1),
    ("a size line of two numbers", "size.mtx", BANNER + "pattern general\n% comment\n3 3\n1 2\n", 3),
    ("a size line of words", "words.mtx", BANNER + "pattern general\nthree three one\n", 2),
    ("a row of 0", "zero.mtx", BANNER + "pattern general\n3 3 1\n0 1\n", 3),
    ("a column that is too large", "column.mtx", BANNER + "pattern general\n3 3 2\n1 2\n1 4\n", 4),
    ("a value that is missing", "value.mtx", BANNER + "real general\n3 3 1\n1 2\n", 3),
    ("a value that is a word", "value_word.mtx", BANNER + "integer general\n3 3 1\n1 2 two\n", 3),
    ("an entry too many", "many.mtx", BANNER + "pattern general\n3 3 1\n1 2\n2 3\n", 4),
)


def refused(path, *options, algorithm="cc", codes=(MALFORMED,)):
    run = dmgraph("run", algorithm, path, *options, expect=None)
    require(run.code in codes, f"exit code {run.code} instead of {codes}: {run.err[-2000:]}{run.out[-500:]}")
    line = one_line(run.err)
    require(os.path.basename(path) in line, f"the file is not named: {line}")
    return line


def text(name, content, number):
    line = refused(write(name, content))
    require(f"{name}:{number}:" in line, f"line {number} is not named: {line}")
    require("expected" in line, f"what was expected is not said: {line}")


# Read as edge lists these would be other graphs, or quotations of bytes: (what, file name, content, what is said).
FOREIGN = (
    ("METIS' format by its name", "ring.graph", "4 4\n2 4\n1 3\n2 4\n1 3\n", "METIS"),
    ("METIS' format by its content", "ring.txt", "4 4\n2 4\n1 3\n2 4\n1 3\n", "METIS"),
    ("Graphalytics' edges beside their vertices", "pair.e", "2 3\n", "Graphalytics"),
    ("KONECT's undirected network", "out.network", "% sym unweighted\n1 2\n2 3\n", "--undirected"),
    ("a bzip2 file", "graph.el.bz2", bz2.compress(b"0 1\n"), "bzip2"),
    ("a zip archive", "graph.zip", b"PK\x03\x04\x14\0\0\0\x08\0", "zip"),
    ("a web page", "graph.txt.html", "<!DOCTYPE html>\n<html>404</html>\n", "web page"),
    ("a pointer of Git LFS", "lfs.el", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    ("a PDF document", "graph.pdf", b"%PDF-1.5\n%\xe2\xe3\n", "PDF"),
    ("an image", "graph.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
    ("a Parquet file", "graph.parquet", b"PAR1\x15\0", "Parquet"),
    ("a SQLite database", "graph.db", b"SQLite format 3\0", "SQLite"),
    ("binary edges", "graph.bin", b"".join(i.to_bytes(4, "little") for i in range(100)), "binary data"),
)


def foreign(name, content, word):
    write("pair.v", "2\n3\n9\n")
    path = write(name, content)
    line = refused(path)
    require(word in line and "??" not in line, line)
    for command in (("info", "graph", path), ("convert", path, path_of("foreign.dmg"))):
        require(word in one_line(dmgraph(*command, expect=MALFORMED).err), f"{command[0]} says something else")
    if isinstance(content, str) and content[0].isdigit():
        dmgraph("run", "cc", path, "--format", "edge-list", "--quiet")
        require("foreign" not in "".join(os.listdir(os.path.dirname(path))), "a conversion that failed left a file")


def another_format_was_asked_for():
    """What was asked for is what is read, or an error."""
    path = write("plain.el", "0 1\n")
    for word in ("matrix-market", "binary"):
        refused(path, "--format", word)
    run = dmgraph("run", "cc", path, "--format", "metis", expect=USAGE)
    require("edge-list" in one_line(run.err), run.err)


def fewer_entries():
    line = refused(write("few.mtx", BANNER + "pattern general\n3 3 2\n1 2\n"))
    require("2" in line and "1" in line, line)


def too_large_to_hold():
    refused(write("huge.mtx", BANNER + "pattern general\n4000000000 4000000000 9000000000000000000\n1 2\n"),
            codes=(MALFORMED, LIMIT))


def too_many_vertices():
    refused(write("vertices.mtx", BANNER + "pattern general\n4294967295 4294967295 1\n1 2\n"), codes=(LIMIT,))


def negative_weight():
    path = write("debt.el", "# owed\n0 1 3\n1 2 -3\n")
    line = refused(path, algorithm="sssp")
    require("debt.el:3" in line and "negative" in line, line)
    dmgraph("run", "cc", path)


def negative_weight_in_the_binary_form():
    """The line of the text still is in the message."""
    path = write("debt.el", "# owed\n0 1 3\n1 2 -3\n")
    dmgraph("convert", path, path_of("debt.dmg"))
    run = dmgraph("run", "sssp", path_of("debt.dmg"), expect=MALFORMED)
    require("debt.el:3" in one_line(run.err), run.err)


def compressed(suffix, compress, damage):
    whole = compress("".join(f"{i} {i * 7}\n" for i in range(20000)).encode())
    if damage == "cut":
        broken = whole[:len(whole) * 2 // 3]
    else:
        broken = bytearray(whole)
        broken[len(whole) // 2] ^= 0x55
    refused(write(f"damaged.el.{suffix}", bytes(broken)))


def zstd(content):
    return subprocess.run(["zstd", "-q", "-c", "--check"], input=content, stdout=subprocess.PIPE, check=True).stdout


def binary_form(damage):
    path = write("whole.el", "".join(f"{i} {i * 7 % 1000}\n" for i in range(1000)))
    dmgraph("convert", path, path_of("whole.dmg"))
    with open(path_of("whole.dmg"), "rb") as file:
        whole = bytearray(file.read())
    if damage == "cut":
        whole = whole[:len(whole) - 100]
    elif damage == "head":
        whole = whole[:20]
    elif damage == "longer":
        whole += b"more"
    elif damage == "counts":
        for index in range(8, 64):
            whole[index] ^= 0xff
    refused(write("broken.dmg", bytes(whole)))


def every_byte_of_the_head():
    """Whatever one byte of the binary form's head says, the program reads the file or refuses it."""
    path = write("small.el", "0 1\n1 2\n2 0\n")
    dmgraph("convert", path, path_of("small.dmg"))
    with open(path_of("small.dmg"), "rb") as file:
        whole = file.read()
    for index in range(0, min(len(whole), 256), 5):
        changed = bytearray(whole)
        changed[index] ^= 0x81
        run = dmgraph("info", "graph", write("changed.dmg", bytes(changed)), expect=None)
        require(run.code in (0, MALFORMED, LIMIT), f"byte {index}: exit code {run.code}: {run.err[-1000:]}")


def no_file():
    run = dmgraph("run", "cc", path_of("nowhere.el"), expect=IO)
    require("nowhere.el" in one_line(run.err), run.err)


def a_folder():
    run = dmgraph("run", "cc", "/tmp", expect=IO)
    one_line(run.err)


def no_place_for_the_output():
    run = dmgraph("run", "cc", write("good.el", "0 1\n"), "--output", path_of("nowhere/answer"), expect=IO)
    require("nowhere/answer" in one_line(run.err), run.err)


def a_full_disk():
    if not os.path.exists("/dev/full"):
        return
    began = time.monotonic()
    run = dmgraph("run", "cc", write("good.el", "0 1\n"), "--output", "/dev/full", expect=IO)
    require("/dev/full" in one_line(run.err), run.err)
    saw_fault("the disk is full", "one-shot run: output", "cxl_shm", run.code, run.err, time.monotonic() - began)


def a_source_that_is_no_vertex():
    run = dmgraph("run", "bfs", write("good.el", "0 1\n"), "--source", 7, expect=USAGE)
    require(re.search(r"\b7\b", one_line(run.err)), run.err)


def graph_with_ids(name):
    """A binary form with a section of ids behind the lists, of a few megabytes: a path whose ids have gaps."""
    lines = "".join(f"{7 * i} {7 * (i + 1)}\n" for i in range(150000))
    dmgraph("convert", write("path.el", lines), path_of(name))
    return path_of(name)


def cut_short(code, errors, path):
    require(code == MALFORMED, f"exit code {code} instead of {MALFORMED}: {errors}")
    line = one_line(errors)
    require(path in line and "cut short while" in line, line)


def cut_while_the_result_is_written():
    """The launcher has the ids mapped while it writes; a pipe that nobody empties stops it in between."""
    path = graph_with_ids("cut.dmg")
    pipe = path_of("result")
    os.mkfifo(pipe)
    process = subprocess.Popen([PROGRAM, "run", "cc", path, "--quiet", "--no-progress", "--output", pipe],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with open(pipe, "rb") as reader:
        require(len(reader.read(4096)) == 4096, "the result is too short")
        os.truncate(path, 8192)
        began = time.monotonic()
        reader.read()
    _, errors = communicate(process)
    cut_short(process.returncode, errors.decode(), path)
    saw_fault("a binary input is cut short", "one-shot run: output", "cxl_shm", process.returncode, errors.decode(),
              time.monotonic() - began)


def cut_at_any_moment():
    """Whoever has the file mapped then: no signal, no silence, and no wrong answer."""
    whole = graph_with_ids("whole.dmg")
    path = path_of("moment.dmg")
    began = time.monotonic()
    right = dmgraph("run", "cc", whole, "--cns", "2", "--quiet", "--output", "-").out
    takes = time.monotonic() - began
    for moment in range(12):
        shutil.copy(whole, path)
        began = time.monotonic()
        process = subprocess.Popen([PROGRAM, "run", "cc", path, "--cns", "2", "--quiet", "--no-progress", "--output", "-"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        timer = threading.Timer(takes * moment / 12, os.truncate, (path, 8192 if moment % 2 else 4096 * 300 + 8))
        timer.start()
        out, errors = communicate(process)
        timer.cancel()
        timer.join()
        if process.returncode == 0:
            require(out.decode() == right, f"another answer from a file that was cut after {moment} twelfths of a run")
        else:
            require(process.returncode == MALFORMED, f"exit code {process.returncode}: {errors.decode()}")
            require(path in one_line(errors.decode()), errors.decode())
            saw_fault("a binary input is cut short", "one-shot run: at any moment", "cxl_shm", process.returncode, errors.decode(),
                      max(0, time.monotonic() - began - takes * moment / 12))


def main():
    for what, name, content, number in TEXTS:
        check(f"{what} is refused with its line", text, name, content, number)
    for what, name, content, word in FOREIGN:
        check(f"{what} is refused for what it is", foreign, name, content, word)
    check("a format that the file does not have is refused", another_format_was_asked_for)
    check("a matrix with fewer entries than it says is refused", fewer_entries)
    check("a matrix that cannot be held is refused before memory is taken", too_large_to_hold)
    check("a matrix with more vertices than 32 bits number is refused", too_many_vertices)
    check("a negative weight is refused by sssp alone, with its line", negative_weight)
    check("a negative weight is refused with its line in the text, when the binary form is run", negative_weight_in_the_binary_form)
    compressors = {"gz": gzip.compress, "xz": lzma.compress}
    if shutil.which("zstd"):
        compressors["zst"] = zstd
    for suffix, compress in compressors.items():
        for damage in ("cut", "changed"):
            check(f"a {damage} {suffix} file is refused", compressed, suffix, compress, damage)
    for damage in ("cut", "head", "longer", "counts"):
        check(f"a damaged binary form ({damage}) is refused", binary_form, damage)
    check("a binary form that is cut short while the result is written is refused", cut_while_the_result_is_written)
    check("a binary form that is cut short at any moment gives no wrong answer and no signal", cut_at_any_moment)
    check("a byte of the binary form's head that changes is harmless", every_byte_of_the_head)
    check("a file that is not there is an input error", no_file)
    check("a folder is no graph", a_folder)
    check("an output that cannot be opened is an output error", no_place_for_the_output)
    check("an output that cannot be written is an output error", a_full_disk)
    check("a source that is no vertex is a usage error", a_source_that_is_no_vertex)
    finish()


main()
