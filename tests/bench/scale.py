"""`task bench -- --scale 1000 10000`: memory, restart and reaction with so many of each kind.

One control plane and one operator, which is restarted at each size. The memory is that of a fresh
process that has settled, without what the creation of the resources left behind.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
SCALE_MARKS = "<!-- scale -->", "<!-- /scale -->"
OBJECTS_OF_EACH = 9
"""A BlueGreen and a Memcached have three children each; a suspended CronJob has none."""
FLIPS = 25
"""Resources to flip and flip back."""
CONVERGE_TIMEOUT = 3600.0
"""Seconds for which a size may take to converge."""
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 300, 60, 40

Point = dict[str, Any]


def neutral() -> Any:
    """Return the neutral harness, which is a script of its own."""
    spec = importlib.util.spec_from_file_location("neutral_run", HERE / "neutral" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Alone:
    """An operator without a peer, on a control plane of its own."""

    def __init__(self, servers: Path, command: str) -> None:
        self._run = run = neutral()
        self._work = tempfile.TemporaryDirectory(prefix="hedgerow-alone-")
        folder = Path(self._work.name)
        self._plane = run.ControlPlane(str(servers), str(folder / "cp"), 12479, 16543)
        self._plane.wait()
        self._api = run.Api(self._plane.admin)
        self._audit = run.Audit(self._plane.audit)
        self._log = folder / "operator.log"
        self._operator = run.Operator(command, self._plane.operator, str(self._log), {})
        options = Namespace(n=0, kinds=list(run.MAKE), threads=8)
        self._bench = run.Bench(options, self._api, self._operator, self._audit, self._plane)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Start the operator; then end all."""
        try:
            self._bench.setup()
            self._operator.start()
            yield
        finally:
            self._operator.stop()
            for watch in self._bench.w.values():
                watch.stopped = True
            self._plane.stop()
            self._work.cleanup()


