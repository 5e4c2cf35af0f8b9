"""Sharding: one replica of many, each of which serves a share of the namespaces.

What keeps two from writing for one slice runs in the election's thread: the renewal of our Lease,
the watch of all Leases, the leader's writes. The runners are on the main loop; the thread tells
them what to watch, to begin and to drain, and they tell it when that is done.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import anyio.lowlevel
import structlog
from msgspec.structs import replace

from hedgerow.kube.client import connect
from hedgerow.kube.errors import Conflict, KubeError, Stale, Unreachable
from hedgerow.kube.retry import backoff
from hedgerow.kube.watch import IDLE, Bookmark, Changed, Snapshot, reflect
from hedgerow.process.leadership import BEAT, lease, timing, until_lost
from hedgerow.runtime.cache.budget import Budget
from hedgerow.runtime.clock import unique
from hedgerow.runtime.leaderelection.elector import PATIENCE as LONGEST_AFTER
from hedgerow.runtime.leaderelection.elector import Leadership, LeadershipLost, identity
from hedgerow.runtime.leaderelection.record import LEASES, micro_time
from hedgerow.runtime.leaderelection.thread import PATIENCE, own_thread
from hedgerow.runtime.sharding import HOME, Division, ShardedQueue, is_divided
from hedgerow.serving.loop_latency import Pulse
from hedgerow.shards import assignment, members
from hedgerow.shards.leader import Assigner
from hedgerow.shards.member import Member
from hedgerow.shards.members import (
    ASSIGNMENT,
    LABEL,
    MOST_KNOWN,
    SAID,
    Members,
    Said,
)
from hedgerow.shards.slices import ALL, Slices, slice_of

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Awaitable,
        Callable,
        Coroutine,
        Mapping,
        Sequence,
    )

    from anyio.abc import TaskGroup

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.fence import Permit
    from hedgerow.process.stopping import Stop
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.thread import OwnThread
    from hedgerow.runtime.metrics import Meters, ShardMeter
    from hedgerow.runtime.namespaces import Namespaces
    from hedgerow.runtime.runner import ControllerRunner
    from hedgerow.serving.health import Health
    from hedgerow.settings import Settings
    from hedgerow.shards.leader import Proposal
    from hedgerow.shards.member import Orders
    from hedgerow.shards.members import Versions
    from hedgerow_schemas.base import Object

TURN = 0.5
"""Seconds between two looks at what is due."""
COUNTED = 5.0
"""Seconds before resources are counted if there is no assignment yet; less than MEASURED."""
MEASURED = 10.0
"""Seconds between two measurements of what this replica serves."""
SMOOTH = 0.8
"""How much of the former measurements counts for the present one."""
HAND_OVER = 10.0
"""Seconds, and at most half of the grace period, for handing over before a clean stop."""
AT_ONCE = 6
"""Requests at a time: one of each task, so that a renewal never waits."""
MOST_EXPECTED = 512
"""The most groups of namespaces that are told apart before anybody knows what they weigh."""
DRAINED_APART = 16
"""How many parts of what is lost are drained on their own: a long pass delays only its part."""

log = structlog.get_logger(__name__)


class Coordinator:
    """The part that runs on the election's thread."""

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        clock: Clock,
        name: str,
        *,
        silent: Callable[[], float],
        post: Callable[[Callable[[], object]], object],
    ) -> None:
        """`post` makes the main loop call a function."""
        self._cluster, self._clock, self._post = cluster, clock, post
        self._base, self._namespace = lease(settings)
        self._manager = settings.installation.field_manager("lease")
        times = timing(settings)
        self.name, self._duration, self._deadline = name, times.duration, times.deadline
        self.members = Members(self._base, name, duration=times.duration, deadline=times.deadline)
        self.member = Member(self.members, os.environ.get("POD_TEMPLATE_HASH", ""))
        self._assigner = Assigner(self.members)
        lead = partial(
            Leadership,
            cluster,
            clock,
            namespace=self._namespace,
            identity=identity(),
            manager=self._manager,
            timing=times,
            namespaces=settings.namespaces,
            silent=silent,
        )
        self.own = lead(name=name, marks=self._marks, own=True)
        self.election = lead(name=self._base, marks=self._common_marks)
        self._pod = _owner()
        self._load: assignment.Weights = ()
        self._facts: dict[str, float] = {}
        self._told: Said | None = None
        self._wanted: Slices | None = None
        self._selection = 0
        self._was_crowded = False
        self._executor: Executor | None = None
        self._news, self._may_leave = anyio.Event(), anyio.Event()
        self._write: Proposal | None = None
        self._adopted_at: float | None = None
        self.is_unassigned = True
        """Whether there is no assignment yet: nobody can say what weighs where."""

    async def run(self) -> NoReturn:
        """Take part until our Lease is lost. Raises LeadershipLost."""
        lost = LeadershipLost("")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            tasks.start_soon(self._lead)
            tasks.start_soon(self._check)
            tasks.start_soon(self._carry_out)
            tasks.start_soon(self._delete_expired)
            try:
                await self.own.gain()
                await self.own.hold()
            except LeadershipLost as error:
                lost = error
                tasks.cancel_scope.cancel()
        raise lost

    def remaining(self) -> float:
        """Return the seconds for which we may write for what we serve; callable anywhere."""
        return min(self.own.remaining(), self.election.lease.shared_for(self._deadline))

    def age(self) -> float:
        """Return for how many seconds we have known the assignment, 0 without one."""
        at = self._adopted_at
        return 0.0 if at is None else self._clock.elapsed() - at

    def permit(self, point: int) -> Permit:
        """Return the permit of writes for a point; it is called on the main loop."""
        member = self.member

        def left() -> float:
            serves = point in member.begun or point in member.draining
            return self.remaining() if serves else 0.0

        return left

    # What the main loop calls, on this loop.

    async def attach(self, executor: Executor) -> None:
        """Give orders to this executor from now on."""
        self._executor = executor
        self._turn()

    async def cached(self, slices: Slices, number: int) -> None:
        """Take in which slices the caches hold, if the selection of that number is the last."""
        if number == self._selection:
            self.member.cached(slices)
            self._turn()

    async def drained(self, slices: Slices, last: Mapping[str, int] | None) -> None:
        """Take in that nothing is written for these slices any more, and what was last, if known.

        It is given by watch, as resourceVersions.
        """
        self.member.drained(slices, last)
        self._turn()

    async def measured(
        self,
        weights: Mapping[int, float],
        facts: Mapping[str, float],
        expected: Mapping[int, float],
    ) -> None:
        """Take in what this replica serves, and what is expected to weigh where in all."""
        self._load = assignment.groups(weights, self.member.begun)
        self._facts = dict(facts)
        self._assigner.expected = assignment.groups(expected, ALL, MOST_EXPECTED)

    async def leave(self) -> None:
        """Return once what we served is handed over, or there is nobody to hand it over to."""
        self.member.leaving = True
        self._turn()
        await self._may_leave.wait()

    async def release(self) -> None:
        """End our part: all passes have ended. It raises nothing."""
        self.member.end()
        await self.own.release()
        await self.election.release()

    def _marks(self) -> Object:
        """Return the label, annotation and owner of our own Lease."""
        said = replace(self.member.said(self._load), facts=self._facts)
        marks = {**self._common_marks(), "annotations": {SAID: members.text(said)}}
        return {**marks, "ownerReferences": [self._pod]} if self._pod else marks

    def _common_marks(self) -> Object:
        return {"labels": {LABEL: self._base}}

    async def _watch(self) -> None:
        changes = reflect(
            self._cluster,
            LEASES,
            self._namespace,
            labels=f"{LABEL}={self._base}",
            on_problem=lambda error: log.warning("replicas are not seen", error=str(error)),
        )
        async with aclosing(changes) as events:
            async for event in events:
                self._take(event)

    def _take(self, event: Snapshot | Changed | Bookmark) -> None:
        now = self._clock.elapsed()
        if isinstance(event, Bookmark):
            return
        if isinstance(event, Snapshot):
            if event.rewound:
                self.member.rewound()
            self.members.snapshot(event.items, now)
        elif event.type == "DELETED":
            self.members.deleted(event.object, now)
        else:
            self.members.changed(event.object, now)
        self._turn()

    async def _lead(self) -> NoReturn:
        """Be elected again and again: another leader keeps nobody from working."""
        while True:
            with suppress(LeadershipLost):
                await self.election.lead(self._turn)
            log.info("another replica leads")
            self._assigner.forget()

    async def _check(self) -> NoReturn:
        """Do what is due without any news."""
        failures, again = 0, float("-inf")
        while True:
            due = self.members.relist_due()
            if due is not None and max(due, again) <= self._clock.elapsed():
                try:
                    await self._relist()
                    failures = 0
                except KubeError as error:
                    failures += 1
                    again = self._clock.elapsed() + self._backoff(failures, error)
            self._turn()
            left = TURN if due is None else max(due, again) - self._clock.elapsed()
            await anyio.sleep(min(TURN, max(left, TURN / 10)))

    def _backoff(self, failures: int, error: KubeError) -> float:
        """Return the seconds until what has failed is tried again."""
        draw, longest = self._clock.jitter(), self._duration
        return backoff(failures, draw, min(error.after, LONGEST_AFTER), longest=longest)

    async def _relist(self) -> None:
        """Read all Leases as they are now, to be certain that some did not change.

        Raises KubeError.
        """
        began = self._clock.elapsed()
        with anyio.move_on_after(self._duration / 3) as scope:
            listed = await self._cluster.list(
                LEASES, self._namespace, labels=f"{LABEL}={self._base}"
            )
            self.members.relisted(listed.items, began)
        if scope.cancelled_caught:
            raise Unreachable("no answer in time", sent=True)

    def _turn(self) -> None:
        """Decide, and have done what is to be done."""
        now = self._clock.elapsed()
        self.is_unassigned = self.members.current() is None
        executor = self._executor
        if executor is not None and self.own.leading:
            token = self.member.token
            orders = self.member.step(now)
            if token != self.member.token:
                self._adopted_at = now
                self._post(partial(executor.share_caches, self.member.sharers))
            if orders:
                self._post(partial(executor.take, orders))
            wanted = self.member.wanted
            if wanted != self._wanted:
                self._wanted, self._selection = wanted, self._selection + 1
                self._post(partial(executor.want, self._wanted, self._selection))
        said = self.member.said()
        if said != self._told:
            self._told = said
            self.own.wake()
        if self.members.is_crowded and not self._was_crowded:
            log.warning("too many replicas are seen: nothing new is begun", most=MOST_KNOWN)
        self._was_crowded = self.members.is_crowded
        if self.member.leaving and (self.member.is_done or not self._heirs()):
            self._may_leave.set()
        self._assign(now)

    def _heirs(self) -> bool:
        """Return whether another replica could take over."""
        return any(name != self.name for name in self.members.living())

    def _assign(self, now: float) -> None:
        """If we lead, have the next assignment written."""
        if not self.election.leading or self._write is not None:
            return
        self._write = self._assigner.next(now, unique())
        if self._write:
            self._news.set()

    async def _carry_out(self) -> NoReturn:
        """Send the leader's writes; each only while we lead."""
        fenced = self._cluster.fenced(self.election.remaining, self.election.unanswered)
        failures = 0
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            try:
                if self._write is not None:
                    await self._send(fenced, self._write)
                failures = 0
            except KubeError as error:
                self._assigner.forget()
                failures += 1
                seconds = self._backoff(failures, error)
                log.warning("replicas are not told", error=str(error), seconds=round(seconds, 1))
                await anyio.sleep(seconds)
            self._write = None

    async def _delete_expired(self) -> NoReturn:
        """Remove the Leases of members that are long gone, while we lead."""
        fenced = self._cluster.fenced(self.election.remaining, self.election.unanswered)
        failures = 0
        while True:
            failed: KubeError | None = None
            for each in self.members.superfluous() if self.election.leading else ():
                uid, version = each.mark[:2]
                try:
                    await fenced.delete(
                        LEASES, each.name, self._namespace, uid=uid, version=version
                    )
                except KubeError as error:
                    failed = error
            failures = failures + 1 if failed else 0
            if failed:
                log.warning("leases of former replicas are not removed", error=str(failed))
            wait = self._backoff(failures, failed) if failed else 0.0
            await anyio.sleep(max(wait, TURN))

    async def _send(self, fenced: Cluster, write: Proposal) -> None:
        """Write an assignment in the place of the one that was seen. Raises KubeError."""
        self._assigner.sending(write, self._clock.elapsed())
        seen, wall = write.seen, micro_time(self._clock.now())
        place = {"name": f"{self._base}-shards", "namespace": self._namespace}
        exact = {"uid": seen.uid, "resourceVersion": seen.version} if seen else None
        told = {ASSIGNMENT: assignment.text(write.assignment)}
        meta = {**place, **self._common_marks(), "annotations": told}
        spec = {"holderIdentity": self.name, "acquireTime": wall, "renewTime": wall}
        seconds = self._duration / 3
        try:
            body = {"metadata": meta | (exact or {"resourceVersion": "1"}), "spec": spec}
            await fenced.apply(LEASES, body, manager=self._manager, timeout=seconds)
        except Conflict:
            # Somebody else holds its fields: it is made anew, as a Lease is that has expired.
            if seen is None or not await fenced.delete(
                LEASES, place["name"], self._namespace, uid=seen.uid, version=seen.version
            ):
                raise
            raise Stale("the assignment was somebody else's: removed") from None
        log.info(
            "assigned",
            why=write.why,
            epoch=write.assignment.epoch,
            replicas=len(write.assignment.members),
            parts=len(write.assignment.parts),
        )


