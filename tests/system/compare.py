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
# Iterations of so small a graph would be repeated five times.
ONCE = ("--repeats", "1")
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
WHOLE = dmgraph("compare", GRAPH, *ALGORITHMS, *QUICK, *SHORT, *ONCE, "--rounds", 2, "--cns", "1,2", "--output", PAGE,
                *(("--runs-only",) if IS_THIN else ("--duration", "3ms")))


NAMES = ("polar-cxl", "polar-rdma")
COST = r"(?:[0-9.]+ (?:µs|ms|s)|not resolved)"
BOTH_COST = rf"{COST} \(polar-cxl\) and {COST} \(polar-rdma\)"
SOFTWARE_COST = BOTH_COST.replace("|not resolved", "")
LEAD = r"(polar-\S+ is faster than polar-\S+ by \d+\.\d\d \(|which is faster is not resolved: polar-\S+ takes \d+\.\d\d times as long as polar-\S+ \()"


def verdicts_of(text):
    """The verdict for each number of compute nodes, by its sentence."""
    return re.findall(r"With (\d+) compute nodes?,? (?:added up over \d+ algorithms, )?(the links' cost is .*)", text)


def the_answer_comes_first():
    first = WHOLE.out.splitlines()[0]
    require(re.match(rf"answer +With 1 compute node,? .*the links' cost is {BOTH_COST}; this machine's software costs "
                     rf"{SOFTWARE_COST}; {LEAD}.*in 2 rounds", first), first)
    for word in ("Short iterations: bfs with 1 CN (", "some were run once inside a round (--repeats 5 repeats them)",
                 "emulated link", "not calibrated on this host" if IS_THIN else "self-test on this host", "Iterations only, 2 rounds",
                 "Predicted, not run"):
        require(word in WHOLE.out, f"'{word}' is missing:\n{WHOLE.out}")


def every_number_of_compute_nodes_has_its_answer():
    verdicts = verdicts_of(WHOLE.out)
    require([nodes for nodes, _ in verdicts] == ["1", "2"], WHOLE.out)
    page = "".join(tree_of().itertext())
    for nodes, verdict in verdicts:
        require(re.match(rf"the links' cost is {BOTH_COST}; this machine's software costs {SOFTWARE_COST}; {LEAD}", verdict), verdict)
        require(verdict.endswith("no statement about the links is made.") or verdict.endswith("No statement about the links is made.")
                or "the links decide: their part of this ratio is" in verdict, verdict)
        require(verdict in page, f"the page does not say: {verdict}")


def a_flip_is_told_only_where_links_decide():
    """After each verdict, and what it says must fit."""
    lines = [line.strip() for line in WHOLE.out.splitlines()]
    flips = [line for line in lines if line.startswith(("Whether it would stay so", "This verdict"))]
    verdicts = [verdict for _, verdict in verdicts_of(WHOLE.out)]
    require(len(flips) == len(verdicts) == 2, WHOLE.out)
    for verdict, flip in zip(verdicts, flips):
        require(("the links decide: their part" in verdict) == flip.startswith("This verdict"), f"{verdict}\n{flip}")


def no_ratio_within_the_spread_has_by():
    for ratio in re.findall(r" by (\d+\.\d\d)", WHOLE.out):
        require(float(ratio) >= 1.02, ratio)
    for name in NAMES:
        require(f"{name} by 0" not in WHOLE.out, WHOLE.out)
    require("within the spread" not in WHOLE.out, WHOLE.out)


def the_table_the_page_and_the_answer_have_one_ratio():
    page = ["".join(row.itertext()) for row in tree_of().iter("tr")]
    for algorithm in ALGORITHMS:
        for cns in ("1", "2"):
            rows = [line for line in WHOLE.out.splitlines() if line.split()[:2] == [algorithm, cns] and line.split()[2] in NAMES]
            require(len(rows) == 2, str(rows))
            # Behind the name and three columns of times.
            ratios = [re.match(r"\s*(\d+\.\d\d|not resolved|1[*=])\s", row[68:]) for row in rows]
            require(all(ratios), str(rows))
            (ratio,) = [found.group(1) for found in ratios if found.group(1) not in ("1*", "1=")]
            (shown,) = [row for row in page if row.startswith(f"{algorithm}, {cns} CN") and "link:" in row]
            require(f"second / first{ratio}" in shown, f"{ratio}: {shown}")


