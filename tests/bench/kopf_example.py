"""`task bench-kopf`: one example of kopf and the same operator of hedgerow, side by side.

It runs both programs of `claims`, each on a sandbox of its own, with `hedgerow_testing`, and writes
into docs/coming-from-kopf.md what it counted, and what each does with a field that is taken.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
import yaml

from bench.pages import fill
from hedgerow.version import version
from hedgerow_testing import Api, AuditLog, OperatorProcess, SomebodyElse, assert_settled, target
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandboxes import running
from support.programs.kopf import REQUIREMENTS, kopf_python

HERE = Path(__file__).parent / "claims"
PAGE = Path(__file__).parents[2] / "docs/coming-from-kopf.md"
MARKS = "<!-- measured -->", "<!-- /measured -->"
USER, NAMESPACE = "operator", "default"
ADMINISTRATORS = ("system:masters",)
QUIET = 3.0
"""Seconds without a write after which an operator counts as settled."""
PORTLESS = ("--metrics-bind-address", "0", "--health-probe-bind-address", "0")


@dataclass
class Figures:
    """What was measured of one operator; `seen` is what it did with fields of others."""

    lines: dict[str, int]
    writes: dict[str, int] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    memory: float = 0


@dataclass(frozen=True)
class Peer:
    """One operator: its sources, and how it is installed and started."""

    name: str
    sources: tuple[str, ...]

    def install(self, kubeconfig: Path) -> None:
        if self.name == "kopf":
            api = Api(kubeconfig)
            api.apply(yaml.safe_load((HERE / "crd.yaml").read_text("utf-8")), "bench").must()
            api.close()
        else:
            command = [sys.executable, HERE / "of_hedgerow.py", "install"]
            subprocess.run([*command, "--kubeconfig", kubeconfig], check=True, capture_output=True)

    def command(self) -> list[str | Path]:
        if self.name == "kopf":
            flags = ["--standalone", "--all-namespaces", "--quiet"]
            return [kopf_python(), "-m", "kopf", "run", *flags, HERE / "of_kopf.py"]
        return [sys.executable, HERE / "of_hedgerow.py", "run", *PORTLESS]

    def lines(self) -> dict[str, int]:
        return {name: lines_of(HERE / name) for name in self.sources}


PEERS = (
    Peer("kopf", ("of_kopf.py", "pvc.yaml", "crd.yaml")),
    Peer("hedgerow", ("of_hedgerow.py",)),
)


def lines_of(path: Path) -> int:
    """Count the lines with code: no comments, no docstrings, no empty ones."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return sum(bool(line.partition("#")[0].strip()) for line in text.splitlines())
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    found: set[int] = set()
    begins = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = begins and token.type == tokenize.STRING
        if token.type not in silent and token.type != tokenize.ENDMARKER and not is_docstring:
            found.update(range(token.start[0], token.end[0] + 1))
        if token.type not in {tokenize.COMMENT, tokenize.NL}:
            begins = token.type in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    return len(found)


class Run:
    """One operator on one sandbox, and the people who use it."""

    def __init__(self, peer: Peer, sandbox: Sandbox, audit_log: AuditLog, count: int) -> None:
        self._audit, self._mark = audit_log, 0
        self._names = [f"claim-{number:03}" for number in range(count)]
        self._api = Api(sandbox.kubeconfig)
        peer.install(sandbox.kubeconfig)
        self._api.served("kopf.dev/v1")
        kubeconfig = anyio.run(sandbox.kubeconfig_for, USER, ADMINISTRATORS)
        log = sandbox.directory.with_name("operator.log")
        self._operator = OperatorProcess(peer.command(), kubeconfig=kubeconfig, log=log, user=USER)
        other = anyio.run(sandbox.kubeconfig_for, "somebody-else", ADMINISTRATORS)
        self._other = SomebodyElse(Api(other))
        self.figures = Figures(peer.lines())

    def measure(self) -> Figures:
        """Let it make all claims, relabel them, meet somebody else, and start anew."""
        names = self._names
        with self._operator:
            with self._counted("started"):
                self._wait(self._watches)
            with self._counted("made"):
                for name in names:
                    self._apply(name)
                self._wait(lambda: all(self._volume(name) for name in names))
            with self._counted("relabelled"):
                for name in names:
                    self._apply(name, owner="me")
                self._wait(lambda: all(self._owner(name) == "me" for name in names))
            self._meet_others(*names[:3])
            self.figures.memory = round(self._operator.peak / 2**20, 1)
            self._operator.stop()
            with self._counted("restarted"):
                self._operator.start(self._watches)
        return self.figures

    @contextmanager
    def _counted(self, step: str) -> Iterator[None]:
        """Count what is written, and the CPU that is used, until nothing is written any more."""
        self._mark = self._audit.mark()
        before = self._operator.cpu if self._operator.running and step != "started" else 0.0
        yield
        self._settle()
        writes = self._audit.writes(self._mark, user=USER)
        # kopf has none of what went well (`--quiet`).
        told = [one for one in writes if one["objectRef"]["resource"] == "events"]
        self.figures.writes[step] = len(writes) - len(told)
        self.figures.cpu[step] = round(self._operator.cpu - before, 2)

    def _meet_others(self, taken: str, bare: str, gone: str) -> None:
        """See what becomes of a label that is taken, one that is removed, and a volume deleted."""
        self._other.apply(_claim(taken, {"labels": {"owner": "them"}}), force=True)
        self._apply(taken, owner="you")
        self._settle()
        owner = self._owner(taken)
        seen = self.figures.seen
        seen["taken"] = "is left" if owner == "them" else f"is overwritten with `{owner}`"
        seen["told"] = self._told(taken)
        self._other.remove(_claim(bare), "metadata", "labels", "owner")
        self._settle()
        seen["removed"] = "is put back" if self._owner(bare) else "stays away"
        self._other.edit(_claim(gone), {"metadata": {"finalizers": None}})
        self._other.delete(_claim(gone))
        self._settle()
        seen["deleted"] = "is made anew" if self._volume(gone) else "stays away"

    def _told(self, name: str) -> str:
        claim = target("kopf.dev/v1", "EphemeralVolumeClaim", name, NAMESPACE)
        status = self._api.get(claim).must().get("status", {})
        lines = [
            f"`{one['path']}` of {one['object']} is held by `{one['manager']}`"
            for one in status.get("contested", ())
        ]
        return f"in its status: {', '.join(lines)}" if lines else "nowhere"

    def _settle(self) -> None:
        assert_settled(self._audit, for_=QUIET, within=90, user=USER)

    def _watches(self) -> bool:
        begun = self._audit.entries(self._mark)
        return any(e["verb"] == "watch" and e["user"]["username"] == USER for e in begun)

    def _wait(self, fact: Callable[[], object]) -> None:
        self._operator.wait_for(fact, within=90)

    def _apply(self, name: str, **labels: str) -> None:
        body = target("kopf.dev/v1", "EphemeralVolumeClaim", name, NAMESPACE)
        body["metadata"] |= {"labels": labels} if labels else {}
        self._api.apply({**body, "spec": {"size": "1G"}}, "user").must()

    def _volume(self, name: str) -> dict[str, Any] | None:
        reply = self._api.get(_claim(name))
        return reply.body if reply.ok else None

    def _owner(self, name: str) -> str:
        metadata = (self._volume(name) or {}).get("metadata", {})
        return metadata.get("labels", {}).get("owner", "")


