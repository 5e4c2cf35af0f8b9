"""WorkQueue: hands out keys for passes, each key to one pass at a time.

Keys stand in three lines: those due by the clock, those of which an object has changed, and those
that are only checked. The lines take turns, and within each line the namespaces do. So no namespace
waits behind all keys of another one.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, OrderedDict, deque
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.lowlevel

from hedgerow.backoff import backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from hedgerow.contract import Key
    from hedgerow.runtime.clock import Clock

FIRST_RETRY = 0.1
LONGEST_RETRY = 300.0
REQUESTED_EVERY = 1.0
"""Seconds between two passes of a key that are requested for a time. One more may come at once:
the clock may have been read a moment too early."""


class QueueLine(IntEnum):
    """Why a key is ready; of several reasons the first one counts."""

    DUE = 0
    """Its time has come, such as that of a scheduled start."""
    CHANGED = 1
    """One of its objects has changed."""
    BACKLOG = 2
    """It is checked, as after a start, when most are settled already."""


PASSES = {QueueLine.DUE: 128, QueueLine.CHANGED: 16, QueueLine.BACKLOG: 16}
"""The most passes of each line at a time, most of which wait for an answer; of one namespace it is
one less, so that one is always left for others. Keys that are due are many, so that all starts of
a minute are made before what follows them, such as their statuses, is written (ADR 0009)."""


class Closed(Exception):  # noqa: N818 - a state, not an error
    """The queue is closed: it takes no more work and hands out none."""


class _KeysInTurn:
    """The keys of one line, each with the instant at which it became ready.

    Within a namespace keys keep their order. A namespace goes to the end after its turn. To find
    the first key of a dict from whose front many were removed takes longer and longer; that of an
    OrderedDict does not.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ready: OrderedDict[str, OrderedDict[Key, float]] = OrderedDict()
        self._running: Counter[str] = Counter()

    def add(self, key: Key, since: float) -> None:
        """Add a key that is not in this line."""
        self._ready.setdefault(key[0], OrderedDict())[key] = since

    def remove(self, key: Key) -> float:
        """Remove a key; return the instant at which it became ready."""
        keys = self._ready[key[0]]
        since = keys.pop(key)
        if not keys:
            del self._ready[key[0]]
        return since

    def take_next(self) -> tuple[Key, float] | None:
        """Take the next key that may have a pass, with the instant at which it became ready."""
        if self._running.total() >= self._most:
            return None
        may = (name for name in self._ready if self._running[name] < self._most - 1)
        if (namespace := next(may, None)) is None:
            return None
        self._ready.move_to_end(namespace)
        self._running[namespace] += 1
        key = next(iter(self._ready[namespace]))
        return key, self.remove(key)

    def end(self, key: Key) -> None:
        """Record that a pass has ended."""
        self._running[key[0]] -= 1
        if not self._running[key[0]]:
            del self._running[key[0]]

    def clear(self) -> None:
        """Remove all keys."""
        self._ready.clear()


class _Delay(NamedTuple):
    """When a key is to be ready, in which line, and whether no request may change that."""

    due: float
    line: QueueLine
    is_barred: bool


