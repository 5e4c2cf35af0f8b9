"""Client: a logged-in connection to one cluster.

Requests go to transports of ours, one for requests and one for watches, without the layers of kr8s
and `httpx.AsyncClient` in between, which take more CPU than the rest of a request (ADR 29). kr8s
provides the credentials that a plugin has to give (`plugins.py`).
"""

from __future__ import annotations

import re
import ssl
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import anyio
import httpx
from msgspec import Struct

from hedgerow.kube import credentials, fence, sockets
from hedgerow.kube import kubeconfig as kubeconfigs
from hedgerow.kube.cluster import Cluster
from hedgerow.kube.credentials import Bearer
from hedgerow.kube.errors import ConfigError, Unreachable, one_line
from hedgerow.kube.retry import Timing
from hedgerow.kube.session import READ, Session, limit, oversized, unheard, whole
from hedgerow.kube.wire import OverlongError, Reply

try:
    from hedgerow.kube import transport as transports
except ImportError:  # without httptools, or where there is no poll(2)
    transports = None

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.credentials import Credentials
    from hedgerow.kube.kubeconfig import Access
    from hedgerow.kube.wire import Request

CONCURRENCY = 32
"""The most requests at once, about as many as the workers of three controllers in Go have. With
eight, the API server and etcd need more CPU for the same writes: they gather what arrives together
(ADR 36)."""
HTTPX_CONCURRENCY = 8
"""The most requests at once by httpx's transport, which needs more CPU for each with every other
one (ADR 29)."""
CONNECT, POOL = 5.0, 5.0
"""Seconds."""
LOGIN = 60.0
"""Seconds for an exec plugin to answer."""
KEEP = 60.0
"""Seconds to keep an idle connection; the API server cuts it after 90."""
CLOSE = 5.0
"""Seconds to close the connections."""
_OF_A_URL = "/%:?#[]@!$&'()*+,;=~"
"""Characters that `_target` leaves as they are, besides letters, digits, `-`, `.` and `_`."""
_PLAIN_PATH = re.compile(r"[\w./~-]+", re.ASCII).fullmatch
"""Whether quoting leaves a path as it is: to ask takes a fifth of the time."""


@asynccontextmanager
async def connect(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    user_agent: str = "hedgerow",
    concurrency: int | None = None,
    timing: Timing | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    on_exchange: Callable[[str, int, float], object] = unheard,
    unacknowledged: float = 0,
) -> AsyncGenerator[Cluster]:
    """Log in with the given kubeconfig, `$KUBECONFIG`, `~/.kube/config`, or as the pod.

    It sends nothing to the server yet. At most `concurrency` requests are sent at once, by default
    as many as the transport is good for; watches do not count. Bytes that the server has not
    acknowledged after `unacknowledged` seconds are never delivered; 0 leaves this to the kernel.
    `on_exchange` is that of `Session`; `timing` and `transport` are for tests.
    Raises ConfigError, in one line with the remedy.
    """
    terms = _Terms(
        kubeconfig, user_agent, concurrency, timing or Timing(), transport, unacknowledged
    )
    login = await _log_in(terms, context)
    session = Session(
        login,
        partial(_log_in, terms, login.context, login.server),
        concurrency=concurrency or login.requests.concurrency,
        timing=terms.timing,
        on_exchange=on_exchange,
    )
    try:
        yield Cluster(session)
    finally:
        await session.aclose()


class _Terms(Struct, frozen=True):
    """The arguments of `connect`; each new login uses them again."""

    kubeconfig: str | None
    user_agent: str
    concurrency: int | None
    timing: Timing
    transport: httpx.AsyncBaseTransport | None
    unacknowledged: float


