"""Conftest: a scripted API server, a kubeconfig that names it, and a clock of the test's own."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from hedgerow.kube import client
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.fallback import HttpxTransport
from hedgerow.kube.retry import RetryClock
from kube.fakes import Server, write_kubeconfig
from support.server.connected import Clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


class Noted(HttpxTransport):
    """Tells whether it is closed."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True
        await super().aclose()


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the machine's own clusters and the pod that may run this out of the tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    return write_kubeconfig(tmp_path / "config")


@pytest.fixture
def connected(
    server: Server, clock: Clock, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractAsyncContextManager[Cluster]]:
    """Return `connect`, on the scripted server and the clock."""

    def new_transport(_terms: Any, _given: Any, url: httpx.URL, _tls: Any) -> HttpxTransport:
        made = Noted(url, httpx.MockTransport(server.answer))
        server.transports.append(made)
        return made

    def connected(
        *, timing: RetryClock = clock.timing, **more: Any
    ) -> AbstractAsyncContextManager[Cluster]:
        monkeypatch.setattr(client, "RetryClock", lambda: timing)
        monkeypatch.setattr(client, "new_transport", new_transport)
        return client.connect(**{"kubeconfig": str(kubeconfig), **more})

    return connected


@pytest.fixture
def ask(
    server: Server, connected: Callable[..., AbstractAsyncContextManager[Cluster]]
) -> Callable[..., Awaitable[Any]]:
    """Return what asks one thing of a cluster whose server gives these answers."""

    async def ask(question: Callable[[Cluster], Awaitable[Any]], *answers: Any, **how: Any) -> Any:
        server.answers = list(answers)
        async with connected(**how) as cluster:
            return await question(cluster)

    return ask


@pytest.fixture
def temporary(monkeypatch, tmp_path) -> Path:
    """Return the only place where temporary files can appear."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory
