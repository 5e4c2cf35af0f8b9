"""`task soak`: one operator under mixed load and random faults, with its memory flat."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from faults.__main__ import world
from faults.catalogue import REFUSALS
from faults.exchange import Act, Exchange, Line, Reply, Trouble
from faults.people import RealPeople, Refused
from faults.real import Operator, World
from faults.scenario import OTHER, USER, Object, collect, finish, take, target
from faults.verdict import APPLY
from support.operator.registered import CONTROLLERS

NAMESPACE = "soak"
EACH = 8
"""Resources of each controller."""
SAMPLE, PACE, FAULTS = 5.0, 0.25, 8.0
"""Seconds between two samples, two edits, and two faults on average."""
LONGEST_FAULT = 4.0
REST = 60.0
"""Seconds without a write that end it."""
GROWTH = 1.10
"""How much more memory than before counts as flat: Python gives little back."""
IMAGES = ("example/echo:1", "example/echo:2", "example/echo:3")


@dataclass(frozen=True)
class Sample:
    """What the operator's process has at one time."""

    at: float
    memory: int
    files: int
    requests: int


class Weather(Trouble):
    """Faults that come and go: for some seconds, some requests are refused or cut."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice
        self._answer: Reply | Exception = Reply(0)
        self._share = 0.0
        self._until = 0.0
        self.kinds: dict[str, int] = {}

    def turn(self, line: Line, proxy: Any) -> None:
        """Have another fault begin."""
        kind = self._dice.choice([*REFUSALS, "watches cut", "all cut"])
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if kind in REFUSALS:
            self._answer, self._share = REFUSALS[kind], self._dice.choice([0.3, 0.7, 1.0])
            self._until = time.monotonic() + self._dice.uniform(0.5, LONGEST_FAULT)
        elif kind == "watches cut":
            proxy.do(lambda: [watch.cut() for watch in line.streams.values()])
        else:
            proxy.cut(line)

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        is_bad = asked.writes and time.monotonic() < self._until
        if not is_bad or self._dice.random() > self._share:
            return await act()
        self.fired += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class Load:
    """People who edit, delete, and get into each other's way."""

    def __init__(self, people: RealPeople, dice: random.Random) -> None:
        self._people, self._dice = people, dice
        self.edits = 0
        makers: dict[str, Callable[[str], Object]] = {
            "bluegreen": self._bluegreen,
            "memcached": self._memcached,
            "cronjob": self._cronjob,
        }
        self._makers = {name: makers[name] for name in CONTROLLERS if name in makers}
        self._names = [(kind, f"{kind}-{n}") for kind in self._makers for n in range(EACH)]

    def begin(self) -> None:
        """Have every resource."""
        for kind, name in self._names:
            self._put(kind, name)

    def turn(self) -> None:
        """Do one thing."""
        self.edits += 1
        kind, name = self._dice.choice(self._names)
        act = self._dice.choice([self._put] * 6 + [self._contest] * 2 + [self._remove, self._clean])
        # Others may be quicker: what is gone, or changed meanwhile, is nobody's mistake.
        with contextlib.suppress(Refused, AssertionError):
            act(kind, name)

    def end(self) -> None:
        """Let nothing be due any more."""
        for kind, name in self._names:
            if kind == "cronjob":
                self._put(kind, name, suspend=True)

    def _put(self, kind: str, name: str, **more: Any) -> None:
        body = self._makers[kind](name)
        body["spec"] |= more
        self._people.apply(body, USER, force=True)

    def _contest(self, kind: str, name: str) -> None:
        """Take the image of one of its Deployments, or give it back."""
        owned = {"bluegreen": f"{name}blue-deployment", "memcached": name}
        if kind not in owned:
            return
        container = {"bluegreen": "blue", "memcached": "memcached"}[kind]
        deployment = target("apps/v1", "Deployment", owned[kind])
        image = {"name": container, "image": self._dice.choice(IMAGES)}
        fields = {"spec": {"template": {"spec": {"containers": [image]}}}}
        take(deployment, fields, OTHER)(self._people)

    def _remove(self, kind: str, name: str) -> None:
        """Delete it, with all that it owned, and make it anew."""
        self._people.delete({**self._makers[kind](name)})
        self._collect()
        self._put(kind, name)

    def _clean(self, kind: str, name: str) -> None:
        """Have Jobs end, and garbage collected."""
        finish(self._people)
        self._collect()

    def _collect(self) -> None:
        owned = {
            (kind.api.group_version, kind.api.kind) for c in CONTROLLERS.values() for kind in c.owns
        }
        kinds = tuple({"apiVersion": version, "kind": kind} for version, kind in sorted(owned))
        collect(self._people, kinds)

    def _bluegreen(self, name: str) -> Object:
        spec = {
            "routeTo": self._dice.choice(["Blue", "Green"]),
            "blueSpec": {"containers": [{"name": "blue", "image": self._dice.choice(IMAGES)}]},
            "greenSpec": {"containers": [{"name": "green", "image": self._dice.choice(IMAGES)}]},
            "promotion": self._dice.choice(["Immediate", "WhenAvailable"]),
        }
        return {**target("app.demo.kakao.com/v1", "BlueGreen", name), "spec": spec}

    def _memcached(self, name: str) -> Object:
        spec = {"size": self._dice.randint(0, 4), "memory": self._dice.choice([64, 128])}
        return {**target("memcached.cache.example.com/v1", "Memcached", name), "spec": spec}

    def _cronjob(self, name: str) -> Object:
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": IMAGES[0]}]}
        spec = {
            "schedule": self._dice.choice(["@every 2s", "@every 5s", "* * * * *"]),
            "concurrencyPolicy": self._dice.choice(["Allow", "Forbid", "Replace"]),
            "activeLimit": 3,
            "successfulJobsHistoryLimit": 2,
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        }
        return {**target("batch.tutorial.kubebuilder.io/v1", "CronJob", name), "spec": spec}