def _claim(name: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    body = target("v1", "PersistentVolumeClaim", name, NAMESPACE)
    body["metadata"] |= metadata or {}
    return body


def measured(peer: Peer, count: int) -> Figures:
    """Run one operator on a fresh sandbox."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-kopf-") as work:
        log = Path(work) / "audit.log"
        with running(Path(work) / "cluster", Options(audit=log)) as sandbox:
            return Run(peer, sandbox, AuditLog(log), count).measure()


def table(found: Mapping[str, Figures], count: int) -> Iterator[str]:
    """Yield the lines of the table."""
    names = list(found)

    def row(title: str, value: Callable[[Figures], object]) -> str:
        return f"| {title} | {' | '.join(str(value(found[name])) for name in names)} |"

    def steps(figures: Mapping[str, float], step: str) -> str:
        return f"{figures[step]:g}"

    yield f"| {count} claims | {' | '.join(names)} |"
    yield f"|---|{'---|' * len(names)}"
    yield row("lines of code", _lines)
    titles = {"started": "start without claims", "made": "make them", "relabelled": "relabel them"}
    titles |= {"restarted": "restart with them"}
    for step, title in titles.items():
        yield row(f"{title}: writes", lambda f, step=step: f.writes[step])
    for step, title in titles.items():
        yield row(f"{title}: CPU of the operator, s", lambda f, step=step: steps(f.cpu, step))
    yield row("peak memory, MiB", lambda f: f.memory)
    yield row("a label that somebody else has taken, on the next change", lambda f: f.seen["taken"])
    yield row("where that is told", lambda f: f.seen["told"])
    yield row("a label that somebody has removed from the volume", lambda f: f.seen["removed"])
    yield row("a volume that somebody has deleted", lambda f: f.seen["deleted"])


def _lines(figures: Figures) -> str:
    parts = ", ".join(f"`{name}` {lines}" for name, lines in figures.lines.items())
    return f"{sum(figures.lines.values())}: {parts}" if len(figures.lines) > 1 else parts


def report(results: Mapping[str, Any], page: Path) -> None:
    """Write the table of these results between the marks of a page."""
    found = {name: Figures(**figures) for name, figures in results["figures"].items()}
    lines = [
        f"Measured on {results['day']}, hedgerow {results['version']} and {results['kopf']}:",
        "",
        *table(found, results["n"]),
    ]
    fill(page, MARKS, lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, or only write the page from an earlier measurement."""
    parser = argparse.ArgumentParser(prog="task bench-kopf --", description=__doc__)
    parser.add_argument("-n", type=int, default=100, help="claims")
    parser.add_argument("--output", type=Path, help="keep the figures in this file, as JSON")
    parser.add_argument("--report", type=Path, help="only write the page from such a file")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args(argv)
    if given.report:
        report(json.loads(given.report.read_text("utf-8")), given.page)
        return 0
    results = {
        "day": time.strftime("%Y-%m-%d", time.gmtime()),
        "version": version(),
        "kopf": REQUIREMENTS.read_text("utf-8").splitlines()[0].replace("==", " "),
        "n": given.n,
        "figures": {peer.name: asdict(measured(peer, given.n)) for peer in PEERS},
    }
    if given.output:
        given.output.write_text(json.dumps(results, indent=1), "utf-8")
    report(results, given.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
