"""Session: sends requests to one cluster: bounded, with time limits, retries and new logins."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

import anyio
import httpx

from hedgerow.kube import errors, wire
from hedgerow.kube.errors import (
    ConfigError,
    Dropped,
    Garbled,
    KubeError,
    Oversized,
    Silent,
    Unauthenticated,
    Unreachable,
    Untrusted,
)
from hedgerow.kube.fence import unheard
from hedgerow.kube.retry import RetryClock, pause
from hedgerow.kube.server_clock import ServerClock
from hedgerow.kube.transport import unpacked
from hedgerow.kube.wire import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from datetime import datetime

    from hedgerow.kube.login import Login
    from hedgerow.kube.transport import Exchange
    from hedgerow.kube.wire import Request

READ = 30.0
"""Seconds for which a response may be silent."""
LOGIN_EVERY = 10.0
"""Seconds between two logins: if new credentials are refused, do not log in again at once."""
_UNSENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
_LOST = (httpx.RequestError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Session:
    """Requests and watches on the current login.

    `log_in` returns a new login to the same cluster, or raises ConfigError. `on_exchange` is called
    for each request sent, with the verb, the response's code (0 for none), and the seconds it took.
    """

    def __init__(
        self,
        login: Login,
        log_in: Callable[[], Awaitable[Login]],
        *,
        concurrency: int,
        timing: RetryClock,
        on_exchange: Callable[[str, int, float], object] = unheard,
    ) -> None:
        self._login = login
        self._on_exchange = on_exchange
        self._server_clock = ServerClock(timing.elapsed)
        self._logins = [login]
        self._log_in = log_in
        self._timing = timing
        # Acquired fast, which saves one turn of the loop.
        self._reading = anyio.Semaphore(concurrency, fast_acquire=True)
        self._writing = anyio.Semaphore(concurrency, fast_acquire=True)
        self._renewing = anyio.Lock()
        self._renew_from = timing.now()

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._login.server

    @property
    def namespace(self) -> str:
        """The namespace of the context, or of the pod."""
        return self._login.namespace

    def server_time(self) -> datetime | None:
        """Return the time of the API server's clock; None if no answer has told it."""
        return self._server_clock.now()

    async def send(self, request: Request, *, seconds: float) -> Response:
        """Send a request and return its successful answer; all attempts share `seconds`.

        A request that is not repeatable is attempted once. Raises a KubeError for every other
        answer, and if there is none.
        """
        deadline = self._timing.now() + seconds
        attempt, renewed = 0, False
        while True:
            attempt += 1
            login = self._login
            try:
                return await self._attempt(login, request, deadline - self._timing.now())
            except (Unauthenticated, Untrusted):
                if renewed:
                    raise
                with anyio.move_on_after(max(0.0, deadline - self._timing.now())):
                    renewed = await self._renew(login)
                if not (renewed and request.repeatable):
                    raise
            except KubeError as error:
                remaining, draw = deadline - self._timing.now(), self._timing.draw()
                wait = pause(error, attempt, remaining=remaining, draw=draw)
                if wait is None or not request.repeatable:
                    raise
                await self._timing.sleep(wait)

    async def _attempt(self, login: Login, request: Request, remaining: float) -> Response:
        sent = False
        with anyio.move_on_after(max(0.0, remaining)):
            async with self._writing if request.is_write else self._reading:
                sent = True
                return await self._exchange(login, request, remaining)
        waited = f"no answer from {login.server}" if sent else "no free request slot"
        raise Unreachable(f"{waited} in time", sent=sent, request=str(request))

    async def _exchange(self, login: Login, request: Request, seconds: float) -> Response:
        began, code = self._timing.now(), 0
        try:
            async with login.exchange(request, read=max(READ, seconds)) as exchange:
                self._hear(exchange)
                answer = await _whole(exchange, request)
            code = answer.code
        except _LOST as error:
            raise _lost(error, login.server, request) from error
        finally:
            self._on_exchange(request.verb, code, self._timing.now() - began)
        if not _is_success(code):
            raise _refused(answer, request)
        return answer

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle: float
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a watch and yield its bytes; raises Dropped if it is cut or silent for `idle`."""
        login, opened, refusal = self._login, False, None
        try:
            async with AsyncExitStack() as stack:
                exchange = await self._open(stack, login, request, idle)
                if exchange.code == HTTPStatus.UNAUTHORIZED and await self._renew(login):
                    await stack.aclose()
                    login = self._login
                    exchange = await self._open(stack, login, request, idle)
                if _is_success(exchange.code):
                    opened = True
                    yield unpacked(exchange)
                else:
                    refusal = await _whole(exchange, request)
        except _LOST as error:
            if opened:
                raise _dropped(error, login.server, request, idle) from error
            lost = _lost(error, login.server, request)
            if isinstance(lost, Untrusted):
                await self._renew(login)
            raise lost from error
        if refusal is not None:
            raise _refused(refusal, request)

    async def _open(
        self, stack: AsyncExitStack, login: Login, request: Request, idle: float
    ) -> Exchange:
        """Return the answer once its headers arrive, which takes less than the first event."""
        began, code = self._timing.now(), 0
        try:
            with anyio.move_on_after(READ):
                watch = login.exchange(request, read=idle)
                exchange = await stack.enter_async_context(watch)
                self._hear(exchange)
                code = exchange.code
                return exchange
        finally:
            self._on_exchange(request.verb, code, self._timing.now() - began)
        raise Unreachable(f"no answer from {login.server} in time", sent=True, request=str(request))

    def _hear(self, exchange: Exchange) -> None:
        if date := wire.date(exchange.headers):
            self._server_clock.hear(date)

    async def _renew(self, stale: Login) -> bool:
        """Log in again, once for all callers whose requests with `stale` were refused.

        Return whether the login was replaced.
        """
        async with self._renewing:
            if self._login is not stale:
                return True
            if self._timing.now() < self._renew_from:
                return False
            fresh = await self._fresh()
            self._renew_from = self._timing.now() + LOGIN_EVERY
            if fresh is None:
                return False
            self._login = fresh
            await stale.retire()
            self._logins = [login for login in self._logins if not login.closed] + [fresh]
            return True

    async def _fresh(self) -> Login | None:
        try:
            return await self._log_in()
        except ConfigError:
            return None

    async def aclose(self) -> None:
        """Close every connection, including those of earlier logins."""
        for login in self._logins:
            await login.aclose()


async def _whole(exchange: Exchange, request: Request) -> Response:
    """Return an answer with its body; raises Oversized, and httpx's errors."""
    pieces, size, most = list[bytes](), 0, request.most or wire.ANSWER_LIMIT
    async for piece in unpacked(exchange):
        size += len(piece)
        if size > most:
            raise Oversized(
                f"the server's answer has more than {most // 1024**2} MiB, and no more is read",
                code=exchange.code,
                request=str(request),
            )
        pieces.append(piece)
    return Response(exchange.code, exchange.headers, b"".join(pieces))


