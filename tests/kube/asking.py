"""Asking: the few questions that the tests of a session put to a cluster."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from hedgerow.kube.watch import Changed
from hedgerow_schemas.base import ApiResource
from kube.fakes import Server, reply
from kube.recordings import Recording

if TYPE_CHECKING:
    from hedgerow.kube.cluster import Cluster


CONFIG_MAP = ApiResource("v1", "ConfigMap", "configmaps")


def config(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": str(version)}, **more}


def changed(kind: Any, name: str, version: int) -> Changed:
    return Changed(kind, config(name, version), str(version))


async def read(cluster: Cluster, **more: Any) -> Any:
    return await cluster.read_object(CONFIG_MAP, "x", "ns", **more)


async def events(cluster: Cluster, **more: Any) -> list[Any]:
    return [event async for event in cluster.watch(CONFIG_MAP, **more)]


async def never(_: httpx.Request) -> httpx.Response:
    await anyio.sleep_forever()
    raise AssertionError


def distrusted() -> httpx.ConnectError:
    """Return the error that httpx makes of a certificate that is not trusted."""
    error = httpx.ConnectError("handshake")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    return error


def accepts(server: Server, token: str, answer: Any = None) -> None:
    """Let the server know one token only."""

    async def check(request: httpx.Request) -> httpx.Response:
        await anyio.wait_all_tasks_blocked()
        if request.headers["Authorization"] == f"Bearer {token}":
            return answer(request) if answer else reply()
        return Recording.load("unauthenticated").response()

    server.answers = [check]
