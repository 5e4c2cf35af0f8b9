"""Watches: the watches of one controller, which fill its caches and its queue."""

from __future__ import annotations

from contextlib import aclosing, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.lowlevel
import structlog

from hedgerow.kube.errors import (
    Forbidden,
    Garbled,
    Invalid,
    KubeError,
    Missing,
    Unauthenticated,
)
from hedgerow.kube.picked import Picked
from hedgerow.kube.watch import Bookmark, Changed, Snapshot, reflect
from hedgerow.objects import metadata
from hedgerow.runtime.cache.store import RestoredError
from hedgerow.runtime.meters import watched
from hedgerow.runtime.workqueue import QueueLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hedgerow.contract import Controller, Key
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.cache.caches import Cache, Source
    from hedgerow.runtime.cache.store import StoreChange
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.meters import Meter
    from hedgerow.runtime.workqueue import WorkQueue
    from hedgerow_schemas.base import Object, Resource

LOGGED_AGAIN = 300.0
"""Seconds after which the log repeats that a watch still fails."""
REFUSED_FOR = 5.0
"""Seconds for which a kind may be refused before its cache was ever filled; then work begins
without it."""
UNREADY_AFTER = 60.0
"""Seconds for which all watches may be refused, or one be garbled, before the process reports not
ready."""

log = structlog.get_logger(__name__)


class _Refused(NamedTuple):
    """Why a watch is refused or garbled, and since when, on the monotonic clock."""

    why: str
    since: float
    garbled: bool


