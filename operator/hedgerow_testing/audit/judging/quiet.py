"""Quiet: when an operator is done, by what it changes, what it makes and how much it works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WORK: Final = 120.0
"""Seconds of work by which nothing is made that are waited for."""
LONGEST_GAP: Final = 15.0
"""The longest pause between two objects that it makes by which later waits are measured."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the audit waits, in seconds."""

    settle: float = 2.0
    """Without a change of its for so long, the operator is taken to be quiet."""
    first: float = 5.0
    """The same after it was started."""
    idle: float = 20.0
    """The same until its very first change."""
    limit: float = 45.0
    """The most that it gets to become quiet, from the last object on that it made."""
    rest: float = 25.0
    """How long nothing happens, to see whether it writes."""
    start: float = 60.0
    """The most that it gets until its first request."""
    watch: float = 20.0
    """The most that it gets, once it has made a request, until it watches."""

    @classmethod
    def of(cls, settle: float) -> Pace:
        """Return the pace with which an operator is quiet after so many seconds."""
        usual = cls()
        return cls(
            settle=settle,
            first=max(settle, usual.first),
            idle=max(settle, usual.idle),
            limit=max(3 * settle, usual.limit),
            rest=max(2 * settle, usual.rest),
        )


@dataclass(slots=True)
class Quiet:
    """One wait until an operator is quiet: it is told what happens, and by when.

    It has changed nothing for a while, and is not at work. Whoever makes one object after another,
    with pauses, as one that waits for a Pod before the next, is waited for twice the longest pause.
    """

    pace: Pace
    began: float
    seconds: float
    gap: float = 0.0
    """The longest pause between two objects that it has made, in this wait or an earlier one."""
    is_polling: bool = False
    """Whether it reads and works always, and makes nothing by it: its work tells nothing more."""

    def __post_init__(self) -> None:
        """Begin to wait."""
        self.last = self._made = self.began
        self._worked = self.began - self.seconds
        self._deadline = self.began + self.pace.limit

    last: float = 0.0
    """When it last changed something."""
    _made: float = 0.0
    _worked: float = 0.0
    _deadline: float = 0.0

    def next(self, now: float, seconds: float) -> Quiet:
        """Return the next wait, which knows what this one has learned of the operator."""
        return Quiet(self.pace, now, seconds, self.gap, self.is_polling)

    def change(self, now: float, *, is_made: bool = False) -> None:
        """Note a change; `is_made`: of an object that was not there."""
        self.last = now
        if is_made:
            self.gap = min(max(self.gap, now - self._made), LONGEST_GAP)
            self._made, self._deadline = now, now + self.pace.limit

    def work(self, now: float, *, asks: bool = False) -> None:
        """Note that it is at work; `asks`: it makes requests meanwhile."""
        if now - self._made >= WORK:
            self.is_polling |= asks
        elif not self.is_polling:
            self._worked = now
            self._deadline = max(self._deadline, now + self.pace.limit)

    def is_reached(self, now: float, *, is_idle: bool = False) -> bool:
        """Return whether it is quiet; `is_idle`: it has changed nothing ever."""
        least = max(self.seconds, self.pace.idle) if is_idle else self.seconds
        return (
            now - self.last >= least
            and now - self._made >= 2 * self.gap
            and now - self._worked >= self.seconds
        )

    def is_missed(self, now: float) -> bool:
        """Return whether it has had as much time as it gets."""
        return now >= self._deadline
