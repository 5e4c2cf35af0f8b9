"""Sharding: one replica of many, each of which serves a share of the namespaces.

What keeps two from writing for one slice runs in the election's thread: the renewal of our Lease,
the watch of all Leases, the leader's writes. The runners are on the main loop; the thread tells
them what to watch, to begin and to drain, and they tell it when that is done.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.kube.client import connect
from hedgerow.kube.errors import KubeError
from hedgerow.process.coordinator import TURN, Coordinator
from hedgerow.process.executor import Executor
from hedgerow.process.leadership import until_lost
from hedgerow.runtime.clock import unique
from hedgerow.runtime.leaderelection.elector import LeadershipLost
from hedgerow.runtime.leaderelection.record import LEASES
from hedgerow.runtime.leaderelection.thread import STOP_TIMEOUT, own_thread
from hedgerow.serving.loop_latency import Pulse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.cluster import Cluster
    from hedgerow.process.stopping import Stop
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.metrics import Meters
    from hedgerow.serving.health import Health
    from hedgerow.settings import Settings

HAND_OVER = 10.0
"""Seconds, and at most half of the grace period, for handing over before a clean stop."""
REQUESTS_AT_ONCE = 6
"""One for each task, so that a renewal never waits."""

log = structlog.get_logger(__name__)


def new_name(settings: Settings) -> str:
    """Return the name of a replica, and of its Lease: it is never used again."""
    return f"{settings.installation.base}-{unique()[:8]}{unique()[:4]}"


async def _selects(cluster: Cluster, settings: Settings) -> bool:
    """Return whether the API server selects the objects of slices itself."""
    try:
        return await cluster.selects(LEASES, settings.system_namespace)
    except KubeError as error:
        log.warning("cannot tell whether the server selects", error=str(error))
        return False


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
            thread.posting(act)()

        part = _coordinating(settings, clock, meters, name, silent=silent, post=post)
        async with thread.entered(part) as coordinator:
            meters.leads(lambda: coordinator.elector.leading)
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
            pulse = Pulse(clock)
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
        concurrency=REQUESTS_AT_ONCE,
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
    while lapsed < STOP_TIMEOUT:
        await anyio.sleep(TURN)
        may = coordinator.remaining() > 0 or not coordinator.member.is_serving
        lapsed = 0.0 if may else lapsed + TURN
    raise LeadershipLost("the lease was not renewed, or a replica leads that shares nothing")
