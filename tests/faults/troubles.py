"""Troubles: what goes wrong on a line, each once or for a while."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from faults.proxy import Drop, Exchange, Line, Reply, Silence, Tell, Trouble
from faults.scenario import Object
from faults.signatures import signature

OUTAGE, LONG_OUTAGE = 5.0, 12.0
"""Seconds that stand for minutes.

What is refused waits from 1 s on, twice as long each time: five seconds are three refusals. What is
put off (429, 503, no answer) is repeated for ten seconds before anything is said.
"""
OUTAGES = 3
"""Times that a watch is spoilt in a row."""


def status(code: int, reason: str, message: str) -> bytes:
    """Return a Status as the API server writes it."""
    return json.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
    ).encode()


REFUSALS: dict[str, Reply | None] = {
    "409": Reply(409, status(409, "Conflict", "the object has been modified; try again")),
    "422": Reply(422, status(422, "Invalid", "denied for now by the machine of faults")),
    "429": Reply(
        429, status(429, "TooManyRequests", "please try again later"), {"retry-after": "1"}
    ),
    "500": Reply(500, status(500, "InternalError", "an error on the server has occurred")),
    "503": Reply(503, status(503, "ServiceUnavailable", "the server is currently unable")),
    "dropped": None,
}
"""How a request is refused; None for a connection that is closed with no answer."""

GONE = status(410, "Expired", "too old resource version: 1 (2)")


ANY_STEP = -1


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
        return fits and signature(asked) == self.signature


class OnWrite(Trouble):
    """Something goes wrong with one write."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._seen = 0
        self._hit = -1

    def is_hit(self, asked: Exchange) -> bool:
        if not self._target.fits(asked):
            return False
        self._seen += 1
        if self._seen != self._target.number:
            return False
        self.fired += 1
        return True


class Before(OnWrite):
    """Something happens right before a write is passed on; Drop has it never arrive."""

    def __init__(self, target: Target, act: Callable[[], object], *, arrives: bool) -> None:
        super().__init__(target)
        self._act, self._arrives = act, arrives

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        if self.is_hit(asked):
            await asyncio.to_thread(self._act)
            if not self._arrives:
                raise Drop
        return None


class After(OnWrite):
    """Something happens once a write took effect, before anybody is told so.

    Without anything to happen, the answer is lost; with a reply, another one is told.
    """

    def __init__(
        self, target: Target, act: Callable[[], object] | None = None, reply: Reply | None = None
    ) -> None:
        super().__init__(target)
        self._act, self._reply = act, reply

    async def after(self, line: Line, asked: Exchange, reply: Reply) -> Reply | None:
        if not self.is_hit(asked):
            return None
        if self._act:
            await asyncio.to_thread(self._act)
        if self._reply is None:
            raise Drop
        return self._reply


class Refused(OnWrite):
    """A write is refused, once or for a while."""

    def __init__(self, target: Target, reply: Reply | None, *, lasts: float = 0.0) -> None:
        super().__init__(target)
        self._reply, self._lasts = reply, lasts
        self._until = 0.0

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        hit = self.is_hit(asked)
        if hit:
            self._until = time.monotonic() + self._lasts
        same = asked.writes and signature(asked) == self._target.signature
        if not hit and not (same and time.monotonic() < self._until):
            return None
        if not hit:
            self.fired += 1
        if self._reply is None:
            raise Drop
        return self._reply


class OnWatch(Trouble):
    """Something goes wrong with the watches of one kind, when a step begins."""

    def __init__(self, plural: str, *, steps: range = range(1, 4)) -> None:
        super().__init__()
        self._plural, self._steps = plural, steps

    def is_hit(self, asked: Exchange) -> bool:
        return asked.path.rsplit("/", 1)[-1] == self._plural

    def begins(self, line: Line, step: int) -> None:
        """A step begins."""
        if step in self._steps:
            for asked, tell in list(line.streams.items()):
                if self.is_hit(asked):
                    self.fired += 1
                    self.spoil(asked, tell)

    def spoil(self, asked: Exchange, tell: Tell) -> None:
        """Spoil a watch that stands."""


