"""Life: one life of a controller on the cluster in memory, of which a test makes each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hedgerow.objects import Installation
from hedgerow.runtime.cache.caches import build
from hedgerow.runtime.cache.store import RestoredError
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.passes.observation import ResourcePlanner
from hedgerow.runtime.runner import ControllerRunner
from hedgerow_testing.memory.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from hedgerow.contract import Controller, Key
    from hedgerow.kube.watch import Changed, Snapshot
    from hedgerow.runtime.cache.caches import Source
    from hedgerow.runtime.cache.door import Door
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.events.recorder import Limits
    from hedgerow.runtime.namespaces import Permission
    from hedgerow_testing.memory.cluster import MemoryCluster

MOST_PASSES = 500
"""So many passes at one time are taken to have no end."""


def operator(
    cluster: MemoryCluster,
    controller: Controller[Any],
    clock: Clock,
    permission: Callable[[str], Awaitable[Permission]],
    *,
    namespaces: tuple[str, ...] = (),
    installation: Installation | None = None,
    meters: Meters | None = None,
    limits: Limits | None = None,
    door: Door | None = None,
    server_time: Callable[[], datetime | None] | None = None,
) -> ControllerRunner:
    """Return the runner of a controller on the cluster in memory, as a process would make it."""
    installation = installation or Installation()
    planner = ResourcePlanner(
        controller=controller,
        installation=installation,
        cache=build(controller, installation, namespaces, door),
        clock=clock,
        permission=permission,
        server_time=server_time or cluster.server_time,
        own_namespace=installation.system_namespace,
    )
    return ControllerRunner(cast("Any", cluster), planner, meters, limits)


class Life:
    """One life of a controller: a test delivers each watch event and asks for each pass.

    It begins with caches that are filled. `how` is as `operator` takes it.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        controller: Controller[Any],
        clock: Clock,
        permission: Callable[[str], Awaitable[Permission]],
        **how: Any,
    ) -> None:
        self.meters = Meters()
        """Its metrics."""
        self.runner = operator(cluster, controller, clock, permission, meters=self.meters, **how)
        """The runner of its controller."""
        self._clock = clock
        self._feeds = [(source, Feed(cluster.model, source)) for source in self.runner.cache]
        self._fill()

    def _fill(self) -> None:
        for number, (source, feed) in enumerate(self._feeds):
            self._store(source, feed.relist())
            self.runner.watches.filled(number)

    def _store(self, source: Source, event: Snapshot | Changed) -> None:
        for changes in self.runner.watches.store_event(source, event):
            self.runner.watches.enqueue(source, changes)

    def _begin_anew(self) -> None:
        for _ in self.runner.begin_anew():
            pass
        self._fill()

    # --- its input

    def deliver(self, most: int = 10_000, kind: str = "") -> int:
        """Let the watches tell at most so many events, of one kind or all; return how many."""
        count = 0
        for source, feed in self._feeds:
            while kind in ("", source.api.kind) and count < most:
                event = feed.step()
                if event is None:
                    break
                count += 1
                self._store(source, event)
        return count

    def relist(self, kind: str = "") -> None:
        """Lose all events that were not told yet; the watches list again.

        A list that is older than what is cached has the controller begin anew.
        """
        try:
            for source, feed in self._feeds:
                if kind in ("", source.api.kind):
                    self._store(source, feed.relist())
        except RestoredError:
            self.runner.restored()
            self._begin_anew()

    def look(self, *keys: Key) -> None:
        """Have a pass made over some resources; over all without any, as when the clock jumps."""
        if not keys:
            self.runner.queue.add_everyone()
        for key in keys:
            self.runner.queue.add(key)

    # --- its passes

    async def work(self) -> int:
        """Make a pass over every resource that is due; return how many were made.

        Raises AssertionError if there is no end of them.
        """
        passes = 0
        while self.is_due:
            await self.runner.step()
            if self.runner.is_restored:
                self._begin_anew()
            passes += 1
            if passes >= MOST_PASSES:
                raise AssertionError("passes without end")
        return passes

    @property
    def is_due(self) -> bool:
        """Whether a resource is due for a pass."""
        return len(self.runner.queue) > 0

    @property
    def next_due(self) -> float:
        """The seconds until the next resource that waits is due; infinite if none waits."""
        return self.runner.queue.next_due() - self._clock.monotonic()

    @property
    def retried(self) -> tuple[Key, ...]:
        """The resources whose last pass is to be tried again, with growing patience."""
        return tuple(self.runner.queue.failures)

    def measured(self, metric: str, **labels: str) -> float:
        """Return the value of a metric; 0 if it was never written."""
        return self.meters.registry.get_sample_value(metric, labels) or 0.0
