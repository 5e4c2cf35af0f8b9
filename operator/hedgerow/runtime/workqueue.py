"""WorkQueue: each key at most once, never two passes of one key at a time, backoff for failures.

What is due by the clock comes before what has changed, and that before what is only looked through.
Namespaces take turns: keys never wait for the long backlog of another namespace.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, OrderedDict
from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel

from hedgerow.backoff import backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from hedgerow.contract import Key
    from hedgerow.runtime.clock import Clock

FIRST_RETRY = 0.1
LONGEST_RETRY = 300.0
FAIR_EVERY = 16
"""Of 16 keys, one each is taken from the second and from the lowest priority first, so that none
waits for ever."""
REQUESTED_EVERY = 1.0
"""Seconds for each pass that is requested for a time; one more may come at once, so that what is
due is not late because the clock was looked at a moment too early."""
AT_ONCE = 500
"""Keys of `add_all` to add between two turns of the event loop: about a millisecond."""


class Priority(IntEnum):
    """How soon a ready key is handed out: a smaller number is a higher priority."""

    DUE = 0
    """Its time has come, such as that of a scheduled start."""
    CHANGED = 1
    """Something has changed."""
    BACKLOG = 2
    """It is looked through, as after a start, when most are settled already."""


LAST: Final = len(Priority)
"""Below the lowest priority."""


def _no_keys() -> tuple[Key, ...]:
    return ()


def _ignore(*_: object) -> None:
    return


class Closed(Exception):  # noqa: N818 - a state, not an error
    """The queue is closed: it takes no more work and hands out none."""


class _Turns:
    """The ready keys by namespace, each with the instant at which it became ready.

    Within a namespace keys keep their order. A namespace goes to the end after its turn. To find
    the first key of a dict from whose front many were removed takes longer and longer; that of an
    OrderedDict does not.
    """

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, OrderedDict[Key, float]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._namespaces

    def add(self, key: Key, now: float) -> None:
        """Add a key; one that is already ready keeps its place."""
        keys = self._namespaces.setdefault(key[0], OrderedDict())
        if key not in keys:
            keys[key] = now
            self._count += 1

    def has(self, may: Callable[[str], bool]) -> bool:
        """Return whether there is a key of a namespace that `may` have a pass."""
        return any(map(may, self._namespaces))

    def pop(self, may: Callable[[str], bool]) -> tuple[Key, float] | None:
        """Take the first key of the next namespace that `may` have a pass, or None."""
        namespace = next(filter(may, self._namespaces), None)
        if namespace is None:
            return None
        keys = self._namespaces[namespace]
        key, since = keys.popitem(last=False)
        self._count -= 1
        if keys:
            self._namespaces.move_to_end(namespace)
        else:
            del self._namespaces[namespace]
        return key, since

    def remove(self, key: Key) -> float:
        """Remove a key; return the instant at which it became ready."""
        keys = self._namespaces[key[0]]
        since = keys.pop(key)
        self._count -= 1
        if not keys:
            del self._namespaces[key[0]]
        return since

    def clear(self) -> None:
        """Remove all keys."""
        self._namespaces.clear()
        self._count = 0


class _Ready:
    """The keys that are ready for a pass, by priority."""

    def __init__(self) -> None:
        self._of_priority = {priority: _Turns() for priority in Priority}
        self._priority_of: dict[Key, Priority] = {}
        self._turns = count(1)

    def __len__(self) -> int:
        return len(self._priority_of)

    def __contains__(self, namespace: str) -> bool:
        return any(namespace in priority for priority in self._of_priority.values())

    def add(self, key: Key, priority: Priority, now: float) -> bool:
        """Make a key ready; return whether it was not yet, and so needs a worker."""
        before, since = self._priority_of.get(key), now
        if before is not None and before <= priority:
            return False
        if before is not None:
            since = self._of_priority[before].remove(key)
        self._priority_of[key] = priority
        self._of_priority[priority].add(key, since)
        return before is None

    def has(self, may: Callable[[str], bool]) -> bool:
        """Return whether a key is of a namespace that `may` have a pass."""
        return any(of_priority.has(may) for of_priority in self._of_priority.values())

    def pop(self, may: Callable[[str], bool]) -> tuple[Key, Priority, float] | None:
        """Take the next key that `may` have a pass, its priority, and since when it is ready."""
        first = Priority.DUE
        if len(self._priority_of) > 1:
            turn = next(self._turns) % FAIR_EVERY
            first = {0: Priority.BACKLOG, FAIR_EVERY // 2: Priority.CHANGED}.get(turn, first)
        for priority in sorted(self._of_priority, key=lambda priority: priority != first):
            if found := self._of_priority[priority].pop(may):
                key, since = found
                return key, self._priority_of.pop(key), since
        return None

    def clear(self) -> None:
        """Remove all keys."""
        for priority in self._of_priority.values():
            priority.clear()
        self._priority_of.clear()


class _Delays:
    """The keys that are to be ready at an instant on the monotonic clock."""

    def __init__(self) -> None:
        self.at: dict[Key, float] = {}
        self.heap: list[tuple[float, Key]] = []
        self._due: set[Key] = set()
        self._rested: OrderedDict[Key, float] = OrderedDict()
        """When the passes that were requested for a time have had a second each."""

    def add(self, key: Key, due: float, *, is_requested: bool) -> bool:
        """Delay a key; return False if it is ready earlier. `is_requested`: see `Priority.DUE`."""
        if is_requested:
            due = max(due, self._rested.get(key, 0.0) - REQUESTED_EVERY)
        if key in self.at and self.at[key] <= due:
            return False
        self.at[key] = due
        (self._due.add if is_requested else self._due.discard)(key)
        heapq.heappush(self.heap, (due, key))
        if len(self.heap) > 2 * len(self.at):
            # Otherwise outdated entries would stay until they are due, however far off that is.
            self.heap = [(due, key) for key, due in self.at.items()]
            heapq.heapify(self.heap)
        return True

    def discard(self, key: Key) -> None:
        """Forget that a key is to be ready."""
        self.at.pop(key, None)
        self._due.discard(key)

    def matured(self, now: float) -> Iterator[tuple[Key, Priority]]:
        """Take the keys whose time has come, with their priorities."""
        while self.heap and self.heap[0][0] <= now:
            due, key = heapq.heappop(self.heap)
            if self.at.get(key) == due:
                priority = Priority.DUE if key in self._due else Priority.CHANGED
                if priority is Priority.DUE:
                    self._count(key, due)
                self.discard(key)
                yield key, priority

    def _count(self, key: Key, due: float) -> None:
        """Count a requested pass; what has rested by then is forgotten."""
        self._rested[key] = max(due, self._rested.pop(key, due)) + REQUESTED_EVERY
        while next(iter(self._rested.values())) <= due:
            self._rested.popitem(last=False)

    def next(self) -> float:
        """Return the instant of the next key."""
        while self.heap and self.at.get(self.heap[0][1]) != self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0][0] if self.heap else math.inf


class _Passes:
    """The keys whose passes run; no namespace has more than `share` of them at a time."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._priority_of: dict[Key, Priority] = {}
        self._number: Counter[str] = Counter()

    def __contains__(self, key: Key) -> bool:
        return key in self._priority_of

    def priority(self, key: Key) -> Priority:
        """Return the priority with which a key was handed out."""
        return self._priority_of[key]

    def may(self, namespace: str) -> bool:
        """Return whether a namespace may have one more pass at a time."""
        return self._number[namespace] < self._share

    def begin(self, key: Key, priority: Priority) -> None:
        """Record that a pass begins."""
        self._priority_of[key] = priority
        self._number[key[0]] += 1

    def end(self, key: Key) -> bool:
        """Record that a pass has ended; return whether its namespace could not have one more."""
        self._priority_of.pop(key, None)
        left = self._number[key[0]] - 1
        if left:
            self._number[key[0]] = left
        else:
            del self._number[key[0]]
        return left == self._share - 1