class _Delays:
    """The keys that are to be ready at an instant on the monotonic clock."""

    def __init__(self) -> None:
        self._of: dict[Key, _Delay] = {}
        self._heap: list[tuple[float, Key]] = []
        """The delays by time, and some that have been replaced since."""
        self._rested: OrderedDict[Key, float] = OrderedDict()
        """The instant from which a key may have its next requested pass: one a second."""

    def add(self, key: Key, delay: _Delay) -> bool:
        """Delay a key; return False if it is ready earlier, or barred until later."""
        if delay.line is QueueLine.DUE:
            rested = self._rested.get(key, 0.0) - REQUESTED_EVERY
            delay = delay._replace(due=max(delay.due, rested))
        before = self._of.get(key)
        is_later = before is not None and before.due <= delay.due
        if not delay.is_barred and (is_later or self.line_up_barred(key, delay.line)):
            return False
        self._of[key] = delay
        heapq.heappush(self._heap, (delay.due, key))
        if len(self._heap) > 2 * len(self._of):
            # Otherwise outdated entries would stay until they are due, however far off that is.
            self._heap = [(delay.due, key) for key, delay in self._of.items()]
            heapq.heapify(self._heap)
        return True

    def line_up_barred(self, key: Key, line: QueueLine) -> bool:
        """Return whether a key is barred; if so, let it be ready in no later line than this."""
        delay = self._of.get(key)
        if delay is None or not delay.is_barred:
            return False
        self._of[key] = delay._replace(line=min(line, delay.line))
        return True

    def discard(self, key: Key) -> None:
        """Forget that a key is to be ready."""
        self._of.pop(key, None)

    def next(self) -> float:
        """Return the instant of the next key; infinite without one."""
        while self._heap:
            due, key = self._heap[0]
            if key in self._of and self._of[key].due == due:
                return due
            heapq.heappop(self._heap)
        return math.inf

    def matured(self, now: float) -> Iterator[tuple[Key, QueueLine]]:
        """Take the keys whose time has come, with their lines."""
        while self.next() <= now:
            due, key = heapq.heappop(self._heap)
            line = self._of.pop(key).line
            if line is QueueLine.DUE:
                self._count(key, due)
            yield key, line

    def _count(self, key: Key, due: float) -> None:
        """Count a requested pass; forget the keys whose instants have passed."""
        self._rested[key] = max(due, self._rested.pop(key, due)) + REQUESTED_EVERY
        while next(iter(self._rested.values())) <= due:
            self._rested.popitem(last=False)


