"""Other leader: whether another process leads, seen from a Lease that keeps changing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.runtime.leaderelection.record import LEASES, Seen, seen

if TYPE_CHECKING:
    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.record import Timing

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader, the namespaces that it is limited to (none: all), and since when it leads."""

    identity: str
    namespaces: tuple[str, ...]
    since: datetime | None


async def live_leader(
    cluster: Cluster, clock: Clock, *, name: str, namespace: str, timing: Timing
) -> Leader | None:
    """Return the Lease's holder once it renews; None if it does not for the Lease's duration.

    Also None without a Lease, without a holder, or without the right to read it. Raises KubeError.
    """
    try:
        return await proved_leader(cluster, clock, name=name, namespace=namespace, timing=timing)
    except (Forbidden, Missing) as error:
        remedy = "make sure that no other operator is at work on the same"
        log.warning(
            "lease not readable", lease=f"{namespace}/{name}", error=str(error), remedy=remedy
        )
        return None


async def proved_leader(
    cluster: Cluster, clock: Clock, *, name: str, namespace: str, timing: Timing
) -> Leader | None:
    """Return the same as `live_leader`, but raise Forbidden or Missing if reading is refused."""
    first: Seen | None = None
    until = 0.0
    while True:
        found = seen(await cluster.read(LEASES, name, namespace))
        now = clock.elapsed()
        if found is None or not found.holder:
            return None
        if first is None:
            first, until = found, now + (found.seconds or timing.seconds)
        elif (found.uid, found.holder, found.renewed) != (first.uid, first.holder, first.renewed):
            return Leader(found.holder, found.namespaces, _instant(found.acquired))
        if now >= until:
            return None
        await anyio.sleep(timing.retry / 2 * (0.8 + 0.4 * clock.jitter()))


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
