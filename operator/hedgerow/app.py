"""App: one operator process, from settings to a clean stop."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, cast

import anyio
import structlog
from anyio import CancelScope

from hedgerow import __version__
from hedgerow.controllers import bluegreen, cronjob, memcached
from hedgerow.core.meta import Installation
from hedgerow.kube.client import Cluster, connect
from hedgerow.runtime.cache import build
from hedgerow.runtime.clock import SystemClock
from hedgerow.runtime.namespaces import Namespaces
from hedgerow.runtime.observer import Observer
from hedgerow.runtime.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anyio.abc import TaskStatus

    from hedgerow.core.contract import Controller
    from hedgerow.settings import Settings
    from hedgerow_schemas.base import CustomResource

log = structlog.get_logger(__name__)

CONTROLLERS = {
    controller.name: controller
    for controller in cast(
        "tuple[Controller[CustomResource], ...]",
        (bluegreen.CONTROLLER, memcached.CONTROLLER, cronjob.CONTROLLER),
    )
}


async def run(
    settings: Settings, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Run the chosen controllers until SIGTERM or SIGINT; a second signal stops at once.

    Raises ConfigError, Unreachable or Unauthenticated when there is no cluster to begin with;
    once begun, the operator waits for its API server as long as it takes.
    """
    async with connect(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        user_agent=f"hedgerow/{__version__}",
    ) as cluster:
        version = await cluster.get("/version")
        namespaces = Namespaces()
        runners = _runners(settings, cluster, namespaces)
        log.info(
            "started",
            version=__version__,
            server=cluster.server,
            kubernetes=version.get("gitVersion"),
            controllers=[runner.controller.name for runner in runners],
            namespaces=list(settings.namespaces) or "all",
        )
        async with anyio.create_task_group() as tasks:
            await tasks.start(_stop_on_signal, tasks.cancel_scope, runners, settings.grace_period)
            if not settings.namespaces:
                # Told to keep to some namespaces, it asks for no right beyond them.
                tasks.start_soon(namespaces.follow, cluster)
            task_status.started()
            async with anyio.create_task_group() as work:
                for runner in runners:
                    work.start_soon(runner.run)
            tasks.cancel_scope.cancel()
    log.info("stopped")


def _runners(settings: Settings, cluster: Cluster, namespaces: Namespaces) -> list[Runner]:
    installation = Installation(settings.instance)
    clock = SystemClock()
    chosen = [CONTROLLERS[name] for name in dict.fromkeys(settings.controllers or CONTROLLERS)]
    return [
        Runner(
            cluster,
            Observer(
                controller=controller,
                installation=installation,
                cache=build(controller, installation, settings.namespaces),
                clock=clock,
                going=namespaces.is_going,
            ),
        )
        for controller in chosen
    ]


async def _stop_on_signal(
    scope: CancelScope,
    runners: Iterable[Runner],
    grace: float,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Let the passes under way end on the first signal, for `grace` seconds at most."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        first = await anext(signals)
        log.info("stopping", signal=signal.Signals(first).name)
        for runner in runners:
            runner.stop()
        with anyio.move_on_after(grace):
            await anext(signals)
        scope.cancel()
