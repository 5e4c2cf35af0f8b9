"""Outages: what takes the whole API server away, with every scenario under way at once."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import psutil

from faults.cases import Case, Outcome, judged, untold
from faults.checks import broken
from faults.machine import Reference, Run, World, prepared
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.waiting import eventually

API_SERVER, ETCD = "kube-apiserver", "etcd"
SHORT, LONG = 5.0, 40.0
"""Seconds; the longer one stands for minutes: watches and passes are at waits of half a minute."""
OUTAGE_TIMEOUT = 240.0


def outages(references: Mapping[str, Reference]) -> Iterator[Sequence[Case]]:
    """Return the cases, those together that have their API server taken away together."""
    for name, components, seconds in (
        ("API server killed for 5 s", (API_SERVER,), SHORT),
        ("etcd killed for 5 s", (ETCD,), SHORT),
        ("API server and etcd killed for 5 s", (API_SERVER, ETCD), SHORT),
        ("API server and etcd killed for long", (API_SERVER, ETCD), LONG),
    ):
        yield _together(name, references, Killed(components, seconds))
    yield _together("etcd restored from a snapshot", references, Restored())


def _together(
    fault: str, references: Mapping[str, Reference], strike: Killed | Restored
) -> tuple[Case, ...]:
    barrier = threading.Barrier(len(references), timeout=300)
    return tuple(
        Case(fault, known.scenario.name, "after a step", Struck(known, strike, barrier))
        for known in references.values()
    )


@dataclass(frozen=True)
class Killed:
    """Components are killed, and started again after some seconds."""

    components: tuple[str, ...]
    seconds: float

    def prepare(self, sandbox: Sandbox) -> None:
        """Nothing is to be prepared."""

    def strike(self, sandbox: Sandbox) -> None:
        for component in self.components:
            sandbox.kill(component, signal.SIGKILL)
        _pause(self.seconds)
        started(sandbox, self.components)


class Restored:
    """The store goes back to what it held before a step."""

    def prepare(self, sandbox: Sandbox) -> None:
        """Take a backup while nothing is written, of what etcd would find after a crash."""
        shutil.rmtree(_copy(sandbox), ignore_errors=True)
        with _frozen(sandbox):
            shutil.copytree(_data(sandbox), _copy(sandbox))

    def strike(self, sandbox: Sandbox) -> None:
        stopped(sandbox)
        self.set_back(sandbox)

    def set_back(self, sandbox: Sandbox) -> None:
        """Have what is stopped begin anew with the backup."""
        shutil.rmtree(_data(sandbox))
        shutil.copytree(_copy(sandbox), _data(sandbox))
        started(sandbox, (API_SERVER, ETCD))


@dataclass(frozen=True)
class Struck:
    """A run of which a step is taken while the API server is away, or is taken back by it.

    All scenarios wait for each other before the step, and one of them strikes.
    """

    known: Reference
    what: Killed | Restored
    barrier: threading.Barrier

    def __call__(self, world: World) -> Outcome:
        steps = self.known.scenario.steps
        resting = (n for n in range(1, len(steps)) if not (steps[n].moving or steps[n + 1].moving))
        number = next(resting)
        with prepared(world, self.known.scenario) as run:
            run.reference, run.patience = self.known, OUTAGE_TIMEOUT
            if isinstance(self.what, Restored):
                run.heard_too = frozenset({"FieldRestored"})  # what it says on an object is undone
            else:
                run.unheard = _told_by(self.known, number + 1)  # each is tried once

            def between(run: Run, at: int) -> None:
                if at != number:
                    return
                self._alone(lambda: self.what.prepare(world.sandbox))
                if isinstance(self.what, Restored):
                    # What this step does is undone, unseen by any watch, and done again after it.
                    step = self.known.scenario.steps[number + 1]
                    run.take(number + 1, step)
                    self._alone(lambda: self.what.strike(world.sandbox))
                else:
                    striking = threading.Thread(target=self.what.strike, args=(world.sandbox,))
                    if self._is_first():
                        striking.start()
                        eventually(striking.is_alive, 10)
                    self.barrier.wait()

            run.between = between
            run.operator.start()

            def act() -> list[str]:
                run.go()
                run.rest()
                return [*broken(run), *untold(run, len(self.known.scenario.steps) - 1)]

            return judged(run, act, lambda: True)

    def _is_first(self) -> bool:
        return self.barrier.wait() == 0

    def _alone(self, act: Callable[[], None]) -> None:
        """Have one of all do something while the others wait."""
        if self._is_first():
            act()
        self.barrier.wait()


def _told_by(known: Reference, step: int) -> frozenset[str]:
    """Return the reasons of the Events that a step leads to."""
    return frozenset(reason for _, reason, _ in {*known.told[step]} - {*known.told[step - 1]})


def started(sandbox: Sandbox, components: Sequence[str]) -> None:
    """Start them again, the store first."""
    for component in sorted(components):  # etcd comes before kube-apiserver
        anyio.run(sandbox.stop, component)
        anyio.run(sandbox.start, component)


def stopped(sandbox: Sandbox) -> None:
    """Stop the store, and what asks it, without waiting for requests: watches would take 10 s."""
    for component in (API_SERVER, ETCD):
        sandbox.kill(component, signal.SIGKILL)
        anyio.run(sandbox.stop, component)


@contextlib.contextmanager
def _frozen(sandbox: Sandbox) -> Iterator[None]:
    """Have the store do nothing meanwhile."""
    status = anyio.run(sandbox.status)
    process = psutil.Process(next(each.pid for each in status.components if each.name == ETCD))
    process.suspend()
    eventually(lambda: process.status() == psutil.STATUS_STOPPED, what="etcd is frozen")
    try:
        yield
    finally:
        process.resume()


def _data(sandbox: Sandbox) -> Path:
    return sandbox.directory / "etcd"


def _copy(sandbox: Sandbox) -> Path:
    return sandbox.directory.with_name("snapshot")


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)
