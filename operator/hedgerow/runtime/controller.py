"""Controller: runs one controller, whose watches fill its queue and whose workers drain it."""

from __future__ import annotations

from contextlib import aclosing, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.lowlevel
import structlog
from structlog.contextvars import bound_contextvars

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
from hedgerow.objects import Salvaged, metadata
from hedgerow.plan.installations import PROBE
from hedgerow.plan.oversized import oversize_of
from hedgerow.plan.writes import content
from hedgerow.runtime.applier import Applier
from hedgerow.runtime.blind import BlindApplier
from hedgerow.runtime.cache.caches import Source, concerned
from hedgerow.runtime.cache.store import key_of
from hedgerow.runtime.clock import Wall
from hedgerow.runtime.events.publisher import EventPublisher
from hedgerow.runtime.events.recorder import Limits, Recorder
from hedgerow.runtime.heavy import Lane, Lanes
from hedgerow.runtime.metrics import Meters, watched
from hedgerow.runtime.reconciler import Reconciler
from hedgerow.runtime.reports import ALL
from hedgerow.runtime.workqueue import Closed, WorkQueue
from hedgerow.runtime.workqueue import Lane as QueueLane

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from hedgerow.contract import Key
    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.cache.store import Change, Store
    from hedgerow.runtime.observation import ResourcePlanner
    from hedgerow_schemas.base import ApiResource, Object

WORKERS = 16
"""The most passes at a time. Most of them wait for an answer (ADR 36)."""
SHARE = WORKERS - 1
"""The most passes of one namespace at a time, so that one worker is always left for others."""
WALL_CHECK = 10.0
"""Seconds between two checks of the wall clock."""
NEWS = 0.5
"""Seconds in which reports gather before a pass of the resource that they are for."""
TOLD_AGAIN = 300.0
"""Seconds after which the log repeats that a watch still fails."""
PATIENCE = 60.0
"""Seconds for which all watches may be refused, or one be garbled, before the process reports not
ready."""

log = structlog.get_logger(__name__)


class _Refused(NamedTuple):
    """Why a watch is refused or garbled, and since when, on the monotonic clock."""

    why: str
    since: float
    garbled: bool