class _Waiting:
    """The workers that wait for a key, in the order in which they began to."""

    def __init__(self) -> None:
        self._events: dict[anyio.Event, None] = {}

    def __len__(self) -> int:
        return len(self._events)

    async def wait(self, seconds: float) -> None:
        """Wait to be roused, for so many seconds at most."""
        wake = anyio.Event()
        self._events[wake] = None
        try:
            with anyio.move_on_after(None if math.isinf(seconds) else max(0.0, seconds)):
                await wake.wait()
        except BaseException:  # cancelled: another one has to look, or to wait for a delay
            self._events.pop(wake, None)
            self.rouse()
            raise
        self._events.pop(wake, None)

    def rouse(self) -> None:
        """Wake the worker that has waited longest; the others would find nothing to do.

        After an earlier delay was asked for, the one that was woken waits for it, behind all
        others. So as long as any worker waits, one of them knows of every delay.
        """
        wake = next(iter(self._events), None)
        if wake is not None:
            del self._events[wake]
            wake.set()


class WorkQueue:
    """Keys that wait for a pass.

    A key added while its pass runs is handed out once more after it; one of which something has
    changed, only if the pass has not looked since. The queue is bounded by the number of distinct
    keys, which is that of resources in the cache. `on_wait` is called with
    the seconds that a ready key waited, `on_retry` at each backoff. No namespace has more than
    `share` passes at a time. `everyone` returns all keys that there are. Of the queues that share
    `begin`, one key at a time is handed out, and the event loop takes a turn before each.
    """

    def __init__(
        self,
        clock: Clock,
        on_wait: Callable[[float], object] = _ignore,
        on_retry: Callable[[], object] = _ignore,
        *,
        share: float = math.inf,
        everyone: Callable[[], Collection[Key]] = _no_keys,
        begin: anyio.Lock | None = None,
    ) -> None:
        self._clock = clock
        self._begin = begin or anyio.Lock(fast_acquire=True)
        self._on_wait = on_wait
        self._on_retry = on_retry
        self._ready = _Ready()
        self._later: OrderedDict[Key, Priority] = OrderedDict()
        """What `add_all` has not added yet."""
        self._everyone = everyone
        self._of_all: Priority | None = None
        """The priority of `add_everyone`, until the next key is handed out."""
        self._passes = _Passes(share)
        self._again: dict[Key, Priority] = {}
        self._unseen: dict[Key, Priority] = {}
        """What has changed since the last looks of the running passes."""
        self._delays = _Delays()
        self.failures: dict[Key, int] = {}
        """How often in a row a pass of a key has failed."""
        self._barred: dict[Key, float] = {}
        self.is_closed = False
        """Whether it takes no more work; it may be set back once no pass runs."""
        self._waiting = _Waiting()

    def __len__(self) -> int:
        """Return the number of keys that are ready."""
        self._mature()
        more = 0 if self._of_all is None else len(self._everyone())
        return len(self._ready) + len(self._later) + more

    def next_due(self) -> float:
        """Return the instant at which the next delayed key is due; infinite without one."""
        return self._delays.next()

    def priority(self, key: Key) -> Priority:
        """Return the priority of a key whose pass runs."""
        return self._passes.priority(key)

    def add(
        self, key: Key, priority: Priority = Priority.CHANGED, *, is_change: bool = False
    ) -> None:
        """Request a pass now; of several requests, the highest priority counts.

        `is_change`: something cached has changed, for which the next look of a running pass does.
        """
        if self.is_closed:
            return
        barred = self._barred.get(key, 0.0) - self._clock.monotonic()
        if barred > 0:
            self.add_after(key, barred, is_requested=priority is Priority.DUE)
        elif key in self._passes:
            again = self._unseen if is_change else self._again
            again[key] = min(priority, again.get(key, priority))
        elif self._ready.add(key, priority, self._clock.monotonic()):
            self._waiting.rouse()

    def looked(self, key: Key) -> None:
        """Record that the running pass looks at all that is cached now: it needs no other pass."""
        self._unseen.pop(key, None)

    def has_changed(self, key: Key) -> bool:
        """Return whether something has changed since the running pass looked."""
        return key in self._unseen

    def add_all(self, keys: Iterable[Key], priority: Priority = Priority.BACKLOG) -> None:
        """Request a pass of each of many keys; they are added in parts before one is handed out."""
        if self.is_closed:
            return
        for key in keys:
            if priority < self._later.get(key, LAST):
                self._later[key] = priority
        self._waiting.rouse()

    def add_everyone(self, priority: Priority = Priority.BACKLOG) -> None:
        """Request a pass of every key that there is when the next one is handed out."""
        if not self.is_closed:
            self._of_all = priority if self._of_all is None else min(priority, self._of_all)
            self._waiting.rouse()

    async def add_later(self) -> None:
        """Add now what was requested for many keys, in parts between which other work can run."""
        while self._of_all is not None or self._later:
            if self._of_all is not None:
                priority, self._of_all = self._of_all, None
                self.add_all(self._everyone(), priority)
            for _ in range(min(AT_ONCE, len(self._later))):
                self.add(*self._later.popitem(last=False))
            await anyio.lowlevel.checkpoint()

    def add_after(self, key: Key, seconds: float, *, is_requested: bool = False) -> None:
        """Request a pass in `seconds`; the earliest of several requests counts.

        `is_requested`: the pass must not be late then, it goes to the first priority. There is at
        most one such pass a second.
        """
        if self.is_closed:
            return
        if self._delays.add(key, self._clock.monotonic() + seconds, is_requested=is_requested):
            self._waiting.rouse()

    def retry(self, key: Key, least: float = 0.0) -> float:
        """Request a pass after the key's backoff; return the delay in seconds.

        The delay doubles from 0.1 s to 300 s; its upper half is random. For `least` seconds, at
        most 300, the key is not handed out for any other request either: the server asked us to
        wait that long.
        """
        self.failures[key] = failures = self.failures.get(key, 0) + 1
        least, draw = min(least, LONGEST_RETRY), self._clock.jitter()
        delay = backoff(failures, draw, least, first=FIRST_RETRY, longest=LONGEST_RETRY)
        if least > 0:
            self._barred[key] = self._clock.monotonic() + least
        self._on_retry()
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Reset the key's backoff after a pass that succeeded."""
        self.failures.pop(key, None)

    def revive(self) -> None:
        """Request a pass now for every key that waits for its backoff: the cause may be gone."""
        failed, self.failures = self.failures, {}
        for key in failed:
            self._delays.discard(key)
            self.add(key)

    async def get(self) -> Key:
        """Wait for a key and return it; `done` must follow. Raises Closed."""
        while True:
            self._mature()
            if self._of_all is not None or self._later or self._ready.has(self._passes.may):
                await self._take_turn()
                self._mature()
                if found := self._ready.pop(self._passes.may):
                    return self._hand_out(*found)
            elif self.is_closed:
                raise Closed
            else:
                await self._waiting.wait(self._delays.next() - self._clock.monotonic())

    def _hand_out(self, key: Key, priority: Priority, since: float) -> Key:
        """Record that a key, which was ready since then, has a pass from now on."""
        self._on_wait(self._clock.monotonic() - since)
        # This pass decides again when the next one is due.
        self._delays.discard(key)
        self._barred.pop(key, None)
        self._passes.begin(key, priority)
        return key

    async def _take_turn(self) -> None:
        """Add what was requested for many keys, and wait for this queue's turn.

        Passes that find everything settled never wait: those of all workers, one after another,
        would block the loop. What arrives meanwhile is taken in after one of them.
        """
        try:
            await self.add_later()
            has_turned = self._begin.locked()  # whoever waits for another has let the loop turn
            async with self._begin:
                if not has_turned:
                    await anyio.lowlevel.checkpoint()
        except BaseException:  # cancelled: another one has to look
            self._waiting.rouse()
            raise

    def done(self, key: Key) -> None:
        """End the key's pass; queue the key again if anything asked for that which it missed."""
        if self._passes.end(key) and key[0] in self._ready:
            self._waiting.rouse()
        asked = (self._again.pop(key, None), self._unseen.pop(key, None))
        for priority in asked:
            if priority is not None:
                self.add(key, priority)

    def close(self) -> None:
        """Take no more work; running passes may end, and waiting workers get Closed."""
        self.is_closed = True
        self._ready.clear()
        self._later.clear()
        self._of_all = None
        while self._waiting:
            self._waiting.rouse()

    def _mature(self) -> None:
        for key, priority in self._delays.matured(self._clock.monotonic()):
            self.add(key, priority)
