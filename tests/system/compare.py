"""dmgraph compare: the table, the numbers and the report, as a reader and a browser take them."""

import csv
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
import zlib

from harness import (IO, IS_THIN, PROGRAM, USAGE, check, command_run, communicate, dmgraph, finish, folder, one_line, path_of, require,
                     wait_until)

# Names of files are anybody's: this one must neither break the page nor become part of it.
GRAPH = path_of("<b>&\"'.dmg")
PAGE = path_of("report.html")
SHORT = ("--threads", "1", "--no-progress")
# Both over the transport that starts faster; other cases have the default pair.
QUICK = ("--with", "cxl_shm,polar-cxl", "--with", "cxl_shm,polar-rdma")
PAIR = ("--with", "cxl_shm,polar-cxl", "--with", "ucx,polar-rdma")
dmgraph("generate", "kron", "--scale", 6, "--weighted", GRAPH)


def page_of(path=PAGE):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tree_of(path=PAGE):
    head, _, rest = page_of(path).partition("\n")
    require(head == "<!DOCTYPE html>", head)
    return ElementTree.fromstring(rest)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, restkey="beyond"))


# ---- the comparison that most cases look at ----

ALGORITHMS = ("bfs",) if IS_THIN else ("bfs", "sssp")
WHOLE = dmgraph("compare", GRAPH, *ALGORITHMS, *QUICK, *SHORT, "--rounds", 2, "--cns", 1, "--output", PAGE,
                *(("--runs-only",) if IS_THIN else ("--duration", "3ms")))


def the_answer_comes_first():
    first = WHOLE.out.splitlines()[0]
    require(re.match(r"answer +(polar-\S+ over \S+ wins: |No clear winner: ).* takes \d+\.\d\d times as long", first), first)
    require("in 2 rounds" in first and "with 1 compute node" in first, first)
    for word in ("By algorithm: bfs:", "Why: ", "emulated link", "not calibrated on this host" if IS_THIN else "self-test on this host", "Iterations only, 2 rounds"):
        require(word in WHOLE.out, f"'{word}' is missing:\n{WHOLE.out}")


def the_table_has_a_row_for_each():
    for algorithm in ALGORITHMS:
        for link in ("polar-cxl", "polar-rdma"):
            lines = [line for line in WHOLE.out.splitlines() if line.split()[:3] == [algorithm, "1", link]]
            require(len(lines) == 1, f"{algorithm} {link}: {lines}")


def the_numbers_stand_beside_the_page():
    rows = rows_of(path_of("report.csv"))
    require(all("beyond" not in row and None not in row.values() for row in rows), "rows differ in length from the head")
    runs = [row for row in rows if row["what"] == "run"]
    # Two configurations: two rounds as they are and without links, one with changed links.
    require(len(runs) == 2 * len(ALGORITHMS) * (2 * 2 + 2), f"{len(runs)} runs")
    for row in runs:
        require(float(row["seconds"]) > 0 and int(row["arcs"]) > 0 and int(row["cns"]) == 1, str(row))
        in_place = int(row["in_place_spans"])
        require(in_place > 0 and row["emulated_link"] in ("polar-cxl", "polar-rdma"), str(row))
    variants = {row["variant"] for row in runs}
    require(variants == {"as it is", "without link", "latencies x 2", "capacities / 2"}, str(variants))
    perf = [row for row in rows if row["what"] == "perf"]
    if IS_THIN:
        require(not perf, "there are measurements, which --runs-only leaves out")
        return
    operations = {(row["emulated_link"], row["operation"]) for row in perf}
    for operation in ("read", "write", "cas", "faa", "message", "touch"):
        require(("polar-cxl", operation) in operations and ("polar-rdma", operation) in operations, str(operations))
    # Where a machine is busy, a measurement may be over before an operation is.
    ended = [row for row in perf if float(row["mops"]) > 0]
    require(len(ended) > len(perf) / 2, f"{len(ended)} of {len(perf)} measurements have operations")
    for row in ended:
        require(0 < float(row["min_ns"]) <= float(row["p50_ns"]) <= float(row["p99_ns"]) <= float(row["p999_ns"]), str(row))


def the_page_is_well_formed():
    tree = tree_of()
    figures = list(tree.iter("figure"))
    require(len(figures) >= (8 if IS_THIN else 14), f"{len(figures)} figures")
    for figure in figures:
        caption = figure.find("figcaption")
        title, sentence = caption.find("b").text, caption.find("b").tail or ""
        require(len(sentence.strip()) > 20 and sentence.strip().endswith("."), f"{title}: no sentence says what to see: {sentence}")
        charts = list(figure.iter("{http://www.w3.org/2000/svg}svg"))
        require(len(charts) == 1 and charts[0].get("aria-label"), f"{title}: no chart with a description")
    text = " ".join(tree.itertext())
    words = ["emulated link", "second hand", "link model off", "without links", "Compare-and-swaps", "read_latency_ns",
             "Sizes of accesses: bfs", "does not come from the profiles"]
    words += ["--runs-only was given"] if IS_THIN else ["self-test on this host", "Latency of a lone read", "bound by operations below"]
    for word in words:
        require(word in text or any(word in (chart.get("aria-label") or "") for chart in tree.iter()), f"'{word}' is missing")


