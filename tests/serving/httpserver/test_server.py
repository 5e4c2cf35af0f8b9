"""Servers: they listen, answer, keep to their bounds and end with their task group."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from unittest.mock import Mock

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.streams.tls
import httpx
import pytest
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from hedgerow.serving.httpserver import connections, limits, server
from hedgerow.serving.httpserver.addresses import Address
from hedgerow.serving.httpserver.connections import ListenError
from hedgerow.serving.httpserver.limits import Bounds
from hedgerow.serving.httpserver.server import serve
from serving.serving import (
    GET,
    LAST,
    LOCAL,
    ask,
    connections_made,
    knock,
    pair,
    secured,
    served,
    told,
)

pytestmark = pytest.mark.anyio


WAIT = GET.replace(b"/", b"/wait", 1)
LARGE = 50_000_000
"""Bytes: more than two sockets keep."""


class Desk:
    """An app with a request that waits, one that fails and one that tells the size of a body."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.go_on = anyio.Event()
        self.bodies = 0
        self.app = Starlette(
            routes=[
                Route("/", lambda _: PlainTextResponse("here")),
                Route("/large", lambda _: PlainTextResponse(bytes(LARGE))),
                Route("/wait", self._wait),
                Route("/fail", self._fail),
                Route("/endless", self._endless),
                Route("/size", self._size, methods=["POST"]),
            ]
        )

    async def _wait(self, _: Request) -> Response:
        self.asked.set()
        await self.go_on.wait()
        return PlainTextResponse("at last")

    async def _fail(self, _: Request) -> Response:
        raise RuntimeError("an oversight")

    async def _endless(self, _: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            self.asked.set()
            while True:
                yield bytes(100_000)

        return StreamingResponse(chunks())

    async def _size(self, request: Request) -> Response:
        self.bodies += 1
        self.asked.set()
        return PlainTextResponse(str(len(await request.body())))


def most(connections: int) -> Bounds:
    return Bounds(connections, 1024)


class TestListening:
    async def test_the_port_that_the_kernel_chose_is_told(self) -> None:
        async with served(Desk().app) as url, httpx.AsyncClient() as client:
            assert not url.endswith(":0")
            assert (await client.get(url)).text == "here"

    async def test_without_a_host_it_answers_on_every_address(self) -> None:
        async with anyio.create_task_group() as tasks:
            bound = await tasks.start(serve, Desk().app, Address("", 0))
            hosts = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]
            async with httpx.AsyncClient() as client:
                answers = [(await client.get(f"http://{h}:{bound.port}")).text for h in hosts]
            tasks.cancel_scope.cancel()

        assert answers == ["here"] * len(hosts)

    async def test_an_address_in_use_is_an_error_of_one_line(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            taken = Address("127.0.0.1", other.getsockname()[1])
            with pytest.raises(ListenError) as caught:
                await serve(Desk().app, taken)

        assert str(caught.value) == f"cannot listen on {taken}: Address already in use"

    @pytest.mark.parametrize(
        ("address", "why"),
        [
            (Address("192.0.2.1", 80), "Cannot assign"),  # it is not ours
            (Address("nowhere.invalid", 80), r"\S"),  # it has none
        ],
        ids=str,
    )
    async def test_so_is_one_that_cannot_be_had(self, address: Address, why: str) -> None:
        with pytest.raises(
            ListenError, match=rf"^cannot listen on {re.escape(str(address))}: {why}"
        ):
            await serve(Desk().app, address)

    async def test_and_one_that_may_not_be_had(self, monkeypatch) -> None:
        refused = Mock(side_effect=PermissionError(13, "Permission denied"))
        monkeypatch.setattr(connections.socket, "create_server", refused)
        with pytest.raises(ListenError, match=r"^cannot listen on 127\.0\.0\.1:0: Permission"):
            await serve(Desk().app, LOCAL)


class TestEnding:
    async def test_the_port_is_free_afterwards(self) -> None:
        async with served(Desk().app) as url:
            pass
        with pytest.raises(OSError):
            await knock(url)

    async def test_a_request_under_way_is_answered_first(self) -> None:
        desk, answers = Desk(), list[str]()

        async def ask(url: str) -> None:
            async with httpx.AsyncClient() as client:
                answers.append((await client.get(f"{url}/wait")).text)

        async with anyio.create_task_group() as asking, served(desk.app) as url:
            asking.start_soon(ask, url)
            await desk.asked.wait()
            asking.start_soon(_after_a_turn, desk.go_on)

        assert answers == ["at last"]

    async def test_a_request_without_end_is_given_up_in_time(self, monkeypatch) -> None:
        monkeypatch.setattr(server, "GRACE", 0)
        desk = Desk()
        with anyio.fail_after(10), structlog.testing.capture_logs() as logs:
            async with served(desk.app) as url:
                stream = await knock(url)
                await stream.send(WAIT)
                await desk.asked.wait()
            await told(stream)
            await stream.aclose()

        assert [line for line in logs if line["event"] == "request failed"] == []

    async def test_a_client_that_reads_nothing_does_not_hold_it_up(self, monkeypatch) -> None:
        monkeypatch.setattr(server, "GRACE", 0)
        desk = Desk()
        with anyio.fail_after(10):
            async with served(desk.app) as url:
                stream = await knock(url)
                await stream.send(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
                await desk.asked.wait()
            await stream.aclose()

    async def test_no_request_and_no_connection_outlives_it(self, monkeypatch) -> None:
        """One request goes on; of the other one the client does not read the answer."""
        monkeypatch.setattr(server, "GRACE", 0)
        desk, made = Desk(), connections_made(monkeypatch)
        async with served(desk.app) as url:
            first, second = await knock(url), await knock(url)
            await first.send(WAIT)
            await desk.asked.wait()
            [waiting] = made[0].tasks
            await ask(second, GET.replace(b"/", b"/large", 1))
        with anyio.fail_after(10):
            while made[0].connections or not waiting.done():
                await anyio.lowlevel.checkpoint()
        await first.aclose()
        await second.aclose()

    async def test_signals_stay_the_apps_own(self) -> None:
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        async with served(Desk().app):
            assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def _after_a_turn(event: anyio.Event) -> None:
    await anyio.lowlevel.checkpoint()
    event.set()


class TestBounds:
    async def test_a_client_that_never_asks_is_cut(self, monkeypatch) -> None:
        monkeypatch.setattr(connections, "CHECK_INTERVAL", 0.01)
        async with served(Desk().app) as url, await knock(url) as stream:
            assert await told(stream) == b""

    async def test_a_client_that_never_ends_its_second_question_is_cut(self, monkeypatch) -> None:
        look = _look(monkeypatch)
        async with served(Desk().app) as url, await knock(url) as stream:
            await ask(stream)
            monkeypatch.setattr(connections, "CHECK_INTERVAL", 0.01)
            look(1)  # from now on it looks again that soon
            await stream.send(b"GET / HTTP/1.1\r\n")
            assert b"200 OK" not in await told(stream)

    async def test_a_client_that_waits_for_its_answer_is_not_cut(self, monkeypatch) -> None:
        desk = Desk()
        look = _look(monkeypatch)
        async with served(desk.app) as url, await knock(url) as stream:
            await stream.send(LAST.replace(b"/", b"/wait", 1))
            await desk.asked.wait()
            look(5)
            desk.go_on.set()

            assert b"at last" in await told(stream)

    async def test_a_client_that_is_kept_alive_is_not_cut(self, monkeypatch) -> None:
        look = _look(monkeypatch)
        async with served(Desk().app) as url, await knock(url) as stream:
            await ask(stream)
            look(5)
            await stream.send(LAST)

            assert b"200 OK" in await told(stream)

    async def test_a_client_that_does_not_read_is_not_kept_alive(self, monkeypatch) -> None:
        """Nor for what TLS answers, beside all requests, to one that asks for new keys."""
        look = _look(monkeypatch)
        async with served(Desk().app) as url, await knock(url) as stream:
            begun = await ask(stream, GET.replace(b"/", b"/large", 1))
            look(2)
            assert len(begun + await told(stream)) < LARGE

    @pytest.mark.parametrize(
        "asked",
        [
            b"",
            b"GET / HTTP/1.1\r\n",
            GET,
            b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
        ],
        ids=["nothing", "half a head", "and is kept alive", "half a body"],
    )
    async def test_who_idles_longest_gives_way_to_who_comes(self, asked) -> None:
        desk = served(Desk().app, bounds=most(2))
        async with desk as url, await knock(url) as first, await knock(url) as second:
            await first.send(asked)
            if asked.endswith(b"\r\n\r\n"):
                assert b"200 OK" in await first.receive()
            await ask(second)
            async with httpx.AsyncClient() as client:
                assert (await client.get(url)).status_code == 200
            assert b"200 OK" not in await told(first)
            await ask(second)

    async def test_a_client_is_idle_from_its_last_answer_on(self) -> None:
        """The first one to come was also the last one to ask."""
        async with served(Desk().app, bounds=most(2)) as url, await knock(url) as first:
            await ask(first)
            async with await knock(url) as second, httpx.AsyncClient() as third:
                await ask(second)
                await ask(first)
                assert (await third.get(url)).status_code == 200
                assert await told(second) == b""
                await ask(first)

    async def test_an_idle_connection_is_kept_for_longer_than_by_a_client_in_go(
        self, monkeypatch
    ) -> None:
        """It closes one after 90 seconds; one that we closed would cost it a handshake."""
        made = connections_made(monkeypatch)
        async with served(Desk().app) as url, await knock(url) as stream:
            began = anyio.current_time()
            await ask(stream)
            timer = made[0].timeout_keep_alive_task

            assert timer is not None
            assert timer.when() - began > 90

    async def test_while_all_are_being_served_nobody_gives_way(self) -> None:
        desk = Desk()
        async with served(desk.app, bounds=most(1)) as url, await knock(url) as first:
            await first.send(LAST.replace(b"/", b"/wait", 1))
            await desk.asked.wait()
            async with await knock(url) as second:
                assert await told(second) == b""
            desk.go_on.set()

            assert b"at last" in await told(first)

    async def test_however_many_are_kept_alive_a_request_is_answered(self) -> None:
        async with (
            served(Desk().app, bounds=most(3)) as url,
            contextlib.AsyncExitStack() as clients,
        ):
            for _ in range(10):
                client = await clients.enter_async_context(httpx.AsyncClient())
                assert (await client.get(url)).status_code == 200

    async def test_one_that_does_not_end_tls_gives_way_too(self, tmp_path) -> None:
        """The server has said that it closes, and then waits for the client to do the same."""
        tls = pair(tmp_path).context()
        async with served(Desk().app, tls, most(1)) as url, await knock(url) as first:
            stream = await secured(first)
            await ask(stream, LAST)
            async with await knock(url) as second:
                await secured(second)
                await told(first)

    async def test_a_head_without_end_is_refused(self) -> None:
        async with served(Desk().app) as url, await knock(url) as stream:
            await stream.send(b"GET / HTTP/1.1\r\nX: " + b"x" * (connections.HEAD + 1))

            assert b"400 Bad Request" in await told(stream)

    async def test_large_bodies_are_taken_in_one_at_a_time_and_small_ones_beside_them(self) -> None:
        async def brought(declared: int, body: bytes) -> anyio.abc.SocketStream:
            stream = await knock(url)
            await stream.send(
                b"POST /size HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (declared, body)
            )
            return stream

        desk, large = Desk(), limits.FREE + 1
        async with served(desk.app) as url, await brought(large, b"x") as first:
            with anyio.fail_after(10):
                await desk.asked.wait()
            async with await brought(large, bytes(large)) as second:
                async with await brought(10, bytes(10)) as small:
                    assert b"200 OK" in await told(small)
                assert desk.bodies == 2
                await first.send(bytes(large - 1))
                assert b"200 OK" in await told(first)
                assert b"200 OK" in await told(second)

    async def test_a_body_that_does_not_come_is_not_waited_for(self) -> None:
        """Meanwhile it would take the place of others."""
        app = limits.Limited(Desk().app, arrival=0.01)
        async with served(app) as url, await knock(url) as stream:
            head = b"POST /size HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            await stream.send(head + b"Content-Length: 9\r\n\r\n1")
            assert b"408 Request Timeout" in await told(stream)

    async def test_a_server_takes_no_larger_body_than_its_bounds_say(self) -> None:
        async with served(Desk().app, bounds=most(3)) as url, httpx.AsyncClient() as client:
            codes = [
                (await client.post(f"{url}/size", content=bytes(n))).status_code
                for n in (1024, 1025)
            ]

        assert codes == [200, 413]

    async def test_a_request_that_takes_too_long_is_given_up(self) -> None:
        app = limits.Limited(Desk().app, seconds=0.01)
        async with served(app) as url, httpx.AsyncClient() as client:
            answer = await client.get(f"{url}/wait")

        assert (answer.status_code, answer.text) == (503, "no answer in time\n")

    async def test_an_answer_that_takes_too_long_is_cut(self) -> None:
        app = limits.Limited(Desk().app, seconds=0.2)
        with structlog.testing.capture_logs() as logs:
            async with served(app) as url, httpx.AsyncClient() as client:
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.get(f"{url}/endless")

        assert [line for line in logs if line["log_level"] == "error"] == []


def _look(monkeypatch) -> Callable[[int], None]:
    """Return what looks at all connections so many times, as if so much time had passed."""
    made = connections_made(monkeypatch)

    def look(times: int) -> None:
        assert made
        for connection in made * times:
            connection.check()

    return look


class TestTls:
    async def test_a_new_certificate_is_served_without_a_restart(self, tmp_path: Path) -> None:
        first, second = pair(tmp_path, "first"), pair(tmp_path, "second")
        context = first.context()
        async with served(Desk().app, context) as url:
            before = await _certificate(url)
            second.load_into(context)
            after = await _certificate(url)

        assert [before, after] == [first.der, second.der]


async def _certificate(url: str) -> bytes:
    async with await knock(url) as stream, await secured(stream) as client:
        return client.extra(anyio.streams.tls.TLSAttribute.peer_certificate_binary)  # noqa: S610


class TestLogs:
    async def test_a_request_that_fails_by_our_own_fault_is_logged_as_ours(self, capfd) -> None:
        with structlog.testing.capture_logs() as logs:
            async with served(Desk().app) as url, httpx.AsyncClient() as client:
                answer = await client.get(f"{url}/fail")

        assert answer.status_code == 500
        failed = [line for line in logs if line["log_level"] == "error"]
        assert [line["event"] for line in failed] == ["request failed"]
        assert "an oversight" in str(failed[0]["exc_info"])
        assert capfd.readouterr() == ("", "")

    async def test_what_any_client_can_provoke_is_no_more_than_a_detail(self, capfd) -> None:
        with structlog.testing.capture_logs() as logs:
            async with served(Desk().app) as url, await knock(url) as stream:
                await stream.send(b"nonsense\r\n\r\n")
                await told(stream)

        assert {line["log_level"] for line in logs} == {"debug"}
        assert capfd.readouterr() == ("", "")

    async def test_a_client_that_leaves_in_the_midst_of_its_body_is_no_failure(self) -> None:
        desk = Desk()
        with structlog.testing.capture_logs() as logs:
            async with served(desk.app) as url:
                async with await knock(url) as stream:
                    await stream.send(
                        b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"
                    )
                async with httpx.AsyncClient() as client:
                    await client.get(url)

        assert {line["log_level"] for line in logs} == {"debug"}

    async def test_the_date_is_told_and_the_make_of_the_server_is_not(self) -> None:
        async with served(Desk().app) as url, httpx.AsyncClient() as client:
            headers = (await client.get(url)).headers

        assert "date" in headers
        assert "server" not in headers
