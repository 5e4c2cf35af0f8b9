"""Lane: heavy passes one after the other, without keeping workers from all the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


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