class Cut(OnWatch):
    """It is cut, after these bytes."""

    def __init__(self, plural: str, said: bytes = b"") -> None:
        super().__init__(plural)
        self._said = said

    def spoil(self, asked: Exchange, tell: Tell) -> None:
        if self._said:
            tell(self._said)
        tell(None)


class Expired(Cut):
    """It is cut, and when it is opened anew its version has expired."""

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        if (
            asked.watches
            and self.is_hit(asked)
            and self.fired
            and asked.query.get("resourceVersion")
        ):
            return Reply(410, GONE)
        return None


class Half(OnWatch):
    """It stays open, and nothing comes any more."""

    def __init__(self, plural: str) -> None:
        super().__init__(plural, steps=range(1, 2))
        self._silent: set[int] = set()

    def spoil(self, asked: Exchange, tell: Tell) -> None:
        self._silent.add(asked.number)

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if asked.number not in self._silent:
            tell(event)


class Twice(OnWatch):
    """Each event comes twice."""

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        tell(event)
        if self.is_hit(asked) and b"BOOKMARK" not in event:
            self.fired += 1
            tell(event)


class Swapped(OnWatch):
    """Of two events about different objects the second comes first."""

    def __init__(self, plural: str) -> None:
        super().__init__(plural)
        self._held: dict[int, bytes] = {}

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if not self.is_hit(asked) or b"BOOKMARK" in event or not line.step:
            self._flush(asked, tell)
            tell(event)
            return
        held = self._held.get(asked.number)
        if held is None:
            self._held[asked.number] = event
            asyncio.get_running_loop().call_later(0.3, self._flush, asked, tell)
        elif _name(held) == _name(event):
            self._flush(asked, tell)
            tell(event)
        else:
            self.fired += 1
            tell(event)
            self._flush(asked, tell)

    def _flush(self, asked: Exchange, tell: Tell) -> None:
        held = self._held.pop(asked.number, None)
        if held is not None:
            tell(held)


class Late(OnWatch):
    """Each event comes later than those of other kinds."""

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if self.is_hit(asked) and line.step:
            self.fired += 1
            asyncio.get_running_loop().call_later(1.0, tell, event)
        else:
            tell(event)


class Stale(Trouble):
    """Whoever lists sees what there was at an older version, and is told the rest later."""

    def __init__(self, lag: float = 1.5) -> None:
        super().__init__()
        self.version = ""
        self._lag = lag
        self._gone: set[str] = set()

    def expire(self) -> None:
        """Have every watch that is opened by a version be refused, once for each kind."""
        self._gone = {"*"}

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        if not (self.version and asked.watches):
            return None
        if self._gone and asked.query.get("resourceVersion") and asked.path not in self._gone:
            self._gone.add(asked.path)
            return Reply(410, GONE)
        if asked.query.get("sendInitialEvents"):
            self.fired += 1
            asked.older, asked.lag = self.version, self._lag
        return None


class Off(Trouble):
    """Nothing passes for a while; `is_silent` when nothing is closed either.

    With `leases`, a code of `REFUSALS`, only Leases do not pass and get that answer.
    """

    def __init__(self, *, leases: str = "") -> None:
        super().__init__()
        self.is_off = self.is_silent = False
        self._leases = leases

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        if not self.is_off or (self._leases and not asked.of_lease):
            return None
        self.fired += 1
        refused = REFUSALS.get(self._leases)
        if refused is None:
            raise Silence if self.is_silent else Drop
        return refused

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if not self.is_off or self._leases:
            tell(event)


def _name(event: bytes) -> str:
    said: Object = json.loads(event)
    return said["object"]["metadata"].get("name", "")
