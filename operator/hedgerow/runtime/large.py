"""Large: passes over large resources work in a thread beside the loop, one after another."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import anyio
from msgspec import Struct, field

from hedgerow.threads import PASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    _Waiting = OrderedDict[Hashable, Callable[[], object]]


class Lane:
    """Lets one pass in at a time; others are called again later, and no worker waits.

    A large pass takes several times its object's size in memory, for seconds. Sixteen at once would
    take sixteen times the memory, and leave no worker for other resources. Namespaces take turns.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._turned_away: OrderedDict[str, _Waiting] = OrderedDict()
        self._called: dict[Hashable, str] = {}
        """Who may come now, with their namespaces: one of each namespace."""

    def enter(self, again: Callable[[], object], who: Hashable, namespace: str = "") -> bool:
        """Return True if `who` may enter, who must then `leave`; else `again` is called later.

        Nobody comes before those who wait: a resource that changes while its pass runs is back at
        once, each time.
        """
        was_called = self._called.pop(who, None) is not None
        if not self._is_taken and (was_called or not (self._called or self._turned_away)):
            self._is_taken = True
            return True
        waiting = self._turned_away.setdefault(namespace, OrderedDict())
        waiting.setdefault(who, again)
        if was_called:
            waiting.move_to_end(who, last=False)
            self._turned_away.move_to_end(namespace, last=False)
        self.call()
        return False

    def leave(self) -> None:
        """Leave, and call the one that was turned away first."""
        self._is_taken = False
        self.call()

    def call(self) -> None:
        """Call the one that was turned away first, if nobody is in; its namespace goes to the end.

        A resource that was called may have become small: its pass begins without the lane, and
        never leaves it. `skip` then calls the next one.
        """
        namespaces = (name for name in self._turned_away if name not in self._called.values())
        namespace = None if self._is_taken else next(namespaces, None)
        if namespace is not None:
            waiting = self._turned_away.pop(namespace)
            who, again = waiting.popitem(last=False)
            if waiting:
                self._turned_away[namespace] = waiting
            self._called[who] = namespace
            again()

    def skip(self, who: Hashable) -> None:
        """Let a pass begin without the lane."""
        self._called.pop(who, None)
        self.call()


class Turns(Struct, frozen=True):
    """What the controllers of a process share, so that their passes take turns."""

    large: Lane = field(default_factory=Lane)
    begin: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    """For the turns in which the passes of all controllers begin: `WorkQueue`."""


P = ParamSpec("P")
T = TypeVar("T")


class PassLimits(Struct, frozen=True):
    """What follows from the size of a resource: decided once, when a pass over it begins.

    - `is_large`: the pass works in a thread beside the loop, and waited for its turn in a `Lane`.
    - `timeout`: seconds for all attempts of one apply together. The API server itself gives up
      after 60. It takes seconds to merge a large status; a retry would make it do so twice at a
      time.
    """

    is_large: bool
    timeout: float

    async def compute(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return what pure `work` returns, on the event loop or from a thread.

        Most passes take a millisecond or two; a thread is not worth that.
        """
        if not self.is_large:
            return work(*args, **named)
        return await PASSES.run(partial(work, *args, **named))


USUAL: Final = PassLimits(is_large=False, timeout=10.0)
LARGE: Final = PassLimits(is_large=True, timeout=50.0)
