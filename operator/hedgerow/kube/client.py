"""Client: a logged-in connection to one cluster; the only file that imports kr8s.

kr8s provides the credentials and `call_api`. Its session is replaced by our own httpx clients, one
for requests and one for watches. `raise_for_status` is never used: with it, kr8s takes a 403 for
expired credentials and closes the session while others use it. Its session factory, its version
check and its cache of instances are not used either. Some of this relies on private attributes, so
kr8s is pinned to an exact version and checked by `tests/kube/test_kr8s_contract.py`.
"""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx
from kr8s import APITimeoutError
from kr8s.asyncio import Api

from hedgerow.kube import credentials, fence, sockets
from hedgerow.kube import kubeconfig as kubeconfigs
from hedgerow.kube.cluster import Applied, Cluster
from hedgerow.kube.credentials import Bearer
from hedgerow.kube.errors import ConfigError, Unreachable, one_line
from hedgerow.kube.retry import Timing
from hedgerow.kube.session import READ, Session, unheard
from hedgerow.kube.watch import Listing
from hedgerow.kube.wire import JSON, Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from hedgerow.kube.kubeconfig import Access

__all__ = ["Applied", "Cluster", "Listing", "connect"]

CONNECT, POOL = 5.0, 5.0
"""Seconds."""
LOGIN = 60.0
"""Seconds for an exec plugin to answer."""
KEEP = 60.0
"""Seconds to keep an idle connection; the API server cuts it after 90."""
CLOSE = 5.0
"""Seconds to close the connections."""
_TEMPORARY = {
    "client-key-data": ("_user", "client_key_file"),
    "client-certificate-data": ("_user", "client_cert_file"),
    "certificate-authority-data": ("_cluster", "server_ca_file"),
}


@asynccontextmanager
async def connect(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    user_agent: str = "hedgerow",
    concurrency: int = 8,
    timing: Timing | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    on_exchange: Callable[[str, int, float], object] = unheard,
    unacknowledged: float = 0,
) -> AsyncGenerator[Cluster]:
    """Log in with the given kubeconfig, `$KUBECONFIG`, `~/.kube/config`, or as the pod.

    It sends nothing to the server yet. At most `concurrency` requests are sent at once; watches do
    not count. Bytes that the server has not acknowledged after `unacknowledged` seconds are never
    delivered; 0 leaves this to the kernel. `on_exchange` is that of `Session`; `timing` and
    `transport` are for tests.
    Raises ConfigError, in one line with the remedy.
    """
    terms = _Terms(
        kubeconfig, user_agent, concurrency, timing or Timing(), transport, unacknowledged
    )
    login = await _log_in(terms, context)
    session = Session(
        login,
        partial(_log_in, terms, login.context, login.server),
        concurrency=concurrency,
        timing=terms.timing,
        on_exchange=on_exchange,
    )
    try:
        yield Cluster(session)
    finally:
        await session.aclose()


@dataclass(frozen=True, slots=True)
class _Terms:
    """The arguments of `connect`; each new login uses them again."""

    kubeconfig: str | None
    user_agent: str
    concurrency: int
    timing: Timing
    transport: httpx.AsyncBaseTransport | None
    unacknowledged: float


class Channel:
    """One kr8s instance with our own httpx client; once retired, it closes after the last call."""

    def __init__(self, api: Api, client: httpx.AsyncClient, server_name: str | None) -> None:
        self._api = api
        self._client = client
        self._server_name = server_name
        self._server = api.auth.server.rstrip("/")
        self._busy = 0
        self._retired = False
        api._session = client  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    @property
    def closed(self) -> bool:
        """Whether its connections are closed."""
        return self._client.is_closed

    @asynccontextmanager
    async def call(self, request: Request, *, read: float) -> AsyncGenerator[httpx.Response]:
        """Send a request and yield the response, whose body is not read yet.

        `read` is the longest silence in seconds. Raises what httpx raises.
        """
        if self.closed:  # kr8s would replace it with a session of its own, without timeouts
            raise Unreachable("the connection to the cluster is closed", sent=False)
        more = fence.at_the_wire(request)
        if self._server_name:
            more["extensions"] = more.get("extensions", {}) | {"sni_hostname": self._server_name}
        if request.content:
            more |= {
                "content": request.content,
                "headers": {"Content-Type": request.content_type},
            }
        self._busy += 1
        try:
            async with self._api.call_api(  # pyright: ignore[reportUnknownMemberType]
                request.method,
                version="",
                base=self._server,
                url=request.path.removeprefix("/"),
                raise_for_status=False,
                stream=True,  # otherwise kr8s would read the whole body, of any size
                params=dict(request.params) or None,
                timeout=httpx.Timeout(READ, connect=CONNECT, read=read, pool=POOL),
                **more,
            ) as response:
                yield response
        except APITimeoutError as error:
            raise error.__cause__ or error from None
        finally:
            self._busy -= 1
            await self._close_if_idle()

    async def retire(self) -> None:
        """Close once the running calls have ended."""
        self._retired = True
        await self._close_if_idle()

    async def aclose(self) -> None:
        """Close the connections now."""
        with anyio.move_on_after(CLOSE, shield=True):
            await self._client.aclose()

    async def _close_if_idle(self) -> None:
        if self._retired and not self._busy:
            await self.aclose()