def what_is_not_resolved_is_neither_nothing_nor_zero():
    """In the table, the numbers and the page alike: a link's cost is a number above 0, or says that it is none."""
    splits = [row for row in rows_of(path_of("report.csv")) if row["what"] == "split"]
    require(len(splits) == 2 * 2 * len(ALGORITHMS), f"{len(splits)} rows")
    page = ["".join(row.itertext()) for row in tree_of().iter("tr")]
    for row in splits:
        is_resolved = row["link_seconds"] != "not resolved"
        require(not is_resolved or float(row["link_seconds"]) > 0, str(row))
        require(float(row["compute_seconds"]) >= 0 and float(row["software_seconds"]) >= 0, str(row))
        lines = [line for line in WHOLE.out.splitlines() if line.split()[:3] == [row["algorithm"], row["cns"], row["emulated_link"]]]
        (shown,) = [text for text in page if text.startswith(f"{row['algorithm']}, {row['cns']} CN") and "link:" in text]
        if not is_resolved:
            require(len(lines) == 1 and "not resolved" in lines[0] and "link: not resolved" in shown, f"{lines}\n{shown}")


def other_numbers_of_compute_nodes_are_predicted():
    lines = WHOLE.out.splitlines()
    (head,) = [i for i, line in enumerate(lines) if line.split()[:2] == ["predicted", "CNs"]]
    rows = [line.split()[:2] for line in lines[head + 1:head + 1 + 4 * len(ALGORITHMS)]]
    require(rows == [[algorithm, cns] for algorithm in ALGORITHMS for cns in ("4", "8", "16", "32")], str(rows))
    predicted = [row for row in rows_of(path_of("report.csv")) if row["what"] == "predict"]
    require(len(predicted) == 2 * 4 * len(ALGORITHMS) and all(float(row["seconds"]) > 0 for row in predicted), str(predicted))
    require("With other numbers of compute nodes" in "".join(tree_of().itertext()), "the panel is missing")


def what_is_predicted_says_from_what_and_whether_it_differs():
    report = json.loads(dmgraph("compare", GRAPH, "bfs", "--with", "cxl_shm,polar-cxl", "--with", "cxl_shm,none", "--link-mode", "account",
                                "--runs-only", "--rounds", 1, "--cns", 1, "--predict-cns", "1,3", "--json", *ONCE, *SHORT).out)
    rows = {(row["cns"], one["configuration"]): one for row in report["predictions"] for one in row["configurations"]}
    require(len(rows) == 4 and all(one["seconds"] > 0 for one in rows.values()), str(rows))
    for row in report["predictions"]:
        ratio = max(one["seconds"] for one in row["configurations"]) / min(one["seconds"] for one in row["configurations"])
        require(row["from_cns"] == 1 and (ratio > 1.2 or not row["resolved"]), str(row))


def units_are_written_one_way():
    text = "".join(tree_of().find("body").itertext())
    require(not re.search(r"\d us\b| us\b", text) and not re.search(r"\d us\b", WHOLE.out), "there is a time in us")


def the_table_has_a_row_for_each():
    for algorithm in ALGORITHMS:
        for cns in ("1", "2"):
            for link in NAMES:
                lines = [line for line in WHOLE.out.splitlines() if line.split()[:3] == [algorithm, cns, link]]
                require(len(lines) == 1, f"{algorithm} {cns} {link}: {lines}")


def the_numbers_stand_beside_the_page():
    rows = rows_of(path_of("report.csv"))
    require(all("beyond" not in row and None not in row.values() for row in rows), "rows differ in length from the head")
    runs = [row for row in rows if row["what"] == "run"]
    # Two configurations, two rounds: as they are and without links with both numbers of CNs, changed links with the first.
    require(len(runs) == 2 * len(ALGORITHMS) * 2 * (2 * 2 + 2), f"{len(runs)} runs")
    for row in runs:
        require(float(row["seconds"]) > 0 and int(row["arcs"]) > 0 and int(row["repeats"]) == 1, str(row))
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
    # Where the links decide, how far off their profiles may be has a figure for each number of compute nodes.
    leads = [figure for figure in figures if "If the profiles were off" in "".join(figure.itertext())]
    require(len(figures) - len(leads) >= (7 if IS_THIN else 13) and len(leads) <= 2, f"{len(figures)} figures, {len(leads)} of leads")
    for figure in figures:
        caption = figure.find("figcaption")
        title, sentence = caption.find("b").text, caption.find("b").tail or ""
        require(len(sentence.strip()) > 20 and sentence.strip().endswith("."), f"{title}: no sentence says what to see: {sentence}")
        charts = list(figure.iter("{http://www.w3.org/2000/svg}svg"))
        require(len(charts) == 1 and charts[0].get("aria-label"), f"{title}: no chart with a description")
    text = " ".join(tree.itertext())
    words = ["emulated link", "second hand", "link model off", "without links", "Compare-and-swaps", "read_latency_ns",
             "Sizes of accesses: bfs", "this machine's software costs", "in 2 rounds)"]
    words += ["--runs-only was given"] if IS_THIN else ["self-test on this host", "Latency of a lone read", "bound by operations below"]
    for word in words:
        require(word in text or any(word in (chart.get("aria-label") or "") for chart in tree.iter()), f"'{word}' is missing")