class Channel:
    """One transport with a login's credentials; once retired, it closes after the last call.

    `server_name` is the name on the server's certificate, if it is not that of the URL.
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport,
        server: str,
        bearer: Bearer,
        user_agent: str,
        server_name: str | None,
    ) -> None:
        self._transport = transport
        self._ours = (
            transport if transports and isinstance(transport, transports.Transport) else None
        )
        self._server = server.rstrip("/")
        self._path = httpx.URL(server).raw_path.rstrip(b"/").decode("ascii")
        self._bearer = bearer
        self._server_name = server_name or ""
        self._headers = [
            (b"Host", httpx.URL(server).netloc),
            (b"User-Agent", user_agent.encode("ascii", "replace")),
            (b"Accept-Encoding", b"gzip"),
        ]
        self._busy = 0
        self._retired = False
        self.closed = False

    @property
    def concurrency(self) -> int:
        """How many requests at once the transport is good for."""
        return CONCURRENCY if self._ours else HTTPX_CONCURRENCY

    async def answer(self, request: Request, *, read: float) -> Reply:
        """Send a request and return its whole answer.

        `read` is the longest silence in seconds. Raises what httpx raises, and Oversized.
        """
        if self._ours is None:
            async with self.call(request, read=read) as response:
                return await whole(response, request)
        self._begin()
        try:
            return await self._ours.answer(
                self._encoded(request, await self._bearer.token()),
                most=limit(request),
                connect=CONNECT,
                read=read,
                name=self._server_name,
                permit=fence.before_bytes(request),
            )
        except OverlongError as error:
            raise oversized(error.code, request) from error
        finally:
            await self._end()

    @asynccontextmanager
    async def call(self, request: Request, *, read: float) -> AsyncGenerator[httpx.Response]:
        """Send a request and yield the response, whose body is not read yet.

        `read` is the longest silence in seconds. Raises what httpx raises.
        """
        self._begin()
        try:
            token = await self._bearer.token()
            if self._ours is None:
                built = self._built(request, self._headers_of(request, token), read)
                response = await self._transport.handle_async_request(built)
            else:
                response = await self._ours.exchange(
                    self._encoded(request, token),
                    connect=CONNECT,
                    read=read,
                    name=self._server_name,
                    permit=fence.before_bytes(request),
                )
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            await self._end()

    def _begin(self) -> None:
        if self.closed:
            raise Unreachable("the connection to the cluster is closed", sent=False)
        self._busy += 1

    async def _end(self) -> None:
        self._busy -= 1
        if self._retired:
            await self._close_if_idle()

    def _encoded(self, request: Request, token: str) -> bytes:
        """Return a request as our transport takes it."""
        assert transports  # noqa: S101 - for the type checker: the transport is ours
        headers = self._headers_of(request, token)
        target = _target(self._path, request)
        return transports.encoded(
            request.method.encode("ascii"), target, headers, (request.content,)
        )

    def _headers_of(self, request: Request, token: str) -> list[tuple[bytes, bytes]]:
        headers = [*self._headers, (b"Accept", request.accept.encode())]
        if token:
            headers.append((b"Authorization", b"Bearer " + token.encode()))
        if request.content:
            headers += [
                (b"Content-Type", request.content_type.encode()),
                (b"Content-Length", b"%d" % len(request.content)),
            ]
        return headers

    def _built(
        self, request: Request, headers: list[tuple[bytes, bytes]], read: float
    ) -> httpx.Request:
        """Return a request as httpx's transports take it."""
        timeout = httpx.Timeout(READ, connect=CONNECT, read=read, pool=POOL)
        named = {"sni_hostname": self._server_name} if self._server_name else {}
        return httpx.Request(
            request.method,
            self._server + _target("", request).decode("ascii"),
            headers=headers,
            stream=httpx.ByteStream(request.content),
            extensions={"timeout": timeout.as_dict(), **named, **fence.at_the_wire(request)},
        )

    async def retire(self) -> None:
        """Close once the running calls have ended."""
        self._retired = True
        await self._close_if_idle()

    async def aclose(self) -> None:
        """Close the connections now."""
        self.closed = True
        with anyio.move_on_after(CLOSE, shield=True):
            await self._transport.aclose()

    async def _close_if_idle(self) -> None:
        if self._retired and not self._busy:
            await self.aclose()


def _target(prefix: str, request: Request) -> bytes:
    """Return a request's path and query, with what a URL cannot have percent-encoded."""
    query, path = _query(tuple(request.params.items())), prefix + request.path
    if not _PLAIN_PATH(path):
        path = quote(path, safe=_OF_A_URL) or "/"
    return (f"{path}?{query}" if query else path).encode("ascii")


