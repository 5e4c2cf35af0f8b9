"""`task bench`: hedgerow and the same operator in Go, side by side, and docs/performance.md.

Each pair is two runs on fresh control planes, one after the other. Machines are shared and noisy,
so what counts is the ratio within a pair, and of several pairs the median. `neutral/run.py`
measures: it starts an operator by a command line and judges it by what the API server shows.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import anyio

import hedgerow
import hedgerow_schemas
from bench.admission import ADMISSION_MARKS, CLIENT, Admission, of_admission
from bench.bars import Bar, bars
from bench.pages import fill
from bench.scale import SCALE_MARKS, curve, scaled, table
from bench.shards import SHARD_MARKS, divided, over
from bench.shards import table as of_shards
from hedgerow.version import version
from hedgerow_testing.sandbox.binaries import Binaries
from hedgerow_testing.sandbox.pins import pick
from support.programs.kopf import cache, kopf_python

HERE = Path(__file__).parent
NEUTRAL = HERE / "neutral"
DOCS = HERE.parents[1] / "docs"
MARKS = "<!-- measured -->", "<!-- /measured -->"
SAME = "go-same"
DISTRIBUTION = "/usr"
"""The prefix of the Python that a Linux distribution has."""
OWN = f"{Path(sys.executable).parent / 'hedgerow'} run"

Result = dict[str, Any]


class Row(NamedTuple):
    """One row of the table: its title, where its figure is in a result, and what is to be reached.

    `reach` is the ratio to go-same that is aimed for; 0 where none is.
    """

    title: str
    place: str
    reach: float = 0


ROWS = (
    Row("converge, s", "converge.s", 1.15),
    Row("flip all, s", "flip.s", 1.15),
    Row("one flip, p50, ms", "single.p50_ms", 1.2),
    Row("one flip, p99, ms", "single.p99_ms"),
    Row("status after a flip, p50, ms", "single.status_p50_ms", 1.2),
    Row("backlog, s from spawn", "backlog.s", 1.15),
    Row("restart until live, s", "restart.live_s", 2),
    Row("start of a cron Job late, p50, ms", "cron.late_p50_ms", 1.2),
    Row("start of a cron Job late, max, ms", "cron.late_max_ms", 1.2),
    Row("start late in a storm, p50, ms", "storm.late_p50_ms", 1.2),
    Row("start late in a storm, max, ms", "storm.late_max_ms", 1.2),
    Row("operator CPU, converge, s", "converge.op_cpu_s"),
    Row("operator CPU, noise, s", "noise.op_cpu_s", 2),
    Row("operator CPU, whole run, s", "total.op_cpu_s", 2),
    Row("API server CPU, converge, s", "converge.kube-apiserver_cpu_s", 1.05),
    Row("peak resident memory, MiB", "total.op_rss_peak_mib"),
    Row("writes per resource", "converge.writes_per_cr"),
    Row("writes per flip", "flip.writes_per_cr"),
    Row("writes after a restart", "restart.writes"),
    Row("writes on irrelevant events", "noise.writes"),
)


def figure(result: Result, place: str) -> float | None:
    """Return the figure at a place such as `converge.s`, or None."""
    value: Any = result
    for part in place.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def ratio(pair: tuple[Result, Result], place: str) -> float | None:
    """Return ours divided by theirs, or None if either has no figure."""
    ours, theirs = (figure(result, place) for result in pair)
    return ours / theirs if ours is not None and theirs else None


# --- what is run


async def servers(kubernetes: str) -> Path:
    """Return a directory with etcd and kube-apiserver, fetched or built if they are missing."""
    found = await Binaries(pick(kubernetes), print).find(["etcd", "kube-apiserver"])
    directory = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    for name, path in found.items():
        (directory / name).symlink_to(path)
    return directory


def in_go(sources: Path) -> Path:
    """Return a program in Go, such as the peers, built once."""
    built = cache(sources.name, [path for path in sources.iterdir() if path.is_file()])
    if not built.exists():
        if not shutil.which("go"):
            sys.exit(f"bench: {sources.name} is built with Go, which is not installed")
        print(f"building {sources.name}, some minutes the first time", file=sys.stderr)
        built.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "build", "-o", built, "."], cwd=sources, check=True)
    return built


def compiled() -> None:
    """Compile hedgerow, as an installation and the image are; a checkout may be changed since."""
    for package in (hedgerow, hedgerow_schemas):
        compileall.compile_dir(next(iter(package.__path__)), quiet=1)


def measured(names: Sequence[str], given: argparse.Namespace, cp: Path) -> list[Result]:
    """Run these operators one after the other; return a result for each."""
    compiled()
    commands = [f"hedgerow={OWN}" if name == "hedgerow" else name for name in names]
    how = ["--pair", *commands] if len(commands) > 1 else ["--cmd", *commands]
    env = {**os.environ, "BENCH_CP_BIN": str(cp), "PEER_GO": str(in_go(NEUTRAL / "peer-go"))}
    if "kopf" in names:
        env["PEER_KOPF_PYTHON"] = str(kopf_python())
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as work:
        output = Path(work, "results.jsonl")
        command = [sys.executable, str(NEUTRAL / "run.py"), *how, "-n", str(given.n)]
        command += ["--steady", str(given.steady), "--storm", str(given.storm)]
        command += ["--json", str(output), "--work", f"{work}/work"]
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line) for line in output.read_text("utf-8").splitlines()]


def paired(number: int, given: argparse.Namespace, cp: Path) -> list[Result]:
    """Return the results of one pair, hedgerow's first; every other pair begins with the peer."""
    names = ["hedgerow", SAME]
    if number % 2 == 0:
        return measured(names, given, cp)
    return measured(names[::-1], given, cp)[::-1]