def prose_stays_out_of_tables():
    """But for where a profile's numbers come from: a sentence makes all of a table as wide as itself."""
    for table in tree_of().iter("table"):
        for cell in table.iter("td"):
            text = "".join(cell.itertext())
            require(cell.get("class") == "why" or len(text) <= 80, text)


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


OVERLAPS = """var out=[];this.contentDocument.querySelectorAll('svg').forEach(function(s){
var t=[...s.querySelectorAll('text')].map(function(e){return [e.textContent,e.getBoundingClientRect()]});
for(var i=0;i<t.length;i++)for(var j=0;j<i;j++){var a=t[i][1],b=t[j][1];
if(Math.min(a.right,b.right)-Math.max(a.left,b.left)>1&&Math.min(a.bottom,b.bottom)-Math.max(a.top,b.top)>4)
out.push(s.getAttribute('aria-label')+': '+t[j][0]+' on '+t[i][0])}seen+=t.length});"""


def no_texts_of_a_chart_lie_on_each_other():
    probe = path_of("overlaps.html")
    with open(probe, "w", encoding="utf-8") as file:
        file.write("<!DOCTYPE html><iframe id='f' src='report.html' style='border:0;width:400px;height:800px'></iframe>"
                   "<p id='p'>not yet</p><script>document.getElementById('f').onload=function(){var seen=0;" + OVERLAPS +
                   "document.getElementById('p').textContent='of '+seen+' texts: '+(out.join(', ')||'none')+'.'}</script>")
    shown = browse("--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", "file://" + probe)
    found = re.search(r"of (\d+) texts: (.*)\.</p>", shown)
    require(found and int(found.group(1)) > 100 and found.group(2) == "none", f"{found and found.group(0)}")


# ---- settings ----

def what_is_compared_can_be_chosen():
    report = json.loads(dmgraph("compare", GRAPH, "cc", "--with", "ucx:data=message,none", "--with", "cxl_shm,none", "--with",
                                "ucx,rdma-cx5", "--link-mode", "account", "--runs-only", "--rounds", 1, "--cns", "2,1",
                                "--json", *ONCE, *SHORT).out)
    names = [one["name"] for one in report["configurations"]]
    require(names == ["ucx:data=message", "cxl_shm", "rdma-cx5"], str(names))
    require([one["emulated"] for one in report["configurations"]] == [False, False, True], str(names))
    require(report["answer"]["winner"] in names and not report["answer"]["clear"], str(report["answer"]))
    require(report["answer"]["verdict"] == "not resolved" and report["answer"]["flip_factor"] is None, str(report["answer"]))
    require([one["cns"] for one in report["answer"]["by_nodes"]] == [2, 1], str(report["answer"]))
    costs = {cost["configuration"]: cost for cost in report["answer"]["costs"]}
    require(costs["rdma-cx5"]["link_resolved"] and costs["rdma-cx5"]["link_seconds"] > 0, str(costs))
    require(costs["cxl_shm"]["link_seconds"] is None and costs["cxl_shm"]["software_seconds"] > 0, str(costs))
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
                                "--density", "sparse", "--direction", "push", "--json", *ONCE, *SHORT).out)
    for name in ("polar-cxl", "polar-rdma"):
        modelled = {run["variant"]: run["counters"]["modelled_ns"] for run in report["runs"] if run["configuration"] == name}
        require(modelled["without link"] == 0, str(modelled))
        require(modelled["latencies x 2"] > 1.5 * modelled["as it is"] > 0, str(modelled))


def short_iterations_are_repeated_and_warned_about():
    report = json.loads(dmgraph("compare", GRAPH, "bfs", *QUICK, "--runs-only", "--rounds", 1, "--cns", 1, "--json", *SHORT).out)
    require(all(run["repeats"] == [5] for run in report["runs"]), str([run["repeats"] for run in report["runs"]]))
    warnings = [text for text in report["answer"]["sentences"] if text.startswith("Short iterations: bfs with 1 CN (")]
    require(len(warnings) == 1 and "each was run 5 times inside a round" in warnings[0], str(report["answer"]["sentences"]))
    # Of five runs the middle one counts, and its ratio stands for one round.
    require(all(len(run["seconds"]) == 1 for run in report["runs"]), "a repeat counts as a round")
    require("in one round, which resolves nothing" in report["answer"]["sentences"][0], report["answer"]["sentences"][0])


