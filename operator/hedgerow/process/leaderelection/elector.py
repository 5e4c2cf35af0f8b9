"""Elector: acquires, renews and releases the Lease; each write of it is an unforced apply.

`process.leadership` runs it in a thread of its own.
"""

from __future__ import annotations

import math
import socket
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.backoff import backoff
from hedgerow.errors import OneLineError
from hedgerow.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    Missing,
    Stale,
    Unauthenticated,
)
from hedgerow.process.leaderelection.record import LEASES, Election, Read, Remove, Take, Wait, seen
from hedgerow.runtime.clock import unique

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.kube.object_api import ObjectApi
    from hedgerow.process.leaderelection.record import Timing
    from hedgerow.runtime.clock import Clock
    from hedgerow_schemas.base import Object

RELEASE = 2.0
"""Seconds for releasing the Lease."""
SOON = 0.01
"""Seconds after which a Lease that has run out is taken: not a moment too early."""
_ATTEMPTS = 3
_RIVALS = (Stale, AlreadyExists)
_REFUSALS = (Forbidden, Invalid, Missing, Unauthenticated)
"""Answers that stay the same until somebody changes rights, policies, namespaces or accounts."""

log = structlog.get_logger(__name__)


class LeadershipLost(OneLineError):  # noqa: N818 - named for the situation
    """Somebody else leads, or may lead: nothing may be written any more. The message says why."""


def identity() -> str:
    """Return a new, unique name for a candidate; it begins with the host name (the pod's)."""
    return f"{socket.gethostname()}_{unique()}"


class Term:
    """The state that the election's thread and the working loop share: until when we lead.

    All are plain values, each written by one of the two and read by the other.
    """

    def __init__(self, clock: Clock, margin: float) -> None:
        self._clock, self._margin = clock, margin
        self.until = -math.inf
        """The instant of `Clock.elapsed` until which we lead; only the thread sets it."""
        self.refusal = ""
        """Why the Lease may not be written; only the thread sets it."""
        self._unanswered = -math.inf

    def remaining(self) -> float:
        """Return the seconds for which writes are permitted; 0 if we do not lead."""
        return max(0.0, self.until - self._clock.elapsed())

    def check(self) -> str:
        """Return why we could not lead: the Lease is refused to us; empty if not, or we lead."""
        return "" if self.remaining() else self.refusal

    def unanswered(self) -> None:
        """Take in that a write has no answer: it may still arrive, so nobody else may write yet."""
        self._unanswered = self._clock.elapsed()

    def may_arrive(self) -> bool:
        """Return whether such a write may still be carried out; all writers have ended before."""
        return self._clock.elapsed() < self._unanswered + self._margin


