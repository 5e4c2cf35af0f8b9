"""Story: one scenario on the machine, with faults, and what is to be seen of it in the end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio

from faults.endings import ATTEMPTS, CHECK
from faults.inmemory.machine import Machine
from faults.inmemory.people import HOME, ModelPeople
from faults.scenario import Scenario, Step, play
from hedgerow_testing.memory.schema import Object
from support.server.apiserver import Exchange
from support.server.store import Entry

WAIT_TIMEOUT = 1800.0
"""Seconds that the operator may take to answer to a step.

It may have to wait ten minutes for what is due, be cut off for some at that time, and wait three
more for the Lease that it could not give up.
"""
QUIET = 3.0
"""Seconds without a write after which a step has come to rest, as far as can be told."""
TAIL = 400.0
"""Seconds without a write after which nothing more is to come: the longest backoff takes 300."""
_UID = re.compile(r"00000000-0000-4000-8000-\d{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_JOB = re.compile(r"\bcron-\d+")
_ADDRESS = re.compile(r"10\.96\.\d+\.\d+")
_CHANCE = {
    *("resourceVersion", "generation", "observedGeneration", "missed", "time"),
    *ATTEMPTS,
    *(f"f:{name}" for name in ATTEMPTS),
}
_PRIVATE = {"Event", "Lease", "Namespace", "Pod", "EndpointSlice"}
"""Kinds that are told of elsewhere, and those that only people make."""


@dataclass
class Ending:
    """What a story left: `rests` is all there was when each step had come to rest."""

    machine: Machine
    rests: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What was never seen, or never came to an end."""

    @property
    def writes(self) -> list[Exchange]:
        return [exchange for exchange in self.machine.api.exchanges if is_write(exchange)]


def is_write(exchange: Exchange) -> bool:
    """Whether a request is a write of anything but a Lease."""
    return exchange.writes and exchange.api.kind != "Lease"


class Teller:
    """Plays a scenario."""

    def __init__(self, machine: Machine, scenario: Scenario) -> None:
        self.machine, self.scenario = machine, scenario
        self.people = ModelPeople(machine.api.store)
        self.ending = Ending(machine)
        self.step = -1
        self.upset = lambda: False
        """Whether something went wrong in this step, so that backoffs may be on."""
        self.begun = lambda: None
        """Is told that a step begins."""
        self.stop = lambda: False
        """Whether it ends here, whatever step it is at."""
        self._changed = anyio.Event()
        told = machine.api.store.on_entry

        def on_entry(entry: Entry) -> None:
            told(entry)
            if entry.key[1] != "Lease":
                self._changed.set()

        machine.api.store.on_entry = on_entry

    async def play(self) -> Ending:
        """Play the steps, and wait until nothing more is to come; stop at what goes wrong."""
        self.people.settle_in()
        if await play(self.scenario.steps, self):
            await self.rest(lambda: TAIL)
            self._note()
        return self.ending

    def begin(self, step: Step) -> None:
        """Note that a step begins."""
        self.step += 1
        self.begun()

    async def answer(self, step: Step) -> bool:
        """Wait until it is answered, and has come to rest."""
        await self.seen(step.name, lambda: self.stop() or bool(step.seen(self.people)))
        if not (self.stop() or step.moving):
            await self.rest(lambda: TAIL if self.upset() else QUIET)
        goes_on = not (self.stop() or self.ending.wrong)
        if goes_on:
            self._note()
        return goes_on

    async def seen(self, name: str, look: Callable[[], bool]) -> None:
        """Wait until something is to be seen."""
        with anyio.move_on_after(WAIT_TIMEOUT) as scope:
            while not look():
                self._changed = anyio.Event()
                with anyio.move_on_after(5):
                    await self._changed.wait()
        if scope.cancelled_caught:
            self.ending.wrong.append(f"never seen: {name}")

    async def rest(self, quiet: Callable[[], float]) -> None:
        """Wait until nothing was written for a while."""
        with anyio.move_on_after(WAIT_TIMEOUT) as scope:
            while (left := self._last() + quiet() - anyio.current_time()) > 0:  # noqa: ASYNC110
                await anyio.sleep(left)
        if scope.cancelled_caught:
            self.ending.wrong.append(f"never at rest after step {self.step}")

    def _last(self) -> float:
        exchanges = self.machine.api.exchanges
        return next((e.sent for e in reversed(exchanges) if is_write(e)), -1e9)

    def _note(self) -> None:
        self.ending.rests.append(everything(self.machine.api.store.all()))


def everything(objects: dict[Any, Object]) -> str:
    """Write down all there is in the scenarios' namespace, but for what time and chance gave."""
    kept = [
        _plain(obj) for (_, kind, home, _), obj in objects.items()
        if home == HOME and kind not in _PRIVATE
    ]  # fmt: skip
    told = [json.dumps(each, sort_keys=True) for each in kept]
    for pattern, name in (
        (_UID, "UID"), (_TIME, "TIME"), (_JOB, "cron-N"), (CHECK, r"\1"), (_ADDRESS, "IP"),
    ):  # fmt: skip
        told = [pattern.sub(name, text) for text in told]
    return "\n".join(sorted(told))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k not in _CHANCE}
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        if value and isinstance(value[0], dict) and "fieldsV1" in value[0]:
            items.sort(key=json.dumps)
        return items
    return value
