"""Aside: what takes long is worked out in a thread, so that the event loop goes on turning.

The interpreter hands over from thread to thread every few milliseconds, so the loop is held no
longer than that, whatever is worked out beside it. It is for pure functions alone: what they are
given must not change meanwhile, as objects of the caches do not, which are replaced as a whole.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from hedgerow.core.fieldset import is_list, is_map

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

P = ParamSpec("P")
T = TypeVar("T")

LARGE: Final = 2000
"""Fields and items of the objects that one look is about; most have a few hundred, which take a
millisecond or two, less than a thread is worth. This many take some 30 ms."""
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
