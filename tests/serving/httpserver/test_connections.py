"""Connections: what clients without a handshake may take, and what remains of one that is gone."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
import ssl
import struct
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import anyio.abc
import anyio.lowlevel
import h11
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import RequestResponseCycle

from hedgerow.serving.httpserver import connections
from hedgerow.serving.httpserver.connections import Connection
from serving.serving import GET, LAST, ask, connections_made, knock, pair, secured, served

pytestmark = pytest.mark.anyio

ABORTING = struct.pack("ii", 1, 0)
HALVES = (SSLProtocol, Connection)
"""What asyncio and uvicorn make for each client."""
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"


async def size(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


APP = Starlette(routes=[Route("/", size, methods=["GET", "POST"])])


async def answered(stream: anyio.abc.ByteStream) -> bool:
    """Return whether a client that begins only now is answered."""
    with anyio.fail_after(10):
        try:
            client = await secured(stream)
            await client.send(GET)
            return b"200 OK" in await client.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, ssl.SSLError):
            return False


class TestHandshakes:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch) -> None:
        monkeypatch.setattr(connections, "MOST_SILENT", 2)
        monkeypatch.setattr(connections, "HANDSHAKE", 60)
        gc.freeze()

    @pytest.fixture
    async def url(self, tmp_path: Path) -> AsyncIterator[str]:
        async with served(APP, pair(tmp_path).context()) as url:
            yield url

    async def test_one_beyond_the_limit_takes_the_place_of_the_first(self, url: str) -> None:
        async with await knock(url) as first, await knock(url) as second, await knock(url) as third:
            answers = [await answered(client) for client in (first, second, third)]

        assert answers == [False, True, True]

    async def test_who_made_it_is_not_counted(self, url: str) -> None:
        async with await knock(url) as first:
            assert await answered(first)
            async with await knock(url) as second, await knock(url) as third:
                answers = [await answered(second), await answered(third)]

        assert answers == [True, True]

    async def test_who_left_is_not_counted(self, url: str) -> None:
        async with await knock(url) as first:
            async with await knock(url):
                await until_held(2)
            await until_held(1)
            async with await knock(url) as third:
                answers = [await answered(first), await answered(third)]

        assert answers == [True, True]


class TestAccepting:
    @pytest.mark.parametrize("tls", [False, True])
    async def test_small_writes_are_sent_at_once(self, tls, tmp_path, monkeypatch) -> None:
        """An answer is two writes: the second would wait 40 ms for the first's acknowledgement."""
        made = connections_made(monkeypatch)
        context = pair(tmp_path).context() if tls else None
        async with served(APP, context) as url, await knock(url) as client:
            await ask(await secured(client) if tls else client)
            [connection] = made
            option = connection.transport.get_extra_info("socket").getsockopt
            assert option(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    async def test_a_turn_of_the_loop_accepts_one_client(self, monkeypatch) -> None:
        loop, turns, accepted = asyncio.get_running_loop(), [0], list[int]()
        accept, going = loop.sock_accept, [True]

        def turn() -> None:
            turns[0] += 1
            if going:
                loop.call_soon(turn)

        async def noted(listening: socket.socket) -> object:
            accepted.append(turns[0])
            return await accept(listening)

        monkeypatch.setattr(loop, "sock_accept", noted)
        async with served(APP) as url:
            turn()
            place = ("127.0.0.1", int(url.rpartition(":")[2]))
            clients = [socket.create_connection(place) for _ in range(5)]
            with anyio.fail_after(10):
                while len(accepted) <= len(clients):
                    await anyio.lowlevel.checkpoint()
            for client in clients:
                client.close()
            going.clear()

        assert len(set(accepted)) == len(accepted)

    async def test_one_that_is_cut_is_not_counted_any_more(self, monkeypatch) -> None:
        """Many handshakes may end in one turn, and it is lost only in the next."""
        accepted = connections_made(monkeypatch)
        async with served(APP) as url, await knock(url):
            with anyio.fail_after(10):
                while not accepted:
                    await anyio.lowlevel.checkpoint()
            [connection] = accepted
            connection.cut()
            assert connection.connections == set()

    async def test_it_goes_on_when_files_can_be_opened_again(self, monkeypatch) -> None:
        monkeypatch.setattr(connections, "RETRY", 0)
        loop = asyncio.get_running_loop()
        accept, failed = loop.sock_accept, list[int]()

        async def failing(listening: socket.socket) -> object:
            if len(failed) < 3:
                failed.append(errno.EMFILE)
                raise OSError(errno.EMFILE, "Too many open files")
            return await accept(listening)

        monkeypatch.setattr(loop, "sock_accept", failing)
        async with served(APP) as url, await knock(url) as client:
            await ask(client)

        assert len(failed) == 3


class TestRequests:
    async def test_a_body_in_chunks_is_refused_before_they_are_read(self, monkeypatch) -> None:
        """Of one byte each, those of many clients would hold the event loop for a minute."""
        read, next_event = 0, h11.Connection.next_event

        def counted(self: h11.Connection) -> object:
            nonlocal read
            read += 1
            return next_event(self)

        monkeypatch.setattr(h11.Connection, "next_event", counted)
        head = POST.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked")
        async with served(APP) as url, await knock(url) as client:
            await client.send(head + b"1\r\na\r\n" * 9_000)
            assert b" 400 Bad Request" in await client.receive()

        assert read == 1

    async def test_a_long_token_is_taken(self) -> None:
        more = b"Authorization: Bearer " + b"a" * 30_000
        async with served(APP) as url, await knock(url) as client:
            await ask(client, GET.replace(b"x\r\n", b"x\r\n" + more + b"\r\n"))


LEAVERS = (
    ("never begins TLS", False, b""),
    ("stops within the handshake", False, b"\x16\x03\x01"),
    ("knows no TLS", False, GET),
    ("never asks", True, b""),
    ("knows no HTTP", True, b"\0" * 50_000),
    ("stops within a head", True, GET[:20]),
    ("is kept alive", True, GET),
    ("asks once", True, LAST),
    ("stops within a body", True, POST + b"1"),
)


class TestGone:
    """The garbage collector runs rarely, so a connection that is gone may not be part of a cycle.

    One takes 60 kB, and whoever can connect can open 700 a second.
    """

    @pytest.fixture(autouse=True)
    def uncollected(self) -> Iterator[None]:
        gc.collect()
        gc.freeze()  # of what a worker holds already, nothing is looked through
        gc.disable()
        yield
        gc.enable()

    @pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
    @pytest.mark.parametrize(
        ("handshake", "sent"), [one[1:] for one in LEAVERS], ids=[one[0] for one in LEAVERS]
    )
    async def test_one_that_left_leaves_nothing(self, handshake, sent, reset, tmp_path) -> None:
        async with served(APP, pair(tmp_path).context()) as url:
            client = await knock(url)
            stream = await secured(client) if handshake else client
            await stream.send(sent)
            if handshake and (sent.endswith(b"\r\n\r\n") or sent.startswith(b"\0")):
                await stream.receive()
            if reset:
                raw = client.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORTING)
            await client.aclose()
            await until_held(0)

    async def test_one_whose_handshake_takes_too_long_leaves_nothing(
        self, tmp_path, monkeypatch
    ) -> None:
        monkeypatch.setattr(connections, "HANDSHAKE", 0.01)
        async with served(APP, pair(tmp_path).context()) as url, await knock(url):
            with anyio.fail_after(10):
                while not held():
                    await anyio.lowlevel.checkpoint()
            await until_held(0)

    async def test_one_that_gave_way_leaves_nothing(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr(connections, "MOST_SILENT", 1)
        async with served(APP, pair(tmp_path).context()) as url:
            async with await knock(url), await knock(url), await knock(url) as last:
                assert await answered(last)
            await until_held(0)


def held() -> int:
    """Return how many objects there are of a server's connections, whatever refers to them."""
    kinds = (*HALVES, RequestResponseCycle)
    return sum(isinstance(one, kinds) for one in gc.get_objects())


async def until_held(connections: int) -> None:
    """Wait until there are that many connections, none of which has asked for anything."""
    with anyio.fail_after(10):
        while held() != connections * len(HALVES):
            await anyio.lowlevel.checkpoint()
