"""Executor: what a replica that shares the work does on the main loop."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import structlog

from hedgerow.kube.errors import KubeError
from hedgerow.kube.watch import IDLE
from hedgerow.runtime.cache.budget import Budget
from hedgerow.runtime.sharding import HOME, Division, ShardedQueue, is_divided
from hedgerow.shards.slices import Slices, point_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from anyio.abc import TaskGroup

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.fence import Permit
    from hedgerow.process.coordinator import Coordinator
    from hedgerow.runtime.leaderelection.thread import OwnThread
    from hedgerow.runtime.metrics import ShardMeter
    from hedgerow.runtime.runner import ControllerRunner
    from hedgerow.shards.member import Orders
    from hedgerow.shards.members import Versions

COUNTED = 5.0
"""Seconds before resources are counted if there is no assignment yet; less than MEASURED."""
MEASURED = 10.0
"""Seconds between two measurements of what this replica serves."""
SMOOTH = 0.8
"""How much of the former measurements counts for the present one."""
DRAINED_APART = 16
"""How many parts of what is lost are drained on their own: a long pass delays only its part."""

WAITS = "waits for its share of the namespaces"
"""Why a replica is not ready at first."""

log = structlog.get_logger(__name__)


class Executor:
    """The part that runs on the main loop: it has the runners do what the thread decides."""

    def __init__(
        self, thread: OwnThread, coordinator: Coordinator, meter: ShardMeter, *, by_server: bool
    ) -> None:
        self._thread, self._coordinator, self._meter = thread, coordinator, meter
        self._by_server = by_server
        self._runners: Sequence[ControllerRunner] = ()
        self._budget = Budget()
        self._tasks: TaskGroup | None = None
        self._passes: dict[int, float] = {}
        self._counted = Counter[int]()
        self._was_ready = False

    def division(
        self, controller: Controller[Any], controllers: Sequence[Controller[Any]]
    ) -> Division:
        """Return how one controller's work is divided."""
        return Division(is_divided(controller, controllers), self._by_server)

    def fenced(self, cluster: Cluster, division: Division) -> Cluster:
        """Return the cluster for one controller's writes: each checks what we serve."""
        coordinator = self._coordinator

        def permit_of(namespace: str) -> Permit:
            return coordinator.permit(point_of(namespace) if division.is_divided else HOME)

        return cluster.fenced_by(permit_of, coordinator.own.unanswered)

    async def serve(
        self,
        runners: Sequence[ControllerRunner],
        budget: Budget,
        lag: Callable[[], float],
    ) -> None:
        """Have the runners serve what this replica is assigned, for ever.

        `lag` returns by how many seconds the event loop is late.
        """
        self._runners, self._budget = runners, budget
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                await self._on_thread(partial(self._coordinator.attach, self))
                tasks.start_soon(self._count)
                while True:
                    await anyio.sleep(MEASURED)
                    weights, facts = self._measure()
                    facts["lag"] = round(lag(), 3)
                    await self._on_thread(
                        partial(self._coordinator.measured, weights, facts, self._counted)
                    )
            finally:
                self._tasks = None  # first: the thread may still have something to be done

    async def _count(self) -> None:
        """Count once, if nothing is assigned yet, how many resources there are at which points."""
        await anyio.sleep(COUNTED)
        for runner in self._runners if self._coordinator.is_unassigned else ():
            try:
                self._counted += await runner.watches.count_resources()
            except KubeError as error:
                log.warning("resources are not counted", error=str(error))

    def _measure(self) -> tuple[dict[int, float], dict[str, float]]:
        """Return what weighs at which points, and what people are told of it."""
        resources, passes = Counter[int](), Counter[int]()
        for runner in self._runners:
            if isinstance(runner.queue, ShardedQueue):
                resources.update(runner.queue.resources())
                passes.update(runner.queue.passes())
        facts = {
            "namespaces": float(len(resources)),
            "resources": float(resources.total()),
            "passes": round(passes.total() / MEASURED, 3),
        }
        self._passes = {
            point: self._passes.get(point, 0) * SMOOTH + passes[point] * (1 - SMOOTH)
            for point in self._passes.keys() | passes.keys()
            if point in resources
        }
        weights = {
            point: round(count + self._passes.get(point, 0), 1)
            for point, count in resources.items()
        }
        return weights, facts

    def share_caches(self, replicas: int) -> None:
        """Have the caches keep decoded what one of so many replicas needs; called by the thread."""
        if self._tasks is not None:
            self._tasks.start_soon(self._share_caches, replicas)

    async def _share_caches(self, replicas: int) -> None:
        for _ in self._budget.shared_by(replicas):
            await anyio.lowlevel.checkpoint()
            if replicas != self._coordinator.member.sharers:
                return  # it is told anew

    def want(self, slices: Slices, number: int) -> None:
        """Have the runners watch these slices, with a number to tell of; called by the thread."""
        self._start(partial(self._select, number=number), slices)

    def take(self, orders: Orders) -> None:
        """Have the runners begin some slices, and drain others; called by the thread."""
        if begin := orders.begin:
            self._meter.moved(len(begin.ranges))
            log.info("slices begun", share=round(begin.share, 3), ranges=len(begin.ranges))
            for runner in self._runners:
                self._start(partial(runner.begin, quiet=orders.quiet), begin)
        for part in chain.from_iterable(_parts(each, len(orders.drain)) for each in orders.drain):
            self._start(self._drain, part)

    def waiting(self) -> str:
        """Return why this replica is not ready; empty once it is, for good.

        It is ready once it serves its share, or beside a replica that leads alone. That one may run
        in a former pod of our Deployment, which stops once its successors are ready.
        """
        coordinator = self._coordinator
        may_serve = coordinator.member.is_settled or coordinator.elector.lease.is_led_alone
        self._was_ready = self._was_ready or may_serve
        return "" if self._was_ready else WAITS

    async def leave(self, seconds: float) -> None:
        """Hand over what is served, for at most so many seconds."""
        with anyio.move_on_after(seconds) as scope:
            await self._on_thread(self._coordinator.leave)
        if scope.cancelled_caught:
            log.warning("not all was handed over", seconds=seconds)

    async def _on_thread(self, act: Callable[[], Awaitable[None]]) -> None:
        await self._thread.run(act)

    def _start(self, act: Callable[[Slices], Coroutine[Any, Any, object]], slices: Slices) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(act, slices)

    async def _select(self, slices: Slices, number: int) -> None:
        filled: list[bool] = []

        async def one(runner: ControllerRunner) -> None:
            filled.append(await runner.select(slices))

        async with anyio.create_task_group() as tasks:
            for runner in self._runners:
                tasks.start_soon(one, runner)
        if all(filled):
            await self._on_thread(partial(self._coordinator.cached, slices, number))

    async def _drain(self, slices: Slices) -> None:
        # What has not begun yet may lack what its former replica wrote last.
        is_known = all(runner.handover.has_all(slices) for runner in self._runners)
        async with anyio.create_task_group() as tasks:
            for runner in self._runners:
                tasks.start_soon(runner.drain, slices)
        unanswered = self._coordinator.own.unanswered
        await anyio.sleep(unanswered.seconds())  # what has no response may still be carried out
        # Afterwards only a watch tells its version, which notices within that time that it is cut.
        is_known = is_known and unanswered.since() > IDLE
        last = await self._last(slices) if is_known else None
        await self._on_thread(partial(self._coordinator.drained, slices, last))

    async def _last(self, slices: Slices) -> Versions:
        """Return the last versions in slices by watch."""
        found: Versions = {}
        for runner in self._runners:
            found |= await runner.handover.last_versions(slices)
        return found


def _parts(slices: Slices, heirs: int) -> list[Slices]:
    """Return slices for one of some heirs in parts of about the same width."""
    first, last = slices.ranges[0][0], slices.ranges[-1][1]
    number = max(1, DRAINED_APART // heirs)
    cuts = [first + (last - first) * each // number for each in range(number)]
    parts = (slices & Slices.of([each]) for each in zip(cuts, (*cuts[1:], last), strict=True))
    return [part for part in parts if part]
