"""Real: runs of `hedgerow run` as processes, before a real API server with a proxy in between."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import psutil
import yaml

from faults.doings import calm
from faults.endings import difference
from faults.exchange import Line
from faults.nursery import Nursery
from faults.people import RealPeople
from faults.proxy import Proxy
from faults.run import Pace, Reference, Run, Wrong
from faults.scenario import Object, Scenario
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.ports import choose
from hedgerow_testing.waiting import eventually

T = TypeVar("T")
PACE = Pace(
    quiet=1.0,
    last_quiet=1.5,
    collected=10.0,
    patience=90.0,
    silent=240.0,  # a watch that says nothing is given up after 90 s
    # What is refused waits from 1 s on, twice as long each time: so there are three refusals.
    outage=5.0,
    # A read that is put off (429, 503, no answer) is repeated for ten seconds first.
    long_outage=12.0,
    short=5.0,
    long=40.0,  # watches and passes are at waits of half a minute
    lag=1.5,
    late=1.0,
    held=0.3,
)
LOOK_SOON, LOOK_AGAIN, NAP = 0.2, 0.6, 0.1
"""Seconds between two looks, after something has passed and though nothing has; a nap at most."""
LEASE = ("--lease-duration", "3s")
FLAGS = ("--log-format", "json", "--health-probe-bind-address", "0")
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds between two lives of an operator that ends at once: they double."""
_LONGEST_NAME = 40
MOST_LIVES = 12
"""Times that an operator may end in one run before nobody starts it again."""
ETCD = "etcd"


@dataclass
class World:
    """What all runs share: an API server, the proxy before it, and who forks operators.

    `together` are the runs that have their API server taken away together.
    """

    sandbox: Sandbox
    proxy: Proxy
    nursery: Nursery
    directory: Path
    together: threading.Barrier | None = None
    pace: Pace = PACE

    name, renewals = "real", 2

    def play(
        self,
        scenario: Scenario,
        main: Callable[[Any], Awaitable[T]],
        *,
        replicas: int = 1,
        elected: bool = True,
    ) -> T:
        """Prepare a run, have `main` make it, and return what that returns."""
        with prepared(self, scenario, replicas) as run:
            return anyio.run(main, run)


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
        self._world, self.line = world, line
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

    def terminate(self) -> None:
        """Ask it to stop."""
        self.kill(signal.SIGTERM)

    def freeze(self) -> None:
        """Have it do nothing."""
        self.kill(signal.SIGSTOP)

    def thaw(self) -> None:
        """Have it go on."""
        self.kill(signal.SIGCONT)

    def restart(self) -> None:
        """End it, wait until it is gone, and begin another life."""
        self.kill()
        eventually(lambda: not self.running, what="the operator is gone")
        self.start()

    def set_clock(self, seconds: float) -> None:
        """Have its wall clock be wrong by so much."""
        self.clock.write_text(str(seconds), "utf-8")

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


