"""Session: sends requests to one cluster: bounded, with time limits, retries and new logins."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, cast

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
from hedgerow.kube.retry import Timing, pause
from hedgerow.kube.wire import Answer, Reply, Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

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


class Login(Protocol):
    """One set of credentials, and the connections that use it."""

    @property
    def server(self) -> str:
        """The API server's URL."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace of the context, or of the pod."""
        ...

    @property
    def closed(self) -> bool:
        """Whether its connections are closed."""
        ...

    async def answer(self, request: Request, *, read: float) -> Reply:
        """Send a request and return the whole answer. Raises what httpx raises, and Oversized."""
        ...

    def watch(
        self, request: Request, *, read: float
    ) -> AbstractAsyncContextManager[httpx.Response]:
        """Begin a watch; the response's body is not read yet. Raises what httpx raises."""
        ...

    async def retire(self) -> None:
        """Close once the running calls have ended."""
        ...

    async def aclose(self) -> None:
        """Close now."""
        ...


def unheard(*_: object) -> None:
    """Do nothing."""


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
        timing: Timing,
        on_exchange: Callable[[str, int, float], object] = unheard,
    ) -> None:
        self._login = login
        self._on_exchange = on_exchange
        self._logins = [login]
        self._log_in = log_in
        self._timing = timing
        self._slots = anyio.Semaphore(concurrency, fast_acquire=True)  # saves one loop turn
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

    async def send(self, request: Request, *, seconds: float) -> Answer:
        """Send a request and return its successful answer; all attempts share `seconds`.

        Raises a KubeError for every other answer, and if there is none.
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
                if not renewed:
                    raise
            except KubeError as error:
                wait = pause(
                    error,
                    attempt,
                    repeatable=request.repeatable,
                    remaining=deadline - self._timing.now(),
                    draw=self._timing.draw(),
                )
                if wait is None:
                    raise
                if request.unanswered and isinstance(error, Unreachable) and error.sent:
                    request.unanswered()  # the next attempt may fail in a way that tells nothing
                await self._timing.sleep(wait)

    async def _attempt(self, login: Login, request: Request, remaining: float) -> Answer:
        sent = False
        with anyio.move_on_after(max(0.0, remaining)):
            async with self._slots:
                sent = True
                return await self._exchange(login, request)
        waited = f"no answer from {login.server}" if sent else "no free request slot"
        raise Unreachable(f"{waited} in time", sent=sent, request=str(request))

    async def _exchange(self, login: Login, request: Request) -> Answer:
        began, code = self._timing.now(), 0
        try:
            reply = await login.answer(request, read=READ)
            code = reply.code
        except _LOST as error:
            raise _lost(error, login.server, request) from error
        finally:
            self._on_exchange(request.verb, code, self._timing.now() - began)
        if not _is_success(code):
            raise _refused(reply, request)
        told = wire.warnings(reply.header(b"warning"))
        return Answer(code, reply.content, ", ".join(reply.header(b"content-type")), told)

    @asynccontextmanager
    async def stream(
        self, request: Request, *, idle: float
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a watch and yield its bytes; raises Dropped if it is cut or silent for `idle`."""
        login, opened, reply = self._login, False, None
        try:
            async with AsyncExitStack() as stack:
                response = await self._open(stack, login, request, idle)
                if response.status_code == HTTPStatus.UNAUTHORIZED and await self._renew(login):
                    await stack.aclose()
                    login = self._login
                    response = await self._open(stack, login, request, idle)
                if _is_success(response.status_code):
                    opened = True
                    yield _pieces(response)
                else:
                    reply = await whole(response, request)
        except _LOST as error:
            if opened:
                raise _dropped(error, login.server, request, idle) from error
            lost = _lost(error, login.server, request)
            if isinstance(lost, Untrusted):
                await self._renew(login)
            raise lost from error
        if reply is not None:
            raise _refused(reply, request)

    async def _open(
        self, stack: AsyncExitStack, login: Login, request: Request, idle: float
    ) -> httpx.Response:
        """Return the response once its headers arrive, which takes less than the first event."""
        began, code = self._timing.now(), 0
        try:
            with anyio.move_on_after(READ):
                watch = login.watch(request, read=idle)
                response = await stack.enter_async_context(watch)
                code = response.status_code
                return response
        finally:
            self._on_exchange(request.verb, code, self._timing.now() - began)
        raise Unreachable(f"no answer from {login.server} in time", sent=True, request=str(request))

    async def _renew(self, stale: Login) -> bool:
        """Log in again, once for all callers that `stale` was refused for.

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


def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return a watch's bytes as they arrive; httpx's own layers only where they unpack."""
    if "Content-Encoding" in response.headers:
        return response.aiter_bytes()
    return aiter(cast("httpx.AsyncByteStream", response.stream))


async def whole(response: httpx.Response, request: Request) -> Reply:
    """Return a response with its body; raises Oversized, and what httpx raises."""
    pieces, size, most = list[bytes](), 0, limit(request)
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > most:
            raise oversized(response.status_code, request)
        pieces.append(piece)
    return Reply(response.status_code, response.headers.raw, b"".join(pieces))


def limit(request: Request) -> int:
    """Return the most bytes of a request's answer, unpacked."""
    return request.most or wire.ANSWER_LIMIT


def oversized(code: int, request: Request) -> Oversized:
    """Return the error of an answer with more bytes than that."""
    said = f"the server's answer has more than {limit(request) // 1024**2} MiB, and no more is read"
    return Oversized(said, code=code, request=str(request))


def _is_success(code: int) -> bool:
    return HTTPStatus.OK <= code < HTTPStatus.MULTIPLE_CHOICES


def _refused(reply: Reply, request: Request) -> KubeError:
    after = wire.seconds(", ".join(reply.header(b"retry-after")))
    return errors.from_answer(reply.code, reply.content, after=after, request=str(request))


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
