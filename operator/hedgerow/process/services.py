"""Services: the servers of one operator process: health, metrics, admission webhooks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from hedgerow.kube.pod import in_pod
from hedgerow.serving.health import Health, health_app
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import AddressInUseError, ListenError
from hedgerow.serving.httpserver.limits import PROBES, REVIEWS, SCRAPES
from hedgerow.serving.httpserver.server import Parting, serve
from hedgerow.serving.loop_latency import Pulse
from hedgerow.serving.metrics import metrics_app
from hedgerow.settings import flags

if TYPE_CHECKING:
    import ssl

    from anyio.abc import TaskGroup
    from starlette.types import ASGIApp

    from hedgerow.kube.cluster import Cluster
    from hedgerow.process.stopping import Stop
    from hedgerow.registry import Registry
    from hedgerow.runtime.clock import Clock
    from hedgerow.runtime.meters import Meters
    from hedgerow.runtime.runner import ControllerRunner
    from hedgerow.serving.authorization import Access
    from hedgerow.serving.certificates.served import Certificates
    from hedgerow.serving.httpserver.limits import Bounds
    from hedgerow.settings import Settings


class Services:
    """The servers, and the state that they report."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        cluster: Cluster,
        clock: Clock,
        *,
        meters: Meters,
        stop: Stop,
    ) -> None:
        self._settings, self._registry, self._meters = settings, registry, meters
        self._cluster, self._clock = cluster, clock
        self._pulse = Pulse(clock, meters.beat)
        self._runners: list[ControllerRunner] = []
        self._certificates = self._shown()
        self._stop = stop
        self._parted = anyio.Event()
        self.served: dict[str, str] = {}
        self.health = Health()
        self.health.live.add("loop", self._pulse.check)
        self.health.ready.add("shutdown", lambda: "stopping" if stop.asked.is_set() else "")
        self.health.ready.add("caches", self._waiting)
        self.health.ready.add("watches", self._refused)
        if self._certificates:
            self.health.ready.add("certificate", self._certificates.check)

    async def answer_probes(self, tasks: TaskGroup) -> None:
        """Start the server of the probes, which needs no API server; raises ListenError."""
        tasks.start_soon(self._pulse.beat)
        await self._serve(tasks, "health_probe_bind_address", health_app(self.health), PROBES)

    async def start(self, tasks: TaskGroup) -> None:
        """Start the other servers; raises ListenError if an address cannot be used."""
        if self._certificates:
            await self._stop.unless_asked(self._certificates.prepare)
            tasks.start_soon(self._certificates.keep)
        settings = self._settings
        secure = settings.metrics_secure
        metrics = metrics_app(self._meters.registry, self._access() if secure else None)
        tls = self._certificates.context if secure and self._certificates else None
        await self._serve(tasks, "metrics_bind_address", metrics, SCRAPES, tls=tls)
        if settings.webhooks:
            controllers = self._registry.chosen(settings.controllers)
            from hedgerow.serving.webhooks.handlers import webhook_app  # noqa: PLC0415

            webhooks = Parting(webhook_app(controllers), self._stop.asked)
            tasks.start_soon(self._part, webhooks)
            tls = self._certificates and self._certificates.context
            await self._serve(tasks, "webhook_bind_address", webhooks, REVIEWS, tls=tls)

    async def parted(self) -> None:
        """After the process was asked to stop, wait until no client would be cut off."""
        if self._settings.webhooks:
            await self._parted.wait()

    def work(self, runners: list[ControllerRunner]) -> None:
        """Include these runners: the process is ready once their caches are filled."""
        self._runners = runners

    async def _part(self, webhooks: Parting) -> None:
        await webhooks.over()
        self._parted.set()

    async def _serve(
        self,
        tasks: TaskGroup,
        setting: str,
        app: ASGIApp,
        bounds: Bounds,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Serve an app at the address of a setting; raises ListenError that names its option.

        Outside a cluster, if the default port is taken, a free port is used instead.
        """
        place = Address.parse(getattr(self._settings, setting))
        if place is None:
            return
        start = partial(tasks.start, partial(serve, app, tls=tls, bounds=bounds))
        try:
            try:
                served = await start(place)
            except AddressInUseError:
                if not self._may_move(setting):
                    raise
                served = await start(Address(place.host, 0))
        except ListenError as error:
            raise ListenError(f"{error}; choose another with {flags()[setting][1].long}") from error
        self.served[setting.removesuffix("_bind_address")] = str(served)

    def _may_move(self, setting: str) -> bool:
        """Return whether another port may be used: it is a default, and not the webhooks' port."""
        given = setting in self._settings.model_fields_set
        return not (given or in_pod() or setting == "webhook_bind_address")

    # Most processes serve neither webhooks nor metrics over TLS; the modules for that take a tenth
    # of a second to import.

    def _shown(self) -> Certificates | None:
        """Return the certificates of the servers; None if nothing is served over TLS."""
        if not (self._settings.webhooks or self._settings.metrics_secure):
            return None
        from hedgerow.process.certificates import certificates  # noqa: PLC0415

        return certificates(self._settings, self._registry, self._cluster, self._clock)

    def _access(self) -> Access:
        from hedgerow.serving.authorization import Access  # noqa: PLC0415

        return Access(self._cluster, self._clock)

    def _waiting(self) -> str:
        return "; ".join(filter(None, (runner.watches.waiting() for runner in self._runners)))

    def _refused(self) -> str:
        return "; ".join(filter(None, (runner.watches.refused() for runner in self._runners)))