def soak(among: World, seconds: float, dice: random.Random) -> tuple[list[Sample], dict[str, Any]]:
    """Run it, and return the samples and the figures."""
    people = RealPeople(among.sandbox.kubeconfig, NAMESPACE)
    people.open_namespaces()
    with among.proxy.line() as line, contextlib.closing(people):
        operator = Operator(among, line, NAMESPACE, "--namespace", NAMESPACE)
        weather = line.trouble = Weather(dice)
        operator.start()
        process = psutil.Process(operator.pid)
        load, pause = Load(people, dice), threading.Event()
        load.begin()
        counts = _Counts()
        samples: list[Sample] = []
        began = time.monotonic()
        due = itertools.count(1)
        next_sample, next_fault = 0.0, FAULTS
        while (now := time.monotonic() - began) < seconds:
            assert operator.running, "the operator has ended"
            load.turn()
            if now >= next_sample:
                counts.take(line)
                samples.append(_sample(process, now, counts.requests))
                next_sample = next(due) * SAMPLE
            if now >= next_fault:
                weather.turn(line, among.proxy)
                next_fault = now + dice.uniform(0.5, 2.0) * FAULTS
            pause.wait(PACE)
        load.end()
        rest = _rest(line, counts, samples, process, began)
        figures = {
            "minutes": round(seconds / 60, 1),
            "edits": load.edits,
            "faults": weather.kinds,
            "refused": weather.fired,
            "requests": counts.requests,
            "writes": counts.writes,
            "unlawful": counts.unlawful,
            "writes_at_rest": rest,
            "errors": sum(e.get("level") in {"error", "critical"} for e in operator.entries()),
            **_flat(samples),
        }
        operator.kill()
    return samples, figures


class _Counts:
    """What has passed on a line, which keeps no record of it any longer."""

    def __init__(self) -> None:
        self.requests = self.writes = self.unlawful = 0

    def take(self, line: Line) -> list[Exchange]:
        taken = [one for one in line.record if one.ended]
        for one in taken:
            line.record.remove(one)
        self.requests += len(taken)
        writes = [one for one in taken if one.writes and not one.of_lease]
        self.writes += len(writes)
        self.unlawful += sum(not _is_lawful(one) for one in writes)
        return writes