class RealRun(Run):
    """A run on a real API server."""

    people: RealPeople
    operators: list[Operator]

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        namespace: str,
        people: RealPeople,
        operators: list[Operator],
    ) -> None:
        super().__init__(scenario, namespace, people, operators, world.pace)
        self._world = world
        self._timers: list[threading.Timer] = []
        self._looked, self._known = 0.0, -1

    def begin(self, number: int) -> None:
        for line in self.lines:
            self._world.proxy.begin(line, number)

    def strike(self, act: Callable[[], object]) -> None:
        self._world.proxy.do(act)

    def cut(self, line: Line) -> None:
        self._world.proxy.cut(line)

    async def news(self) -> None:
        await self.nap(NAP)
        while not self._has_news():
            await self.nap(NAP)

    def _has_news(self) -> bool:
        number, now = sum(len(line.record) for line in self.lines), time.monotonic()
        if now < self._looked + (LOOK_SOON if number != self._known else LOOK_AGAIN):
            return False
        self._looked, self._known = now, number
        return True

    async def nap(self, seconds: float) -> None:
        await anyio.sleep(min(seconds, NAP))
        for operator in self.operators:
            operator.revive()

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        timer = threading.Timer(seconds, act)
        self._timers.append(timer)
        timer.start()

    async def later_done(self) -> None:
        for timer in self._timers:
            await anyio.to_thread.run_sync(timer.join)

    def keep(self, why: str) -> None:
        """Keep what passed, beside the logs."""
        for operator in self.operators:
            path = operator.log.with_suffix(".record")
            lines = (
                f"{one.began:.3f} step {one.step} {one} {one.body.decode(errors='replace')[:2000]}"
                for one in list(operator.line.record)
            )
            path.write_text("\n".join([why, *lines]), "utf-8")

    # --- the API server, which is taken away from all at once ---------------------------------

    def take_away(self, components: Sequence[str], seconds: float) -> None:
        """Have one of all do it; the others go on once it has begun."""
        striking = threading.Thread(target=self._kill, args=(components, seconds))
        if self._is_first():
            striking.start()
            eventually(striking.is_alive, 10)
        self._wait()

    def take_backup(self) -> None:
        """Take a backup while nothing is written, of what etcd would find after a crash."""
        self._alone(lambda: _back_up(self._world.sandbox))

    def restore_backup(self) -> None:
        self._alone(lambda: restore(self._world.sandbox))

    def _kill(self, components: Sequence[str], seconds: float) -> None:
        for component in components:
            self._world.sandbox.kill(component, signal.SIGKILL)
        threading.Event().wait(seconds)
        started(self._world.sandbox, components)

    def _alone(self, act: Callable[[], None]) -> None:
        """Have one of all do something while the others wait."""
        if self._is_first():
            with ThreadPoolExecutor(1) as apart:  # the loop of the run is in this thread
                apart.submit(act).result()
        self._wait()

    def _is_first(self) -> bool:
        return self._wait() == 0

    def _wait(self) -> int:
        return self._world.together.wait() if self._world.together else 0


def started(sandbox: Sandbox, components: Sequence[str]) -> None:
    """Start them again, the store first."""
    for component in sorted(components):  # etcd comes before kube-apiserver
        anyio.run(sandbox.stop, component)
        anyio.run(sandbox.start, component)


def restore(sandbox: Sandbox) -> None:
    """Have the store begin anew with the backup.

    Nobody waits for requests before: watches would take ten seconds.
    """
    components = (ETCD, "kube-apiserver")
    for component in reversed(components):
        sandbox.kill(component, signal.SIGKILL)
        anyio.run(sandbox.stop, component)
    shutil.rmtree(_data(sandbox))
    shutil.copytree(_copy(sandbox), _data(sandbox))
    started(sandbox, components)


def _back_up(sandbox: Sandbox) -> None:
    shutil.rmtree(_copy(sandbox), ignore_errors=True)
    status = anyio.run(sandbox.status)
    process = psutil.Process(next(each.pid for each in status.components if each.name == ETCD))
    process.suspend()
    eventually(lambda: process.status() == psutil.STATUS_STOPPED, what="etcd is frozen")
    try:
        shutil.copytree(_data(sandbox), _copy(sandbox))
    finally:
        process.resume()


def _data(sandbox: Sandbox) -> Path:
    return sandbox.directory / "etcd"


def _copy(sandbox: Sandbox) -> Path:
    return sandbox.directory.with_name("snapshot")


@contextlib.contextmanager
def prepared(world: World, scenario: Scenario, replicas: int = 1) -> Iterator[RealRun]:
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
        yield RealRun(world, scenario, namespace, people, operators)


def reference(world: World, scenario: Scenario) -> Reference:
    """Run a scenario without any trouble, as far as that is the same in two runs."""
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(partial(calm, world), [scenario] * 2)
    lines = difference(list(one.endings), list(other.endings))
    if lines:
        raise Wrong("; ".join([f"{scenario.name} does not end alike", *lines[:6]]))
    one.writes = tuple(target for target in one.writes if target in other.writes)
    one.busiest = max(one.busiest, other.busiest)
    return one
