"""Injector: faults as data, and how each upsets the machine.

A fault is anchored at a write: the one of that number from the beginning, those of the Lease apart.
So a run is the fault-free one up to there, and every fault can be tried at every write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import httpx

from faults.inmemory.machine import Machine, Process
from faults.inmemory.story import is_write
from support.server.apiserver import LATENCY, Exchange, Reply, expired, refusal
from support.server.streams import Opening, Stream, line

MINUTES = 150.0
"""Seconds that a fault lasts which lasts for minutes."""
LATE = 8.0
"""Seconds after its answer was lost that a request is carried out."""
DAY, YEAR = 86_400.0, 365 * 86_400.0


@dataclass(frozen=True)
class Fault:
    """One fault: what goes wrong, at which write, for how long, and with the watch of which kind.

    With `lease`, writes of the Lease are counted, and meant. `seconds` of 0 means once.
    """

    what: str
    at: int
    seconds: float = 0.0
    kind: str = ""
    lease: bool = False

    def __str__(self) -> str:
        parts = (
            self.what,
            self.kind and f"of {self.kind}",
            self.seconds and f"for {self.seconds:g} s",
            f"at {'Lease ' if self.lease else ''}write {self.at}",
        )
        return " ".join(filter(None, parts))  # type: ignore[arg-type]


Act = Callable[[], Reply]
ANSWERS = {
    "refused with 401": (401, "Unauthorized"),
    "refused with 403": (403, "Forbidden"),
    "refused with 409": (409, "Conflict"),
    "refused with 422": (422, "Invalid"),
    "refused with 429": (429, "TooManyRequests"),
    "refused with 500": (500, "InternalError"),
    "refused with 503": (503, "ServiceUnavailable"),
}
REFUSALS = (*ANSWERS, "dropped before it arrived", "dropped on its way", "not answered")
"""The server does not carry the write out."""
LOSSES = ("answer lost", "504 after it took effect", "504, and carried out later", "never answered")
"""It does."""
CRASHES = ("crash before", "crash after")
STREAMS = (
    "cut",
    "cut in the middle of a line",
    "silent",
    "410 as status",
    "410 as event",
    "garbage",
    "told twice",
    "swapped",
    "late",
    "stale when opened again",
)
"""What befalls the watch of a kind."""
OUTAGES = ("API server away", "API server restarted")
CLOCKS = (
    "clock an hour ahead",
    "clock an hour behind",
    "clock a year ahead",
    "clock a year behind",
)
REPLICAS = ("leader cut off", "leader asked to stop", "leader paused")
_AHEAD = {
    "clock an hour ahead": 3600.0,
    "clock an hour behind": -3600.0,
    "clock a year ahead": YEAR,
    "clock a year behind": -YEAR,
}


class Injector:
    """Upsets a machine as its faults say."""

    def __init__(self, machine: Machine, faults: tuple[Fault, ...]) -> None:
        self.machine, self.faults = machine, faults
        self.met: list[tuple[Fault, Exchange]] = []
        """What was hit."""
        self.refused = Counter[str]()
        """How often each request was answered wrongly."""
        self.interludes: dict[str, Callable[[], object]] = {}
        """What somebody does at a write, by the fault's name; begins with `before` or `after`."""
        self._counts = {False: 0, True: 0}
        self._lasting: list[tuple[Fault, str, float]] = []
        self._away_until = 0.0
        self._cut_off: dict[str, float] = {}
        self._upset: dict[str, tuple[Fault, float]] = {}
        """The watches that open wrongly, by kind, and until when."""
        machine.api.hook = self.exchange
        machine.api.watch_hook = self.watch

    @property
    def patient(self) -> bool:
        """Whether people wait until all is well again before they go on with a scenario."""
        return not any(fault.what in (*STREAMS, *OUTAGES) for fault in self.faults)

    # --- requests -----------------------------------------------------------------------------

    async def exchange(self, exchange: Exchange, act: Act) -> Reply:
        """Let a request through, or not."""
        await self._reach(exchange)
        due: list[Fault] = []
        lease = exchange.api.kind == "Lease" and exchange.writes
        if lease or is_write(exchange):
            number = self._counts[lease]
            self._counts[lease] += 1
            due = [f for f in self.faults if f.lease is lease and f.at == number]
        answers = [fault for fault in due if fault.what in (*REFUSALS, *LOSSES, *CRASHES)]
        for fault in due:
            if fault not in answers[1:]:  # a request has one answer
                self._hit(fault, exchange)
        now = anyio.current_time()
        lasting = [
            f for f, target, until in self._lasting if target == str(exchange) and now < until
        ]
        for fault in (*answers, *lasting)[:1]:
            return await self._wrong(fault, exchange, act)
        reply = act()
        for fault, at in self.met:
            if at is exchange and fault.what.startswith("after"):
                self.interludes[fault.what]()
        await anyio.sleep(LATENCY / 2)
        return reply

    async def _reach(self, exchange: Exchange) -> None:
        """Come to the server, if it is to be reached."""
        now = anyio.current_time()
        if now < self._away_until:
            await anyio.sleep(LATENCY)
            raise httpx.ConnectError("connection refused")
        if now < self._cut_off.get(exchange.client, 0.0):
            await anyio.sleep_forever()
        await anyio.sleep(LATENCY / 2)

    def _hit(self, fault: Fault, exchange: Exchange) -> None:
        """Begin a fault at its write."""
        self.met.append((fault, exchange))
        now = anyio.current_time()
        if fault.seconds and fault.what in REFUSALS:
            self._lasting.append((fault, str(exchange), now + fault.seconds))
        if fault.what in STREAMS:
            self._trouble(fault)
        elif fault.what in OUTAGES:
            self.away(fault.seconds or 1.0)
            if fault.what == "API server restarted":
                # What happened before is in no cache of it any more.
                self.machine.api.compacted = self.machine.api.store.version + 1
        elif fault.what in _AHEAD:
            self._set_clocks(fault)
        elif fault.what in REPLICAS:
            self._replica(fault, exchange)
        elif fault.what.startswith("before"):
            self.interludes[fault.what]()

    async def _wrong(self, fault: Fault, exchange: Exchange, act: Act) -> Reply:
        """Answer wrongly."""
        self.refused[str(exchange)] += 1
        match fault.what:
            case "crash before":
                self._process(exchange).kill()
                await anyio.sleep_forever()
            case "crash after":
                act()
                self._process(exchange).kill()
                await anyio.sleep_forever()
            case "dropped before it arrived":
                raise httpx.ConnectError("connection refused")
            case "dropped on its way":
                raise httpx.ReadError("connection reset by peer")
            case "not answered":
                await anyio.sleep_forever()
            case "answer lost":
                act()
                raise httpx.ReadError("connection reset by peer")
            case "never answered":
                act()
                await anyio.sleep_forever()
            case "504 after it took effect":
                act()
                return refusal(504, "Timeout")
            case "504, and carried out later":
                self.machine.later(LATE, act)
                return refusal(504, "Timeout")
        code, reason = ANSWERS[fault.what]
        return refusal(code, reason, after=3 if code == 429 else 0)

    def _process(self, exchange: Exchange) -> Process:
        return next(p for p in self.machine.processes if p.name == exchange.client)

    # --- the server, clocks and replicas ------------------------------------------------------

    def away(self, seconds: float) -> None:
        """Have the API server go away with all its connections."""
        self._away_until = anyio.current_time() + seconds
        for stream in list(self.machine.api.streams):
            stream.cut()

    def _set_clocks(self, fault: Fault) -> None:
        """Set the clocks of the processes, and right again after a while."""
        for process in self.machine.processes:
            process.offset = _AHEAD[fault.what]

            def right(process: Process = process) -> None:
                process.offset = 0.0

            self.machine.later(fault.seconds or 60.0, right)

    def _replica(self, fault: Fault, exchange: Exchange) -> None:
        process = self._process(exchange)
        if fault.what == "leader asked to stop":
            process.terminate()
        else:
            until = anyio.current_time() + (fault.seconds or MINUTES)
            self._cut_off[process.name] = until
            for stream in list(self.machine.api.streams):
                if stream.exchange.client == process.name:
                    stream.silent = True

    # --- watches ------------------------------------------------------------------------------

    async def watch(self, exchange: Exchange, initial: bool) -> Opening | Reply:
        """Open a watch, or not."""
        await self._reach(exchange)
        await anyio.sleep(LATENCY / 2)
        upset = self._upset.get(exchange.api.kind)
        if upset is None:
            return Opening()
        fault, until = upset
        if fault.what == "410 as status" and not initial:
            del self._upset[exchange.api.kind]
            return expired()
        if fault.what == "stale when opened again":
            del self._upset[exchange.api.kind]
            api = self.machine.api
            past = [entry.version for entry in api.store.log if entry.key[1] != "Lease"]
            old = past[-4] if len(past) > 3 else past[0]
            return Opening(version=old, lag=20.0)
        if fault.what == "silent" and anyio.current_time() < until:
            return Opening(silent=True)
        return Opening()

    def _trouble(self, fault: Fault) -> None:
        """Upset the watches of a kind."""
        kind, now = fault.kind, anyio.current_time()
        self._upset[kind] = (fault, now + fault.seconds)
        api = self.machine.api
        for stream in [s for s in list(api.streams) if s.kind == kind]:
            self._upset_one(fault, stream)

    def _upset_one(self, fault: Fault, stream: Stream) -> None:
        api = self.machine.api
        log = [e for e in api.store.log if stream.line_of(e)]
        match fault.what:
            case "cut" | "410 as status":
                stream.cut()
            case "stale when opened again":
                stream.cut()
                # A version that nobody has any more makes it ask for everything.
                api.compacted = api.store.version + 1
            case "cut in the middle of a line":
                stream.cut(rest=b'{"type":"MODIFIED","object":{"apiVersion":')
            case "silent":
                stream.silent = True
            case "410 as event":
                stream.line(line("ERROR", expired().body))
                stream.end()
            case "garbage":
                stream.line(b'{"type":"MODIFIED","object":"\xff}\n')
            case "told twice":
                stream.line(b"".join(stream.line_of(entry) for entry in log[-3:]))
            case "swapped":
                stream.swaps = True
                self.machine.later(60.0, stream.release)
            case "late":
                stream.lag = 15.0
                self.machine.later(60.0, lambda: setattr(stream, "lag", 0.0))
