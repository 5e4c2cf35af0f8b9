"""Exchange: one request of an operator, the line that it passes on, and what may go wrong there.

A line is the same for both backends: the proxy before a real API server, and the cluster in memory.
Times are those of the event loop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from faults.scenario import Object
from hedgerow.controllers.bluegreen.checks import MANAGED_BY

REVIEWS = "/apis/authorization.k8s.io/"
ANY_STEP = -1
_START = re.compile(r"-\d{10}\b")
_ELSEWHERE = re.compile(r"-x[0-9a-f]{6}-(\w+)$")


class Drop(Exception):
    """The connection is cut here, with nothing more said on it.

    Only in memory it may be `refused` instead: what reads a request has taken its connection.
    """

    def __init__(self, *, refused: bool = False) -> None:
        super().__init__()
        self.refused = refused


class Silence(Exception):
    """Nothing more comes on the connection, and it stays open."""


@dataclass
class Reply:
    """An answer to one request; its body is bytes, or what they would say."""

    status: int
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    opens: bool = False
    """Whether it is a watch that opens."""


Act = Callable[[], Awaitable[Reply]]
"""Has a request carried out."""
Tell = Callable[[bytes], object]
"""Sends a line on a watch."""


@dataclass(eq=False)
class Exchange:
    """One request of a client, and what became of it."""

    client: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    """Bytes, or what they say."""
    began: float
    step: int = 0
    ended: float = 0.0
    done: int = 0
    """The status that the API server answered with; 0 when it was not asked."""
    told: int = 0
    """The status that the operator was told; 0 for none."""
    answer: Any = b""
    older: str = ""
    """The version to show first on a watch with initial events; the rest follows after `lag`."""
    lag: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it changes what is stored: neither a review nor a dry run does."""
        if "dryRun" in self.query or self.path.startswith(REVIEWS):
            return False
        return self.method not in {"GET", "HEAD"}

    @property
    def watches(self) -> bool:
        return self.query.get("watch") in {"1", "true"}

    @property
    def of_lease(self) -> bool:
        return "/leases/" in self.path

    @property
    def plural(self) -> str:
        """What is watched, as paths call it."""
        return self.path.rsplit("/", 1)[-1]

    @cached_property
    def sent(self) -> Object:
        """The body; to be read only."""
        return _read(self.body)

    @property
    def answered(self) -> Object:
        """What the API server said."""
        return _read(self.answer)

    @cached_property
    def signature(self) -> str:
        """What it writes, by a name that is the same in every run: no namespace, time or digest."""
        place, *parts = self.path.split("/namespaces/", 1)[-1].split("/")
        elsewhere = _ELSEWHERE.search(place)
        verb = {"PATCH": "apply", "DELETE": "delete"}.get(self.method, self.method)
        if parts[0] == "events":
            about = self.sent.get("regarding", {})
            named = _START.sub("-N", f"{about.get('kind')}/{about.get('name')}")
            return f"{verb} Event {self.sent.get('reason')} on {named}"
        name = _START.sub("-N", "/".join([*(elsewhere.groups() if elsewhere else ()), *parts]))
        return f"{verb} {name}{self._selecting()}"

    def _selecting(self) -> str:
        """Name the colour that the Service of a BlueGreen is to select, or both."""
        spec = self.sent.get("spec", {}) if self.method == "PATCH" else {}
        selector = spec.get("selector", {}) if "/services/" in self.path else {}
        if MANAGED_BY not in selector:
            return ""
        return f" selecting {selector.get('app.kubernetes.io/phase', 'both')}"

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.done or '-'}/{self.told or '-'}"


def _read(body: Any) -> Object:
    return (json.loads(body) if body else {}) if isinstance(body, bytes) else body


@dataclass(frozen=True)
class Target:
    """A write of a scenario: what it writes, for the how-manieth time, and in which step.

    A Lease is written as time passes, in any step.
    """

    signature: str
    number: int
    step: int

    def __str__(self) -> str:
        step = "" if self.step == ANY_STEP else f"step {self.step + 1}, "
        return f"{step}{self.signature}{f' #{self.number}' if self.number > 1 else ''}"

    def fits(self, asked: Exchange) -> bool:
        """Return whether a request writes the same, in the same step or after it.

        Where time decides, such as which second a Job is started in, a write may come a step later.
        """
        fits = asked.writes and asked.step >= self.step  # ANY_STEP is before all
        return fits and asked.signature == self.signature


class Watch(Protocol):
    """A watch that is open."""

    silent: bool
    """Whether nothing arrives on it any more, its end neither."""

    def send(self, line: bytes) -> object:
        """Send a line."""
        ...

    def cut(self, *, rest: bytes = b"") -> object:
        """Cut it, after part of a line perhaps."""
        ...


class Trouble:
    """What may go wrong on lines: nothing, unless a subclass says so."""

    def __init__(self) -> None:
        self.fired = 0
        """How often something went wrong."""

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        """Return what a request is answered, which `act` has carried out; raise Drop or Silence."""
        return await act()

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        """A line has come on a watch, to be told or not."""
        tell(event)

    def begins(self, line: Line, step: int) -> None:
        """A step of the scenario begins."""


class Several(Trouble):
    """Several troubles, each of which sees what the ones before it let through."""

    def __init__(self, *troubles: Trouble) -> None:
        super().__init__()
        self.troubles = troubles

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        for trouble in reversed(self.troubles):
            act = _through(trouble, line, asked, act)
        return await act()

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        for trouble in reversed(self.troubles):
            tell = _telling(trouble, line, asked, tell)
        tell(event)

    def begins(self, line: Line, step: int) -> None:
        for trouble in self.troubles:
            trouble.begins(line, step)


def _through(trouble: Trouble, line: Line, asked: Exchange, act: Act) -> Act:
    return lambda: trouble.request(line, asked, act)


def _telling(trouble: Trouble, line: Line, asked: Exchange, tell: Tell) -> Tell:
    return lambda event: trouble.event(line, asked, event, tell)


class Line:
    """One way of an operator to the API server: what passed on it, and the trouble there."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.record: list[Exchange] = []
        self.trouble = Trouble()
        self.step = 0

    @property
    def streams(self) -> dict[Exchange, Watch]:
        """The watches that are open."""
        raise NotImplementedError

    async def call(self, act: Callable[[], object]) -> None:
        """Have somebody do something while a request waits."""
        raise NotImplementedError

    def writes(self, *, leases: bool = False) -> list[Exchange]:
        """Return the writes so far."""
        return [one for one in list(self.record) if one.writes and (leases or not one.of_lease)]

    def last_write(self) -> float:
        """Return when the last write began, Leases aside; 0 if there was none."""
        latest = (w.began for w in reversed(list(self.record)) if w.writes and not w.of_lease)
        return next(latest, 0.0)