def _owner() -> Object | None:
    """Return the reference to our pod, with which our Lease is removed; None outside a pod."""
    name, uid = os.environ.get("POD_NAME"), os.environ.get("POD_UID")
    if not (name and uid):
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}


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
        self.was_settled = False

    def division(
        self, controller: Controller[Any], controllers: Sequence[Controller[Any]]
    ) -> Division:
        """Return how one controller's work is divided."""
        return Division(is_divided(controller, controllers), self._by_server)

    def fenced(self, cluster: Cluster, division: Division) -> Cluster:
        """Return the cluster for one controller's writes: each checks what we serve."""
        coordinator = self._coordinator

        def permit_of(namespace: str) -> Permit:
            return coordinator.permit(slice_of(namespace) if division.is_divided else HOME)

        return cluster.fenced_by(permit_of, coordinator.own.unanswered)

    async def serve(
        self,
        runners: Sequence[ControllerRunner],
        namespaces: Namespaces,
        budget: Budget,
        lag: Callable[[], float],
    ) -> None:
        """Have the runners serve what this replica is assigned, for ever.

        `lag` returns by how many seconds the event loop is late.
        """
        self._runners, self._budget = runners, budget
        try:
            async with anyio.create_task_group() as self._tasks:
                await self._tell(partial(self._coordinator.attach, self))
                self._tasks.start_soon(self._count)
                while True:
                    await anyio.sleep(MEASURED)
                    weights, facts = self._measure()
                    facts["lag"] = round(lag(), 3)
                    expected = Counter(map(slice_of, namespaces.names)) + self._counted
                    await self._tell(partial(self._coordinator.measured, weights, facts, expected))
        finally:
            self._tasks = None

    async def _count(self) -> None:
        """Count once, if nothing is assigned yet, how many resources there are at which points."""
        await anyio.sleep(COUNTED)
        for runner in self._runners if self._coordinator.is_unassigned else ():
            try:
                self._counted += await runner.handover.count()
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
        """Return why this replica does not serve its share yet; empty once it did."""
        self.was_settled = self.was_settled or self._coordinator.member.is_settled
        return "" if self.was_settled else "waits for its share of the namespaces"

    async def leave(self, seconds: float) -> None:
        """Hand over what is served, for at most so many seconds."""
        with anyio.move_on_after(seconds) as scope:
            await self._tell(self._coordinator.leave)
        if scope.cancelled_caught:
            log.warning("not all was handed over", seconds=seconds)

    async def _tell(self, act: Callable[[], Awaitable[None]]) -> None:
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
            await self._tell(partial(self._coordinator.cached, slices, number))

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
        await self._tell(partial(self._coordinator.drained, slices, last))

    async def _last(self, slices: Slices) -> Versions:
        """Return the last versions in slices by watch."""
        found: Versions = {}
        for runner in self._runners:
            found |= await runner.handover.last_versions(slices)
        return found


