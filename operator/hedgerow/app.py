"""App: one operator process, from settings to a clean stop."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import structlog

from hedgerow.kube.client import connect
from hedgerow.kube.pod import in_pod
from hedgerow.plan.too_large import readable
from hedgerow.process.api_server import ApiServerCheck
from hedgerow.process.lacking_rights import RightsCheck, tell_unserved
from hedgerow.process.leadership import led, margin, refuse_another_operator
from hedgerow.process.memory import RESERVE, memory_limit, most_for_caches
from hedgerow.process.services import Services
from hedgerow.process.stopping import GRACE, Stop
from hedgerow.registry import Registry
from hedgerow.runtime.cache.caches import build
from hedgerow.runtime.cache.door import Door
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.events.recorder import Limits
from hedgerow.runtime.logs import configure
from hedgerow.runtime.meters import Meters
from hedgerow.runtime.namespaces import Namespaces
from hedgerow.runtime.passes.observation import ResourcePlanner
from hedgerow.runtime.runner import ControllerRunner
from hedgerow.threads import tune_for_event_loop
from hedgerow.version import untested, user_agent, version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from anyio.abc import TaskStatus

    from hedgerow.contract import Controller
    from hedgerow.kube.cluster import Cluster
    from hedgerow.settings import Settings

log = structlog.get_logger(__name__)


def serve(settings: Settings, controllers: Iterable[Controller[Any]]) -> None:
    """Run controllers until SIGTERM or SIGINT, in this process; a second signal stops at once.

    Meanwhile it logs the rights and kinds that they lack. Raises the errors of `run`. Raises
    ValueError for an option of a controller that is not valid, if there is no controller, if two
    have the same name or kind, and if the settings name a controller that is not among them, or
    namespaces for one that works on all.
    """
    # First, so that an error raised here is a line of the log as well, if nobody catches it.
    configure(settings.log_format, debug=settings.debug, for_good=True)
    registry = Registry.of_all(controllers).configured(settings.options)
    unknown = [name for name in settings.controllers if name not in registry.names]
    if unknown or not registry.names:
        there_are = ", ".join(registry.names) or "none"
        raise ValueError(f"no controller is called {', '.join(unknown)}; there are: {there_are}")
    if settings.namespaces and (wide := registry.limited(settings.controllers).for_namespaces):
        raise ValueError(f"{wide} works on Namespaces, and cannot keep to some of them")
    tune_for_event_loop()
    anyio.run(run, settings, registry)


async def run(
    settings: Settings,
    registry: Registry,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run the controllers that the settings name until SIGTERM or SIGINT; a second stops at once.

    A signal cancels every step of the start. Raises ConfigError, Unreachable or Unauthenticated if
    no cluster can be reached at the start, ListenError if an address is taken, and
    AnotherOperatorError if an elected operator manages the same resources. After the start, and in
    a pod at the start too, the operator waits for its API server as long as it takes.
    Raises, in a group, LeadershipLost if another may lead; in a pod all of these are in a group.
    """
    meters, stop = Meters(version()), Stop(GRACE)
    async with stop.on_signal(), AsyncExitStack() as stack:
        await _run(settings, registry, meters, stop, stack=stack, task_status=task_status)
    log.info("stopped")


