"""Elector: whether this process leads, stands by, or works without leader election."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.errors import OneLineError
from hedgerow.kube.client import connect
from hedgerow.kube.errors import Forbidden, Missing
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.leaderelection.elector import Elector, LeadershipLost, Timing, identity
from hedgerow.runtime.leaderelection.other_leader import live_leader
from hedgerow.runtime.leaderelection.thread import STOP_TIMEOUT, own_thread
from hedgerow.serving.loop_latency import Pulse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.objects import Installation
    from hedgerow.process.stopping import Stop
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.other_leader import Leader
    from hedgerow.runtime.metrics import Meters
    from hedgerow.serving.health import Checks
    from hedgerow.settings import Settings

log = structlog.get_logger(__name__)


class AnotherOperatorError(OneLineError):
    """Another operator works on the same resources; the text says what to do in one line."""


def lease(settings: Settings) -> tuple[str, str]:
    """Return the name and the namespace of an installation's Lease."""
    return settings.installation.base, settings.system_namespace


async def refuse_another_operator(settings: Settings, cluster: Cluster, clock: Clock) -> None:
    """Raise AnotherOperatorError if a leader works on namespaces that we would watch too.

    It looks once. With leader election it does nothing: the Lease itself keeps one of the two idle.
    """
    if settings.leader_elect:
        return
    leader = await _leader(cluster, clock, lease(settings), timing(settings))
    if leader is not None and leader.works_in(settings.namespaces):
        raise AnotherOperatorError(
            f"{_at_work(leader, lease(settings))}: stop it, choose other namespaces with"
            " --namespace, or stand by with --leader-elect"
        )


async def refuse_while_at_work(
    cluster: Cluster,
    *,
    installation: Installation,
    namespaces: tuple[str, ...],
    system_namespace: str,
    clock: Clock | None = None,
) -> None:
    """Raise AnotherOperatorError if this installation's leader works on these namespaces.

    An operator without leader election is not seen. Raises KubeError.
    """
    place = installation.base, system_namespace
    leader = await _leader(cluster, clock or SystemClock(), place, Timing())
    if leader is not None and leader.works_in(namespaces):
        raise AnotherOperatorError(f"{_at_work(leader, place)}: stop it first")


async def _leader(
    cluster: Cluster, clock: Clock, place: tuple[str, str], times: Timing
) -> Leader | None:
    """Return who leads, by the Lease with that name and namespace; None if nobody does.

    Without the right to read the Lease, log a warning and return None. Raises KubeError.
    """
    name, namespace = place
    try:
        return await live_leader(cluster, clock, name=name, namespace=namespace, timing=times)
    except (Forbidden, Missing) as error:
        log.warning(
            "cannot tell whether an elected operator is at work",
            lease=f"{namespace}/{name}",
            error=str(error),
            remedy="make sure that no other operator manages the same resources",
        )
        return None


@asynccontextmanager
async def led(
    settings: Settings,
    cluster: Cluster,
    clock: Clock,
    stop: Stop,
    meters: Meters,
    *,
    silent: Callable[[], float],
    live: Checks,
    gives_way: Callable[[], bool],
) -> AsyncGenerator[Cluster | None]:
    """Yield the cluster to write to, once we lead; None if asked to stop before that.

    Every write to it checks that we still lead. If we no longer lead, LeadershipLost is raised in a
    group; but if the process is already stopping, the body is only cancelled. In the end the Lease
    is released.

    The election has a thread of its own, so that it goes on while our loop is blocked, until the
    loop has been `silent` for too many seconds. A check of `live` tests that the thread's own loop
    turns. `gives_way` returns whether another candidate is to lead if there is one.
    """
    if not settings.leader_elect:
        meters.leads(lambda: True)
        yield None if stop.asked.is_set() else cluster
        return
    async with own_thread("election") as thread, AsyncExitStack() as stack:
        candidacy = thread.entered(_candidacy(settings, clock, meters, silent, gives_way))
        leadership = await stop.unless_asked(partial(stack.enter_async_context, candidacy))
        if leadership is None:
            yield None
            return
        meters.leads(lambda: leadership.leading)
        pulse = Pulse(clock)
        live.add("election", pulse.check)
        gained = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.run, pulse.beat)
            lead = partial(leadership.lead, thread.posting(gained.set))
            lost = stop, tasks.cancel_scope
            tasks.start_soon(until_lost, partial(thread.run, lead), *lost)
            await stop.unless_asked(gained.wait)
            if leadership.was_shared:
                await stop.unless_asked(partial(_alone, timing(settings).duration))
                leadership.was_shared = stop.asked.is_set()
            if stop.asked.is_set():
                yield None
            else:
                tasks.start_soon(until_lost, partial(_run_out, leadership), *lost)
                yield cluster.fenced(leadership.remaining, leadership.unanswered)
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _candidacy(
    settings: Settings,
    clock: Clock,
    meters: Meters,
    silent: Callable[[], float],
    gives_way: Callable[[], bool],
) -> AsyncGenerator[Elector]:
    """Yield our candidate in the election; in the end the Lease is released.

    While others may still work that shared the work, it must expire instead: the label that says so
    is gone already, and whoever found it released would write at once.
    """
    async with connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        user_agent=settings.installation.common_manager("lease"),
        concurrency=1,  # a connection of its own: a renewal never waits for other requests
        on_exchange=meters.exchanged,
    ) as own:
        name, namespace = lease(settings)
        leadership = Elector(
            own,
            clock,
            name=name,
            namespace=namespace,
            identity=identity(),
            manager=settings.installation.field_manager("lease"),
            timing=timing(settings),
            namespaces=settings.namespaces,
            silent=silent,
            gives_way=gives_way,
        )
        try:
            yield leadership
        finally:
            if leadership.was_shared:
                log.warning("lease not released", error="replicas that shared the work may write")
            else:
                await leadership.release()


async def _alone(seconds: float) -> None:
    """Wait until no replica works any more of those that shared the work: they see who leads."""
    log.warning("waiting for replicas that shared the work", seconds=seconds)
    await anyio.sleep(seconds)


async def until_lost(
    act: Callable[[], Awaitable[object]], stop: Stop, scope: anyio.CancelScope
) -> None:
    """Act; raise LeadershipLost, but if the process is stopping already, only cancel a scope."""
    try:
        await act()
    except LeadershipLost as error:
        if not stop.asked.is_set():
            raise
        log.warning("passes abandoned", error=str(error))
        scope.cancel()


async def _run_out(leadership: Elector) -> NoReturn:
    """Raise LeadershipLost once the Lease has expired, in case the thread hangs and does not."""
    left = leadership.remaining()
    while left > 0:
        await anyio.sleep(left)
        left = leadership.remaining()
    await anyio.sleep(STOP_TIMEOUT)
    raise LeadershipLost("the lease was not renewed: the thread that renews it hangs")


def timing(settings: Settings) -> Timing:
    """Return the Lease's times."""
    return Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)


def margin(settings: Settings) -> float:
    """Return the seconds between a leader's last write and the next leader's first, or 0."""
    times = timing(settings)
    return times.duration - times.deadline if settings.leader_elect else 0


def _at_work(leader: Leader, place: tuple[str, str]) -> str:
    where = f"in {', '.join(leader.namespaces)}" if leader.namespaces else "in all namespaces"
    name, namespace = place
    return f"{leader.identity} is at work {where} (Lease {namespace}/{name})"
