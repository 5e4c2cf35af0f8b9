"""Member: which slices a replica begins, drains and holds, decided from what it has seen; pure.

No two write for one slice. Whoever begins with one was assigned it, and has seen that every other
replica that may write has adopted this very assignment and holds the slice no more. That is true
for ever once it was said, so it may be seen late: assignments are adopted in the order of their
epochs, each at most once, and one who adopted this one may begin with the slice only by a later
one. Then it has to wait in turn, until we have said the same of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from hedgerow.shards.members import Said
from hedgerow.shards.slices import NONE, Slices, written

if TYPE_CHECKING:
    from hedgerow.shards.assignment import Assignment, Weights
    from hedgerow.shards.members import Members


class Orders(Struct, frozen=True):
    """What the runners must do now: open the gate for some slices, close it for others."""

    begin: Slices = NONE
    drain: Slices = NONE

    def __bool__(self) -> bool:
        """Return whether there is anything to do."""
        return bool(self.begin or self.drain)


class Member:
    """One replica's part of the protocol."""

    def __init__(self, members: Members, revision: str = "") -> None:
        self._members, self._revision = members, revision
        self._adopted: Assignment | None = None
        self.token = ""
        """The token of the assignment that it has adopted; empty without one."""
        self._cached = NONE
        self.assigned = NONE
        self.begun = NONE
        """The slices whose gate is open."""
        self.draining = NONE
        """The slices whose gate is closed, while passes over them still run."""
        self.leaving = False

    @property
    def wanted(self) -> Slices:
        """The slices that caches must hold."""
        return self.begun | self.draining | self.assigned

    @property
    def sharers(self) -> int:
        """How many replicas share the work, by the assignment that it has adopted; at least 1."""
        return max(1, len(self._adopted.members)) if self._adopted else 1

    @property
    def is_settled(self) -> bool:
        """Whether it takes part in the assignment, and serves exactly what that says."""
        adopted = self._adopted
        takes_part = adopted is not None and self._members.own in adopted.members
        return takes_part and self.begun == self.assigned == self.wanted

    @property
    def is_serving(self) -> bool:
        """Whether it may have writes on their way."""
        return bool(self.begun or self.draining)

    @property
    def is_done(self) -> bool:
        """Whether it serves nothing and was assigned nothing, and so may leave."""
        return not self.wanted

    def cached(self, slices: Slices) -> None:
        """Take in which slices the caches hold."""
        self._cached = slices

    def drained(self, slices: Slices) -> None:
        """Take in that no pass over these slices runs, and no write is unanswered."""
        self.draining -= slices
        self._drop()

    def said(self, load: Weights = ()) -> Said:
        """Return what its Lease must say now; `load` is what weighs where."""
        return Said(
            token=self.token,
            epoch=self._adopted.epoch if self._adopted else 0,
            ready=self._members.ready,
            filled=bool(self.token) and not self.assigned - self._cached,
            leaving=self.leaving,
            revision=self._revision,
            load=load,
            holds=written(self._held()),
        )

    def end(self) -> None:
        """Take in that all passes have ended and none will follow."""
        self.assigned = self.begun = self.draining = NONE

    def step(self, now: float) -> Orders:
        """Adopt the assignment that was seen, and return what the runners must do now."""
        self._adopt(now)
        drain = self._lost()
        self.draining |= drain  # first, for others read both meanwhile
        self.begun -= drain
        begin = self._gained()
        self.begun |= begin
        self._drop()
        return Orders(begin, drain)

    def _drop(self) -> None:
        """Forget what caches need not hold any more: wanted again, it must be filled again."""
        self._cached &= self.wanted

    def _held(self) -> Slices:
        return self.begun | self.draining

    def _adopt(self, now: float) -> None:
        current = self._members.current()
        if current is None or not self._is_next(current):
            return
        self._adopted, self.token = current, current.token
        self.assigned = current.of(self._members.own)
        self._members.expect(current.members, now)

    def _is_next(self, one: Assignment) -> bool:
        return self._adopted is None or one.epoch > self._adopted.epoch

    def _lost(self) -> Slices:
        """Return what another member is ready to take over, so that it can begin at once.

        One that leaves is given nothing: it would have to hand that over in turn.
        """
        lost, ready = self.begun - self.assigned, NONE
        if not lost or self._adopted is None:
            return NONE
        for other in self._members.participants():
            if other.said is None or other.token != self.token:
                return NONE
            if other.said.filled and not other.said.leaving:
                ready |= self._adopted.of(other.name)
        return lost & ready

    def _gained(self) -> Slices:
        """Return what nobody else holds any more."""
        gained = (self.assigned & self._cached) - self.begun - self.draining
        if not gained or not self._members.takes_part():
            return NONE
        for other in self._members.participants():
            if other.token != self.token:
                return NONE
            gained -= other.holds
        return gained
