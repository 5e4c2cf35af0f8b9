"""Coordinator: what a replica that shares the work does on the election's thread."""

from __future__ import annotations

import os
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog
from msgspec.structs import replace

from hedgerow.kube.errors import KubeError, Unreachable
from hedgerow.kube.retry import backoff
from hedgerow.kube.watch import Bookmark, Changed, Snapshot, reflect
from hedgerow.process.assignment_writer import AssignmentWriter
from hedgerow.process.leadership import lease, timing
from hedgerow.runtime.leaderelection.elector import (
    LONGEST_RETRY_AFTER,
    Elector,
    LeadershipLost,
    identity,
)
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.shards import assignment, members
from hedgerow.shards.member import Member
from hedgerow.shards.members import LABEL, MEMBER_STATUS, MOST_KNOWN, Members, MemberStatus
from hedgerow.shards.slices import ALL, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hedgerow.kube.cluster import Cluster
    from hedgerow.kube.fence import Permit
    from hedgerow.process.executor import Executor
    from hedgerow.runtime.clock import Clock
    from hedgerow.settings import Settings
    from hedgerow_schemas.base import Object

TURN = 0.5
"""Seconds between two looks at what is due."""
MOST_EXPECTED = 512
"""The most groups of namespaces that are told apart before anybody knows what they weigh."""

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
        manager = settings.installation.field_manager("lease")
        times = timing(settings)
        self.name, self._duration, self._deadline = name, times.duration, times.deadline
        self.members = Members(self._base, name, duration=times.duration, deadline=times.deadline)
        self.member = Member(self.members, os.environ.get("POD_TEMPLATE_HASH", ""))
        lead = partial(
            Elector,
            cluster,
            clock,
            namespace=self._namespace,
            identity=identity(),
            manager=manager,
            timing=times,
            namespaces=settings.namespaces,
            silent=silent,
        )
        self.own = lead(name=name, lease_metadata=self._lease_metadata, own=True)
        self.elector = lead(name=self._base, lease_metadata=self._common_metadata)
        self._writer = AssignmentWriter(
            cluster,
            clock,
            self.members,
            self.elector,
            namespace=self._namespace,
            manager=manager,
            duration=times.duration,
            lease_metadata=self._common_metadata(),
            backoff=self._backoff,
        )
        self._pod = _owner()
        self._load: assignment.Weights = ()
        self._facts: dict[str, float] = {}
        self._last_status: MemberStatus | None = None
        self._wanted: Slices | None = None
        self._selection = 0
        self._was_crowded = False
        self._executor: Executor | None = None
        self._may_leave = anyio.Event()
        self._adopted_at: float | None = None
        self.is_unassigned = True
        """Whether there is no assignment yet: nobody can say what weighs where."""

    async def run(self) -> NoReturn:
        """Take part until our Lease is lost. Raises LeadershipLost."""
        lost = LeadershipLost("")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            tasks.start_soon(self._check)
            tasks.start_soon(self._writer.run, self._turn)
            try:
                await self.own.gain()
                await self.own.hold()
            except LeadershipLost as error:
                lost = error
                tasks.cancel_scope.cancel()
        raise lost

    def remaining(self) -> float:
        """Return the seconds for which we may write for what we serve; callable anywhere."""
        return min(self.own.remaining(), self.elector.lease.shared_for(self._deadline))

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
        self._writer.expect(assignment.groups(expected, ALL, MOST_EXPECTED))

    async def leave(self) -> None:
        """Return once what we served is handed over, or there is nobody to hand it over to."""
        self.member.leaving = True
        self._turn()
        await self._may_leave.wait()

    async def release(self) -> None:
        """End our part: all passes have ended. It raises nothing."""
        self.member.end()
        await self.own.release()
        await self.elector.release()

    def _lease_metadata(self) -> Object:
        """Return the label, annotation and owner of our own Lease."""
        status = replace(self.member.status(self._load), facts=self._facts)
        found = {
            **self._common_metadata(),
            "annotations": {MEMBER_STATUS: members.status_text(status)},
        }
        return {**found, "ownerReferences": [self._pod]} if self._pod else found

    def _common_metadata(self) -> Object:
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
        return backoff(failures, draw, min(error.after, LONGEST_RETRY_AFTER), longest=longest)

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
        status = self.member.status()
        if status != self._last_status:
            self._last_status = status
            self.own.wake()
        if self.members.is_crowded and not self._was_crowded:
            log.warning("too many replicas are seen: nothing new is begun", most=MOST_KNOWN)
        self._was_crowded = self.members.is_crowded
        if self.member.leaving and (self.member.is_done or not self._heirs()):
            self._may_leave.set()
        self._writer.assign(now)

    def _heirs(self) -> bool:
        """Return whether another replica could take over."""
        return any(name != self.name for name in self.members.living())


def _owner() -> Object | None:
    """Return the reference to our pod, with which our Lease is removed; None outside a pod."""
    name, uid = os.environ.get("POD_NAME"), os.environ.get("POD_UID")
    if not (name and uid):
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
