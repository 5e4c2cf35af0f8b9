"""AssignmentWriter: what the elected one of the replicas that share the work writes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.kube.errors import Conflict, KubeError, Stale
from hedgerow.runtime.clock import unique
from hedgerow.runtime.leaderelection.elector import LeadershipLost
from hedgerow.runtime.leaderelection.record import LEASES, micro_time
from hedgerow.shards import assignment
from hedgerow.shards.assigner import Assigner
from hedgerow.shards.members import ASSIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.elector import Elector
    from hedgerow.shards.assigner import Proposal
    from hedgerow.shards.assignment import Weights
    from hedgerow.shards.members import Members
    from hedgerow_schemas.base import Object

PAUSE = 0.5
"""Seconds between two looks at which Leases nobody needs any more."""

log = structlog.get_logger(__name__)


class AssignmentWriter:
    """Stands for election; while elected, writes assignments and removes Leases of former members.

    `lease_metadata` is what an assignment's Lease has besides name and namespace. `backoff` returns
    the seconds until what has failed so many times is tried again.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        members: Members,
        elector: Elector,
        *,
        namespace: str,
        manager: str,
        duration: float,
        lease_metadata: Object,
        backoff: Callable[[int, KubeError], float],
    ) -> None:
        self._fenced = cluster.fenced(elector.remaining, elector.unanswered)
        self._clock, self._members, self._elector = clock, members, elector
        self._namespace, self._manager, self._duration = namespace, manager, duration
        self._lease_metadata, self._backoff = lease_metadata, backoff
        self._assigner = Assigner(members)
        self._proposal: Proposal | None = None
        self._news = anyio.Event()

    def expect(self, weights: Weights) -> None:
        """Take in what weighs where as long as no member has found that out."""
        self._assigner.expected = weights

    async def run(self, elected: Callable[[], object]) -> None:
        """Stand for election and write, for ever; call `elected` each time we are elected."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._lead, elected)
            tasks.start_soon(self._write)
            tasks.start_soon(self._delete_expired)

    async def _lead(self, elected: Callable[[], object]) -> NoReturn:
        """Be elected again and again: another leader keeps nobody from working."""
        while True:
            with suppress(LeadershipLost):
                await self._elector.lead(elected)
            log.info("another replica leads")
            self._assigner.forget()

    def assign(self, now: float) -> None:
        """If we lead, have the next assignment written."""
        if not self._elector.leading or self._proposal is not None:
            return
        self._proposal = self._assigner.next(now, unique())
        if self._proposal:
            self._news.set()

    async def _write(self) -> NoReturn:
        """Write what is to be assigned, whenever there is something."""
        failures = 0
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            try:
                if self._proposal is not None:
                    await self._send(self._proposal)
                failures = 0
            except KubeError as error:
                self._assigner.forget()
                failures += 1
                seconds = self._backoff(failures, error)
                log.warning("replicas are not told", error=str(error), seconds=round(seconds, 1))
                await anyio.sleep(seconds)
            self._proposal = None

    async def _send(self, proposal: Proposal) -> None:
        """Write an assignment in the place of the one that was seen. Raises KubeError."""
        self._assigner.sending(proposal, self._clock.elapsed())
        seen, wall = proposal.seen, micro_time(self._clock.now())
        place = {"name": self._members.assignment_lease, "namespace": self._namespace}
        exact = {"uid": seen.uid, "resourceVersion": seen.version} if seen else None
        told = {ASSIGNMENT: assignment.text(proposal.assignment)}
        meta = {**place, **self._lease_metadata, "annotations": told}
        spec = {"holderIdentity": self._members.own, "acquireTime": wall, "renewTime": wall}
        seconds = self._duration / 3
        try:
            body = {"metadata": meta | (exact or {"resourceVersion": "1"}), "spec": spec}
            await self._fenced.apply(LEASES, body, manager=self._manager, timeout=seconds)
        except Conflict:
            # Somebody else holds its fields: it is made anew, as a Lease is that has expired.
            if seen is None or not await self._fenced.delete(
                LEASES, place["name"], self._namespace, uid=seen.uid, version=seen.version
            ):
                raise
            raise Stale("the assignment was somebody else's: removed") from None
        log.info(
            "assigned",
            why=proposal.why,
            epoch=proposal.assignment.epoch,
            replicas=len(proposal.assignment.members),
            parts=len(proposal.assignment.parts),
        )

    async def _delete_expired(self) -> NoReturn:
        """Remove the Leases of members that are long gone."""
        failures = 0
        while True:
            failed: KubeError | None = None
            for each in self._members.superfluous() if self._elector.leading else ():
                uid, version = each.version[:2]
                try:
                    await self._fenced.delete(
                        LEASES, each.name, self._namespace, uid=uid, version=version
                    )
                except KubeError as error:
                    failed = error
            failures = failures + 1 if failed else 0
            if failed:
                log.warning("leases of former replicas are not removed", error=str(failed))
            wait = self._backoff(failures, failed) if failed else 0.0
            await anyio.sleep(max(wait, PAUSE))