class Elector:
    """One candidate for one Lease.

    `cluster` is not fenced, and best has a connection of its own: a renewal must not wait behind
    other requests. Standing by costs one small GET every half `timing.retry` seconds, and no watch.
    So a released Lease is taken within about a second, with rights on one name only.

    `lead` and `release` are called on one loop, which may be in a thread of its own; others know it
    by its `term`. While `gives_way` returns True, a Lease that may be taken is left to other
    candidates for its duration; a renewal is not.
    """

    def __init__(
        self,
        cluster: ObjectApi,
        clock: Clock,
        term: Term,
        *,
        name: str,
        namespace: str,
        identity: str,
        manager: str,
        timing: Timing,
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self._cluster, self._clock, self._term, self._timing = cluster, clock, term, timing
        self._name, self._namespace, self._manager = name, namespace, manager
        self._gives_way = gives_way
        self._left_since = math.inf
        """Since when a Lease that may be taken is left to others."""
        self._election = Election(identity, timing)
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)
        self._failures = 0
        self._trouble = ""
        self._holder: str | None = None

    @property
    def leading(self) -> bool:
        """Whether we lead at this moment."""
        return self._term.remaining() > 0

    async def lead(self, gained: Callable[[], object]) -> NoReturn:
        """Gain the Lease, call `gained`, and hold the Lease. Raises LeadershipLost."""
        await self.gain()
        gained()
        await self.hold()

    async def gain(self) -> None:
        """Wait until we lead, however long it takes, through all errors of the server."""
        while True:
            self._election.doubt()
            pause = await self._turn()
            if self.leading:
                self._log.info("leading")
                return
            left = self._election.free_in(self._clock.elapsed())
            await anyio.sleep(min(pause, left + SOON) if left and not self._failures else pause)

    async def hold(self) -> NoReturn:
        """Renew the Lease. Raises LeadershipLost once it has expired or another holds it."""
        pause = self._pause()
        while True:
            await anyio.sleep(min(pause, self._term.remaining()))
            if self.leading:
                pause = await self._turn()
            if not self.leading:
                raise LeadershipLost(self._why())

    async def release(self) -> None:
        """Stop leading at once, and release the Lease within RELEASE seconds; raises nothing.

        If a write is still unanswered, let the Lease expire instead of releasing it. So no other
        replica writes before that write has arrived. A write counts as unanswered for as long as
        the Lease's duration exceeds its deadline.
        """
        self._give_up()
        if self._term.may_arrive():
            self._log.warning("lease not released", error="a write has not been answered yet")
            return
        with anyio.move_on_after(RELEASE, shield=True) as scope:
            try:
                await self._write_release()
            except KubeError as error:
                self._log.warning("lease not released", error=str(error))
        if scope.cancelled_caught:
            self._log.warning("lease not released", error=f"no answer in {RELEASE:.0f} s")

    async def _write_release(self) -> None:
        for _ in range(_ATTEMPTS):
            if not self._election.certain:
                await self._read_lease()
            step = self._give_up()
            if step is None:
                return
            self._election.doubt()
            try:
                await self._apply(step)
            except Stale:
                continue
            self._log.info("lease released")
            return

    async def _turn(self) -> float:
        """Send the requests that are due now; return the seconds until the next turn."""
        try:
            await self._steps()
        except KubeError as error:
            self._failures += 1
            self._log_failure(error)
            if isinstance(error, _REFUSALS):
                lease = f"{self._namespace}/{self._name}"
                self._term.refusal = f"Lease {lease} may not be written: {error}"
            return self._pause(error.after)
        if self._trouble:
            self._log.info("lease recovered")
        self._failures, self._trouble, self._term.refusal = 0, "", ""
        return self._pause()

    async def _steps(self) -> None:
        """Read if needed, then write once; after a deletion the Lease is created at once."""
        step = self._next()
        if isinstance(step, Read):
            await self._read_lease()
            step = self._next()
        if isinstance(step, Remove):
            await self._remove(step)
            step = self._next()
        if isinstance(step, Take) and (self.leading or not self._leaves_it()):
            await self._apply(step)
        elif isinstance(step, Wait):
            self._left_since = math.inf
            self._log_holder(step.holder)

    def _leaves_it(self) -> bool:
        """Return whether not to take the Lease now, though it may be taken."""
        if not self._gives_way():
            return False
        now = self._clock.elapsed()
        self._left_since = min(self._left_since, now)
        return now < self._left_since + self._timing.duration

    async def _read_lease(self) -> None:
        lease = await self._cluster.read_object(
            LEASES, self._name, self._namespace, timeout=self._timeout()
        )
        self._learn(lease)

    async def _apply(self, step: Take) -> None:
        meta: Object = {"name": self._name, "namespace": self._namespace, **step.meta}
        body: Object = {"metadata": meta, "spec": step.spec}
        try:
            applied = await self._cluster.apply(
                LEASES, body, manager=self._manager, timeout=self._timeout()
            )
        except Conflict:
            self._election.contested()
            raise
        self._learn(applied.object)

    async def _remove(self, step: Remove) -> None:
        """Delete an expired Lease whose fields another field manager holds."""
        if await self._cluster.delete(
            LEASES,
            self._name,
            self._namespace,
            uid=step.uid,
            version=step.version,
            timeout=self._timeout(),
        ):
            self._election.removed()
            self._log.info("deleted the expired lease of another field manager")

    def _learn(self, lease: Object | None) -> None:
        """Take in the Lease as the server has it."""
        self._election.take_in(seen(lease), self._clock.elapsed())
        self._term.until = self._election.until

    def _give_up(self) -> Take | None:
        """Stop leading at once; return the apply that releases the Lease, or None if not held."""
        step = self._election.give_up()
        self._term.until = self._election.until
        return step

    def _next(self) -> Read | Take | Remove | Wait:
        return self._election.next(self._clock.elapsed(), self._clock.now())

    def _timeout(self) -> float:
        """Return a third of the deadline: after a lost response there is time for another try."""
        third = self._timing.deadline / 3
        return min(third, self._term.remaining() or third)

    def _pause(self, after: float = 0.0) -> float:
        """Return the seconds until the next turn; fewer for a leader after failures."""
        draw, retry = self._clock.jitter(), self._timing.retry
        wait = backoff(self._failures, draw) if self._failures else 0.0
        if self.leading:
            usual = min(wait, retry) if self._failures else retry * (0.8 + 0.2 * draw)
        else:
            usual = max(retry / 2 * (0.8 + 0.4 * draw), min(wait, self._timing.duration))
        return max(usual, after * (1 + draw / 4))

    def _log_failure(self, error: KubeError) -> None:
        # Once is a race with another candidate: the next read shows who won. Twice in a row is not.
        if isinstance(error, _RIVALS) and self._failures == 1:
            self._log.debug("lease changed meanwhile", error=str(error))
            return
        said = f"{type(error).__name__}: {error}"
        if said != self._trouble:
            self._log.warning("lease in trouble", error=str(error))
        self._trouble = said

    def _log_holder(self, holder: str) -> None:
        if holder != self._holder:
            self._log.info("standing by", holder=holder or "nobody that we know of")
        self._holder = holder

    def _why(self) -> str:
        lease = self._election.seen
        if lease and lease.holder != self._election.identity:
            return f"the lease is held by {lease.holder or 'nobody'} now"
        why = f" ({self._trouble})" if self._trouble else ""
        return f"the lease was not renewed for {self._timing.deadline:g} s{why}"