@dataclass(frozen=True, slots=True, eq=False)
class Login:
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

    def call(self, request: Request, *, read: float, watch: bool = False) -> Any:
        """Send a request on its channel."""
        channel = self.watches if watch else self.requests
        return channel.call(request, read=read)

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
    config, namespace = access.config, access.namespace
    # Without an empty service account, kr8s would silently fall back to the pod's.
    apis = [
        Api(bypass_factory=True, kubeconfig=config, namespace=namespace, serviceaccount="")
        for _ in range(2)
    ]
    try:
        # Shielded, so that no private key is left in a file; not with a plugin, which may hang.
        with anyio.fail_after(LOGIN, shield=not access.plugin):
            verify = await _authenticate(apis[0])
        auth = apis[1].auth = apis[0].auth
        # kr8s would replace all extensions with this name, including the fence.
        name, auth.tls_server_name = auth.tls_server_name, None
        requests, watches = [
            Channel(api, await _client(terms, access, api, trust), name)
            for api, trust in zip(apis, verify, strict=True)
        ]
    except TimeoutError as error:
        raise ConfigError(f"the credential plugin gave no answer in {LOGIN:.0f} s") from error
    except (ValueError, KeyError, RuntimeError, OSError, ImportError, httpx.InvalidURL) as error:
        raise _unusable(error, access) from error
    found = Login(apis[0].auth.server, access.context, namespace, requests, watches)
    if server and found.server != server:
        await found.aclose()
        raise ConfigError(f"context {found.context} now is {found.server}, no longer {server}")
    return found


async def _authenticate(api: Api) -> list[ssl.SSLContext | bool]:
    """Load the credentials; return a TLS context for each channel, as httpcore modifies it."""
    try:
        await api.auth.reauthenticate()
        contexts: list[ssl.SSLContext | bool] = [await api.auth.ssl_context() for _ in range(2)]
    finally:
        with anyio.CancelScope(shield=True):
            await _sweep(api)
    for context in contexts:
        if isinstance(context, ssl.SSLContext) and not api.auth.server_ca_file:
            context.load_default_certs()
    return contexts


async def _sweep(api: Api) -> None:
    """Delete the files to which kr8s wrote inline credentials, including private keys."""
    for key, (section, attribute) in _TEMPORARY.items():
        path = getattr(api.auth, attribute)
        if path and key in getattr(api.auth, section):
            await anyio.Path(path).unlink(missing_ok=True)


async def _client(
    terms: _Terms, access: Access, api: Api, verify: ssl.SSLContext | bool
) -> httpx.AsyncClient:
    token = str(api.auth.token or "")
    if access.token_file is not None:
        token = await credentials.read(access.token_file) or token
    return httpx.AsyncClient(
        auth=Bearer(token, access.token_file, now=terms.timing.now),
        headers={"User-Agent": terms.user_agent, "Accept": JSON},
        trust_env=False,
        transport=terms.transport or _transport(terms, api, verify),
        timeout=READ,
    )


def _transport(terms: _Terms, api: Api, verify: ssl.SSLContext | bool) -> httpx.AsyncHTTPTransport:
    return httpx.AsyncHTTPTransport(
        verify=verify,
        http2=False,  # the API server sends GOAWAY with a 401, which ends every other stream
        trust_env=False,
        proxy=api.auth.proxy,
        limits=httpx.Limits(
            max_keepalive_connections=terms.concurrency,
            keepalive_expiry=KEEP,
        ),
        socket_options=sockets.options(terms.unacknowledged),
    )


def _unusable(error: Exception, access: Access) -> ConfigError:
    said = one_line(str(error)) or type(error).__name__
    if isinstance(error, KeyError):
        said = f"{said} is missing"
    hint = f"; {access.install_hint}" if access.install_hint else ""
    return ConfigError(f"context {access.context}: the credentials cannot be used: {said}{hint}")
