"""Leadership: whether this process leads, stands by, or works without leader election."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import anyio
import structlog

from hedgerow.kube.client import connect
from hedgerow.kube.errors import Forbidden, KubeError, Missing
from hedgerow.objects import Installation
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.leaderelection.elector import Leadership, LeadershipLost, Timing, identity
from hedgerow.runtime.leaderelection.other_leader import live_leader, proved_leader
from hedgerow.runtime.leaderelection.presence import Company, Presence
from hedgerow.runtime.leaderelection.roster import Operator, meet
from hedgerow.runtime.leaderelection.thread import PATIENCE, apart
from hedgerow.serving.loop_latency import Pulse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    from hedgerow.kube.client import Cluster
    from hedgerow.process.stopping import Stop
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.leaderelection.other_leader import Leader
    from hedgerow.runtime.metrics import Meters
    from hedgerow.serving.health import Checks
    from hedgerow.settings import Settings

BEAT = 1.0
"""Seconds between two beats of the election's loop."""

log = structlog.get_logger(__name__)


class CompanyError(Exception):
    """Another operator is at work on the same resources; one line that says what to do."""

    explains_itself = True


def lease(settings: Settings) -> tuple[str, str]:
    """Return the name and the namespace of an installation's Lease."""
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
    if leader is not None and meet(leader.namespaces, settings.namespaces):
        raise CompanyError(_led(leader, f"{namespace}/{name}"))


@asynccontextmanager
async def present(
    settings: Settings, names: tuple[str, ...], cluster: Cluster, clock: Clock, stop: Stop
) -> AsyncGenerator[None]:
    """Have others see that we are at work without an election, for as long as this lasts.

    `names` are those of the controllers. Asked to stop before they do, we are not at work, and
    nobody has to see anything.

    Raises CompanyError when another such operator is at work on the same, and, in a group, when one
    comes to work on it or a leader begins to. A leader is seen by its own Lease.
    """
    if settings.leader_elect:
        yield
        return
    ours = Operator(
        identity(),
        settings.instance,
        names,
        settings.namespaces,
        timing(settings).seconds,
    )
    _, namespace = lease(settings)
    presence = Presence(cluster, clock, ours, namespace=namespace, timing=timing(settings))
    try:
        await stop.unless_asked(partial(_alone, presence.join))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_alone, presence.keep)
            tasks.start_soon(_give_way, settings, cluster, clock)
            yield
            tasks.cancel_scope.cancel()
    finally:
        await presence.leave()


async def refuse_while_at_work(
    cluster: Cluster,
    *,
    instance: str,
    controllers: tuple[str, ...],
    namespaces: tuple[str, ...],
    system_namespace: str,
    clock: Clock | None = None,
) -> None:
    """Raise CompanyError while an operator of an installation is at work on these, KubeError.

    Whoever may not read that is told so, and not refused.
    """
    clock, times = clock or SystemClock(), Timing()
    ours = Operator("", instance, controllers, namespaces, times.seconds)
    presence = Presence(cluster, clock, ours, namespace=system_namespace, timing=times)
    base = Installation(instance).field_manager("")
    try:
        leader = await proved_leader(
            cluster, clock, name=base, namespace=system_namespace, timing=times
        )
        await presence.look()
    except Company as company:
        operator = company.operator
        told = _at_work(operator.identity, operator.namespaces, company.place)
        raise CompanyError(f"{told}: stop it first") from None
    except (Forbidden, Missing) as error:
        log.warning("whether it is at work is not known", error=str(error))
        return
    if leader is not None and meet(leader.namespaces, namespaces):
        told = _at_work(leader.identity, leader.namespaces, f"{system_namespace}/{base}")
        raise CompanyError(f"{told}: stop it first")


async def _alone(act: Callable[[], Awaitable[None]]) -> None:
    """Act; raises CompanyError for the company that it meets."""
    try:
        await act()
    except Company as company:
        raise CompanyError(_beside(company.operator, company.place)) from None