async def _run(
    settings: Settings,
    registry: Registry,
    meters: Meters,
    stop: Stop,
    *,
    stack: AsyncExitStack,
    task_status: TaskStatus[None],
) -> None:
    """Connect, serve and run the controllers; SIGTERM and SIGINT are handled by the caller."""
    clock, controllers = SystemClock(), registry.chosen(settings.controllers)
    login = connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        user_agent=user_agent(
            settings.program, f"shard {settings.shard}" if settings.shard else ""
        ),
        on_exchange=meters.exchanged,
        unacknowledged=margin(settings),
    )

    async def ask(cluster: Cluster) -> Any:
        """Return the API server's version, if no other operator is at work."""
        server = await cluster.get("/version")
        await refuse_another_operator(settings, cluster, clock)
        return server

    async def log_in() -> tuple[Cluster, Any]:
        """Return the cluster; outside a pod, where nothing is waited for, also its version."""
        cluster = await stack.enter_async_context(login)
        return cluster, None if in_pod() else await ask(cluster)

    connected = await stop.unless_asked(log_in)
    if connected is None:
        return
    cluster, server = connected
    names = Registry(controllers).names
    async with anyio.create_task_group() as tasks:
        services = Services(settings, registry, cluster, clock, meters=meters, stop=stop)
        rights = RightsCheck(cluster, settings, controllers, clock)
        services.health.ready.add("rights", rights.check)
        warn_of_memory(settings, memory_limit())
        await services.answer_probes(tasks)
        if server is None:
            api_server = ApiServerCheck(clock)
            services.health.ready.add("api-server", api_server.check)
            server = await stop.unless_asked(partial(api_server.answer, partial(ask, cluster)))
        if server is None:  # asked to stop meanwhile
            tasks.cancel_scope.cancel()
            return
        await services.start(tasks)
        log.info(
            "started",
            version=version(),
            server=cluster.server,
            kubernetes=server.get("gitVersion"),
            controllers=list(names),
            namespaces=list(settings.namespaces) or "all",
            shard=settings.shard or "all",
            **services.served,
        )
        if warning := untested(server):
            log.warning(warning)
        tasks.start_soon(tell_unserved, cluster, controllers, settings.program)
        task_status.started()
        await stop.unless_asked(rights.ask_once)
        tasks.start_soon(rights.ask_until_granted)
        work = partial(_work, settings, controllers, services, meters=meters, stop=stop)
        async with led(
            settings,
            cluster,
            clock,
            stop,
            meters,
            health=services.health,
            gives_way=rights.gives_way,
        ) as writable:
            if writable is not None:
                rights.leads()
                await work(writable)
        await services.parted()
        tasks.cancel_scope.cancel()


def warn_of_memory(settings: Settings, limit: int | None) -> None:
    """Log a warning if a memory limit, in bytes, leaves too little beside the caches.

    With less the process is killed, again and again, however much the caches leave out.
    """
    needed = RESERVE + (settings.memory_budget or 0)
    if limit is not None and limit < needed:
        log.warning(
            "the memory limit is too low",
            limit=readable(limit),
            caches=readable(settings.memory_budget or most_for_caches(limit)),
            needed=readable(needed),
            remedy="raise the memory limit"
            + (", or lower --memory-budget" if settings.memory_budget else ""),
        )


async def _work(
    settings: Settings,
    controllers: Sequence[Controller[Any]],
    services: Services,
    cluster: Cluster,
    *,
    meters: Meters,
    stop: Stop,
) -> None:
    """Run the controllers until they are asked to stop and the running passes have ended."""
    door = Door(settings.memory_budget or most_for_caches(memory_limit()))
    meters.guards(door)
    log.info("caches are bounded", most=readable(door.most))
    runners = _runners(settings, controllers, cluster, meters, door=door)
    services.work(runners)
    with stop.work:
        async with anyio.create_task_group() as work:
            for runner in runners:
                work.start_soon(runner.run)
            await stop.asked.wait()
            for runner in runners:
                runner.stop()


def _runners(
    settings: Settings,
    controllers: Sequence[Controller[Any]],
    cluster: Cluster,
    meters: Meters,
    *,
    door: Door,
) -> list[ControllerRunner]:
    """Return a runner for each controller; those of cluster-scoped resources run in shard 0."""
    shard = settings.part
    installation = settings.installation
    clock = SystemClock()
    namespaces = Namespaces(cluster, clock)
    limits = Limits(clock)
    return [
        ControllerRunner(
            cluster,
            ResourcePlanner(
                controller=controller,
                installation=installation,
                cache=build(controller, installation, settings.namespaces, door, shard),
                clock=clock,
                permission=namespaces.permission,
                server_time=cluster.server_time,
                own_namespace=settings.system_namespace,
            ),
            meters,
            limits,
        )
        for controller in controllers
        if shard is None or controller.resource.api.namespaced or shard.serves("")
    ]
