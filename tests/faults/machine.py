"""Machine: one scenario with one trouble, from an empty namespace to a verdict."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import yaml

from faults.endings import difference, ending, warnings
from faults.nursery import Nursery
from faults.people import RealPeople
from faults.proxy import Line, Proxy
from faults.scenario import Object, Scenario, Step, collect
from faults.signatures import signature
from faults.troubles import ANY_STEP, Target
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.waiting import eventually

QUIET, LAST_QUIET = 1.0, 1.5
"""Seconds without a write after which nothing more is expected: between steps, and at the end."""
LOOK_SOON, LOOK_AGAIN = 0.2, 0.6
"""Seconds between two looks: after something has passed, and though nothing has."""
COLLECTED = 10.0
"""Seconds in which garbage is collected."""
MOST_RENEWALS = 2
"""Writes of a Lease that trouble is made of, in each scenario."""
WAIT_TIMEOUT = 90.0
"""Seconds for one step to come to where it came without trouble."""
LEASE = ("--lease-duration", "3s")
FLAGS = ("--log-format", "json", "--health-probe-bind-address", "0")
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between two lives of an operator that ends at once: they double."""
_LONGEST_NAME = 40
MOST_LIVES = 12
"""Times that an operator may end in one run before nobody starts it again."""


class Wrong(AssertionError):
    """A run does not hold what it must."""


@dataclass
class World:
    """What all runs share: an API server, the proxy before it, and who forks operators."""

    sandbox: Sandbox
    proxy: Proxy
    nursery: Nursery
    directory: Path


@contextlib.contextmanager
def around(sandbox: Sandbox, directory: Path) -> Iterator[World]:
    """Put a proxy before an API server, and have somebody who forks operators."""
    pki = sandbox.directory / "pki"
    files = (str(pki / name) for name in ("ca.crt", "serving.crt", "serving.key"))
    with Proxy(sandbox.server, *files) as proxy, Nursery() as nursery:
        yield World(sandbox, proxy, nursery, directory)