# --- what is written


def of_pairs(pairs: Sequence[tuple[Result, Result]]) -> Iterator[str]:
    """Yield the lines of the table of hedgerow and go-same, of what was measured."""
    yield f"| measure | hedgerow | {SAME} | ratio of each pair | median | to reach |"
    yield "|---|--:|--:|---|--:|--:|"
    for row in ROWS:
        sides = [[figure(pair[side], row.place) for pair in pairs] for side in (0, 1)]
        if not any(value is not None for side in sides for value in side):
            continue
        found = [value for pair in pairs if (value := ratio(pair, row.place)) is not None]
        shown = ", ".join(f"{value:.2f}" for value in found)
        middle = f"**{median(found):.2f}**" if found else ""
        reach = f"{row.reach:g}" if row.reach else ""
        ours, theirs = (_middle(side) for side in sides)
        yield f"| {row.title} | {ours} | {theirs} | {shown} | {middle} | {reach} |"


def of_peers(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of the table of all peers, one run each."""
    yield f"| measure | {' | '.join(results)} |"
    yield f"|---|{'--:|' * len(results)}"
    for row in ROWS:
        cells = [_middle([figure(result, row.place)]) for result in results.values()]
        yield f"| {row.title} | {' | '.join(cells)} |"


def _middle(values: Sequence[float | None]) -> str:
    found = [value for value in values if value is not None]
    return f"{median(found):.4g}" if found else "-"


def plot(pairs: Sequence[tuple[Result, Result]]) -> str:
    """Return an SVG with a bar for the median ratio of each row; what is left of the line wins."""
    rows = [
        (row, median(found))
        for row in ROWS
        if (found := [v for pair in pairs if (v := ratio(pair, row.place)) is not None])
    ]
    title = f"hedgerow / {SAME}, median of {len(pairs)} pairs: less is better"
    shown = [Bar(row.title, value, value <= max(1, row.reach)) for row, value in rows]
    return bars(title, shown, least=2.0)


def report(results: Mapping[str, Any], page: Path) -> None:
    """Write the tables and the plot of these results between the marks of a page."""
    _report_scale(results, page)
    if results.get("admission"):
        fill(
            page, ADMISSION_MARKS, [_measured_on(results), "", *of_admission(results["admission"])]
        )
    if results.get("shards"):
        lines = [_measured_on(results), "", *of_shards(results["shards"])]
        fill(page.with_name("guides") / "shards.md", SHARD_MARKS, lines)
    if results["pairs"]:
        _report_pairs(results, page)


def _report_pairs(results: Mapping[str, Any], page: Path) -> None:
    pairs = [(one[0], one[1]) for one in results["pairs"]]
    lines = [
        _measured_on(results, f"{results['n']} resources of each kind, "),
        "",
        *of_pairs(pairs),
        "",
        "![The ratios as bars](performance.svg)",
    ]
    if results["peers"]:
        lines += ["", "One run of each peer, in the same hour:", "", *of_peers(results["peers"])]
    fill(page, MARKS, lines)
    page.with_name("performance.svg").write_text(plot(pairs), "utf-8")


def _report_scale(results: Mapping[str, Any], page: Path) -> None:
    points = results.get("scale")
    if not points:
        return
    picture = "![Memory by the number of objects](scale.svg)"
    fill(page, SCALE_MARKS, [_measured_on(results), "", *table(points), "", picture])
    page.with_name("scale.svg").write_text(curve(points), "utf-8")


def _measured_on(results: Mapping[str, Any], what: str = "") -> str:
    version, machine = results["version"], results["machine"]
    return f"Measured on {results['day']} with hedgerow {version}: {what}{machine}."


def machine() -> str:
    """Return what the figures depend on: processors, their model, and Python."""
    found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text("utf-8"))
    model = found[1] if found else "unknown"
    return f"{os.cpu_count()} cores ({model}), {interpreter()}"


def interpreter() -> str:
    """Return Python's version, and where it is from.

    One built without optimizations by profile, as pyenv builds it unless told otherwise, takes a
    quarter more CPU than those of distributions and container images.
    """
    name = f"Python {platform.python_version()}"
    if sys.base_prefix == DISTRIBUTION:
        return f"{name} of {platform.freedesktop_os_release()['NAME']}"
    return name if is_optimized() else f"{name}, built without optimizations"


def is_optimized() -> bool:
    """Return whether Python was built with optimizations by profile, as distributions do."""
    flags = str(sysconfig.get_config_var("CONFIG_ARGS"))
    return sys.base_prefix == DISTRIBUTION or "--enable-optimizations" in flags


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or only write the page from an earlier measurement."""
    parser = argparse.ArgumentParser(prog="task bench --", description=__doc__)
    parser.add_argument("-n", type=int, default=300, help="resources of each kind")
    parser.add_argument("--pairs", type=int, default=4, help=f"pairs of hedgerow and {SAME}")
    parser.add_argument("--peers", nargs="*", default=[], help="go-default, go-tuned, kopf, ...")
    parser.add_argument("--steady", type=float, default=60, help="seconds of rest in each run")
    parser.add_argument(
        "--storm", type=int, default=10_000, help="resources that change while others are due"
    )
    parser.add_argument(
        "--scale",
        nargs="*",
        type=int,
        default=[],
        metavar="N",
        help="then measure hedgerow alone with N of each kind: memory, restart, reaction",
    )
    parser.add_argument(
        "--admission",
        type=int,
        default=0,
        metavar="N",
        help="then measure how long the API server would wait for each of N reviews",
    )
    parser.add_argument(
        "--shards",
        nargs="*",
        type=int,
        default=[],
        metavar="N",
        help="then measure N shards beside one operator, for docs/guides/shards.md",
    )
    parser.add_argument("--kubernetes", default="", help="a pinned version")
    parser.add_argument("--output", type=Path, help="keep the figures in this file, as JSON")
    parser.add_argument("--report", type=Path, help="only write the page from such a file")
    parser.add_argument("--page", type=Path, default=DOCS / "performance.md")
    given = parser.parse_args(argv)
    if given.report:
        report(json.loads(given.report.read_text("utf-8")), given.page)
        return 0
    if not is_optimized():
        hint = "name another to have .venv made with it: rm -r .venv; PYTHON=… ./task bench"
        print(f"bench: {interpreter()}, which slows hedgerow; {hint}", file=sys.stderr)
    cp = anyio.run(servers, given.kubernetes)
    try:
        pairs = [paired(number, given, cp) for number in range(given.pairs)]
        peers = {name: measured([name], given, cp)[0] for name in given.peers}
        points = scaled(cp, OWN, given.scale) if given.scale else []
        reviews = (
            Admission(cp, OWN).measure(in_go(CLIENT), given.admission) if given.admission else {}
        )
        parts = divided(OWN, given.shards, given.kubernetes)
    finally:
        shutil.rmtree(cp)
    results = {
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "version": version(),
        "n": given.n,
        "machine": machine(),
        "pairs": pairs,
        "peers": peers,
        "scale": points,
        "admission": reviews,
        "shards": parts,
    }
    if given.output:
        given.output.write_text(json.dumps(results, indent=1), "utf-8")
    report(results, given.page)
    told = [*of_pairs([(one[0], one[1]) for one in pairs]), *table(points)]
    broken = list(over(parts))
    print("\n".join([*told, *of_admission(reviews), *of_shards(parts), *broken]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
