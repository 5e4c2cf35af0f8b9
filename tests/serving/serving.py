"""Serving: a server of this process, and certificates for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from anyio.streams.tls import TLSStream
from starlette.types import ASGIApp

from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import Connection
from hedgerow.serving.httpserver.limits import REVIEWS, Bounds
from hedgerow.serving.httpserver.server import serve
from kube.pems import certificate

LOCAL = Address("127.0.0.1", 0)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = GET.replace(b"x\r\n", b"x\r\nConnection: close\r\n")
"""The last request of its connection."""


@asynccontextmanager
async def served(
    app: ASGIApp, tls: ssl.SSLContext | None = None, bounds: Bounds = REVIEWS
) -> AsyncIterator[str]:
    """Serve an app, and give its URL."""
    async with anyio.create_task_group() as tasks:
        bound: Address = await tasks.start(_serve, app, tls, bounds)
        yield f"{'https' if tls else 'http'}://{bound}"
        tasks.cancel_scope.cancel()


async def _serve(app: ASGIApp, tls: ssl.SSLContext | None, bounds: Bounds, *, task_status) -> None:
    await serve(app, LOCAL, tls=tls, bounds=bounds, task_status=task_status)


async def knock(url: str, source: str | None = None) -> anyio.abc.SocketStream:
    """Connect to a server; say nothing."""
    host, _, port = url.rpartition("//")[2].rpartition(":")
    return await anyio.connect_tcp(host, int(port), local_host=source)


async def ask(stream: anyio.abc.ByteStream, request: bytes = GET) -> bytes:
    """Ask, and return the beginning of the answer, which is no refusal."""
    await stream.send(request)
    answer = await stream.receive()
    assert b"200 OK" in answer
    return answer


async def told(stream: anyio.abc.ByteStream) -> bytes:
    """Return all that a peer sends until it closes, within ten seconds."""
    said = b""
    with anyio.fail_after(10):
        try:
            while True:
                said += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return said


def connections_made(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Return the connections that servers will make, in order."""
    made: list[Connection] = []
    take_in = Connection.connection_made

    def noted(self: Connection, transport: Any) -> None:
        take_in(self, transport)
        made.append(self)

    monkeypatch.setattr(Connection, "connection_made", noted)
    return made


async def secured(stream: anyio.abc.ByteStream) -> TLSStream:
    """Make the client's part of a TLS handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return await TLSStream.wrap(
        stream, server_side=False, ssl_context=context, standard_compatible=False
    )


@dataclass(frozen=True)
class Pair:
    """A self-signed certificate for 127.0.0.1 and its key, as files."""

    certificate: Path
    key: Path

    @property
    def der(self) -> bytes:
        return ssl.PEM_cert_to_DER_cert(self.certificate.read_text())

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self.certificate, self.key)


def pair(directory: Path, name: str = "tls") -> Pair:
    """Make a certificate and its key."""
    files = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    for file, pem in zip(
        (files.certificate, files.key), certificate(common_name=name), strict=True
    ):
        file.write_bytes(pem)
    return files
