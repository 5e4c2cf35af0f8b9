"""Client: a logged-in connection to one cluster.

Requests go to transports of ours, one for requests and one for watches, without the layers of kr8s
and `httpx.AsyncClient` in between, which take more CPU than the rest of a request (ADR 0012). kr8s
provides the credentials that a plugin has to give (`plugins.py`).
"""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import httpx
from msgspec import Struct

from hedgerow.kube import credentials, fallback, sockets
from hedgerow.kube import kubeconfig as kubeconfigs
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.credentials import Bearer
from hedgerow.kube.errors import ConfigError, one_line
from hedgerow.kube.fallback import HttpxTransport
from hedgerow.kube.fence import unheard
from hedgerow.kube.login import Channel, Login
from hedgerow.kube.pool import Pool
from hedgerow.kube.retry import RetryClock
from hedgerow.kube.session import Session

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.credentials import LoginCredentials
    from hedgerow.kube.kubeconfig import ClusterAccess
    from hedgerow.kube.transport import Transport
    from hedgerow_schemas.base import Object

CONCURRENCY = 32
"""The most writes at once, and the most reads: about as many as the workers of three controllers in
Go have. With eight, the API server and etcd need more CPU for the same writes: they gather what
arrives together (ADR 0009)."""
LOGIN = 60.0
"""Seconds for an exec plugin to answer."""
KEEP = 60.0
"""Seconds to keep an idle connection; the API server cuts it after 90."""


@asynccontextmanager
async def connect(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
    user_agent: str = "hedgerow",
    concurrency: int | None = None,
    on_exchange: Callable[[str, int, float], object] = unheard,
    unacknowledged: float = 0,
    patience: float = 0,
) -> AsyncGenerator[Cluster]:
    """Log in with the given kubeconfig, `$KUBECONFIG`, `~/.kube/config`, or as the pod.

    It sends nothing to the server yet. A `namespace` replaces the context's. At most `concurrency`
    writes and as many reads are sent at once, by default as many as the transport is good for;
    watches do not count. Bytes that the server has not acknowledged after `unacknowledged` seconds
    are never delivered; 0 leaves this to the kernel.
    `on_exchange` is that of `Session`, `patience` that of `Cluster`. Raises ConfigError, in one
    line with the remedy.
    """
    arguments = _LoginArguments(
        kubeconfig, namespace, user_agent, concurrency, RetryClock(), unacknowledged
    )
    login = await _log_in(arguments, context)
    session = Session(
        login,
        partial(_log_in, arguments, login.context, login.server),
        concurrency=concurrency or login.requests.concurrency,
        timing=arguments.timing,
        on_exchange=on_exchange,
    )
    try:
        yield Cluster(session, patience=patience)
    finally:
        await session.aclose()


class _LoginArguments(Struct, frozen=True):
    """The arguments of `connect`; each new login uses them again."""

    kubeconfig: str | None
    namespace: str | None
    user_agent: str
    concurrency: int | None
    timing: RetryClock
    unacknowledged: float


async def _log_in(arguments: _LoginArguments, context: str | None, server: str = "") -> Login:
    """Read the credentials, open the two clients and return them; raises ConfigError.

    With `server`, the kubeconfig must still point at this server.
    """
    access = await kubeconfigs.choose(arguments.kubeconfig, context)
    cluster: Object = access.config["clusters"][0]["cluster"]
    try:
        given = credentials.written(access) or await _asked(access)
        bearer, url = await _bearer(arguments, access, given.token), httpx.URL(cluster["server"])
        requests, watches = [
            Channel(
                new_transport(arguments, cluster.get("proxy-url"), url, trust),
                url,
                bearer,
                arguments.user_agent,
                cluster.get("tls-server-name"),
            )
            for trust in (given.requests, given.watches)
        ]
    except TimeoutError as error:
        raise ConfigError(f"the credential plugin gave no answer in {LOGIN:.0f} s") from error
    except (ValueError, KeyError, RuntimeError, OSError, ImportError, httpx.InvalidURL) as error:
        raise _unusable(error, access) from error
    namespace = arguments.namespace or access.namespace
    login = Login(cluster["server"], access.context, namespace, requests, watches)
    if server and login.server != server:
        await login.aclose()
        raise ConfigError(f"context {login.context} now is {login.server}, no longer {server}")
    return login


async def _asked(access: ClusterAccess) -> LoginCredentials:
    """Return the credentials that a plugin or a provider gives."""
    from hedgerow.kube import plugins  # noqa: PLC0415 - kr8s takes long to import

    return await plugins.asked(access, LOGIN)


async def _bearer(arguments: _LoginArguments, access: ClusterAccess, token: str) -> Bearer:
    if access.token_file is not None:
        token = await credentials.read_token(access.token_file) or token
    return Bearer(token, access.token_file, now=arguments.timing.now)


def new_transport(
    arguments: _LoginArguments, proxy: str | None, url: httpx.URL, tls: ssl.SSLContext | bool
) -> Transport:
    """Return our own transport, or httpx's for a proxy; `tls` may say whether to verify."""
    options = sockets.options(arguments.unacknowledged)
    if not isinstance(tls, ssl.SSLContext):
        tls = httpx.create_ssl_context(verify=tls, trust_env=False)
    if not proxy:
        return Pool(
            url,
            tls=None if url.scheme == "http" else tls,
            keep=arguments.concurrency or CONCURRENCY,
            expiry=KEEP,
            options=options,
        )
    inner = httpx.AsyncHTTPTransport(
        verify=tls,
        http2=False,  # the API server sends GOAWAY with a 401, which ends every other stream
        trust_env=False,
        proxy=proxy,
        limits=httpx.Limits(
            max_connections=None,
            max_keepalive_connections=arguments.concurrency or fallback.CONCURRENCY,
            keepalive_expiry=KEEP,
        ),
        socket_options=options,
    )
    return HttpxTransport(url, inner)


def _unusable(error: Exception, access: ClusterAccess) -> ConfigError:
    said = one_line(str(error)) or type(error).__name__
    if isinstance(error, KeyError):
        said = f"{said} is missing"
    hint = f"; {access.install_hint}" if access.install_hint else ""
    return ConfigError(f"context {access.context}: the credentials cannot be used: {said}{hint}")