class ControllerRunner:
    """Runs one controller until it is cancelled or stopped."""

    def __init__(
        self,
        cluster: Cluster,
        planner: ResourcePlanner,
        meters: Meters | None = None,
        limits: Limits | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        self.controller = planner.controller
        self._lanes = lanes or Lanes()
        self._clock = planner.clock
        self._meter = (meters or Meters()).of(self.controller.name, self.controller.lag)
        self._cluster = cluster
        self._cache = planner.cache
        self.queue = WorkQueue(
            planner.clock,
            self._meter.waited,
            self._meter.retried,
            share=SHARE,
            everyone=self._cache.resource_keys,
            begin=self._lanes.begin,
        )
        field_manager = planner.installation.field_manager(self.controller.name)
        self._reconciler = Reconciler(
            planner,
            self._applier(planner, field_manager),
            EventPublisher(
                cluster,
                planner,
                Recorder(
                    cluster,
                    planner.clock,
                    field_manager,
                    limits,
                    planner.installation.label_key,
                ),
                self._meter,
            ),
            self._meter,
            is_due_after=self.queue.is_due_after,
        )
        self._wall: Wall | None = None
        self._number = count(1)
        self._unsynced = set(range(len(tuple(self._cache))))
        self._ready = anyio.Event()
        self.failures: dict[Key, Exception] = {}
        """What the last pass of a resource raised, such as a defect of its compose."""
        self._logged: dict[Key | int, str] = {}
        self._logged_at: dict[int, float] = {}
        self._refused: dict[int, _Refused] = {}
        if self._cache.budget is not None:
            self._cache.budget.on_room[self.controller.title] = self.queue.add
        planner.reports.on_news(self.controller.name, self._add_informed)
        if self.controller.informs is not None:
            planner.reports.expect(self.controller.informs.controller.name, self._known_keys)
        self._measure()

    def _applier(self, planner: ResourcePlanner, field_manager: str) -> Applier:
        if self.controller.blind is None:
            return Applier(self._cluster, field_manager, self._meter)
        probe = planner.installation.common_manager(PROBE)
        return BlindApplier(self._cluster, field_manager, planner.owner_in, probe, self._meter)

    def _measure(self) -> None:
        self._meter.queue(self.queue.__len__)
        kinds: dict[ApiResource, list[Store]] = {}
        for source in self._cache:
            kinds.setdefault(source.api, []).append(source.store)
        for api, stores in kinds.items():
            self._meter.caches(api, partial(_size, stores))

    def waiting(self) -> str:
        """Return the caches that are not filled yet, in one line; empty once all have been."""
        sources = tuple(self._cache)
        names = (_place(sources[number]) for number in sorted(self._unsynced))
        lacking = ", ".join(dict.fromkeys(names))
        return f"{self.controller.name} waits for {lacking}" if lacking else ""

    def refused(self) -> str:
        """Return why a watch was garbled, or all were refused, for a while, in one line; or empty.

        A right that is lacking for one kind leaves the others served, and so does not count; nor
        does a server that does not answer.
        """
        long_ago = self._clock.monotonic() - PATIENCE
        for refused in self._refused.values():
            if refused.garbled and refused.since <= long_ago:
                return f"{self.controller.name}: a watch cannot be read: {refused.why}"
        if not self._refused or len(self._refused) < len(tuple(self._cache)):
            return ""
        last = max(self._refused.values(), key=lambda refused: refused.since)
        if last.since > long_ago:
            return ""
        return f"{self.controller.name}: all its watches are refused: {last.why}"

    async def run(self) -> None:
        """Watch, wait until every cache is filled, then work until the queue is closed."""
        async with anyio.create_task_group() as watches:
            for number, source in enumerate(self._cache):
                watches.start_soon(self._watch, number, source)
            watches.start_soon(self._watch_wall_clock)
            await self._ready.wait()
            if not self._unsynced:
                log.info("caches are filled", controller=self.controller.name)
            async with anyio.create_task_group() as workers:
                for _ in range(WORKERS):
                    workers.start_soon(self._work)
            watches.cancel_scope.cancel()

    def stop(self) -> None:
        """Take no more work; `run` returns once the running passes have ended."""
        self.queue.close()
        self._ready.set()

    def enqueue_all(self, namespaces: Collection[str]) -> None:
        """Queue all resources of these namespaces; an empty collection means all namespaces."""
        if not namespaces:
            self.queue.add_everyone()
            return
        keys = self._cache.resource_keys()
        self.queue.add_all(key for key in keys if key[0] in namespaces)

    def _add_informed(self, key: Key) -> None:
        """Queue a resource that there are other reports about; it may be gone already."""
        if key == ALL:
            self.enqueue_all(())
            return
        with suppress(LookupError):  # it may be in a namespace that is not watched
            if self._cache.resource(key) is not None:
                self.queue.add_after(key, NEWS)

    def _known_keys(self) -> tuple[Key, ...] | None:
        """Return the keys of all resources, or None until all caches are filled."""
        return None if self._unsynced else self._cache.resource_keys()

    async def _watch(self, number: int, source: Source) -> None:
        def trouble(error: KubeError) -> None:
            self._watch_failed(number, source, error)

        events = reflect(
            Picked(self._cluster, source.picks, source.store.has)
            if source.picks
            else self._cluster,
            source.api,
            source.namespace,
            labels=source.labels,
            fields=source.fields,
            reduce=partial(self._reduced, source),
            on_problem=trouble,
            on_restart=partial(self._meter.rewatched, source.api),
            on_listed=partial(self._enqueue_listed, source),
        )
        async with aclosing(events):
            async for event in events:
                for changes in self._take(source, event):
                    self._enqueue(source, changes)
                    await anyio.lowlevel.checkpoint()
                self._watch_recovered(number, source)
                if isinstance(event, Snapshot):
                    self._rewind(source)
                    self._unsynced.discard(number)
                    if not self._unsynced:
                        self._ready.set()

    def _reduced(self, source: Source, obj: Object) -> Object:
        if isinstance(obj, Salvaged):
            self._meter.undecodable(source.api)
        return source.reduce(obj)

    async def _watch_wall_clock(self) -> None:
        """Queue everything when the wall clock jumps or the machine has slept.

        Scheduled work is due by the wall clock, but delays are measured by the monotonic clock.
        """
        while True:
            self._check_wall_clock()
            await anyio.sleep(WALL_CHECK)

    def _check_wall_clock(self) -> None:
        """Queue everything if the wall clock has jumped since the last check.

        Each pass checks it too, before and after. If the clock is wrong only for a moment, its
        return is noticed only if the first jump was noticed.
        """
        if self._wall is None:
            self._wall = Wall(self._clock)
        elif self._wall.jumped():
            log.info("clock jumped", controller=self.controller.name)
            self.enqueue_all(())

    def _enqueue_listed(self, source: Source, obj: Object) -> None:
        change = source.store.meet(obj)
        lane = QueueLane.CHANGED if self._is_behind(source, obj) else QueueLane.BACKLOG
        self._enqueue(source, (change,) if change else (), lane)

    def _is_behind(self, source: Source, obj: Object) -> bool:
        """Return whether a resource's status is about an older spec, which has changed since."""
        status: Object = obj.get("status") or {}
        seen = status.get("observedGeneration")
        return source.kind is self.controller.resource and seen != metadata(obj).get("generation")

    def _take(
        self, source: Source, event: Snapshot | Changed | Bookmark
    ) -> Iterable[Sequence[Change]]:
        store = source.store
        match event:
            case Snapshot(items=items, version=version, told=told, rewound=rewound):
                return store.replacing(items, version, told, rewound=rewound)
            case Bookmark(version=version):
                store.bookmark(version)
                return ()
            case Changed(type="DELETED", object=obj):
                change = store.remove(obj)
            case _:
                change = store.put(event.object, event.version if source.picks else "")
        return ((change,),) if change else ()

    def _rewind(self, source: Source) -> None:
        """After the API server's store was restored from a backup, forget what was done since."""
        if not source.store.rewound:
            return
        source.store.rewound = False
        log.warning(
            "versions went back: the store was restored",
            controller=self.controller.name,
            watched=source.api.plural,
            namespace=source.namespace or "*",
        )
        self._reconciler.rewind()
        self.enqueue_all(())

    def _enqueue(
        self,
        source: Source,
        changes: Iterable[Change],
        lane: QueueLane = QueueLane.CHANGED,
    ) -> None:
        if source.relation is not None:  # what is not cached of an object is not read
            changes = [change for change in changes if not _is_equal(change)]
        if source.concerns_all:
            if any(changes):
                self.queue.add_everyone(lane)
            return
        for change in changes:
            may_hold = source.kind is not self.controller.resource or _is_of_status(change)
            for obj in filter(None, change):
                self._enqueue_concerned(source, obj, lane, may_hold=may_hold)

    def _enqueue_concerned(
        self, source: Source, obj: Object, lane: QueueLane, *, may_hold: bool
    ) -> None:
        in_flight = self._reconciler.in_flight
        for key in concerned(self.controller, source, obj):
            if may_hold and in_flight.holds_back(source.api.kind, key_of(obj), key):
                continue
            self.queue.add(key, lane)

    def _watch_failed(self, number: int, source: Source, error: KubeError) -> None:
        now = self._clock.monotonic()
        garbled = isinstance(error, Garbled)
        if not garbled and not isinstance(error, (Forbidden, Invalid, Missing, Unauthenticated)):
            self._refused.pop(number, None)
        elif number not in self._refused or self._refused[number].garbled != garbled:
            self._refused[number] = _Refused(error.message, now, garbled)
        is_due = now - self._logged_at.get(number, now) >= TOLD_AGAIN
        if self._is_new_problem(number, f"{type(error).__name__}: {error}") or is_due:
            self._logged_at[number] = now
            log.warning(
                "watch in trouble",
                controller=self.controller.name,
                watched=source.api.plural,
                namespace=source.namespace or "*",
                error=str(error),
            )

    def _watch_recovered(self, number: int, source: Source) -> None:
        self._refused.pop(number, None)
        if self._logged.pop(number, None):
            log.info("watch recovered", controller=self.controller.name, watched=source.api.plural)
            self.queue.revive()

    def _is_new_problem(self, about: Key | int, line: str) -> bool:
        """Return whether to log a problem: the same one is logged only once in a row."""
        known = self._logged.get(about) == line
        self._logged[about] = line
        return not known

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except Closed:
                return
            lane = self._lane(key)
            self._lanes.pass_by((self, key), but=lane)
            again = partial(self.queue.add, key, self.queue.lane(key))
            if lane and not lane.enter(again, (self, key), self.controller.home(key)):
                self.queue.done(key)
                continue
            try:
                await self._pass(key)
            finally:
                self.queue.done(key)
                if lane:
                    lane.leave()

    def _lane(self, key: Key) -> Lane | None:
        """Return the lane in which a heavy pass waits; None for all other passes."""
        if not self._cache.is_heavy(key):
            return None
        live = self._cache.resource(key)
        return self._lanes.stalled if oversize_of(live or {}) else self._lanes.managed

    async def _pass(self, key: Key) -> None:
        self._check_wall_clock()
        began = self._clock.monotonic()
        outcome = "failed"
        with bound_contextvars(**self._named(key)):
            try:
                outcome = await self._reconcile(key)
            finally:
                if self._reconciler.in_flight.take(key):
                    self.queue.add(key)
                self._meter.passed(outcome, self._clock.monotonic() - began)
                self._check_wall_clock()  # it may have read a clock that was wrong for a moment

    def _named(self, key: Key) -> dict[str, object]:
        """Return the fields that each log line of a pass has."""
        live = self._cache.resource(key)
        return {
            "controller": self.controller.name,
            "kind": self.controller.resource.api.kind,
            "object": "/".join(filter(None, key)),
            "uid": metadata(live or {}).get("uid", ""),
            "pass_id": next(self._number),
        }

    async def _reconcile(self, key: Key) -> str:
        """Make a pass, request the next one if needed, and return the outcome for the metric."""
        try:
            outcome = await self._reconciler.reconcile(key)
        except KubeError as error:
            delay = self.queue.retry(key, least=error.after)
            if self._is_new_problem(key, str(error)):
                log.warning("pass put off", error=str(error), seconds=round(delay, 1))
            return "put_off"
        except Exception as error:  # noqa: BLE001 - one resource's failure must not affect others
            return self._failed(key, error)
        if outcome.failure is not None:
            return self._failed(key, outcome.failure)
        self.failures.pop(key, None)
        self._logged.pop(key, None)
        if outcome.retry:
            self.queue.retry(key)
        else:
            self.queue.forget(key)
        if outcome.unfinished:
            self.queue.add(key)
        if outcome.requeue_after is not None:
            seconds = outcome.requeue_after.total_seconds()
            self.queue.add_after(key, seconds, is_due=outcome.is_due)
        return "retry" if outcome.retry or outcome.refused else "success"

    def _failed(self, key: Key, error: Exception) -> str:
        self.failures[key] = error
        self.queue.retry(key)
        if self._is_new_problem(key, repr(error)):
            log.error("pass failed", exc_info=error)
        return "failed"


def _is_of_status(change: Change) -> bool:
    """Return whether nothing but an object's status has changed."""
    old, new = change
    return old is not None and new is not None and content(old) == content(new)


def _is_equal(change: Change) -> bool:
    """Return whether nothing of what is cached of an object has changed but its version."""
    old, new = change
    return old is not None and new is not None and _unversioned(old) == _unversioned(new)


def _unversioned(obj: Object) -> Object:
    meta = {name: value for name, value in metadata(obj).items() if name != "resourceVersion"}
    return {**obj, "metadata": meta}


def _size(stores: Iterable[Store]) -> int:
    return sum(map(len, stores))


def _place(source: Source) -> str:
    return watched(source.api) + (f" in {source.namespace}" if source.namespace else "")