def links_that_differ_a_hundredfold_decide():
    """Over one transport, with accounted links, whatever else the machine does: all of the difference is the link's."""
    slow = path_of("slow.link")
    with open(slow, "w", encoding="utf-8") as file:
        file.write("title = slow\n" + "".join(f"{kind}_latency_ns = 2000000 | made up\n" for kind in ("read", "write", "atomic", "message")))
    report = json.loads(dmgraph("compare", GRAPH, "bfs", "--with", "cxl_shm,polar-cxl", "--with", f"cxl_shm,{slow}", "--link-mode", "account",
                                "--density", "sparse", "--direction", "push", "--runs-only", "--rounds", 2, "--cns", 1, "--json", *ONCE, *SHORT).out)
    answer = report["answer"]
    require(answer["verdict"] == "links" and answer["winner"] == "polar-cxl" and answer["clear"], str(answer))
    require("the links decide: their part of this ratio is" in answer["sentences"][0], answer["sentences"][0])
    require(answer["flip_factor"] is None or answer["flip_factor"] > 1.5, str(answer))
    require(any(text.startswith("This verdict does not flip") for text in answer["sentences"]), str(answer["sentences"]))
    require(answer["ratio"] > 2 and answer["link_part"]["resolved"], str(answer))


def without_links_nothing_is_said_about_them():
    report = json.loads(dmgraph("compare", GRAPH, "bfs", "--with", "cxl_shm,none", "--with", "cxl_shm:coherence=none,none", "--runs-only",
                                "--rounds", 2, "--cns", 1, "--json", *ONCE, *SHORT).out)
    answer = report["answer"]
    require(answer["verdict"] in ("software", "not resolved") and answer["flip_factor"] is None, str(answer))
    require("the links' cost is none (" in answer["sentences"][0], answer["sentences"][0])
    require(re.search(r"[Nn]o statement about (the )?links is made\.$", answer["sentences"][0]), answer["sentences"][0])
    require(not any("flip" in text and "could flip" not in text for text in answer["sentences"]), str(answer["sentences"]))


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
                            ((GRAPH, "--cns", "1,x"), "--cns"), ((GRAPH, "--predict-cns", "4,"), "--predict-cns"),
                            ((GRAPH, "--repeats", "0"), "--repeats"), ((GRAPH, "--output", "-", "--json"), "--json"),
                            ((GRAPH, "--output", path_of("x.csv")), "x.csv"), ((GRAPH, *(7 * PAIR[:2])), "--with"),
                            ((GRAPH, *"abcdefghi"), "argument")):
        line = one_line(dmgraph("compare", *arguments, "--runs-only", *SHORT, expect=USAGE).err)
        require(word in line, line)
    one_line(dmgraph("compare", path_of("missing.el"), "--output", PAGE, *SHORT, expect=IO).err)
    require(tree_of() is not None, "the page of before is gone")
    # What goes wrong in a run is told as the run tells it.
    line = one_line(dmgraph("compare", GRAPH, "bfs", "--source", 1 << 40, "--runs-only", *SHORT, expect=USAGE).err)
    require("bfs over polar-cxl over cxl_shm" in line and "is no vertex" in line, line)


for function in (the_answer_comes_first, every_number_of_compute_nodes_has_its_answer, a_flip_is_told_only_where_links_decide,
                 no_ratio_within_the_spread_has_by, the_table_the_page_and_the_answer_have_one_ratio,
                 what_is_not_resolved_is_neither_nothing_nor_zero, other_numbers_of_compute_nodes_are_predicted,
                 units_are_written_one_way, prose_stays_out_of_tables, the_table_has_a_row_for_each, the_numbers_stand_beside_the_page, the_page_is_well_formed,
                 the_page_needs_nothing_else, names_stand_for_themselves):
    check(function.__name__, function)
if browser() and not IS_THIN:
    for function in (a_browser_shows_it_light_and_dark, a_phone_shows_it_without_scrolling_sideways, no_texts_of_a_chart_lie_on_each_other):
        check(function.__name__, function)
elif not IS_THIN:
    print("  skipped: there is no chromium here, so no browser has shown the page")
for function in (what_is_compared_can_be_chosen, slower_links_take_longer, what_is_predicted_says_from_what_and_whether_it_differs,
                 short_iterations_are_repeated_and_warned_about, links_that_differ_a_hundredfold_decide,
                 without_links_nothing_is_said_about_them, an_interrupt_leaves_nothing, mistakes_are_told_in_one_line):
    check(function.__name__, function)
finish()