def _is_success(code: int) -> bool:
    return HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES


def _refused(answer: Response, request: Request) -> KubeError:
    after = wire.seconds(answer.header(b"retry-after"))
    return errors.from_answer(answer.code, answer.content, after=after, request=str(request))


def _lost(error: Exception, server: str, request: Request) -> KubeError:
    """Return the error of a lost request; its `sent` says if it may have reached the server."""
    said = str(error) or type(error).__name__
    if isinstance(error, httpx.DecodingError):
        return Garbled(f"{server} sent an undecodable answer: {said}", request=str(request))
    if _causes_include(error, ssl.SSLCertVerificationError):
        return Untrusted(
            f"the certificate of {server} is not trusted: {said}", sent=False, request=str(request)
        )
    sent = not isinstance(error, _UNSENT)
    lost = "lost the answer of" if sent else "cannot reach"
    return Unreachable(f"{lost} {server}: {said}", sent=sent, request=str(request))


def _dropped(error: Exception, server: str, request: Request, idle: float) -> Dropped:
    if isinstance(error, httpx.ReadTimeout):
        return Silent(f"{server} was silent for {idle:.0f} s", request=str(request))
    said = f"{server} cut the watch: {str(error) or type(error).__name__}"
    return Dropped(said, request=str(request))


def _causes_include(error: BaseException | None, kind: type[BaseException]) -> bool:
    seen: set[int] = set()  # a timeout thrown into a generator may become its own context
    while error is not None and id(error) not in seen and not isinstance(error, kind):
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return isinstance(error, kind)
