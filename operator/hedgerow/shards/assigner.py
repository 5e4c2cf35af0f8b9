"""Assigner: when the elected replica writes a next assignment, and what; pure.

Which replica gets which slice is decided by `assignment.next_parts`.

Its epoch is greater than any that was told of, so that every member adopts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow.shards.assignment import (
    LAST_EPOCH,
    MOST_MEMBERS,
    Assignment,
    heaviest,
    next_parts,
)
from hedgerow.shards.slices import NONE, Slices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.shards.assignment import Weights
    from hedgerow.shards.members import Members, MemberStatus, StoredAssignment

PAUSE: Final = 1.0
"""Seconds between two writes, and in which joins gather."""
GATHERED: Final = 5.0
"""Seconds for which a join waits for others that are seen to come."""
LONGEST_GATHERED: Final = 3 * GATHERED
"""Seconds for which a join waits at most, however many come one after the other."""
UNSEEN_TIMEOUT: Final = 5.0
"""Seconds in which what was written must be seen."""
BALANCE: Final = 60.0
"""Seconds between two assignments that only balance."""
SETTLED: Final = 15.0
"""Seconds after a change in which members find out what weighs how much."""
UNBALANCED: Final = 0.15
"""What a member may have more than its fair share: what is measured varies by less."""
BETTER: Final = 0.95
"""A balanced assignment is worth it if the heaviest member then has at most this part."""


class Proposal(Struct, frozen=True):
    """Write the assignment in the place of what was seen of it; None if there was none."""

    assignment: Assignment
    seen: StoredAssignment | None
    why: str


class Assigner:
    """What the elected replica knows of the assignments that it wrote."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._written: Assignment | None = None
        self._asked = self._balanced = float("-inf")
        self._differs: tuple[frozenset[str], float] | None = None
        self._waits_since = float("inf")
        self.expected: Weights = ()
        """What weighs where as long as no member has found that out."""

    def next(self, now: float, nonce: str) -> Proposal | None:
        """Return what to write now, if anything; it must then be written or given up at once."""
        living = self._living()
        if not (living and self._members.ready and now >= self._asked + PAUSE):
            return None
        if self._is_unseen() and now < self._asked + UNSEEN_TIMEOUT:
            return None
        why = self._reason(living, now)
        if self._members.epoch() >= LAST_EPOCH:
            return None  # nothing that is written could be adopted
        if why:
            return self._write(living, nonce, why)
        return self._balance(living, now, nonce)

    def forget(self) -> None:
        """Take in that another replica leads, or that the last write failed."""
        self._written, self._waits_since = None, float("inf")

    def _is_unseen(self) -> bool:
        """Return whether what was written has not been seen yet."""
        return self._written is not None and self._members.current() != self._written

    def _living(self) -> dict[str, MemberStatus]:
        living = self._members.living()
        known = self._members.known
        oldest = sorted(living, key=lambda name: (known[name].created, name))[:MOST_MEMBERS]
        return {name: living[name] for name in sorted(oldest)}

    def _reason(self, living: Mapping[str, MemberStatus], now: float) -> str:
        """Return why the current assignment will not do; empty if it will."""
        current, joined = self._members.current(), frozenset(living)
        if current is None:
            return "there is none" if self._gathered(joined, now, pause=0.0) else ""
        if self._written is not None and current != self._written:
            return "somebody else wrote it"
        if self._is_overtaken(current):
            return "a member adopted another"
        if {*current.members} - living.keys():
            return "members went"
        joined -= {*current.members}
        if not joined:
            self._waits_since = float("inf")
        return "members came" if joined and self._gathered(joined, now) else ""

    def _gathered(self, joined: frozenset[str], now: float, pause: float = PAUSE) -> bool:
        """Return whether no other member came for a moment, and none is about to be ready."""
        if self._differs is None or self._differs[0] != joined:
            self._differs = (joined, now)
        waits_since = self._waits_since = min(self._waits_since, now)
        until = self._differs[1] + (GATHERED if self._are_coming() else pause)
        return now >= min(until, waits_since + LONGEST_GATHERED)

    def _are_coming(self) -> bool:
        """Return whether there are members that will take part, but are not ready yet."""
        known = self._members.known.values()
        coming = (
            each for each in known if each.holder and not self._members.has_stopped_sending(each)
        )
        return any(
            each.status and not each.status.ready and not each.status.leaving for each in coming
        )

    def _is_overtaken(self, current: Assignment) -> bool:
        token = current.token
        return any(
            each.status.epoch >= current.epoch and each.token != token
            for each in self._members.known.values()
            if each.status and each.status.token and not self._members.is_gone(each)
        )

    def _balance(
        self, living: Mapping[str, MemberStatus], now: float, nonce: str
    ) -> Proposal | None:
        """Return a better assignment if the members are settled, and one has far too much."""
        current = self._members.current()
        due = max(self._balanced + BALANCE, self._asked + SETTLED)
        if current is None or now < due or not self._are_settled(current):
            return None
        prior, weights = self._prior(living), self._weights(living)
        before = heaviest(prior, weights)
        if before <= 1 + UNBALANCED:
            return None
        write = self._write(living, nonce, "the load is out of balance")
        after = {name: write.assignment.of(name) for name in living}
        if heaviest(after, weights) > before * BETTER:
            return None
        self._balanced = now
        return write

    def _are_settled(self, current: Assignment) -> bool:
        token, members = current.token, {*current.members}
        return members == self._living().keys() and all(
            each.token == token and each.holds == current.of(each.name)
            for each in self._members.known.values()
            if not self._members.is_gone(each)
        )

    def _write(self, living: Mapping[str, MemberStatus], nonce: str, why: str) -> Proposal:
        newest = max(living, key=lambda name: (self._members.known[name].created, name))
        revision = living[newest].revision
        members = tuple(living)
        stay = frozenset(name for name in living if living[name].revision == revision)
        preferred = stay if len(stay) < len(members) else frozenset[str]()
        parts = next_parts(self._prior(living), members, self._weights(living), preferred)
        epoch = self._members.epoch() + 1
        return Proposal(Assignment(epoch, nonce, members, parts), self._members.stored, why)

    def sending(self, write: Proposal, now: float) -> None:
        """Note that it is about to be sent."""
        self._written, self._asked, self._waits_since = write.assignment, now, float("inf")

    def _prior(self, living: Mapping[str, MemberStatus]) -> dict[str, Slices]:
        """Return who was assigned what; without an assignment of worth, who holds what."""
        current = self._written or self._members.current()
        if current is None:
            holds = self._members.holds()
            return {name: holds.get(name, NONE) for name in living}
        return {name: current.of(name) for name in living}

    def _weights(self, living: Mapping[str, MemberStatus]) -> Weights:
        """Return what weighs where; of slices that nobody has now, what their last member said."""
        had = Slices.of(each for part in self._prior(living).values() for each in part.ranges)
        known = (each.status.load for each in self._members.known.values() if each.status)
        found = {point: weight for load in known for point, weight in load if point not in had}
        found |= {point: weight for each in living.values() for point, weight in each.load}
        return tuple(sorted(found.items())) or self.expected