async def _selects(cluster: Cluster, settings: Settings) -> bool:
    """Return whether the API server selects the objects of slices itself."""
    try:
        return await cluster.selects(LEASES, settings.system_namespace)
    except KubeError as error:
        log.warning("cannot tell whether the server selects", error=str(error))
        return False


def _parts(slices: Slices, heirs: int) -> list[Slices]:
    """Return slices for one of some heirs in parts of about the same width."""
    first, last = slices.ranges[0][0], slices.ranges[-1][1]
    number = max(1, DRAINED_APART // heirs)
    cuts = [first + (last - first) * each // number for each in range(number)]
    parts = (slices & Slices.of([each]) for each in zip(cuts, (*cuts[1:], last), strict=True))
    return [part for part in parts if part]


def new_name(settings: Settings) -> str:
    """Return the name of a replica, and of its Lease: it is never used again."""
    return f"{settings.installation.base}-{unique()[:8]}{unique()[:4]}"


@asynccontextmanager
async def sharing(
    settings: Settings,
    cluster: Cluster,
    clock: Clock,
    stop: Stop,
    meters: Meters,
    *,
    name: str,
    silent: Callable[[], float],
    health: Health,
) -> AsyncGenerator[Executor | None]:
    """Yield what serves a share of the namespaces; None if asked to stop before that.

    If our Lease is lost, LeadershipLost is raised in a group; but if the process is already
    stopping, the body is only cancelled. In the end the Lease is released.
    """
    by_server = await stop.unless_asked(partial(_selects, cluster, settings))
    if by_server is None or stop.asked.is_set():
        yield None
        return
    async with own_thread("election") as thread:

        def post(act: Callable[[], object]) -> None:
            thread.telling(act)()

        part = _coordinating(settings, clock, meters, name, silent=silent, post=post)
        async with thread.entered(part) as coordinator:
            meters.leads(lambda: coordinator.election.leading)
            meter = meters.shards(
                held=lambda: coordinator.member.begun,
                unserved=coordinator.members.unserved,
                age=coordinator.age,
            )
            way = "server" if by_server else "namespaces" if settings.namespaces else "lines"
            meter.reads(way)
            log.info("sharing the work", replica=name, reading=way)
            executor = Executor(thread, coordinator, meter, by_server=by_server)
            health.ready.add("shards", executor.waiting)
            pulse = Pulse(clock, every=BEAT)
            health.live.add("election", pulse.check)
            async with anyio.create_task_group() as tasks:
                lost = stop, tasks.cancel_scope
                tasks.start_soon(thread.run, pulse.beat)
                tasks.start_soon(until_lost, partial(thread.run, coordinator.run), *lost)
                tasks.start_soon(until_lost, partial(_run_out, coordinator), *lost)
                yield executor
                tasks.cancel_scope.cancel()


@asynccontextmanager
async def _coordinating(
    settings: Settings,
    clock: Clock,
    meters: Meters,
    name: str,
    *,
    silent: Callable[[], float],
    post: Callable[[Callable[[], object]], object],
) -> AsyncGenerator[Coordinator]:
    """Yield the thread's part; in the end our Lease is released, and so is the election."""
    async with connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        user_agent=f"{settings.installation.common_manager('lease')} ({name})",
        concurrency=AT_ONCE,
        on_exchange=meters.exchanged,
    ) as cluster:
        coordinator = Coordinator(settings, cluster, clock, name, silent=silent, post=post)
        try:
            yield coordinator
        finally:
            await coordinator.release()


async def _run_out(coordinator: Coordinator) -> NoReturn:
    """Raise LeadershipLost once we may not write for what we serve, in case the thread hangs."""
    lapsed = 0.0
    while lapsed < PATIENCE:
        await anyio.sleep(TURN)
        may = coordinator.remaining() > 0 or not coordinator.member.is_serving
        lapsed = 0.0 if may else lapsed + TURN
    raise LeadershipLost("the lease was not renewed, or a replica leads that shares nothing")
