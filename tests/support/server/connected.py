"""Connected: hedgerow's own client of the API server in memory, and time that passes at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio

from hedgerow.kube import client
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.fallback import HttpxExchange
from hedgerow.kube.retry import RetryClock
from hedgerow.kube.session import Session
from hedgerow.kube.wire import Request
from support.server.apiserver import ApiServer


class Clock:
    """Time that passes only by sleeping; `meanwhile` is what happens during each sleep."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] = int

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds
        self.meanwhile()
        await anyio.lowlevel.checkpoint()

    @property
    def timing(self) -> RetryClock:
        """The dice always show the shortest wait: half of the ceiling."""
        return RetryClock(
            now=lambda: self.now, sleep=self.sleep, draw=lambda: 0.0, elapsed=lambda: self.now
        )


class Login:
    """The way of one client to the API server in memory."""

    server, namespace, closed = "https://model.invalid", "default", False
    concurrency = client.CONCURRENCY

    def __init__(self, api: ApiServer, name: str = "somebody", namespace: str = "default") -> None:
        self._api, self._name, self.namespace = api, name, namespace

    @asynccontextmanager
    async def exchange(self, request: Request, *, read: float) -> AsyncGenerator[HttpxExchange]:
        watch = request.verb == "watch"
        async with self._api.call(self._name, request, read=read, watch=watch) as response:
            yield HttpxExchange(response)

    async def retire(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""


def connected(
    api: ApiServer, namespace: str = "default", timing: RetryClock | None = None
) -> Cluster:
    """Return a client that is logged in; it retries at once."""

    async def log_in() -> Any:
        return Login(api, namespace=namespace)

    login: Any = Login(api, namespace=namespace)
    timing = timing or Clock().timing
    return Cluster(Session(login, log_in, concurrency=client.CONCURRENCY, timing=timing))


def connect(
    api: ApiServer, namespace: str = "default"
) -> Callable[..., AbstractAsyncContextManager[Cluster]]:
    """Return what stands in for `client.connect`."""

    @asynccontextmanager
    async def connecting(**given: Any) -> AsyncGenerator[Cluster]:
        api.logins.append(given)
        yield connected(api, given.get("namespace") or namespace)

    return connecting
