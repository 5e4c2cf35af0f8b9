"""Runner: runs one controller: its watches fill its queue, and each key in it gets a pass."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import structlog
from structlog.contextvars import bound_contextvars

from hedgerow.kube.errors import KubeError
from hedgerow.objects import metadata
from hedgerow.plan.too_large import concerned_by
from hedgerow.runtime.cache.intake import CacheIntake
from hedgerow.runtime.cache.store import ANEW_AFTER
from hedgerow.runtime.clock import Wall
from hedgerow.runtime.events.publisher import EventPublisher
from hedgerow.runtime.events.recorder import Limits, Recorder
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.passes.applier import Applier
from hedgerow.runtime.passes.context import PassContext
from hedgerow.runtime.passes.reconciler import Reconciler
from hedgerow.runtime.watches import Watches
from hedgerow.runtime.workqueue import Closed, QueueLine, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from anyio.abc import TaskGroup

    from hedgerow.contract import Key
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.cache.caches import Source
    from hedgerow.runtime.cache.store import Store
    from hedgerow.runtime.meters import Meter
    from hedgerow.runtime.passes.observation import ResourcePlanner
    from hedgerow_schemas.base import ApiResource, Object

WALL_CHECK = 10.0
"""Seconds between two checks of the wall clock."""
KEYS_AT_ONCE = 128
"""The keys whose states are forgotten between two turns of the event loop."""

log = structlog.get_logger(__name__)


class ControllerRunner:
    """Runs one controller until it is cancelled or stopped."""

    def __init__(
        self,
        cluster: Cluster,
        planner: ResourcePlanner,
        meters: Meters | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Have the caches of `planner` filled from `cluster`, and its writes sent to it."""
        self.controller = planner.controller
        self._planner = planner
        self._clock = planner.clock
        self._meter = (meters or Meters()).of_controller(self.controller.name, self.controller.lag)
        self.cache = planner.cache
        self.queue = WorkQueue(
            planner.clock,
            self._meter.waited,
            self._meter.retried,
            everyone=self.cache.resource_keys,
        )
        installation = planner.installation
        manager = installation.field_manager(self.controller.name)
        recorder = Recorder(cluster, planner.clock, manager, limits, installation.label_key)
        self._reconciler = Reconciler(
            PassContext(
                planner=planner,
                applier=Applier(cluster, manager, self._meter),
                publisher=EventPublisher(planner, recorder, self._meter),
                meter=self._meter,
                intake=CacheIntake(planner, self.restored),
                on_observed=self.queue.note_observed,
                has_changed=self.queue.has_changed,
            )
        )
        self._turn = anyio.Lock(fast_acquire=True)
        """Whose turn it is to wait for a key."""
        self._wall: Wall | None = None
        self._clocks_differ = False
        self._number = count(1)
        self._is_stopped = False
        self.is_restored = False
        """Whether the API server's store was restored from a backup: `begin_anew` must follow."""
        self.watches = Watches(
            self.controller,
            cluster,
            self.cache,
            self.queue,
            meter=self._meter,
            clock=self._clock,
            on_restored=self.restored,
        )
        self.failures: dict[Key, Exception] = {}
        """The error of the last pass of a resource, such as a defect of its compose."""
        self._logged: dict[Key, str] = {}
        for source in self.cache:
            source.store.shelf.on_left_out = self._left_out
        self._meter.queue(self.queue.__len__)
        _measure(self._meter, self.cache)

    def _left_out(self, stub: Object) -> None:
        for key in concerned_by(stub):
            self.queue.add(key)

    async def run(self) -> None:
        """Work until stopped; begin anew if the API server's store was restored from a backup."""
        while True:
            await self._run()
            if not self._is_stopped:
                await anyio.sleep(ANEW_AFTER)
            if self._is_stopped:
                return
            for _ in self.begin_anew():
                await anyio.lowlevel.checkpoint()
            if self._is_stopped:  # meanwhile
                return

    async def _run(self) -> None:
        """Watch, wait until every cache is filled, then work until the queue is closed."""
        async with anyio.create_task_group() as watches:
            watches.start_soon(self.watches.watch_sources)
            watches.start_soon(self._watch_wall_clock)
            await self.watches.ready.wait()
            if self.watches.are_synced:
                log.info("caches are filled", controller=self.controller.name)
            async with anyio.create_task_group() as workers:
                workers.start_soon(self._work, workers)
            watches.cancel_scope.cancel()

    def stop(self) -> None:
        """Take no more work; `run` returns once the running passes have ended."""
        self._is_stopped = True
        self._close()

    def _close(self) -> None:
        self.queue.close()
        self.watches.ready.set()

    def restored(self) -> None:
        """Hand out no more keys; once the running passes have ended, everything begins anew."""
        if not self.is_restored:
            self.is_restored = True
            log.warning(
                "versions went back: the store was restored", controller=self.controller.name
            )
            self._close()

    def begin_anew(self) -> Iterator[None]:
        """Forget the caches and the states of all resources, in parts, as after a start.

        It is for when no pass runs and nothing is watched. Keys that wait for their time stay
        queued.
        """
        yield from self.cache.clearing()
        self.is_restored = False
        self.queue.is_closed = False
        for number, key in enumerate(self._reconciler.begin_anew()):
            self.queue.add(key, QueueLine.BACKLOG)  # those that are gone have to be forgotten
            if number % KEYS_AT_ONCE == 0:
                yield
        self.watches.begin_anew()

    async def _watch_wall_clock(self) -> None:
        """Queue everything when the wall clock jumps or the machine has slept.

        Scheduled work is due by the wall clock, but delays are measured by the monotonic clock.
        """
        while True:
            self._check_wall_clock()
            self._compare_clocks()
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
            self.queue.add_everyone()

    def _compare_clocks(self) -> None:
        """Log that our clock and the API server's differ, or no longer do."""
        times = self._planner.times()
        before, self._clocks_differ = self._clocks_differ, times.clocks_differ
        if times.clocks_differ and times.server_time and not before:
            ahead = (times.now - times.server_time).total_seconds()
            log.warning(
                "the clock differs from the API server's: one of them is wrong",
                controller=self.controller.name,
                seconds_ahead=round(ahead),
            )
        elif before and not times.clocks_differ:
            log.info("the clock is that of the API server again", controller=self.controller.name)

    def _is_new_problem(self, key: Key, line: str) -> bool:
        """Return whether to log a problem: the same one is logged only once in a row."""
        known = self._logged.get(key) == line
        self._logged[key] = line
        return not known

    async def _work(self, workers: TaskGroup) -> None:
        """Take keys and make their passes until the queue is closed.

        Only one worker at a time waits for a key. Having got one, it starts another worker if none
        is idle.
        """
        with suppress(Closed):
            while True:
                async with self._turn:
                    key = await self.queue.get()
                    if not self._turn.statistics().tasks_waiting:
                        workers.start_soon(self._work, workers)
                await self._pass_and_end(key)

    async def step(self) -> None:
        """Wait for a resource that is due, and make its pass. Raises Closed once stopped."""
        await self._pass_and_end(await self.queue.get())

    async def _pass_and_end(self, key: Key) -> None:
        try:
            await self._pass(key)
        finally:
            self.queue.done(key)

    async def _pass(self, key: Key) -> None:
        self._check_wall_clock()
        began = self._clock.monotonic()
        outcome = "failed"
        with bound_contextvars(**self._named(key)):
            try:
                outcome = await self._reconcile(key)
            finally:
                self._meter.passed(outcome, self._clock.monotonic() - began)
                self._check_wall_clock()  # it may have read a clock that was wrong for a moment

    def _named(self, key: Key) -> dict[str, object]:
        """Return the fields that each log line of a pass has."""
        live = self.cache.resource(key)
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
        if outcome.requeue_after is not None:
            seconds = outcome.requeue_after.total_seconds()
            self.queue.add_after(key, seconds, is_requested=outcome.is_requested)
        if outcome.failure is not None:
            return self._failed(key, outcome.failure)
        self.failures.pop(key, None)
        self._logged.pop(key, None)
        if outcome.retry:
            self.queue.retry(key)
        else:
            self.queue.forget_backoff(key)
        return "retry" if outcome.retry or outcome.refused else "success"

    def _failed(self, key: Key, error: Exception) -> str:
        self.failures[key] = error
        self.queue.retry(key)
        if self._is_new_problem(key, repr(error)):
            log.error("pass failed", exc_info=error)
        return "failed"


def _measure(meter: Meter, cache: Iterable[Source]) -> None:
    kinds: dict[ApiResource, list[Store]] = {}
    for source in cache:
        kinds.setdefault(source.api, []).append(source.store)
    for api, stores in kinds.items():
        meter.caches(api, partial(_size, stores))


def _size(stores: Iterable[Store]) -> int:
    return sum(map(len, stores))
