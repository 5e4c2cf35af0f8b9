"""Heavy: work that takes long runs in a thread, one heavy pass after another, beside the loop."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from hedgerow.fields.paths import is_list, is_map

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable


class Lane:
    """Lets one in at a time; the others are asked to come again, and nobody waits at the door.

    A heavy pass works with several times its object in memory, for seconds. Eight at once would
    take the memory of eight, and all workers of everybody else's resources.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._turned_away: dict[Hashable, Callable[[], object]] = {}

    def enter(self, again: Callable[[], object], who: Hashable) -> bool:
        """Return whether one may go in, and has to `leave`; else `again` is called in its turn."""
        if self._is_taken:
            self._turned_away.setdefault(who, again)
            return False
        self._is_taken = True
        self._turned_away.pop(who, None)
        return True

    def leave(self) -> None:
        """Make room, and ask the one that was turned away first."""
        self._is_taken = False
        if self._turned_away:
            who = next(iter(self._turned_away))
            self._turned_away.pop(who)()


@dataclass(frozen=True, slots=True)
class Lanes:
    """One for what is worked on in memory, one for what is only told to be too large for that.

    The API server takes seconds for the status of an object that is so large.
    """

    managed: Lane = field(default_factory=Lane)
    stalled: Lane = field(default_factory=Lane)


P = ParamSpec("P")
T = TypeVar("T")

LARGE: Final = 2000
"""Fields and items of the objects that one look is about; most have a few hundred, which take a
millisecond or two, less than a thread is worth. This many take some 30 ms."""
SWITCH: Final = 0.001
"""Seconds."""
COLLECTED: Final = (20_000, 20, 100)
"""Objects, young collections and older ones after which the next collection comes."""
_limiter: RunVar[CapacityLimiter] = RunVar("hedgerow_aside")


def is_large(values: Iterable[Any]) -> bool:
    """Return whether JSON values have so many fields and items that work on them takes long."""
    left, waiting = LARGE, list(values)
    while waiting and left >= 0:
        value = waiting.pop()
        inner: Collection[Any] = value.values() if is_map(value) else value
        left -= len(inner)
        if left >= 0:
            waiting.extend(one for one in inner if is_map(one) or is_list(one))
    return left < 0


def favour_the_loop() -> None:
    """Keep the collector of cycles, and work in threads, from holding the event loop.

    The collector looks at every map and list there is: 70 ms with a dozen large objects in the
    caches, and one object of 1 MB that is read brings it about. What the imports made stays for
    ever and is looked at no more; the rest, nearly all of it without cycles, more seldom. A thread
    at work gives the interpreter up after `SWITCH`; the default of 5 ms adds up.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    sys.setswitchinterval(SWITCH)


async def aside(about: Iterable[Any], work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return what `work` returns; it runs in a thread where the maps and lists `about` are large.

    One such thread runs at a time: more would only take the interpreter from each other and from
    the loop. A caller that is cancelled does not wait for it.
    """
    if not is_large(about):
        return work(*args, **named)
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(1)
        _limiter.set(limiter)
    called = partial(_uncollected, partial(work, *args, **named))
    return await to_thread.run_sync(called, limiter=limiter, abandon_on_cancel=True)


def _uncollected(work: Callable[[], T]) -> T:
    """Work without the collector of cycles.

    Pure work leaves no cycles, but makes so many objects that a collection of all there are would
    come in between, and hold every thread meanwhile.
    """
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()
