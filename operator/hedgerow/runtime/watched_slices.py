"""Watched slices: which slices of each source one controller watches, and how that changes.

Of each source one watch is live. Another one may be filling the cache with slices that were
selected since; when it has, one watch of both goes on. So the objects that are served are never
listed again, which would show what has changed meanwhile as it was. Fewer slices are watched from
where the live watch has come to, without a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from hedgerow.kube.watch import Bookmark, Changed, Snapshot
from hedgerow.objects import version_number
from hedgerow.runtime.cache.store import key_of
from hedgerow.shards.slices import ALL, NONE, Slices, point_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.contract import Key
    from hedgerow.runtime.clock import Clock


class SlicesWatch:
    """One watch of a source: of all objects, or of those of some slices.

    It begins with a list, or with the changes `since` a version. `known` are versions up to which
    the objects of some slices are cached anyway, though the watch tells what came before.
    """

    __slots__ = ("covers", "is_over", "known", "scope", "since", "slices", "version")

    def __init__(
        self, slices: Slices, since: str = "", known: tuple[tuple[Slices, int], ...] = ()
    ) -> None:
        self.slices = slices
        self.since = self.version = since
        self.covers: Callable[[Key], bool] | None = None
        """Whether a key is one of those that it tells of; None if all are."""
        if slices != ALL:
            self.covers = lambda key: point_of(key[0]) in slices
        self.known = known
        self.is_over = False
        self.scope = anyio.CancelScope()

    def is_known(self, event: Snapshot | Changed | Bookmark) -> bool:
        """Return whether an event tells what is cached already."""
        version = version_number(event.version)
        if isinstance(event, Snapshot) or all(version > known for _, known in self.known):
            self.known = ()
        if not isinstance(event, Changed):
            return False
        point = point_of(key_of(event.object)[0])
        return any(version <= known and point in slices for slices, known in self.known)

    def reaches(self, slices: Slices, version: int) -> bool:
        """Return whether the cache has everything up to a version in all of these slices."""
        if slices - self.slices:
            return False
        known = (each for part, each in self.known if not slices - part)
        return version <= max(version_number(self.version), *known, 0)

    def end(self) -> None:
        """Take no event any more."""
        self.is_over = True
        self.scope.cancel()

    def only(self, slices: Slices) -> SlicesWatch:
        """Return a watch of fewer slices that goes on from here."""
        return SlicesWatch(slices, self.version, self.known)

    def joined(self, other: SlicesWatch) -> SlicesWatch:
        """Return a watch of the slices of both that goes on from the earlier of their versions."""
        since = min(self.version, other.version, key=version_number)
        both = ((each.slices, version_number(each.version)) for each in (self, other))
        return SlicesWatch(self.slices | other.slices, since, (*self.known, *other.known, *both))


class WatchedSlices:
    """The watches of all sources of a controller, by number; `start` starts one."""

    def __init__(
        self, sources: int, start: Callable[[int, SlicesWatch], object], clock: Clock
    ) -> None:
        self._start, self._clock = start, clock
        self.live: dict[int, SlicesWatch] = {}
        self._filling: dict[int, SlicesWatch] = {}
        self.unsynced = set(range(sources))
        """The sources whose caches lack slices."""
        self.ready = anyio.Event()
        """Set once all caches are filled; or by whoever does not wait for them any more."""
        self._news = anyio.Event()
        self._event: anyio.Event | None = None
        self._filled: dict[int, tuple[Slices, float]] = {}

    def turn_to(self, number: int, slices: Slices) -> None:
        """Watch some slices of a source, and no others."""
        live, filling = self.live.get(number), self._filling.get(number)
        kept = live.slices & slices if live else NONE
        if live and kept != live.slices:
            live.end()
            del self.live[number]
            if kept:
                self._go_on(number, live.only(kept))
        gained = slices - kept
        if filling and filling.slices != gained:
            filling.end()
            del self._filling[number]
        if gained:
            self.fill(number, gained)
        else:
            self._synced(number)

    def fill(self, number: int, slices: Slices) -> None:
        """Fill the cache of a source with the objects of some slices."""
        self.unsynced.add(number)
        if number not in self._filling:
            self._filling[number] = watch = SlicesWatch(slices)
            self._filled[number] = slices, self._clock.elapsed()
            self._start(number, watch)

    def listed(self, number: int, watch: SlicesWatch) -> None:
        """Note that a watch has filled the cache; go on with one watch of all slices."""
        if watch is not self._filling.get(number):
            return
        live = self.live.get(number)
        del self._filling[number]
        if live is None:
            self.live[number] = watch
        else:
            live.end()
            watch.end()
            self._go_on(number, live.joined(watch))
        self._synced(number)

    def _go_on(self, number: int, watch: SlicesWatch) -> None:
        self.live[number] = watch
        self._start(number, watch)

    def _synced(self, number: int) -> None:
        self.unsynced.discard(number)
        if not self.unsynced:
            self.ready.set()
        self.wake()

    def wake(self) -> None:
        """Wake whoever waits for a change."""
        news, self._news = self._news, anyio.Event()
        news.set()

    async def changed(self) -> None:
        """Wait until something has changed."""
        await self._news.wait()

    def filled_since(self, number: int, since: float) -> Slices:
        """Return the slices of a source whose objects were listed after an instant."""
        slices, began = self._filled.get(number, (NONE, since))
        return slices if began >= since else NONE

    def reaches(self, number: int, slices: Slices, version: int) -> bool:
        """Return whether what the live watch of a source has told of slices reaches a version."""
        live = self.live.get(number)
        return live is not None and live.reaches(slices, version)

    def note_event(self) -> None:
        """Wake whoever waits until a watch has told something."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def event_taken(self) -> None:
        """Wait until a watch has told something."""
        self._event = self._event or anyio.Event()
        await self._event.wait()
