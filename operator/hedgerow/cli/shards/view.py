"""Shards view: what is shown of who serves what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.cli.shards.listing import listed
from hedgerow.cli.shards.terminal import lines, words
from hedgerow.runtime.clock import SystemClock
from hedgerow.texts import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from hedgerow.cli.shards.look import WatchedShards
    from hedgerow.runtime.clock import Clock


class ShardsView:
    """The replicas; a Lease that runs out is a change, too, and no object changes by that."""

    ages = True
    remedy = "enlarge the window"

    def __init__(self, watched: WatchedShards, clock: Clock | None = None) -> None:
        self._watched, self._clock = watched, clock or SystemClock()
        self._last: dict[str, str] = {}

    def data(self) -> dict[str, Any]:
        """Return who serves what, for programs."""
        return listed(self._watched.report(self._clock.now()))

    def lines(self, width: int) -> Iterator[Text]:
        """Yield who serves what as lines of a table."""
        now = self._clock.now()
        return lines(self._watched.report(now), now, width)

    def changes(self) -> Iterator[str]:
        """Yield a line for each replica that has changed; at first, for each."""
        now = self._clock.now()
        new, last = words(self._watched.report(now)), self._last
        self._last = new
        for name in {**last, **new}:
            if new.get(name) != last.get(name):
                yield f"{now:%Y-%m-%dT%H:%M:%SZ} {name}: {new.get(name, 'gone')}"

    def problems(self) -> dict[str, str]:
        """Return why what is shown may be out of date."""
        problem = self._watched.problem
        return {problem: printable(f"may be out of date: {problem}")} if problem else {}
