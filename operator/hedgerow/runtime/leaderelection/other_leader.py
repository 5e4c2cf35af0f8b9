"""Other leader: whether an elected operator holds the Lease and renews it, by a single look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import structlog
from msgspec import Struct

from hedgerow.runtime.leaderelection.record import LEASES, Seen, seen

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.record import Timing

log = structlog.get_logger(__name__)


class Leader(Struct, frozen=True):
    """The leader, and the namespaces that it is limited to; none mean all."""

    identity: str
    namespaces: tuple[str, ...]

    def works_in(self, namespaces: tuple[str, ...]) -> bool:
        """Return whether it works in any of these namespaces; none mean all."""
        if not self.namespaces or not namespaces:
            return True
        return not set(self.namespaces).isdisjoint(namespaces)


async def live_leader(
    cluster: Cluster, clock: Clock, *, name: str, namespace: str, timing: Timing
) -> Leader | None:
    """Return the Lease's holder once it renews; None if it does not for the Lease's duration.

    Also None without a Lease or a holder. Only our own clock counts. Raises Forbidden, Missing and
    other KubeErrors.
    """
    first: Seen | None = None
    until = 0.0
    while True:
        found = seen(await cluster.read(LEASES, name, namespace))
        now = clock.elapsed()
        if found is None or not found.holder:
            return None
        if first is None:
            seconds = found.seconds or timing.seconds
            first, until = found, now + seconds
            log.info(
                "waiting to see whether the leader still works",
                lease=f"{namespace}/{name}",
                holder=found.holder,
                at_most=f"{seconds} s",
            )
        elif (found.uid, found.holder, found.renewed) != (first.uid, first.holder, first.renewed):
            return Leader(found.holder, found.namespaces)
        if now >= until:
            return None
        await anyio.sleep(timing.retry / 2 * (0.8 + 0.4 * clock.jitter()))
