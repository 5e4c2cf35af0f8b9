"""Elector: acquires, renews and releases the Lease; each write of it is an unforced apply."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.kube.errors import AlreadyExists, Conflict, KubeError, Stale
from hedgerow.kube.retry import backoff
from hedgerow.runtime.clock import unique
from hedgerow.runtime.leaderelection.record import (
    LEASES,
    NAMESPACES,
    Election,
    Look,
    Remove,
    Take,
    Timing,
    Wait,
    seen,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow_schemas.base import Object

__all__ = ["Leadership", "LeadershipLost", "Timing", "identity"]

RELEASE = 2.0
"""Seconds for giving the lease up."""
PATIENCE = 60.0
"""Seconds: the longest that a server may put us off; nobody leads meanwhile."""
DEAD = 60.0
"""Seconds: a loop that has not turned for so long is not waited for any more: see ADR 22."""
_ATTEMPTS = 3
_RIVALS = (Stale, AlreadyExists)

log = structlog.get_logger(__name__)


class LeadershipLost(Exception):  # noqa: N818 - named for the situation
    """Somebody else leads, or may: nothing must be written any more. The message says why."""

    explains_itself = True


def identity() -> str:
    """Return a new, unique name for a candidate; it begins with the host's, which is the pod's."""
    return f"{socket.gethostname()}_{unique()}"


def _turns() -> float:
    """Return the silence of a loop that turns."""
    return 0.0


class Leadership:
    """One candidate's part in one Lease.

    `cluster` is the unfenced one, best with a connection of its own: a renewal must not wait behind
    other requests. Standing by costs one small GET every half `timing.retry`, and no watch: so that
    a lease that was given up is taken within about a second, with rights on one name only.

    `lead` and `release` belong to one loop, which may be in a thread of its own; `remaining`,
    `leading` and `unanswered` to whoever writes: each reads or sets one number, which is whole at
    any time. `silent` gives the seconds for which the loop of those who write has not turned. After
    DEAD of them no lease is taken or renewed, or nobody would ever take the place of a process that
    does nothing else any more.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        name: str,
        namespace: str,
        identity: str,
        manager: str,
        timing: Timing,
        namespaces: tuple[str, ...] = (),
        silent: Callable[[], float] = _turns,
    ) -> None:
        self._cluster, self._clock, self._timing = cluster, clock, timing
        self._silent = silent
        self._name, self._namespace, self._manager = name, namespace, manager
        self._namespaces = ",".join(sorted(set(namespaces)))
        self._election = Election(identity, timing)
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)
        self._failures = 0
        self._trouble = ""
        self._holder: str | None = None
        self._unanswered = float("-inf")

    def unanswered(self) -> None:
        """Note that a write of ours may be carried out yet: nobody is to lead before it is over.

        Whoever writes has to have ended before `release` is called, so that it knows of all.
        """
        self._unanswered = self._clock.elapsed()

    def remaining(self) -> float:
        """Return the seconds for which writes are permitted; 0 when we do not lead."""
        return self._election.remaining(self._clock.elapsed())

    @property
    def leading(self) -> bool:
        """Whether we lead at this moment."""
        return self.remaining() > 0

    async def lead(self, gained: Callable[[], object]) -> NoReturn:
        """Gain the lease, tell so, and hold it; raises LeadershipLost."""
        await self.gain()
        gained()
        await self.hold()

    async def gain(self) -> None:
        """Wait until we lead, as long as it takes, whatever the server answers meanwhile."""
        while True:
            self._election.doubt()
            pause = self._pause() if self._is_dead() else await self._turn()
            if self.leading:
                self._log.info("leading")
                return
            await anyio.sleep(pause)

    async def hold(self) -> NoReturn:
        """Renew the lease; raises LeadershipLost as soon as it is another's, or has run out."""
        pause = self._pause()
        while True:
            await anyio.sleep(min(pause, self.remaining()))
            if self.leading:
                self._leave_if_dead()
                pause = await self._turn()
            if not self.leading:
                raise LeadershipLost(self._why())

    async def release(self) -> None:
        """Stop leading at once, and tell the others so, within RELEASE seconds; raises nothing.

        They are not told while a write is unanswered, as long as the lease outlasts the deadline
        for: its expiry is what keeps them from writing before that one has arrived.
        """
        self._election.give_up()
        margin = self._timing.duration - self._timing.deadline
        if self._clock.elapsed() - self._unanswered < margin:
            self._log.warning("lease not released", error="a write has not been answered yet")
            return
        with anyio.move_on_after(RELEASE, shield=True) as scope:
            try:
                await self._tell()
            except KubeError as error:
                self._log.warning("lease not released", error=str(error))
        if scope.cancelled_caught:
            self._log.warning("lease not released", error=f"no answer in {RELEASE:.0f} s")

    def _is_dead(self) -> bool:
        """Return whether nobody would write, though we led."""
        return self._silent() >= DEAD

    def _leave_if_dead(self) -> None:
        """Raise LeadershipLost, and permit nothing more, when nobody writes; nobody is told.

        What was sent before the loop stood still may be unanswered, and nobody can say so: the
        lease has to run out.
        """
        if not self._is_dead():
            return
        self._election.give_up()
        why = f"the event loop has not turned for {self._silent():.0f} s"
        self._log.error("leading no longer", error=why)  # the loop that would say so stands still
        raise LeadershipLost(why)

    async def _tell(self) -> None:
        for _ in range(_ATTEMPTS):
            if not self._election.certain:
                await self._look()
            step = self._election.give_up()
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
        """Ask what is to be asked now; give the seconds until the next turn."""
        try:
            await self._steps()
        except KubeError as error:
            self._failures += 1
            self._hear(error)
            return self._pause(error.after)
        if self._trouble:
            self._log.info("lease recovered")
        self._failures, self._trouble = 0, ""
        return self._pause()

    async def _steps(self) -> None:
        """Read if need be, then write once; between deleting and creating no time is lost."""
        step = self._next()
        if isinstance(step, Look):
            await self._look()
            step = self._next()
        if isinstance(step, Remove):
            await self._remove(step)
            step = self._next()
        if isinstance(step, Take):
            await self._apply(step)
        elif isinstance(step, Wait):
            self._stand_by(step.holder)

    def _next(self) -> Look | Take | Remove | Wait:
        return self._election.next(self._clock.elapsed(), self._clock.now())

    async def _look(self) -> None:
        found = await self._cluster.read(
            LEASES, self._name, self._namespace, timeout=self._timeout()
        )
        self._election.looked(seen(found), self._clock.elapsed())

    async def _apply(self, step: Take) -> None:
        meta: Object = {"name": self._name, "namespace": self._namespace, **step.meta}
        if self._namespaces:
            meta["annotations"] = {NAMESPACES: self._namespaces}
        body: Object = {"metadata": meta, "spec": step.spec}
        try:
            applied = await self._cluster.apply(
                LEASES, body, manager=self._manager, timeout=self._timeout()
            )
        except Conflict:
            self._election.contested()
            raise
        self._election.looked(seen(applied.object), self._clock.elapsed())

    async def _remove(self, step: Remove) -> None:
        """Delete an expired Lease that is not ours to apply."""
        gone = await self._cluster.delete(
            LEASES,
            self._name,
            self._namespace,
            uid=step.uid,
            version=step.version,
            timeout=self._timeout(),
        )
        if gone:
            self._log.info("deleted the expired lease of another field manager")
            self._election.removed()

    def _timeout(self) -> float:
        """Return a third of the deadline: one answer that is lost leaves time for another try."""
        third = self._timing.deadline / 3
        return min(third, self.remaining() or third)

    def _pause(self, after: float = 0.0) -> float:
        """Return the seconds until the next turn; fewer for a leader in trouble."""
        draw, retry = self._clock.jitter(), self._timing.retry
        wait = backoff(self._failures, draw) if self._failures else 0.0
        if self.leading:
            usual = min(wait, retry) if self._failures else retry * (0.8 + 0.2 * draw)
        else:
            usual = max(retry / 2 * (0.8 + 0.4 * draw), min(wait, self._timing.duration))
        return max(usual, min(after, PATIENCE) * (1 + draw / 4))

    def _hear(self, error: KubeError) -> None:
        if isinstance(error, _RIVALS):
            self._log.debug("lease changed meanwhile", error=str(error))
            return
        said = f"{type(error).__name__}: {error}"
        if said != self._trouble:
            self._log.warning("lease in trouble", error=str(error))
        self._trouble = said

    def _stand_by(self, holder: str) -> None:
        if holder != self._holder:
            self._log.info("standing by", holder=holder or "nobody that we know of")
            if holder and not self._is_covered():
                remedy = "an --instance or a --system-namespace of its own for each"
                self._log.warning("the leader looks at other namespaces", remedy=remedy)
        self._holder = holder

    def _is_covered(self) -> bool:
        """Return whether who leads looks at all that we would look at; none named means all."""
        found = self._election.seen
        theirs = set(found.namespaces) if found else set[str]()
        ours = set(filter(None, self._namespaces.split(",")))
        return not theirs or bool(ours and ours <= theirs)

    def _why(self) -> str:
        found = self._election.seen
        if found and found.holder != self._election.identity:
            return f"the lease is held by {found.holder or 'nobody'} now"
        why = f" ({self._trouble})" if self._trouble else ""
        return f"the lease was not renewed for {self._timing.deadline:g} s{why}"