class WorkQueue:
    """Keys that wait for a pass.

    A key added while its pass runs is handed out once more after it; for a change of a cached
    object only if the pass has not observed since. The queue is bounded by the number of distinct
    keys, which is that of resources in the cache. `on_wait` is called with the seconds that a ready
    key waited, `on_retry` at each backoff. `everyone` returns the keys of all resources.
    """

    def __init__(
        self,
        clock: Clock,
        on_wait: Callable[[float], object] = lambda _: None,
        on_retry: Callable[[], object] = lambda: None,
        *,
        everyone: Callable[[], Iterable[Key]] = tuple,
    ) -> None:
        self._clock = clock
        self._on_wait = on_wait
        self._on_retry = on_retry
        self._everyone = everyone
        self._of_all: QueueLine | None = None
        """The line of `add_everyone`, until they are added."""
        self._lines = {line: _KeysInTurn(PASSES[line]) for line in QueueLine}
        self._turns = deque(QueueLine)
        self._ready: dict[Key, QueueLine] = {}
        self._running: dict[Key, QueueLine] = {}
        self._again: dict[Key, QueueLine] = {}
        self._unseen: dict[Key, QueueLine] = {}
        """The running keys that have changed since their pass observed."""
        self._delays = _Delays()
        self.failures: dict[Key, int] = {}
        """How often in a row a pass of a key has failed."""
        self.is_closed = False
        """Whether it takes no more work; it may be set back once no pass runs."""
        self._waiting: anyio.Event | None = None

    def __len__(self) -> int:
        """Return the number of keys that are ready."""
        self._take_in()
        return len(self._ready)

    def next_due(self) -> float:
        """Return the instant at which the next delayed key is due; infinite without one."""
        return self._delays.next()

    def add(
        self, key: Key, line: QueueLine = QueueLine.CHANGED, *, is_change: bool = False
    ) -> None:
        """Request a pass now; of several requests, the first line counts.

        `is_change`: a cached object has changed; a running pass that observes again needs no other.
        """
        if self.is_closed or self._delays.line_up_barred(key, line):
            return
        if key in self._running:
            again = self._unseen if is_change else self._again
            again[key] = min(line, again.get(key, line))
        elif (before := self._ready.get(key)) is None:
            self._line_up(key, line, self._clock.monotonic())
        elif line < before:
            self._line_up(key, line, self._lines[before].remove(key))

    def add_everyone(self, line: QueueLine = QueueLine.BACKLOG) -> None:
        """Request a pass of every key that there is when the next one is handed out."""
        if not self.is_closed:
            self._of_all = line if self._of_all is None else min(line, self._of_all)
            self._wake()

    def note_observed(self, key: Key) -> None:
        """Record that the running pass has observed all changes until now: no other is needed."""
        self._unseen.pop(key, None)

    def has_changed(self, key: Key) -> bool:
        """Return whether a cached object has changed since the running pass observed."""
        return key in self._unseen

    def add_after(self, key: Key, seconds: float, *, is_requested: bool = False) -> None:
        """Request a pass in `seconds`; the earliest of several requests counts.

        `is_requested`: the pass must not be late then. There is at most one such pass a second.
        """
        line = QueueLine.DUE if is_requested else QueueLine.CHANGED
        self._delay(key, seconds, line, is_barred=False)

    def retry(self, key: Key, least: float = 0.0) -> float:
        """Request a pass after the key's backoff; return the delay in seconds.

        The delay doubles from 0.1 s to 300 s; its upper half is random. With `least` it takes so
        many seconds at least, 300 at most, and no other request has the key handed out earlier: the
        server asked us to wait that long.
        """
        self.failures[key] = failures = self.failures.get(key, 0) + 1
        least, draw = min(least, LONGEST_RETRY), self._clock.jitter()
        delay = backoff(failures, draw, least, first=FIRST_RETRY, longest=LONGEST_RETRY)
        self._on_retry()
        self._delay(key, delay, QueueLine.CHANGED, is_barred=least > 0)
        return delay

    def forget_backoff(self, key: Key) -> None:
        """Reset the key's backoff after a pass that succeeded."""
        self.failures.pop(key, None)

    def revive(self) -> None:
        """Request a pass now for every key that waits for its backoff: the cause may be gone."""
        failed, self.failures = self.failures, {}
        for key in failed:
            self.add(key)

    async def get(self) -> Key:
        """Wait for a key and return it; `done` must follow. Raises Closed. One caller at a time.

        The event loop takes a turn before each key: passes that find everything settled never wait,
        and many of them, one after another, would block it.
        """
        await anyio.lowlevel.checkpoint()
        while not self.is_closed:
            self._take_in()
            if (key := self._next()) is not None:
                return key
            self._waiting = anyio.Event()
            seconds = self.next_due() - self._clock.monotonic()
            with anyio.move_on_after(None if math.isinf(seconds) else seconds):
                await self._waiting.wait()
        raise Closed

    def done(self, key: Key) -> None:
        """End the key's pass; queue the key again if it was requested meanwhile."""
        self._lines[self._running.pop(key)].end(key)
        for asked in (self._again, self._unseen):
            if (line := asked.pop(key, None)) is not None:
                self.add(key, line)
        if self._ready:
            self._wake()

    def close(self) -> None:
        """Take no more work; running passes may end, and who waits gets Closed."""
        self.is_closed, self._of_all = True, None
        self._ready.clear()
        for line in self._lines.values():
            line.clear()
        self._wake()

    def _next(self) -> Key | None:
        """Hand out the next key of the next line that has one which may have a pass."""
        for line in tuple(self._turns):
            if taken := self._lines[line].take_next():
                self._turns.remove(line)
                self._turns.append(line)
                key, since = taken
                del self._ready[key]
                self._running[key] = line
                self._delays.discard(key)  # this pass decides again when the next one is due
                self._on_wait(self._clock.monotonic() - since)
                return key
        return None

    def _line_up(self, key: Key, line: QueueLine, since: float) -> None:
        self._ready[key] = line
        self._lines[line].add(key, since)
        self._wake()

    def _take_in(self) -> None:
        """Make the keys ready whose time has come, and all keys if `add_everyone` was called."""
        if self.is_closed:
            return
        for key, line in self._delays.matured(self._clock.monotonic()):
            self.add(key, line)
        if self._of_all is not None:
            line, self._of_all = self._of_all, None
            for key in self._everyone():
                self.add(key, line)

    def _delay(self, key: Key, seconds: float, line: QueueLine, *, is_barred: bool) -> None:
        due = self._clock.monotonic() + seconds
        if not self.is_closed and self._delays.add(key, _Delay(due, line, is_barred)):
            self._wake()

    def _wake(self) -> None:
        """Have whoever waits for a key look again."""
        if self._waiting is not None:
            self._waiting.set()
