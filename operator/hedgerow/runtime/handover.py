"""Handing over: what a replica wrote last in slices, and how the next one takes it in."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from hedgerow.kube.errors import KubeError
from hedgerow.objects import metadata, version_number
from hedgerow.runtime.cache.store import key_of, version_of
from hedgerow.runtime.metrics import watched
from hedgerow.runtime.sharding import ShardedQueue, once_for_each
from hedgerow.runtime.watched_slices import SlicesWatch
from hedgerow.runtime.watches import is_elsewhere
from hedgerow.shards.slices import NONE, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hedgerow.contract import Controller
    from hedgerow.runtime.cache.caches import Source
    from hedgerow.runtime.watches import Watches
    from hedgerow.shards.member import QuietSlices
    from hedgerow_schemas.base import Object, Resource

REACHED_WITHIN = 1.0
"""Seconds for which watches are waited for that are to tell what another replica wrote last."""


class HandOver:
    """What one controller does so that the next replica begins with what the former one wrote."""

    def __init__(self, controller: Controller[Resource], watches: Watches) -> None:
        self._controller, self._watches = controller, watches

    async def catch_up(self, slices: Slices, quiet: Iterable[QuietSlices] = ()) -> None:
        """Take in what the server has now of selected slices; the caches are filled.

        Another replica may have written it a moment ago, and no watch may have told it yet. What
        was filled later has it all, and where it is known what was written last, the watches are
        waited for. Of the rest the names and versions of all objects are listed, and what is older
        in the cache is read. Raises KubeError.
        """
        failures, known = list[KubeError](), tuple(quiet)

        async def one(number: int, source: Source, part: Slices) -> None:
            try:
                part -= await self._reached(number, source, known)
                if part:
                    await self._catch_up(number, source, part)
            except KubeError as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            for number, source in enumerate(self._watches.sources):
                part = self._watches.reads(source, slices)
                if part and source.relation is None:
                    tasks.start_soon(one, number, source, part)
        if failures:
            raise failures[0]

    async def _reached(self, number: int, source: Source, known: Iterable[QuietSlices]) -> Slices:
        """Return the slices in which a source has the last writes; wait for its watch a moment."""
        name, slices, reached = self.name(source), self._watches.slices, NONE
        parts = [(each, self._watches.reads(source, each.slices)) for each in known]
        for each, part in parts:
            reached |= slices.filled_since(number, each.since) & part
        waiting = [(part, each.last[name]) for each, part in parts if name in each.last]
        with anyio.move_on_after(REACHED_WITHIN):
            while waiting := [(part, last) for part, last in waiting if part - reached]:
                for part, version in waiting:
                    reached |= part if slices.reaches(number, part, version) else NONE
                if any(part - reached for part, _ in waiting):
                    await slices.event_taken()
        return reached

    def has_all(self, slices: Slices) -> bool:
        """Return whether the caches have all that other replicas wrote: passes have begun."""
        queue = self._watches.queue
        return isinstance(queue, ShardedQueue) and not slices - queue.begun

    async def last_versions(self, slices: Slices) -> dict[str, int]:
        """Return the last version of what is cached of these slices, by name of the watch.

        Deletions do not count: whoever does not know of one yet sends it again.
        """
        found: dict[str, int] = {}
        for source in self._watches.sources:
            part = NONE if source.relation else self._watches.reads(source, slices)
            if part:
                name, but = self.name(source), once_for_each(partial(is_elsewhere, part))
                for version in chain((0,), source.store.last_versions(but=but)):
                    found[name] = max(version, found.get(name, 0))
                    await anyio.lowlevel.checkpoint()
        return found

    def name(self, source: Source) -> str:
        """Return the name of a watch, which no other one has; short, for it is kept in a Lease."""
        kind = watched(source.api) + ("/claimed" if source.claimable else "")
        return "/".join(filter(None, (self._controller.title, kind, source.namespace)))

    async def _catch_up(self, number: int, source: Source, part: Slices) -> None:
        store = source.store
        listed = await self._watches.part(part).list(
            source.api,
            source.namespace,
            labels=source.labels,
            fields=source.fields,
            reduce=partial(_version_only, source.picks),
            partial=True,
        )
        there = {key_of(item): version_of(item) for item in listed.items if item}
        for key, version in there.items():
            if store.is_older(key, version):
                found = await self._watches.part(part).read(source.api, key[1], key[0])
                change = store.adopt(found) if found else None
                self._watches.enqueue(source, (change,) if change else ())
        told = version_number(listed.version)
        for changes in store.removing(told, there, covers=SlicesWatch(part).covers):
            self._watches.enqueue(source, changes)
            await anyio.lowlevel.checkpoint()
        if live := self._watches.slices.live.get(number):
            live.known += ((part, told),)


def _version_only(picks: Callable[[Object], bool] | None, item: Object) -> Object:
    """Return the name and the version of an object, or nothing if it is not picked."""
    if picks is not None and not picks(item):
        return {}
    meta = metadata(item)
    kept = ("namespace", "name", "resourceVersion")
    return {"metadata": {name: meta[name] for name in kept if name in meta}}
