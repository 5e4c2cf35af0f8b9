"""Troubles: what goes wrong on lines, at one write, on the watches of a kind, or with all of it.

They run on the event loop that carries the requests, whichever backend that is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from faults.exchange import Act, Drop, Exchange, Line, Reply, Silence, Target, Tell, Trouble, Watch
from faults.scenario import Object

SYNCED = b"k8s.io/initial-events-end"
DURING = range(1, 4)
"""The steps at whose beginning watches are spoilt."""


def status(code: int, reason: str, message: str) -> bytes:
    """Return a Status as the API server writes it."""
    told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return json.dumps({**told, "message": message, "reason": reason, "code": code}).encode()


GONE = status(410, "Expired", "too old resource version: 1 (2)")


def _now() -> float:
    return asyncio.get_running_loop().time()


class OnWrite(Trouble):
    """Something goes wrong with one write, and for a while with each that writes the same.

    `act` is what happens then, before the API server has carried it out or `after` that, if it
    arrives there at all; it may arrive `later`. `answer` is what is said in place of the API
    server: a Reply, or Drop or Silence. Without one, the API server's answer is told.
    """

    def __init__(
        self,
        target: Target,
        *,
        act: Callable[[Exchange], object] | None = None,
        after: bool = False,
        arrives: bool = True,
        later: float = 0.0,
        answer: Reply | Exception | None = None,
        lasts: float = 0.0,
    ) -> None:
        super().__init__()
        self._target, self._act, self._after = target, act, after
        self._arrives, self._later = arrives, later
        self._answer, self._lasts = answer, lasts
        self._seen, self._until = 0, -1.0

    def is_hit(self, asked: Exchange) -> bool:
        if not self._target.fits(asked):
            return False
        self._seen += 1
        if self._seen == self._target.number:
            self._until = _now() + self._lasts
            return True
        return self._until >= 0 and _now() < self._until

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        if not self.is_hit(asked):
            return await act()
        self.fired += 1
        if self._act and not self._after:
            await line.call(partial(self._act, asked))
        reply = Reply(0)
        if self._later:
            asyncio.get_running_loop().call_later(self._later, _carry_out, act)
        elif self._arrives:
            reply = await act()
        if self._act and self._after:
            await line.call(partial(self._act, asked))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer or reply


_late: set[asyncio.Task[Any]] = set()


def _carry_out(act: Act) -> None:
    async def carried_out() -> None:
        await act()

    task = asyncio.get_running_loop().create_task(carried_out())
    _late.add(task)
    task.add_done_callback(_late.discard)


class OnWatch(Trouble):
    """Something goes wrong with the watches of one kind: as some steps begin, or `at` a write."""

    def __init__(self, plural: str, at: Target | None = None) -> None:
        super().__init__()
        self._plural = plural
        self._at = at and OnWrite(at)

    def is_hit(self, asked: Exchange) -> bool:
        return asked.plural == self._plural

    def begins(self, line: Line, step: int) -> None:
        if not self._at and step in DURING:
            self.strike(line)

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        if self._at and self._at.is_hit(asked):
            self.strike(line)
        if asked.watches and self.is_hit(asked) and self.fired:
            return await self.opened(asked, act)
        return await act()

    def strike(self, line: Line) -> None:
        """Spoil every watch that is open."""
        for asked, watch in list(line.streams.items()):
            if self.is_hit(asked):
                self.fired += 1
                self.spoil(asked, watch)

    def spoil(self, asked: Exchange, watch: Watch) -> None:
        """Spoil a watch that stands."""

    async def opened(self, asked: Exchange, act: Act) -> Reply:
        """Answer who opens one later."""
        return await act()


class Cut(OnWatch):
    """It is cut, after these bytes."""

    def __init__(self, plural: str, at: Target | None = None, said: bytes = b"") -> None:
        super().__init__(plural, at)
        self._said = said

    def spoil(self, asked: Exchange, watch: Watch) -> None:
        watch.cut(rest=self._said)


class Expired(Cut):
    """It is cut, and when it is opened anew its version has expired."""

    async def opened(self, asked: Exchange, act: Act) -> Reply:
        return Reply(410, GONE) if asked.query.get("resourceVersion") else await act()


class Half(OnWatch):
    """It stays open, and nothing comes any more; so do those that are opened in a while."""

    def __init__(self, plural: str, at: Target | None = None, lasts: float = 0.0) -> None:
        super().__init__(plural, at)
        self._lasts, self._until = lasts, 0.0

    def begins(self, line: Line, step: int) -> None:
        if step == DURING[0]:
            super().begins(line, step)

    def spoil(self, asked: Exchange, watch: Watch) -> None:
        watch.silent = True
        self._until = self._until or _now() + self._lasts

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        tell(event)
        if self.is_hit(asked) and SYNCED in event and _now() < self._until:
            asyncio.get_running_loop().call_soon(self._silence, line, asked)

    def _silence(self, line: Line, asked: Exchange) -> None:
        if asked in line.streams:
            line.streams[asked].silent = True


class OnEvents(OnWatch):
    """Something goes wrong with each event of a kind, from the second step or `at` a write on."""

    def __init__(self, plural: str, at: Target | None, seconds: float = 0.0) -> None:
        super().__init__(plural, at)
        self._seconds = seconds
        self._begun = False

    def strike(self, line: Line) -> None:
        self._begun = True
        super().strike(line)

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if self._begun and self.is_hit(asked) and b"BOOKMARK" not in event:
            self.upset(asked, event, tell)
        else:
            self.flush(asked, tell)
            tell(event)

    def upset(self, asked: Exchange, event: bytes, tell: Tell) -> None:
        """Tell an event otherwise."""

    def flush(self, asked: Exchange, tell: Tell) -> None:
        """Tell what is held back."""


class Twice(OnEvents):
    """Each event comes twice."""

    def upset(self, asked: Exchange, event: bytes, tell: Tell) -> None:
        tell(event)
        tell(event)


class Swapped(OnEvents):
    """Of two events about different objects the second comes first."""

    def __init__(self, plural: str, at: Target | None, seconds: float) -> None:
        super().__init__(plural, at, seconds)
        self._held: dict[Exchange, bytes] = {}

    def upset(self, asked: Exchange, event: bytes, tell: Tell) -> None:
        held = self._held.get(asked)
        if held is None:
            self._held[asked] = event
            asyncio.get_running_loop().call_later(self._seconds, self.flush, asked, tell)
        elif _name(held) == _name(event):
            self.flush(asked, tell)
            tell(event)
        else:
            tell(event)
            self.flush(asked, tell)

    def flush(self, asked: Exchange, tell: Tell) -> None:
        held = self._held.pop(asked, None)
        if held is not None:
            tell(held)


class Late(OnEvents):
    """Each event, and what comes with it, is later than those of other kinds."""

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if not (self._begun and self.is_hit(asked)):
            tell(event)
            return
        asyncio.get_running_loop().call_later(self._seconds, tell, event)


class Stale(OnWatch):
    """Whoever lists sees what there was at an older version, and is told the rest `lag` later.

    `older` says which version. All kinds are meant if none is named.
    """

    def __init__(
        self, plural: str, at: Target | None, older: Callable[[], str], lag: float
    ) -> None:
        super().__init__(plural, at)
        self._older, self._lag = older, lag
        self._version = ""
        self._gone: set[str] = set()
        self._expires = False

    def is_hit(self, asked: Exchange) -> bool:
        return not self._plural or super().is_hit(asked)

    def begins(self, line: Line, step: int) -> None:
        """It is struck by whoever knows that all is at rest."""

    def show(self) -> None:
        """Show from now on what there was."""
        self._version = self._older()

    def strike(self, line: Line) -> None:
        """Have every watch be cut, and be refused by its version when it is opened again."""
        self.show()
        self._expires = True
        for asked, watch in list(line.streams.items()):
            if self.is_hit(asked):
                watch.cut()

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        if self._at and self._at.is_hit(asked):
            self.strike(line)
        if not (self._version and asked.watches and self.is_hit(asked)):
            return await act()
        if self._expires and asked.query.get("resourceVersion") and asked.path not in self._gone:
            self._gone.add(asked.path)
            return Reply(410, GONE)
        if asked.query.get("sendInitialEvents"):
            self.fired += 1
            asked.older, asked.lag = self._version, self._lag
            if self._at:
                self._version = ""
        return await act()


class Off(Trouble):
    """Nothing passes for a while; `is_silent` when nothing is closed either.

    With an `answer`, only Leases do not pass, and get that.
    """

    def __init__(self, answer: Reply | Exception | None = None) -> None:
        super().__init__()
        self.is_off = self.is_silent = False
        self._answer = answer

    async def request(self, line: Line, asked: Exchange, act: Act) -> Reply:
        if not self.is_off or (self._answer and not asked.of_lease):
            return await act()
        self.fired += 1
        answer = self._answer or (Silence() if self.is_silent else Drop())
        if isinstance(answer, Exception):
            raise answer
        return answer

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        if not self.is_off or self._answer:
            tell(event)


def _name(event: bytes) -> str:
    said: Object = json.loads(event)
    return said["object"]["metadata"].get("name", "")