def the_page_needs_nothing_else():
    tree = tree_of()
    for element in tree.iter():
        name = element.tag.rpartition("}")[2]
        require(name not in ("script", "link", "img", "iframe", "object", "embed", "audio", "video", "base"), f"there is a {name}")
        for attribute, value in element.attrib.items():
            require(attribute not in ("src", "href", "srcset", "action", "data") and not attribute.startswith("on"),
                    f"{name} has {attribute}={value}")
    require("@import" not in page_of() and "url(" not in page_of(), "the style loads something")


def names_stand_for_themselves():
    page = page_of()
    require("<b>&" not in page and "&lt;b&gt;&amp;&quot;&#39;.dmg" in page, "the graph's name is not escaped")
    heading = "".join(tree_of().find("body/main/h1").itertext())
    require(heading.endswith("on " + os.path.basename(GRAPH)), heading)


# ---- in a browser ----

def pixels(path):
    """Width, height and rows of RGB of a PNG without interlace."""
    with open(path, "rb") as file:
        data = file.read()
    require(data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG")
    at, body, width, height, depth, kind = 8, b"", 0, 0, 0, 0
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + length]
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack(">IIBB", chunk[:10])
        elif name == b"IDAT":
            body += chunk
        at += 12 + length
    require(depth == 8 and kind in (2, 6), f"depth {depth}, kind {kind}")
    step = 3 if kind == 2 else 4
    raw, rows, before = zlib.decompress(body), [], bytearray(width * step)
    for row in range(height):
        start = row * (width * step + 1)
        line = bytearray(raw[start + 1:start + 1 + width * step])
        undo_filter(raw[start], line, before, step)
        rows.append(line)
        before = line
    return width, height, rows, step


def undo_filter(kind, line, before, step):
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        up = before[i]
        corner = before[i - step] if i >= step else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            estimate = left + up - corner
            nearest = min((abs(estimate - left), 0, left), (abs(estimate - up), 1, up), (abs(estimate - corner), 2, corner))
            line[i] = (line[i] + nearest[2]) & 255


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


def browse(*arguments):
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
               "--user-data-dir=" + os.path.join(folder(), "browser"), *arguments]
    done = command_run(command)
    require(done.code == 0, done.err[-2000:])
    return done.out


def ground(name, scheme):
    """The colour of the page's corner, and how many others there are in the picture."""
    picture = path_of(name)
    browse(f"--blink-settings=preferredColorScheme={scheme}", "--window-size=500,400", "--screenshot=" + picture, "file://" + PAGE)
    width, height, rows, step = pixels(picture)
    require((width, height) == (500, 400), f"{width} x {height}")
    colours = {bytes(row[i:i + 3]) for row in rows for i in range(0, len(row), step)}
    return sum(rows[1][:3]), len(colours)


def a_browser_shows_it_light_and_dark():
    light, light_colours = ground("light.png", 1)
    dark, dark_colours = ground("dark.png", 0)
    require(light > 600 and dark < 200, f"the ground is {light} in light and {dark} in dark")
    require(light_colours > 20 and dark_colours > 20, f"{light_colours} and {dark_colours} colours: is there any text?")


def a_phone_shows_it_without_scrolling_sideways():
    # A page around it, 360 pixels wide, asks how wide it became; that page may have a script.
    probe = path_of("probe.html")
    with open(probe, "w", encoding="utf-8") as file:
        file.write("<!DOCTYPE html><iframe id='f' src='report.html' style='border:0;width:360px;height:800px'></iframe>"
                   "<p id='p'>not yet</p><script>document.getElementById('f').onload=function(){"
                   "var d=this.contentDocument.documentElement,w=[d.scrollWidth];"
                   "this.contentDocument.querySelectorAll('svg').forEach(function(s){w.push(s.getBoundingClientRect().right)});"
                   "document.getElementById('p').textContent='widest '+Math.max.apply(null,w)}</script>")
    shown = browse("--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", "file://" + probe)
    widest = re.search(r"widest ([0-9.]+)", shown)
    require(widest and float(widest.group(1)) <= 360, f"{widest and widest.group(0)}")


# ---- settings ----