class Scale(Alone):
    """An operator whose number of resources grows."""

    _made = 0

    def measure(self, sizes: Sequence[int]) -> Iterator[Point]:
        """Yield what was measured at each size."""
        with self._running():
            for size in sizes:
                self._grow(size)
                yield self._measured(size)

    def _grow(self, size: int) -> None:
        run = self._run

        def create(number: int) -> None:
            for resource, make, prefix in run.MAKE.values():
                target = run.path(resource, run.NS)
                self._api.call("POST", target, make(run.NS, f"{prefix}-{number}"))

        list(self._bench.pool.map(create, range(self._made, size)))
        self._made = size

        def converged() -> bool:
            return self._bench.converged(run.NS, size, "Blue")

        if run.until(converged, CONVERGE_TIMEOUT, self._operator) is None:
            sys.exit(f"bench: {size} of each kind did not converge")
        self._audit.quiet(5, 120)

    def _measured(self, size: int) -> Point:
        grown = self._memory("VmHWM")
        self._operator.stop()
        began, cpu, mark = time.perf_counter(), self._operator.cpu_before, self._audit.mark()
        logged = self._log.stat().st_size
        self._operator.start()
        filled = self._run.until(lambda: self._is_filled(logged), 300, self._operator)
        settled = self._audit.quiet(6, 300)
        writes = self._run.tally(self._audit.since(mark), 0)["writes"]
        self._wait_for_idle()
        return {
            "n": size,
            "objects": size * OBJECTS_OF_EACH,
            "filled_s": round(filled - began, 1) if filled else None,
            "settled_s": round(settled - began, 1),
            "settled_cpu_s": round(self._operator.usage()[0] - cpu, 1),
            "writes": writes,
            "rss_mib": round(self._memory("VmRSS"), 1),
            "peak_mib": round(self._memory("VmHWM"), 1),
            "grown_mib": round(grown, 1),
            **self._reaction(size),
        }

    def _wait_for_idle(self) -> None:
        """Wait until the operator takes no CPU: it judges what it has read without a request."""
        before = -1.0
        while (used := self._operator.usage()[0]) - before > 0.1:
            before = used
            time.sleep(2)

    def _is_filled(self, logged: int) -> bool:
        with self._log.open("rb") as log:
            log.seek(logged)
            return log.read().count(b"caches are filled") == len(self._run.MAKE)

    def _memory(self, what: str) -> float:
        """Return a figure of the operator's process, in MiB."""
        pid = self._operator.proc.pid
        text = Path(f"/proc/{pid}/status").read_text("utf-8")
        found = re.search(rf"{what}:\s+(\d+)", text)
        return int(found[1]) / 1024 if found else 0.0

    def _reaction(self, size: int) -> Point:
        """Flip some and flip them back; return how long the operator's requests take to come.

        From the answer to the patch until the API server has received the operator's request.
        """
        run, answered = self._run, list[float]()
        mark = self._audit.mark()
        for to in ("Green", "Blue"):
            for number in range(0, size, max(1, size // FLIPS)):
                name = f"bg-{number}"
                told = self._bench.w["bg"].arm((run.NS, name), lambda route, to=to: route == to)
                self._api.merge(run.path(run.BG, run.NS, name), {"spec": {"routeTo": to}})
                answered.append(time.time())  # noqa: TID251 - as in the audit log
                if told(20) is None:
                    sys.exit(f"bench: {name} was not flipped within 20 s")
        self._audit.quiet(1.5, 20)
        arrived = (
            run.stamp(event["requestReceivedTimestamp"])
            for event in self._events(mark)
            if event["verb"] == "patch" and event["objectRef"]["resource"] == "services"
        )
        late = sorted(at - told for at, told in zip(arrived, answered, strict=True))
        return {
            "flips": len(late),
            "request_p50_ms": round(median(late) * 1000, 1),
            "request_p99_ms": round(late[-1 - len(late) // 100] * 1000, 1),
        }

    def _events(self, mark: int) -> Iterator[Mapping[str, Any]]:
        with Path(self._audit.file).open("rb") as log:
            log.seek(mark)
            for line in log:
                event = json.loads(line)
                if event["user"]["username"] == self._audit.user and event.get("objectRef"):
                    yield event


COLUMNS = {
    "n": "of each kind",
    "objects": "objects",
    "rss_mib": "resident memory, MiB",
    "peak_mib": "peak since the start, MiB",
    "filled_s": "caches filled, s",
    "settled_s": "last request after the start, s",
    "settled_cpu_s": "CPU of the start, s",
    "writes": "writes after the start",
    "request_p50_ms": "from the patch to our request, p50, ms",
    "request_p99_ms": "p99, ms",
}


def table(points: Sequence[Point]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| {' | '.join(COLUMNS.values())} |"
    yield "|" + "--:|" * len(COLUMNS)
    for point in points:
        yield f"| {' | '.join(f'{point[name]:,}' for name in COLUMNS)} |"


def curve(points: Sequence[Point]) -> str:
    """Return an SVG: resident memory by the number of objects."""
    most_objects = max(point["objects"] for point in points)
    most_memory = max(point["peak_mib"] for point in points) * 1.1
    wide, high = WIDTH - LEFT - 40, HEIGHT - BOTTOM - 40

    def place(point: Point, name: str) -> str:
        x = LEFT + wide * point["objects"] / most_objects
        y = HEIGHT - BOTTOM - high * point[name] / most_memory
        return f"{x:.1f},{y:.1f}"

    font = 'font-size="12" font-family="sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {font}>',
        '<text x="8" y="18">Memory of the operator, MiB, by cached objects</text>',
        f'<path d="M{LEFT},30 V{HEIGHT - BOTTOM} H{WIDTH - 30}" fill="none" stroke="#333"/>',
    ]
    for name, colour in (("rss_mib", "#2a7f3f"), ("peak_mib", "#b5651d")):
        line = " ".join(place(point, name) for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for point in points:
            x, y = place(point, name).split(",")
            parts += [
                f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>',
                f'<text x="{x}" y="{float(y) - 8:.1f}" text-anchor="end">{point[name]:.0f}</text>',
            ]
    for point in points:
        x = place(point, "rss_mib").split(",")[0]
        bottom = HEIGHT - BOTTOM + 18
        parts.append(f'<text x="{x}" y="{bottom}" text-anchor="end">{point["objects"]:,}</text>')
    parts += [
        f'<text x="{LEFT + 8}" y="44" fill="#2a7f3f">settled</text>',
        f'<text x="{LEFT + 8}" y="60" fill="#b5651d">peak since the start</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def scaled(servers: Path, command: str, sizes: Sequence[int]) -> list[Point]:
    """Measure at these sizes, and print each as it comes."""
    points = list[Point]()
    for point in Scale(servers, command).measure(sorted(sizes)):
        print(json.dumps(point), file=sys.stderr)
        points.append(point)
    return points