@lru_cache(maxsize=64)
def _query(params: tuple[tuple[str, str], ...]) -> str:
    """Return a query string; all applies of a controller have the same one."""
    return urlencode(params, quote_via=quote)


class Login(Struct, frozen=True, eq=False):
    """One set of credentials, and the two channels that use it."""

    server: str
    context: str
    namespace: str
    requests: Channel
    watches: Channel

    @property
    def closed(self) -> bool:
        """Whether both channels are closed."""
        return self.requests.closed and self.watches.closed

    async def answer(self, request: Request, *, read: float) -> Reply:
        """Send a request and return its whole answer. Raises what httpx raises, and Oversized."""
        return await self.requests.answer(request, read=read)

    def watch(self, request: Request, *, read: float) -> Any:
        """Begin a watch, on the channel of its own. Raises what httpx raises."""
        return self.watches.call(request, read=read)

    async def retire(self) -> None:
        """Close each channel once its running calls have ended."""
        await self.requests.retire()
        await self.watches.retire()

    async def aclose(self) -> None:
        """Close both channels now."""
        await self.requests.aclose()
        await self.watches.aclose()


async def _log_in(terms: _Terms, context: str | None, server: str = "") -> Login:
    """Read the credentials, open the two clients and return them; raises ConfigError.

    With `server`, the kubeconfig must still point at this server.
    """
    access = await kubeconfigs.choose(terms.kubeconfig, context)
    try:
        login = credentials.written(access) or await _asked(access)
        bearer = await _bearer(terms, access, login.token)
        requests, watches = [
            Channel(
                terms.transport or _transport(terms, login, trust),
                login.server,
                bearer,
                terms.user_agent,
                login.server_name,
            )
            for trust in (login.requests, login.watches)
        ]
    except TimeoutError as error:
        raise ConfigError(f"the credential plugin gave no answer in {LOGIN:.0f} s") from error
    except (ValueError, KeyError, RuntimeError, OSError, ImportError, httpx.InvalidURL) as error:
        raise _unusable(error, access) from error
    found = Login(login.server, access.context, access.namespace, requests, watches)
    if server and found.server != server:
        await found.aclose()
        raise ConfigError(f"context {found.context} now is {found.server}, no longer {server}")
    return found


async def _asked(access: Access) -> Credentials:
    """Return the credentials that a plugin or a provider gives."""
    from hedgerow.kube import plugins  # noqa: PLC0415 - kr8s takes long to import

    return await plugins.asked(access, LOGIN)


async def _bearer(terms: _Terms, access: Access, token: str) -> Bearer:
    if access.token_file is not None:
        token = await credentials.read(access.token_file) or token
    return Bearer(token, access.token_file, now=terms.timing.now)


def _transport(
    terms: _Terms, login: Credentials, verify: ssl.SSLContext | bool
) -> httpx.AsyncBaseTransport:
    """Return our own transport, or httpx's for a proxy and where there is no httptools."""
    options = sockets.options(terms.unacknowledged)
    tls = verify
    if not isinstance(tls, ssl.SSLContext):
        tls = httpx.create_ssl_context(verify=tls, trust_env=False)
    if login.proxy or transports is None:
        limits = httpx.Limits(
            max_connections=None,
            max_keepalive_connections=terms.concurrency or HTTPX_CONCURRENCY,
            keepalive_expiry=KEEP,
        )
        return httpx.AsyncHTTPTransport(
            verify=tls,
            http2=False,  # the API server sends GOAWAY with a 401, which ends every other stream
            trust_env=False,
            proxy=login.proxy,
            limits=limits,
            socket_options=options,
        )
    url = httpx.URL(login.server)
    return transports.Transport(
        url,
        tls=None if url.scheme == "http" else tls,
        keep=terms.concurrency or CONCURRENCY,
        expiry=KEEP,
        options=options,
    )


def _unusable(error: Exception, access: Access) -> ConfigError:
    said = one_line(str(error)) or type(error).__name__
    if isinstance(error, KeyError):
        said = f"{said} is missing"
    hint = f"; {access.install_hint}" if access.install_hint else ""
    return ConfigError(f"context {access.context}: the credentials cannot be used: {said}{hint}")