async def _give_way(settings: Settings, cluster: Cluster, clock: Clock) -> None:
    """Raise CompanyError once a leader of our installation is at work on the same."""
    times, (name, namespace) = timing(settings), lease(settings)
    while True:
        await anyio.sleep(times.duration / 3)
        try:
            leader = await proved_leader(
                cluster, clock, name=name, namespace=namespace, timing=times
            )
        except (Forbidden, Missing):
            return
        except KubeError:
            continue  # what is the matter is told by those who have work to do
        if leader is not None and meet(leader.namespaces, settings.namespaces):
            raise CompanyError(_led(leader, f"{namespace}/{name}"))


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
) -> AsyncGenerator[Cluster | None]:
    """Return the cluster to write to, once we lead; None when we were asked to stop before that.

    Every write to it asks whether we still do. Raises LeadershipLost, in a group, when we no
    longer do; asked to stop already, what is done under it is cut off, and that is all. In the end
    the lease is given up. The election has a thread of its own, so that it goes on while our loop
    is held up, until that has been `silent` for too many seconds. That the thread's own loop turns
    is one of the checks whether we are `live`.
    """
    if not settings.leader_elect:
        meters.leads(lambda: True)
        yield None if stop.asked.is_set() else cluster
        return
    async with apart("election") as thread, AsyncExitStack() as stack:
        candidacy = thread.entered(_candidacy(settings, clock, meters, silent))
        leadership = await stop.unless_asked(partial(stack.enter_async_context, candidacy))
        if leadership is None:
            yield None
            return
        meters.leads(lambda: leadership.leading)
        pulse = Pulse(clock, every=BEAT)
        live.add("election", pulse.check)
        gained = anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def until_lost(act: Callable[[], Awaitable[NoReturn]]) -> None:
                try:
                    await act()
                except LeadershipLost as error:
                    if not stop.asked.is_set():
                        raise
                    log.warning("passes abandoned", error=str(error))
                    tasks.cancel_scope.cancel()

            tasks.start_soon(thread.run, pulse.beat)
            lead = partial(leadership.lead, thread.telling(gained.set))
            tasks.start_soon(until_lost, partial(thread.run, lead))
            await stop.unless_asked(gained.wait)
            if stop.asked.is_set():
                yield None
            else:
                tasks.start_soon(until_lost, partial(_run_out, leadership))
                yield cluster.fenced(leadership.remaining, leadership.unanswered)
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _candidacy(
    settings: Settings, clock: Clock, meters: Meters, silent: Callable[[], float]
) -> AsyncGenerator[Leadership]:
    """Return our part in the election; in the end the lease is given up."""
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
            silent=silent,
        )
        try:
            yield leadership
        finally:
            await leadership.release()


async def _run_out(leadership: Leadership) -> NoReturn:
    """Raise LeadershipLost once the lease has run out, should the thread itself not do so."""
    left = leadership.remaining()
    while left > 0:
        await anyio.sleep(left)
        left = leadership.remaining()
    await anyio.sleep(PATIENCE)
    raise LeadershipLost("the lease was not renewed: the thread that renews it hangs")


def timing(settings: Settings) -> Timing:
    """Return the lease's times."""
    return Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)


def margin(settings: Settings) -> float:
    """Return the seconds between a leader's last write and the first one of another; 0 for none."""
    times = timing(settings)
    return times.duration - times.deadline if settings.leader_elect else 0


def _led(leader: Leader, place: str) -> str:
    return (
        f"{_at_work(leader.identity, leader.namespaces, place)}: stop it, choose other namespaces"
        " with --namespace, or stand by with --leader-elect"
    )


def _beside(operator: Operator, place: str) -> str:
    what = f", with {', '.join(operator.controllers)}"
    return (
        f"{_at_work(operator.identity, operator.namespaces, place, what)}: stop it, or choose"
        " other namespaces with --namespace or other controllers with --controllers"
    )


def _at_work(identity: str, namespaces: Iterable[str], place: str, what: str = "") -> str:
    where = f"in {', '.join(namespaces)}" if namespaces else "in all namespaces"
    return f"{identity} is at work {where}{what} (Lease {place})"