class Watches:
    """The watches of one controller.

    `on_restored` is called when a list is older than the cached objects.
    """

    def __init__(
        self,
        controller: Controller[Resource],
        cluster: Cluster,
        cache: Cache,
        queue: WorkQueue,
        *,
        meter: Meter,
        clock: Clock,
        on_restored: Callable[[], object],
    ) -> None:
        self._controller = controller
        self._cluster = cluster
        self._cache = cache
        self.queue = queue
        self._meter = meter
        self._clock = clock
        self._on_restored = on_restored
        self.begin_anew()
        self._logged: dict[int, str] = {}
        self._logged_at: dict[int, float] = {}
        self._refused: dict[int, _Refused] = {}
        self._unread: dict[int, Key] = {}

    def begin_anew(self) -> None:
        """Count every cache as not filled."""
        self._unsynced = set(range(len(tuple(self._cache))))
        self.ready = anyio.Event()
        """Set once all caches are filled; or by whoever does not wait for them any more."""

    def filled(self, number: int) -> None:
        """Note that the cache of the source of that number is filled."""
        self._unsynced.discard(number)
        self._may_begin()

    def _may_begin(self) -> None:
        """Let work begin once all caches are filled, but for those of refused kinds.

        The resources themselves have to be shown in one namespace at least.
        """
        sources, own = tuple(self._cache), set(range(len(self._cache.resources)))
        is_blind = bool(own) and own <= self._unsynced
        if not is_blind and all(sources[number].store.refused for number in self._unsynced):
            self.ready.set()

    def _refuse(self, source: Source, error: KubeError | None) -> None:
        """Record whether a kind is not shown, and why; if that is new, all resources report it."""
        before, source.store.refused = source.store.refused, error
        if type(before) is not type(error):
            self.queue.add_everyone()
            self._may_begin()

    @property
    def are_synced(self) -> bool:
        """Whether all caches are filled."""
        return not self._unsynced

    def waiting(self) -> str:
        """Return the caches that are not filled yet, in one line; empty once all have been."""
        sources = tuple(self._cache)
        names = (_place(sources[number]) for number in sorted(self._unsynced))
        lacking = ", ".join(dict.fromkeys(names))
        return f"{self._controller.name} waits for {lacking}" if lacking else ""

    def refused(self) -> str:
        """Return why a watch was garbled, or all were refused, for a while, in one line; or empty.

        A right that is lacking for one kind leaves the others served, and so does not count; nor
        does a server that does not answer.
        """
        long_ago = self._clock.monotonic() - UNREADY_AFTER
        for refused in self._refused.values():
            if refused.garbled and refused.since <= long_ago:
                return f"{self._controller.name}: a watch cannot be read: {refused.why}"
        if not self._refused or len(self._refused) < len(tuple(self._cache)):
            return ""
        last = max(self._refused.values(), key=lambda refused: refused.since)
        if last.since > long_ago:
            return ""
        return f"{self._controller.name}: all its watches are refused: {last.why}"

    async def watch_sources(self) -> None:
        """Watch all sources until cancelled."""
        self._may_begin()  # of the namespaces to watch, none may be of our shard
        async with anyio.create_task_group() as watches:
            for number, source in enumerate(self._cache):
                watches.start_soon(self._watch, number, source)
            await anyio.sleep_forever()

    async def _watch(self, number: int, source: Source) -> None:
        with suppress(RestoredError):
            await self._follow(number, source)
        self._on_restored()

    async def _follow(self, number: int, source: Source) -> None:
        """Store and enqueue the events of a source, for ever. Raises RestoredError."""
        cluster = self._cluster.only(source.shard) if source.shard else self._cluster
        events = reflect(
            Picked(cluster, source.picks, source.store.has) if source.picks else cluster,
            source.api,
            source.namespace,
            labels=source.labels,
            fields=source.fields,
            reduce=source.reduce,
            on_problem=partial(self._failed, number, source),
            on_restart=partial(self._meter.rewatched, source.api),
            on_listed=partial(self._enqueue_listed, source),
            on_undecoded=partial(self._undecoded, number, source),
        )
        async with aclosing(events):
            async for event in events:
                for changes in self.store_event(source, event):
                    self.enqueue(source, changes)
                    await anyio.lowlevel.checkpoint()
                self._recovered(number, source)
                if isinstance(event, Snapshot):
                    self.filled(number)

    def _undecoded(self, number: int, source: Source, key: Key) -> None:
        """Count an object that cannot be decoded; log its name, but not again right after."""
        self._meter.undecodable(source.api)
        if self._unread.get(number) != key:
            self._unread[number] = key
            log.warning(
                "object cannot be decoded; what is cached of it stays",
                controller=self._controller.name,
                watched=source.api.plural,
                object="/".join(filter(None, key)),
            )

    def _enqueue_listed(self, source: Source, obj: Object) -> None:
        change = source.store.meet(obj)
        is_outdated = _has_outdated_status(self._controller, source, obj)
        line = QueueLine.CHANGED if is_outdated else QueueLine.BACKLOG
        self.enqueue(source, (change,) if change else (), line)

    def store_event(
        self, source: Source, event: Snapshot | Changed | Bookmark
    ) -> Iterable[Sequence[StoreChange]]:
        """Take an event into the cache of a source, and return the changes, in parts.

        To iterate over them raises RestoredError if a list is older than the cached objects.
        """
        store = source.store
        match event:
            case Snapshot(items=items, version=version, met=met):
                return store.replacing(items, version, met)
            case Bookmark(version=version):
                store.bookmark(version)
                return ()
            case Changed(type="DELETED", object=obj):
                change = store.remove(obj)
            case _:
                change = store.put(event.object, event.version if source.picks else "")
        return ((change,),) if change else ()

    def enqueue(
        self, source: Source, changes: Iterable[StoreChange], line: QueueLine = QueueLine.CHANGED
    ) -> None:
        """Queue the resources that changes of a source concern."""
        if source.relation is not None:  # the parts that are not cached are not read
            changes = [change for change in changes if not _is_equal(change)]
        if source.concerns_all:
            if any(changes):
                self.queue.add_everyone(line)
            return
        # Fields to give back are found when a pass begins, not when it observes again.
        is_change = source.contributes_to is None
        for obj in filter(None, chain.from_iterable(changes)):
            for key in source.store.shelf.concerned(obj):
                if self._cache.shard is None or self._cache.shard.serves(key[0]):
                    self.queue.add(key, line, is_change=is_change)

    def _failed(self, number: int, source: Source, error: KubeError) -> None:
        now = self._clock.monotonic()
        garbled = isinstance(error, Garbled)
        if not garbled and not isinstance(error, (Forbidden, Invalid, Missing, Unauthenticated)):
            self._refused.pop(number, None)
        elif number not in self._refused or self._refused[number].garbled != garbled:
            self._refused[number] = _Refused(error.message, now, garbled)
        patience = REFUSED_FOR if number in self._unsynced else UNREADY_AFTER
        refused = self._refused.get(number)
        if isinstance(error, (Forbidden, Missing)) and refused and now - refused.since >= patience:
            self._refuse(source, error)
        line = f"{type(error).__name__}: {error}"
        is_due = now - self._logged_at.get(number, now) >= LOGGED_AGAIN
        if self._logged.get(number) != line or is_due:
            self._logged_at[number] = now
            log.warning(
                "watch in trouble",
                controller=self._controller.name,
                watched=source.api.plural,
                namespace=source.namespace or "*",
                error=str(error),
            )
        self._logged[number] = line

    def _recovered(self, number: int, source: Source) -> None:
        self._refused.pop(number, None)
        self._refuse(source, None)
        if self._logged.pop(number, None):
            log.info("watch recovered", controller=self._controller.name, watched=source.api.plural)
            self.queue.revive()


def _has_outdated_status(controller: Controller[Resource], source: Source, obj: Object) -> bool:
    """Return whether a resource's status is about an older spec, which has changed since."""
    status: Object = obj.get("status") or {}
    seen = status.get("observedGeneration")
    return source.kind is controller.resource and seen != metadata(obj).get("generation")


def _is_equal(change: StoreChange) -> bool:
    """Return whether the cached object has not changed but for its version."""
    old, new = change
    return old is not None and new is not None and _unversioned(old) == _unversioned(new)


def _unversioned(obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name != "resourceVersion"}
    return {**obj, "metadata": meta}


def _place(source: Source) -> str:
    return watched(source.api) + (f" in {source.namespace}" if source.namespace else "")