def what_is_compared_can_be_chosen():
    report = json.loads(dmgraph("compare", GRAPH, "cc", "--with", "ucx:data=message,none", "--with", "cxl_shm,none", "--with",
                                "ucx,rdma-cx5", "--link-mode", "account", "--runs-only", "--rounds", 1, "--cns", "2,1",
                                "--json", *SHORT).out)
    names = [one["name"] for one in report["configurations"]]
    require(names == ["ucx:data=message", "cxl_shm", "rdma-cx5"], str(names))
    require([one["emulated"] for one in report["configurations"]] == [False, False, True], str(names))
    require(report["answer"]["winner"] in names and not report["answer"]["clear"], str(report["answer"]))
    require({run["algorithm"] for run in report["runs"]} == {"cc"}, "algorithms")
    counts = [run["cns"] for run in report["runs"]]
    # Each as it is and bare, the one with a link with two changed ones, too: those with the first number of CNs.
    require(counts.count(1) == 3 * 2 and counts.count(2) == 3 * 2 + 2, str(counts))
    accounted = {run["configuration"]: max(run["accounted_seconds"]) for run in report["runs"] if run["variant"] == "as it is"}
    require(accounted["rdma-cx5"] > 0 and accounted["ucx:data=message"] == 0 and report["answer"]["accounted"], str(accounted))
    require(any("accounted for and not waited for" in text for text in report["answer"]["sentences"]), "it is not said")
    sizes = report["runs"][0]["counters"]
    require(sum(sizes["sizes"]) == sizes["read"]["operations"] + sizes["write"]["operations"], "sizes do not add up")
    placed = next(run["counters"] for run in report["runs"] if run["configuration"] == "cxl_shm")
    require(sum(placed["in_place_sizes"]) == placed["in_place_spans"] > 0, "sizes in place do not add up")


def slower_links_take_longer():
    """Accounted time is exact, so that twice the latency shows without a clock."""
    report = json.loads(dmgraph("compare", GRAPH, "bfs", *PAIR, "--link-mode", "account", "--runs-only", "--rounds", 1, "--cns", 1,
                                "--density", "sparse", "--direction", "push", "--json", *SHORT).out)
    for name in ("polar-cxl", "polar-rdma"):
        modelled = {run["variant"]: run["counters"]["modelled_ns"] for run in report["runs"] if run["configuration"] == name}
        require(modelled["without link"] == 0, str(modelled))
        require(modelled["latencies x 2"] > 1.5 * modelled["as it is"] > 0, str(modelled))


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def an_interrupt_leaves_nothing():
    page = path_of("interrupted.html")
    process = subprocess.Popen([PROGRAM, "compare", GRAPH, "--threads", "1", "--rounds", "25", "--output", page], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        runs = []
        wait_until("a run that is started", lambda: runs.extend(children_of(process.pid)) or runs)
        process.send_signal(signal.SIGINT)
        communicate(process, 30)
        require(process.returncode == -signal.SIGINT, f"exit code {process.returncode}")
    finally:
        process.kill()
        process.wait()
    wait_until("the end of all runs", lambda: not any(os.path.exists(f"/proc/{run}") for run in runs))
    require(not os.path.exists(page) and not os.path.exists(path_of("interrupted.csv")), "there is half a report")


def mistakes_are_told_in_one_line():
    for arguments, word in (((GRAPH, "dijkstra"), "dijkstra"), ((GRAPH, "--with", "ucx,polar-rdma"), "nothing to compare"),
                            ((GRAPH, "--with", "ucx", *PAIR), "TRANSPORT,LINK"),
                            ((GRAPH, *PAIR, "--with", "ucx,polar-rdma"), "twice"), ((GRAPH, "bfs", "bfs"), "twice"),
                            ((GRAPH, "--with", "ucx,no-such-link", *PAIR), "no-such-link"), ((GRAPH, "--cns", "0"), "--cns"),
                            ((GRAPH, "--cns", "1,x"), "--cns"), ((GRAPH, "--output", "-", "--json"), "--json"),
                            ((GRAPH, "--output", path_of("x.csv")), "x.csv"), ((GRAPH, *(7 * PAIR[:2])), "--with"),
                            ((GRAPH, *"abcdefghi"), "argument")):
        line = one_line(dmgraph("compare", *arguments, "--runs-only", *SHORT, expect=USAGE).err)
        require(word in line, line)
    one_line(dmgraph("compare", path_of("missing.el"), "--output", PAGE, *SHORT, expect=IO).err)
    require(tree_of() is not None, "the page of before is gone")
    # What goes wrong in a run is told as the run tells it.
    line = one_line(dmgraph("compare", GRAPH, "bfs", "--source", 1 << 40, "--runs-only", *SHORT, expect=USAGE).err)
    require("bfs over polar-cxl over cxl_shm" in line and "is no vertex" in line, line)


for function in (the_answer_comes_first, the_table_has_a_row_for_each, the_numbers_stand_beside_the_page, the_page_is_well_formed,
                 the_page_needs_nothing_else, names_stand_for_themselves):
    check(function.__name__, function)
if browser() and not IS_THIN:
    for function in (a_browser_shows_it_light_and_dark, a_phone_shows_it_without_scrolling_sideways):
        check(function.__name__, function)
elif not IS_THIN:
    print("  skipped: there is no chromium here, so no browser has shown the page")
for function in (what_is_compared_can_be_chosen, slower_links_take_longer, an_interrupt_leaves_nothing, mistakes_are_told_in_one_line):
    check(function.__name__, function)
finish()