def _is_lawful(one: Exchange) -> bool:
    if one.method == "DELETE":
        return bool(one.sent.get("preconditions", {}).get("uid"))
    return one.headers.get("content-type") == APPLY and "force" not in one.query


def _rest(
    line: Line, counts: _Counts, samples: list[Sample], process: psutil.Process, began: float
) -> int:
    """Wait until nothing is due any more, and return the writes of the minute after that."""
    pause, quiet_since = threading.Event(), time.monotonic()
    deadline = quiet_since + 600
    while time.monotonic() - quiet_since < REST / 3 and time.monotonic() < deadline:
        if counts.take(line):
            quiet_since = time.monotonic()
        pause.wait(1)
    written, end = 0, time.monotonic() + REST
    while time.monotonic() < end:
        written += len(counts.take(line))
        samples.append(_sample(process, time.monotonic() - began, counts.requests))
        pause.wait(SAMPLE)
    return written


def _sample(process: psutil.Process, at: float, requests: int) -> Sample:
    return Sample(round(at, 1), process.memory_info().rss, process.num_fds(), requests)


def _flat(samples: Sequence[Sample]) -> dict[str, Any]:
    """Compare the last quarter with the second one: the first fills caches."""
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    memory = [median(sample.memory for sample in part) for part in (early, late)]
    files = [max(sample.files for sample in part) for part in (early, late)]
    return {
        "memory_mb": [round(value / 2**20, 1) for value in memory],
        "files": files,
        "is_flat": memory[1] <= memory[0] * GROWTH and files[1] <= files[0] + 8,
    }


def plot(samples: Sequence[Sample], figures: dict[str, Any]) -> str:
    """Draw memory and file descriptors over time, as SVG."""
    memory = [(sample.at / 60, sample.memory / 2**20) for sample in samples]
    files = [(sample.at / 60, float(sample.files)) for sample in samples]
    title = f"{figures['minutes']} minutes, {figures['edits']} edits, {figures['writes']} writes"
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 420" font-size="12">',
            '<rect width="720" height="420" fill="#fff"/>',
            f'<text x="60" y="20" font-size="14">{title}</text>',
            *_panel(memory, 40, "MiB of memory", "#1b6e3c"),
            *_panel(files, 230, "open files", "#7a4b00"),
            "</svg>",
        ]
    )


def _panel(
    points: Sequence[tuple[float, float]], top: int, name: str, colour: str
) -> Iterator[str]:
    """Draw one curve, from zero."""
    width, height, left = 620, 140, 60
    longest = max(x for x, _ in points) or 1
    highest = max(y for _, y in points) * 1.2 or 1
    places = " ".join(
        f"{left + width * x / longest:.1f},{top + height - height * y / highest:.1f}"
        for x, y in points
    )
    bottom = top + height
    yield f'<path d="M{left},{top}V{bottom}H{left + width}" fill="none" stroke="#999"/>'
    yield f'<text x="{left + 6}" y="{top + 12}" fill="{colour}">{name}</text>'
    for share in (0, 0.5, 1):
        y = bottom - height * share
        yield f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{highest * share:.0f}</text>'
        x = left + width * share
        label = f"{longest * share:.0f} min"
        yield f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{label}</text>'
    yield f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 unless memory and files stayed flat and nothing was written at rest."""
    parser = argparse.ArgumentParser("task soak --", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0, help="how long the load lasts")
    parser.add_argument("--seed", type=int, default=1, help="begin the chances with this number")
    parser.add_argument("--output", type=Path, default=Path("soak"), help="a directory for figures")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary, world(Path(temporary)) as among:
        dice = random.Random(given.seed)  # noqa: S311 - spreads faults, guards nothing
        samples, figures = soak(among, given.hours * 3600, dice)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "soak.svg").write_text(plot(samples, figures), "utf-8")
    told = {**figures, "samples": [asdict(sample) for sample in samples]}
    (given.output / "soak.json").write_text(json.dumps(told), "utf-8")
    print(json.dumps(figures, indent=1))
    wrong = figures["writes_at_rest"] or figures["unlawful"] or figures["errors"]
    return int(bool(wrong) or not figures["is_flat"])


if __name__ == "__main__":
    sys.exit(main())
