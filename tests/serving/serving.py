"""Serving: a server of this process, and certificates for it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.types import ASGIApp

from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.limits import REVIEWS, Bounds
from hedgerow.serving.httpserver.server import serve

LOCAL = Address("127.0.0.1", 0)


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


async def secured(stream: anyio.abc.ByteStream) -> TLSStream:
    """Make the client's part of a TLS handshake."""
    context = ssl.create_default_context()
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
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)  # noqa: TID251 - the peer judges it by its own clock
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    files = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files
