"""Leading: the part that a process has among others of its installation."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.core.meta import Installation
from hedgerow.kube.client import connect
from hedgerow.runtime.leader import live_leader
from hedgerow.runtime.lease import Leadership, LeadershipLost, Timing, identity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from hedgerow.kube.client import Cluster
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leader import Leader
    from hedgerow.runtime.metrics import Meters
    from hedgerow.settings import Settings
    from hedgerow.stopping import Stop

log = structlog.get_logger(__name__)


class CompanyError(Exception):
    """Another operator is at work on the same resources; one line that says what to do."""


def lease(settings: Settings) -> tuple[str, str]:
    """Give the name and the namespace of an installation's Lease."""
    base = Installation(settings.instance).field_manager("")
    return base, settings.system_namespace


async def refuse_company(settings: Settings, cluster: Cluster, clock: Clock) -> None:
    """Raise CompanyError when a leader is at work on namespaces that we would look at too.

    Whoever elects a leader has no need of it: the Lease itself keeps one of them idle.
    """
    if settings.leader_elect:
        return
    name, namespace = lease(settings)
    leader = await live_leader(
        cluster, clock, name=name, namespace=namespace, timing=timing(settings)
    )
    if leader is not None and _meet(leader.namespaces, settings.namespaces):
        raise CompanyError(_told(leader, f"{namespace}/{name}"))


@asynccontextmanager
async def led(
    settings: Settings, cluster: Cluster, clock: Clock, stop: Stop, meters: Meters
) -> AsyncGenerator[Cluster | None]:
    """Give the cluster to write to, once we lead; None when we are asked to stop before that.

    Every write to it asks whether we still do. Raises LeadershipLost, in a group, when we no
    longer do; asked to stop already, what is done under it is cut off, and that is all. In the end
    the lease is given up.
    """
    if not settings.leader_elect:
        meters.leads(lambda: True)
        yield cluster
        return
    async with connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        user_agent="hedgerow-lease",
        concurrency=1,  # a connection of its own: a renewal waits for nobody
        on_exchange=meters.exchanged,
    ) as own:
        name, namespace = lease(settings)
        leadership = Leadership(
            own,
            clock,
            name=name,
            namespace=namespace,
            identity=identity(),
            manager=Installation(settings.instance).field_manager("lease"),
            timing=timing(settings),
            namespaces=settings.namespaces,
        )
        meters.leads(lambda: leadership.leading)
        try:
            async with anyio.create_task_group() as tasks:
                if await _gained(leadership, stop):
                    tasks.start_soon(_held, leadership, stop, tasks.cancel_scope)
                    yield cluster.fenced(leadership.remaining, leadership.unanswered)
                else:
                    yield None
                tasks.cancel_scope.cancel()
        finally:
            await leadership.release()


def timing(settings: Settings) -> Timing:
    """Give the lease's times."""
    return Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)


def margin(settings: Settings) -> float:
    """Give the seconds between a leader's last write and the first one of another; 0 for none."""
    times = timing(settings)
    return times.duration - times.deadline if settings.leader_elect else 0


async def _gained(leadership: Leadership, stop: Stop) -> bool:
    await stop.unless_asked(leadership.gain)
    return not stop.asked.is_set()


async def _held(leadership: Leadership, stop: Stop, until: anyio.CancelScope) -> None:
    try:
        await leadership.hold()
    except LeadershipLost as error:
        if not stop.asked.is_set():
            raise
        log.warning("passes abandoned", error=str(error))
        until.cancel()


def _meet(theirs: Iterable[str], ours: Iterable[str]) -> bool:
    """Tell whether two choices of namespaces, none for all of them, have one in common."""
    return not theirs or not ours or not set(theirs).isdisjoint(ours)


def _told(leader: Leader, place: str) -> str:
    where = f"in {', '.join(leader.namespaces)}" if leader.namespaces else "in all namespaces"
    return (
        f"{leader.identity} is at work {where} (Lease {place}): stop it, choose other namespaces"
        " with --namespace or another installation with --instance, or stand by with"
        " --leader-elect"
    )
