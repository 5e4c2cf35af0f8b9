"""Leadership: whether this process leads, stands by, or works without leader election.

The Lease is renewed in a thread of its own (`led`), also while the main event loop is busy.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
import structlog

from hedgerow.backoff import backoff
from hedgerow.errors import OneLineError
from hedgerow.kube.client import connect
from hedgerow.kube.errors import Forbidden, KubeError, Missing
from hedgerow.process.leaderelection.divisions import Divisions, at_work, by_name
from hedgerow.process.leaderelection.elector import SOON, Elector, LeadershipLost, Term, identity
from hedgerow.process.leaderelection.record import LEASES, Timing, seen
from hedgerow.process.leaderelection.thread import own_thread, posting
from hedgerow.serving.loop_latency import Pulse
from hedgerow.shard import is_lease_of, lease_name
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Mapping

    from hedgerow.kube.cluster import Cluster
    from hedgerow.process.stopping import Stop
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.meters import Meters
    from hedgerow.serving.health import Health
    from hedgerow.settings import Settings

HEARD = 2.0
"""Seconds that the thread has to say why the Lease has expired."""

log = structlog.get_logger(__name__)


class AnotherOperatorError(OneLineError):
    """Another operator works on the same resources; the text has the remedy, in one line."""


async def refuse_another_operator(settings: Settings, cluster: Cluster, clock: Clock) -> None:
    """Raise AnotherOperatorError if an elected operator of this installation is at work.

    It reads the Leases once. With leader election it does nothing: `led` waits. Raises KubeError.
    """
    if settings.leader_elect:
        return
    base, namespace = settings.installation.base, settings.system_namespace
    worker = await elected_at_work(cluster, clock, base, namespace)
    if worker:
        raise AnotherOperatorError(
            f"{worker}: stop it, stand by with --leader-elect, or choose an --instance of its own"
        )


async def elected_at_work(cluster: Cluster, clock: Clock, base: str, namespace: str = "") -> str:
    """Return who is at work by the Leases of an installation, read once; empty if nobody is.

    An operator without leader election is not seen. Without a namespace the Leases may be in any.
    Without the right to list them, log a warning and return nothing. Raises KubeError.
    """
    try:
        leases = map(View, (await cluster.list(LEASES, namespace)).items)
    except (Forbidden, Missing) as error:
        _warn(namespace or "of all namespaces", error)
        return ""
    ours = {
        f"{lease.namespace}/{lease.name}": read
        for lease in leases
        if is_lease_of(base, lease.name) and (read := seen(lease.raw))
    }
    holder = at_work(ours, clock.now(), cluster.server_time())
    if holder is None:
        return ""
    name, lease = holder
    return f"{lease.holder} is at work (Lease {name}, renewed {lease.renewed})"


def _warn(namespace: str, error: KubeError) -> None:
    log.warning(
        "cannot tell whether another operator is at work",
        leases=namespace,
        error=str(error),
        remedy="make sure that no other operator manages the same resources",
    )


async def until_alone(
    cluster: Cluster,
    clock: Clock,
    divisions: Divisions,
    *,
    namespace: str,
    timing: Timing,
    elected: anyio.Event,
) -> None:
    """Return once we are elected, and no operator works that divides the namespaces in another way.

    It reads the Leases now and then before we are elected as well: a Lease that nobody has renewed
    since then need not be waited for. Without the right to list them, it only logs a warning.
    """
    others = _OtherDivisions(cluster, clock, divisions, namespace, timing)
    while not elected.is_set():
        pause = await others.read_leases()
        with anyio.move_on_after(max(pause, timing.duration)):
            await elected.wait()
    pause = await others.read_leases(say=True)
    while pause:
        await anyio.sleep(pause)
        pause = await others.read_leases(say=True)


class _OtherDivisions:
    """Reads the Leases of other divisions, and logs who keeps us from working."""

    def __init__(
        self, cluster: Cluster, clock: Clock, divisions: Divisions, namespace: str, timing: Timing
    ) -> None:
        self._cluster, self._clock, self._divisions = cluster, clock, divisions
        self._namespace, self._timing = namespace, timing
        self._failures = 0
        self._said = ""

    async def read_leases(self, *, say: bool = False) -> float:
        """Read the Leases; return the seconds until the next read, 0 if nobody works.

        Also 0 without the right to list them.
        """
        try:
            leases = by_name((await self._cluster.list(LEASES, self._namespace)).items)
        except (Forbidden, Missing) as error:
            self._say_once("no right", partial(_warn, self._namespace, error))
            return 0.0
        except KubeError as error:
            self._failures += 1
            pause = backoff(self._failures, self._clock.jitter(), error.after)
            log.warning("leases are not listed", error=str(error), seconds=round(pause, 1))
            return pause
        self._failures, now = 0, self._clock.elapsed()
        self._divisions.take_in(leases, now)
        held = self._divisions.held(now)
        if held and say:
            self._say_once(str(held), partial(self._waiting, held))
        draw = 0.8 + 0.2 * self._clock.jitter()
        return min(self._timing.retry * draw, self._divisions.free_in(now) + SOON) if held else 0.0

    def _waiting(self, held: Mapping[str, str]) -> None:
        first = next(iter(held))
        log.info(
            "waiting for operators that divide the namespaces otherwise",
            lease=f"{self._namespace}/{first}",
            holder=held[first],
            more=len(held) - 1,
        )

    def _say_once(self, what: str, say: Callable[[], object]) -> None:
        if what != self._said:
            self._said = what
            say()


@asynccontextmanager
async def led(
    settings: Settings,
    cluster: Cluster,
    clock: Clock,
    stop: Stop,
    meters: Meters,
    *,
    health: Health,
    gives_way: Callable[[], bool],
) -> AsyncGenerator[Cluster | None]:
    """Yield the cluster to write to, once we lead; None if asked to stop before that.

    Every write to it checks that we still lead. If we no longer lead, LeadershipLost is raised in a
    group; but if the process is already stopping, the body is only cancelled. In the end the Lease
    is released.

    The election has a thread of its own, so that it goes on while our loop is blocked. Of `health`,
    a live check tests that the thread's own loop turns, and a ready check that the Lease is not
    refused to us. `gives_way` returns whether another candidate is to lead if there is one.
    """
    if not settings.leader_elect:
        meters.leads(lambda: True)
    if stop.asked.is_set() or not settings.leader_elect:
        yield None if stop.asked.is_set() else cluster
        return
    times = timing(settings)
    term, pulse = Term(clock, times.margin), Pulse(clock)
    elected, begun = anyio.Event(), anyio.Event()
    meters.leads(lambda: term.remaining() > 0 and begun.is_set())
    health.live.add("election", pulse.check)
    health.ready.add("lease", term.check)
    gained = posting(elected.set)
    stand = partial(_stand, settings, clock, meters, term, gives_way=gives_way, gained=gained)
    async with (
        own_thread("election", stand, pulse.beat) as errors,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(until_lost, errors, stop, tasks.cancel_scope)
        alone = partial(
            until_alone,
            cluster,
            clock,
            Divisions(settings.installation.base, settings.part, times),
            namespace=settings.system_namespace,
            timing=times,
            elected=elected,
        )
        await stop.unless_asked(alone)
        if stop.asked.is_set():
            yield None
        else:
            begun.set()
            tasks.start_soon(_run_out, term, errors)
            yield cluster.fenced(term.remaining, term.unanswered)
        tasks.cancel_scope.cancel()


async def _stand(
    settings: Settings,
    clock: Clock,
    meters: Meters,
    term: Term,
    *,
    gives_way: Callable[[], bool],
    gained: Callable[[], object],
) -> None:
    """Stand for election; release the Lease when cancelled. Raises LeadershipLost.

    If we no longer lead, the Lease is not released: the writers have not ended yet.
    """
    async with connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        user_agent=settings.installation.common_manager("lease"),
        concurrency=1,  # a connection of its own: a renewal never waits for other requests
        on_exchange=meters.exchanged,
    ) as own:
        elector = Elector(
            own,
            clock,
            term,
            name=lease_name(settings.installation.base, settings.part),
            namespace=settings.system_namespace,
            identity=identity(),
            manager=settings.installation.field_manager("lease"),
            timing=timing(settings),
            gives_way=gives_way,
        )
        try:
            await elector.lead(gained)
        except anyio.get_cancelled_exc_class():
            await elector.release()
            raise


async def until_lost(
    errors: asyncio.Queue[Exception], stop: Stop, scope: anyio.CancelScope
) -> None:
    """Raise the error that ends the election; if asked to stop, only cancel for LeadershipLost."""
    error = await errors.get()
    if not (isinstance(error, LeadershipLost) and stop.asked.is_set()):
        raise error
    log.warning("passes abandoned", error=str(error))
    scope.cancel()


async def _run_out(term: Term, errors: asyncio.Queue[Exception]) -> None:
    """Report that the Lease has expired, in case the thread hangs and does not."""
    left = term.remaining()
    while left > 0:
        await anyio.sleep(left)
        left = term.remaining()
    await anyio.sleep(HEARD)
    errors.put_nowait(LeadershipLost("the lease was not renewed: the thread that renews it hangs"))


def timing(settings: Settings) -> Timing:
    """Return the Lease's times."""
    return Timing(settings.lease_duration)


def margin(settings: Settings) -> float:
    """Return the seconds between a leader's last write and the next leader's first, or 0."""
    return timing(settings).margin if settings.leader_elect else 0