class Operator:
    """One replica, through all its lives."""

    def __init__(self, world: World, line: Line, namespace: str, *flags: str) -> None:
        self._world, self.line, self.flags = world, line, flags
        self._directory = world.directory / namespace
        self._directory.mkdir(exist_ok=True)
        self.log = self._directory / f"{line.port}.log"
        self.clock = self._directory / f"{line.port}.clock"
        kubeconfig = yaml.safe_load(world.sandbox.kubeconfig.read_text("utf-8"))
        kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{line.port}"
        path = self._directory / f"{line.port}.kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig), "utf-8")
        self._flags = (
            *("run", "--kubeconfig", str(path), *FLAGS, *LEASE),
            *("--system-namespace", namespace, *flags),
        )
        self.metrics = self._directory / f"{line.port}.metrics"
        self._port = 0
        self.pid = 0
        self.births: list[float] = []

    def start(self) -> None:
        """Begin a life."""
        self.births.append(time.monotonic())
        # Another one each time: somebody else may have taken that of a former life.
        self._port = choose(["metrics"])["metrics"]
        address = ("--metrics-bind-address", f"127.0.0.1:{self._port}")
        self.pid = self._world.nursery.start((*self._flags, *address), self.log, self.clock)

    def kill(self, number: int = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    @property
    def running(self) -> bool:
        return bool(self.pid) and self._world.nursery.ended(self.pid) is None

    def revive(self) -> None:
        """Start it again if it has ended, as a kubelet does: later each time."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (len(self.births) - 1))
        last = max([-pause, *self.births[-1:]])
        if not self.running and time.monotonic() - last >= pause:
            if len(self.births) >= MOST_LIVES:
                raise Wrong(f"the operator ended {len(self.births)} times")
            self.start()

    def stop(self) -> None:
        """End it, and wait until it is gone."""
        self.kill()
        eventually(lambda: not self.running, what="the operator is gone")

    def written(self) -> str:
        """Return its log so far."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def entries(self) -> list[Object]:
        """Return all that it has logged, in all its lives."""
        whole = self.written().rpartition("\n")[0]  # it may be at a line
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def complaints(self) -> list[Object]:
        """Return what it has logged as a warning or worse, and the lines with which it ended."""
        last = [{"event": line} for line in self.written().splitlines() if not line.startswith("{")]
        loud = {"warning", "error", "critical"}
        return [*last, *(e for e in self.entries() if e.get("level") in loud)]

    def measured(self) -> dict[str, float]:
        """Return the series of its present life, by name and labels; none while nobody answers."""
        text = ""
        for _ in range(3):
            with contextlib.suppress(httpx.TransportError):
                text = httpx.get(f"http://127.0.0.1:{self._port}/metrics", timeout=5).text
                break
        lines = (line.rpartition(" ") for line in text.splitlines() if line[:1] not in {"", "#"})
        return {name: float(value) for name, _, value in lines}


@dataclass
class Reference:
    """How a scenario goes without any trouble."""

    scenario: Scenario
    endings: tuple[Object, ...]
    told: tuple[tuple[tuple[str, str, str], ...], ...]
    writes: tuple[Target, ...]

    def last(self, step: int) -> int:
        """Return the step with which a run may end whose trouble came in a step."""
        steps = self.scenario.steps
        ends = (n for n in range(step + 1, len(steps)) if not steps[n].moving)
        return next(ends, len(steps) - 1)


@dataclass
class Run:
    """One run, while it lasts and after it."""

    world: World
    scenario: Scenario
    namespace: str
    people: RealPeople
    operators: list[Operator]
    reference: Reference | None = None
    patience: float = WAIT_TIMEOUT
    endings: list[Object] = field(default_factory=list[Object])
    told: list[tuple[tuple[str, str, str], ...]] = field(default_factory=list[Any])
    longest: float = 0.0
    acted: int = -1
    """The last step of which the change was made."""
    unheard: frozenset[str] = frozenset()
    """Reasons of Events that this run need not tell."""
    heard_too: frozenset[str] = frozenset()
    """Reasons of Events that it may tell besides, or twice."""
    made_again: frozenset[str] = frozenset()
    """Kinds of owners whose Jobs it may create twice."""
    _over: Callable[[], bool] = bool
    between: Callable[[Run, int], None] = lambda run, step: None
    """What is done after a step."""

    @property
    def operator(self) -> Operator:
        return self.operators[0]

    @property
    def line(self) -> Line:
        return self.operators[0].line

    @property
    def lines(self) -> list[Line]:
        return [operator.line for operator in self.operators]

    def go(self, last: int | None = None, over: Callable[[], bool] = lambda: False) -> None:
        """Take every step, and after each come to where the reference came, until it is `over`."""
        self._over = over
        for number, step in enumerate(self.scenario.steps):
            for line in self.lines:
                self.world.proxy.begin(line, number)
            try:
                self.take(number, step)
            except Exception:
                if not over():
                    raise
            if over():
                self._over = bool
                return
            self.between(self, number)
            if number == last:
                break
        self._over = bool

    def take(self, number: int, step: Step) -> None:
        """Take a step, and wait until it is answered."""
        began = time.monotonic()
        step.act(self.people)
        self.acted = number
        self.settle(number, step)
        self.longest = max(self.longest, time.monotonic() - began)

    def settle(self, number: int, step: Step) -> None:
        """Wait until a step is answered."""
        if step.moving:
            look = self.after_news(lambda: step.seen(self.people))
            self.until(look, step.name, self.patience)
            self.endings.append({})
            self.told.append(())
        elif self.reference is None:
            self.until(lambda: self.silent() >= QUIET and step.seen(self.people), step.name)
            self.until(lambda: step.told(self.people), f"what is told after '{step.name}'")
            self.endings.append(self.ending())
            self.told.append(tuple(warnings(self.people, self.namespace)))
        else:
            self.come_to(self.reference.endings[number], step.name, step.seen)
            self.hear(number)
            self.endings.append(self.reference.endings[number])

    def come_to(
        self, wanted: Object, what: str, seen: Callable[[RealPeople], object] = lambda people: True
    ) -> None:
        """Wait for an ending."""

        def arrived() -> bool:
            return bool(seen(self.people)) and self.ending() == wanted

        try:
            self.until(self.after_news(arrived), what, self.patience)
        except AssertionError as error:
            lines = difference(wanted, self.ending()) or ["what is to be seen is not"]
            raise Wrong("; ".join([f"after '{what}'", *lines[:6]])) from error

    def hear(self, last: int) -> None:
        """Wait until every Event is told that was told in the reference by then."""
        wanted = {event for event in self.wanted(last) if event[1] not in self.unheard}
        if not wanted:
            return

        def told() -> bool:
            return wanted <= set(warnings(self.people, self.namespace))

        with contextlib.suppress(AssertionError):  # what is missing is told of later
            self.until(self.after_news(told), "every Event", self.patience)

    def wanted(self, last: int) -> set[tuple[str, str, str]]:
        """Return the Events that the reference told by then."""
        assert self.reference
        return set(self.reference.told[last])

    def ending(self) -> Object:
        """Return what there is now."""
        return ending(self.people, self.scenario, self.namespace)

    def after_news(self, look: Callable[[], Any]) -> Callable[[], Any]:
        """Return the same look, taken only where a request has passed or a moment has gone by."""
        known, at = -1, 0.0

        def looked() -> Any:
            nonlocal known, at
            number, now = sum(len(line.record) for line in self.lines), time.monotonic()
            if now < at + (LOOK_SOON if number != known else LOOK_AGAIN):
                return None
            known, at = number, now
            return look()

        return looked

    def until(self, fact: Callable[[], Any], what: str, within: float = WAIT_TIMEOUT) -> None:
        """Wait for a fact while operators that end are started again."""

        def look() -> Any:
            for operator in self.operators:
                operator.revive()
            return fact() or self._over()

        eventually(look, within, what)

    def silent(self) -> float:
        """Return the seconds since the last write."""
        return time.monotonic() - max(line.last_write() for line in self.lines)

    def rest(self, wanted: Object | None = None) -> None:
        """Nothing is written any more, and all stays as it is."""
        begins = time.monotonic()

        def rested() -> bool:
            return min(self.silent(), time.monotonic() - begins) >= LAST_QUIET

        self.until(rested, "no more writes", 30)
        wanted = wanted or (self.endings[-1] if self.reference else None)
        if wanted is None:
            return

        def stayed() -> bool:
            # What was made for an owner that was about to go is collected, as it would be.
            collect(self.people, self.scenario.children)
            return self.ending() == wanted

        try:
            self.until(stayed, "rest", COLLECTED)
        except AssertionError as error:
            lines = difference(wanted, self.ending())
            raise Wrong("; ".join(["at rest", *lines[:6]])) from error

    def writes(self) -> tuple[Target, ...]:
        """Return the writes so far."""
        counts: Counter[tuple[str, int]] = Counter()
        found: list[Target] = []
        for asked in self.line.writes(leases=True):
            name, step = signature(asked), ANY_STEP if asked.of_lease else asked.step
            counts[name, step] += 1
            found.append(Target(name, counts[name, step], step))
        return tuple(found)


@contextlib.contextmanager
def prepared(world: World, scenario: Scenario, replicas: int = 1) -> Iterator[Run]:
    """Open a namespace with operators for a scenario, and leave nothing running."""
    mark = f"x{secrets.token_hex(3)}"  # no part of a number or a digest
    slug = re.sub(r"[^a-z0-9]+", "-", scenario.name.lower())[:_LONGEST_NAME].strip("-")
    namespace = f"{slug}-{mark}"
    flags = ["--controllers", scenario.controller]
    if scenario.elsewhere:
        # It works on Namespaces, those of other runs left out, as an installation of its own.
        names = ",".join(f"{namespace}-{end}" for end in scenario.elsewhere)
        flags += ["--instance", mark, f"--{scenario.controller}-namespace={namespace}"]
        flags += [f"--{scenario.controller}-selector=kubernetes.io/metadata.name in ({names})"]
    else:
        flags += ["--namespace", namespace]
    if replicas > 1:
        flags += ["--leader-elect"]
    people = RealPeople(world.sandbox.kubeconfig, namespace, scenario.elsewhere)
    people.open_namespaces()
    with contextlib.ExitStack() as stack:
        stack.callback(people.close)
        stack.callback(people.forget_namespaces)
        lines = [stack.enter_context(world.proxy.line()) for _ in range(replicas)]
        operators = [Operator(world, line, namespace, *flags) for line in lines]
        for operator in operators:
            stack.callback(operator.kill)
        yield Run(world, scenario, namespace, people, operators)


def reference(world: World, scenario: Scenario) -> Reference:
    """Run a scenario without any trouble, as far as that is the same in two runs."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: _reference(world, scenario), range(2))
    lines = difference(list(one.endings), list(other.endings))
    if lines:
        raise Wrong("; ".join([f"{scenario.name} does not end alike", *lines[:6]]))
    both = (target for target in one.writes if target in other.writes)
    return replace(one, writes=tuple(target for target in both if _is_wanted(scenario, target)))


def _reference(world: World, scenario: Scenario) -> Reference:
    with prepared(world, scenario) as run:
        run.operator.start()
        run.go()
        run.rest()
        return Reference(scenario, tuple(run.endings), tuple(run.told), run.writes())


def _is_wanted(scenario: Scenario, target: Target) -> bool:
    """Return whether a write comes in every run, while a Lease or a schedule goes on with time."""
    if target.step == ANY_STEP:
        return target.number <= MOST_RENEWALS
    return not scenario.steps[target.step].moving or target.number == 1
