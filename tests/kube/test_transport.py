"""Transport: what it makes of a server's bytes, wherever they are cut and whatever they are."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import os
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from hedgerow.kube import pool
from hedgerow.kube.connection import HEAD_LIMIT, READ_AHEAD, RECORD, HttpConnection
from hedgerow.kube.pool import Pool
from hedgerow.kube.sockets import ABORTING, options
from hedgerow.kube.transport import SLICE, STEP, HttpRequest, unpacked
from hedgerow.kube.wire import Response
from kube.pems import certificate

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nX-A: 2\r\n\r\n"
    b"5;name=value\r\nhello\r\n1\r\n!\r\n0\r\nX-Trailer: yes\r\n\r\n"
)


def packed(body: bytes, packing: bytes = b"gzip") -> bytes:
    """Return an answer with a body that is said to be packed so."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n"
    return head % (packing, len(body)) + body


async def loop_turns(count: int) -> None:
    """Let the loop turn so often."""
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


Conversation = Callable[["Peer"], Awaitable[None]]


@dataclass
class Peer:
    """The server's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    heard: list[bytes]
    """Whatever came of each request so far."""

    async def asked(self) -> bytes:
        """Return the next request; empty at the end."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            self.heard += [error.partial] if error.partial else []
            return b""
        self.heard.append(head)
        length = next(
            (int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.startswith(b"Content-Length")),
            0,
        )
        self.heard[-1] += await self.reader.readexactly(length)
        return self.heard[-1]

    async def say(self, *pieces: bytes) -> None:
        """Send bytes, each piece in a packet of its own."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await loop_turns(4)

    def hang_up(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(*ABORTING[0])
        self.writer.transport.abort()


@dataclass
class Server:
    """A server that does with each connection what it is told to."""

    talk: Conversation
    met: int = 0
    asked: list[bytes] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        try:
            await self.talk(Peer(reader, writer, self.asked))
        except ConnectionError:
            pass
        finally:
            writer.close()


async def one_by_one(peer: Peer) -> None:
    """Answer every request."""
    while await peer.asked():
        await peer.say(OK)


def saying(*pieces: bytes, after: Callable[[Peer], object] | None = None) -> Conversation:
    """Answer the first request with these bytes, and wait for the end or do something."""

    async def talk(peer: Peer) -> None:
        await peer.asked()
        await peer.say(*pieces)
        if after:
            after(peer)
        else:
            await peer.reader.read()

    return talk


def together(count: int) -> Conversation:
    """Answer the first requests of so many connections once all have come, then one by one."""
    came, meeting = itertools.count(1), anyio.Event()

    async def talk(peer: Peer) -> None:
        await peer.asked()
        if next(came) == count:
            meeting.set()
        await meeting.wait()
        await peer.say(OK)
        await one_by_one(peer)

    return talk


class Client:
    """Asks a server by our transport."""

    def __init__(self, url: str, **how: Any) -> None:
        usual = {"tls": None, "keep": 8, "expiry": 60.0, "options": options(15)}
        self.pool = Pool(httpx.URL(url), **usual | how)

    async def get(self, path: str, **more: Any) -> Response:
        return await self.ask("GET", path, **more)

    async def patch(self, path: str, content: bytes, **more: Any) -> Response:
        return await self.ask("PATCH", path, content, **more)

    async def ask(self, method: str, path: str, content: bytes = b"", **more: Any) -> Response:
        """Return the whole answer."""
        async with self.exchange(method, path, content, **more) as answer:
            body = b"".join([piece async for piece in unpacked(answer)])
            return Response(answer.code, answer.headers, body)

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        *,
        headers: dict[str, str] | None = None,
        read: float = 0.5,
        permit: Callable[[], object] | None = None,
    ) -> AsyncIterator[HttpConnection]:
        given = {"Host": "server", "Content-Length": str(len(content)), **(headers or {})}
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        request = HttpRequest(method, path.encode(), raw, content, read, permit=permit)
        async with aclosing(await self.pool.send(request)) as exchange:
            yield exchange


@asynccontextmanager
async def asking(url: str, **how: Any) -> AsyncIterator[Client]:
    client = Client(url, **how)
    try:
        yield client
    finally:
        await client.pool.aclose()


@asynccontextmanager
async def between(
    talk: Conversation, *, tls: Path | None = None, **how: Any
) -> AsyncIterator[tuple[Server, Client]]:
    """Yield a server and a client that speaks with it by our transport."""
    server, server_side, client_side = Server(talk), None, None
    if tls:
        server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_side.load_cert_chain(tls)
        client_side = ssl.create_default_context(cafile=str(tls))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=server_side)
    server.port = listening.sockets[0].getsockname()[1]
    base = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}"
    async with asking(base, tls=client_side, **how) as client:
        yield server, client
    listening.close()
    await listening.wait_closed()
    await loop_turns(4)


@pytest.fixture
def identity(tmp_path) -> Path:
    """A server's certificate with its key."""
    cert, key = certificate("127.0.0.1")
    path = tmp_path / "server.pem"
    path.write_bytes(cert + key)
    return path


@pytest.fixture(params=["plain", "TLS"])
def tls(request) -> Path | None:
    return None if request.param == "plain" else request.getfixturevalue("identity")


class TestAnswers:
    async def test_one_after_the_other_comes_on_one_connection(self, tls):
        async with between(one_by_one, tls=tls) as (server, client):
            found = [(await client.get("/")).content for _ in range(5)]

        assert (found, server.met) == ([b"hi"] * 5, 1)

    async def test_a_request_in_several_writes_waits_for_no_acknowledgement(self, tls):
        async with between(one_by_one, tls=tls) as (_, client):
            await client.get("/")
            [connection] = client.pool.open
            assert connection.raw_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    async def test_a_connection_has_a_buffer_of_one_record(self, identity):
        async with between(one_by_one, tls=identity) as (_, client):
            await client.get("/")
            ends = [one for one in gc.get_objects() if isinstance(one, SSLProtocol)]

            assert {len(end.get_buffer(-1)) for end in ends} == {RECORD}

    async def test_a_chunked_one_with_trailers_is_read(self):
        async with between(saying(CHUNKED)) as (_, client):
            found = await client.get("/")

        assert (found.code, found.content) == (201, b"hello!")
        assert found.header(b"x-a") == "1, 2"
        assert found.header(b"x-trailer") == ""

    @pytest.mark.parametrize("answer", [OK, CHUNKED], ids=["length", "chunked"])
    async def test_it_may_come_in_any_two_pieces(self, answer):
        async def talk(peer: Peer) -> None:
            for at in range(1, len(answer)):
                await peer.asked()
                await peer.say(answer[:at], answer[at:])
            await peer.reader.read()

        async with between(talk) as (server, client):
            found = {(await client.get("/")).content for _ in range(1, len(answer))}

        assert (found, server.met) == ({b"hi"} if answer is OK else {b"hello!"}, 1)

    @pytest.mark.parametrize("end", [Peer.hang_up, Peer.reset], ids=["closed", "reset"])
    @pytest.mark.parametrize("answer", [OK, CHUNKED], ids=["length", "chunked"])
    async def test_wherever_it_is_cut_it_is_an_error_that_may_have_been_sent(self, answer, end):
        for at in range(len(answer)):
            async with between(saying(answer[:at], after=end)) as (_, client):
                with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
                    await client.get("/")

    async def test_one_that_has_come_is_read_though_the_server_is_gone(self):
        async with (
            between(saying(OK, after=Peer.hang_up)) as (_, client),
            client.exchange("GET", "/") as answer,
        ):
            while client.pool.open:
                await anyio.lowlevel.checkpoint()
            assert await answer.read_piece() == b"hi"

    async def test_without_a_length_it_ends_with_the_connection(self):
        answer = b"HTTP/1.1 200 OK\r\n\r\nall there is"
        async with between(saying(answer, after=Peer.hang_up)) as (_, client):
            assert (await client.get("/")).content == b"all there is"

    @pytest.mark.parametrize("code", [b"204 No Content", b"304 Not Modified"])
    async def test_some_have_no_body(self, code):
        async with between(saying(b"HTTP/1.1 " + code + b"\r\n\r\n")) as (_, client):
            assert (await client.get("/")).content == b""

    @pytest.mark.parametrize(
        "before",
        [
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 2,
        ],
    )
    async def test_what_announces_it_is_left_out(self, before):
        async with between(saying(before, OK)) as (_, client):
            found = await client.get("/")

        assert (found.code, found.content) == (200, b"hi")
        assert found.header(b"link") == ""

    @pytest.mark.parametrize(
        "said",
        [
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 abc\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * (HEAD_LIMIT + 1),
            b"\x15\x03\x01\x00\x02\x02\x46",
        ],
        ids=["ssh", "status", "two lengths", "chunk", "upgrade", "endless head", "tls"],
    )
    async def test_what_is_no_answer_is_an_error(self, said):
        async with between(saying(said)) as (server, client):
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get("/")
            server.talk = one_by_one
            assert (await client.get("/")).content == b"hi"

        assert server.met == 2

    @pytest.mark.parametrize(
        "packing", [b"gzip", b"GZIP", b"gzip \t", b"identity, gzip", b"gzip,"], ids=str
    )
    async def test_a_packed_one_is_unpacked(self, packing):
        body = gzip.compress(b"hello")
        async with between(saying(packed(body, packing))) as (_, client):
            assert (await client.get("/")).content == b"hello"

    @pytest.mark.parametrize("cut", [1, 7, 1000])
    async def test_one_of_several_members_is_unpacked_however_it_is_cut(self, cut):
        members = (gzip.compress(part) for part in (b"hello", b"", bytes(STEP), b"world"))
        body = b"".join(members)
        chunks = [body[begin : begin + cut] for begin in range(0, len(body), cut)]
        packed = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        told = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        async with between(saying(told + packed + b"0\r\n\r\n")) as (_, client):
            assert (await client.get("/")).content == b"hello" + bytes(STEP) + b"world"

    @pytest.mark.parametrize("packing", [b"", b"identity", b"Identity"], ids=str)
    async def test_one_that_is_not_packed_is_taken_as_it_is(self, packing):
        async with between(saying(packed(b"hi", packing))) as (_, client):
            assert (await client.get("/")).content == b"hi"

    @pytest.mark.parametrize(
        ("packing", "body"),
        [
            (b"gzip", gzip.compress(b"hello" * 9000)[:-12]),
            (b"gzip", b"hello"),
            (b"br", b"hello"),
            (b"gzip, gzip", gzip.compress(gzip.compress(b"hello"))),
            (b"gzip", gzip.compress(b"hello") + b"more"),
            (b"gzip", gzip.compress(b"hello") + gzip.compress(b"world")[:-1]),
        ],
        ids=["cut", "no gzip", "another packing", "packed twice", "more after it", "cut later"],
    )
    async def test_what_cannot_be_unpacked_is_an_error(self, packing, body):
        async with between(saying(packed(body, packing))) as (_, client):
            with pytest.raises(httpx.DecodingError):
                await client.get("/")

    async def test_no_more_than_a_step_of_a_packed_one_is_unpacked_at_once(self):
        body = gzip.compress(bytes(5 * STEP))
        async with (
            between(saying(packed(body))) as (_, client),
            client.exchange("GET", "/") as answer,
        ):
            sizes = [len(piece) async for piece in unpacked(answer)]

        assert (sum(sizes), max(sizes)) == (5 * STEP, STEP)

    async def test_what_follows_a_member_is_not_copied_for_each_of_thousands(self):
        body = gzip.compress(os.urandom(16 * SLICE)) + gzip.compress(b"") * 5000
        async with (
            between(saying(packed(body))) as (_, client),
            client.exchange("GET", "/") as answer,
        ):
            sizes = [len(piece) async for piece in unpacked(answer)]

        # Random bytes cannot be packed: what comes out at once is what went in at once.
        assert sum(sizes) == 16 * SLICE
        assert max(sizes) < 2 * SLICE


class TestSilence:
    async def test_it_is_an_error_after_the_time_that_was_given(self, tls):
        async with between(saying(), tls=tls) as (_, client):
            with pytest.raises(httpx.ReadTimeout):
                await client.get("/", read=0.05)

    async def test_it_is_one_in_the_middle_of_a_body_as_well(self):
        async with (
            between(saying(OK[:-1])) as (_, client),
            client.exchange("GET", "/", read=0.05) as answer,
        ):
            with pytest.raises(httpx.ReadTimeout):
                [piece async for piece in unpacked(answer)]

    async def test_it_is_one_where_the_server_does_not_take_the_request(self):
        done = anyio.Event()

        async def silent(_: Peer) -> None:
            await done.wait()

        async with between(silent) as (_, client):
            with pytest.raises(httpx.ReadTimeout):
                await client.patch("/", b"x" * 2**24, read=0.05)
            done.set()  # from Python 3.12 on the end of the server waits for its connections

    async def test_a_reader_that_takes_its_time_is_none(self, monkeypatch):
        size = 8 * READ_AHEAD
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
        async with (
            between(saying(head + b"x" * size)) as (_, client),
            client.exchange("GET", "/", read=0.1) as answer,
        ):
            pieces = unpacked(answer)
            found = len(await anext(pieces))
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "time", lambda now=loop.time: now() + 10.0)
            await loop_turns(10)
            async for piece in pieces:
                assert len(piece) < 3 * READ_AHEAD
                found += len(piece)

        assert found == size

    async def test_one_exchange_does_not_inherit_the_patience_of_the_last(self):
        async def talk(peer: Peer) -> None:
            await peer.asked()
            await peer.say(OK)
            await peer.reader.read()

        async with between(talk) as (_, client):
            await client.get("/", read=60.0)
            with pytest.raises(httpx.ReadTimeout), anyio.fail_after(2.0):
                await client.get("/", read=0.05)


class TestConnections:
    async def test_one_that_the_server_closed_while_idle_is_not_used(self, tls):
        async def talk(peer: Peer) -> None:
            await peer.asked()
            await peer.say(OK)

        async with between(talk, tls=tls) as (server, client):
            for _ in range(3):
                assert (await client.get("/")).content == b"hi"
                await loop_turns(8)

        assert server.met == 3

    async def test_one_whose_end_has_only_just_arrived_is_not_used_either(self):
        """The loop has not turned since: only the kernel knows."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            async with asking(url) as client:
                met = []
                for _ in range(2):
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(client.get, "/")
                        peer, _ = await anyio.to_thread.run_sync(listening.accept)
                        await anyio.to_thread.run_sync(peer.recv, 4096)
                        peer.sendall(OK)
                    peer.close()
                    met.append(peer)

        assert len(met) == 2

    @pytest.mark.parametrize("more", [b"OTHER", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1."])
    async def test_what_nobody_asked_for_is_never_an_answer(self, more):
        other = b"HTTP/1.1 500 Oh\r\nContent-Length: 3\r\n\r\nbad"
        async with between(saying(OK + more.replace(b"OTHER", other))) as (server, client):
            found = await client.get("/")
            server.talk = one_by_one
            await client.get("/")

        assert (found.code, found.content, server.met) == (200, b"hi", 2)

    async def test_one_on_which_more_came_while_idle_is_not_used(self):
        async def talk(peer: Peer) -> None:
            await peer.asked()
            await peer.say(OK)
            await more.wait()
            await peer.say(OK)
            await peer.reader.read()

        more = anyio.Event()
        async with between(talk) as (server, client):
            await client.get("/")
            more.set()
            while client.pool.open:
                await anyio.lowlevel.checkpoint()
            assert (await client.get("/")).code == 200
            assert server.met == 2

    @pytest.mark.parametrize(
        ("answer", "is_read"),
        [(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), True), (OK[:-1], False)],
        ids=["it says close", "its body was not read to the end"],
    )
    async def test_one_that_cannot_go_on_is_closed(self, answer, is_read):
        async with between(saying(answer)) as (server, client):
            async with client.exchange("GET", "/") as exchange:
                if is_read:
                    assert b"".join([piece async for piece in unpacked(exchange)]) == b"hi"
            server.talk = one_by_one
            await client.get("/")

        assert server.met == 2

    async def test_an_old_one_is_not_used(self):
        async with between(one_by_one, expiry=0.0) as (server, client):
            await client.get("/")
            await client.get("/")

        assert server.met == 2

    async def test_no_more_idle_ones_are_kept_than_was_said(self):
        async with between(together(4), keep=2) as (_, client):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(client.get, "/")
            await loop_turns(8)
            assert len(client.pool.open) == 2
            assert len(client.pool.idle) == 2

    async def test_those_of_a_busier_time_are_cut_when_they_are_old(self, monkeypatch):
        loop, ahead = asyncio.get_running_loop(), 0.0
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + ahead)
        async with between(together(4), expiry=60.0) as (server, client):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(client.get, "/")
            ahead = 40.0
            await client.get("/")
            ahead = 80.0  # the one that was used in between is young
            await client.get("/")

            assert len(client.pool.idle) == 1
            assert server.met == 4

    async def test_closing_cuts_what_is_open(self, tls):
        opened = anyio.Event()

        async def follow(client: Client) -> None:
            with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012
                async with client.exchange("GET", "/") as answer:
                    opened.set()
                    [piece async for piece in unpacked(answer)]

        async with between(saying(OK[:-1]), tls=tls) as (_, client):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow, client)
                await opened.wait()
                await client.pool.aclose()
            with pytest.raises(httpx.ConnectError, match="closed"):
                await client.get("/")
        gc.collect()  # a ResourceWarning would fail the test

    @pytest.mark.parametrize("turns", range(12))
    async def test_cancelled_at_any_moment_the_next_answer_is_its_own(self, tls, turns):
        async def talk(peer: Peer) -> None:
            while asked := await peer.asked():
                path = asked.split()[1]
                head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(path)
                await peer.say(head, path)

        async with between(talk, tls=tls) as (_, client):
            assert (await client.get("/first")).content == b"/first"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.get, "/cancelled")
                await loop_turns(turns)
                tasks.cancel_scope.cancel()
            assert (await client.get("/next")).content == b"/next"
        gc.collect()


class TestConnecting:
    async def test_nothing_is_sent_once_it_is_closed(self):
        """Though the connection was on its way."""
        async with between(one_by_one) as (server, client):
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    with pytest.raises(httpx.ConnectError, match="closed"):
                        await client.get("/")

                tasks.start_soon(ask)
                await anyio.lowlevel.checkpoint()
                await client.pool.aclose()
            assert client.pool.open == set()

        assert server.asked == []

    async def test_a_socket_that_takes_no_options_is_one_to_which_nothing_was_sent(self):
        async with between(one_by_one, options=[(socket.SOL_SOCKET, 9999, 1)]) as (_, client):
            with pytest.raises(httpx.ConnectError):
                await client.get("/")

            assert client.pool.open == set()
        gc.collect()

    async def test_where_nobody_listens_nothing_was_sent(self):
        with socket.create_server(("127.0.0.1", 0)) as gone:
            url = f"http://127.0.0.1:{gone.getsockname()[1]}"
        async with asking(url) as client:
            with pytest.raises(httpx.ConnectError, match=r"[Cc]onnect"):
                await client.get("/")

    async def test_a_handshake_without_an_answer_is_given_up(self, monkeypatch):
        monkeypatch.setattr(pool, "CONNECT", 0.05)

        async def silent(peer: Peer) -> None:
            await peer.reader.read()

        async with between(silent) as (server, _):
            url = f"https://127.0.0.1:{server.port}"
            async with asking(url, tls=ssl.create_default_context()) as client:
                with pytest.raises(httpx.ConnectTimeout, match=r"within 0\.05 s"):
                    await client.get("/")
        gc.collect()

    async def test_an_unknown_certificate_is_told_as_one(self, identity):
        async with between(one_by_one, tls=identity) as (server, _):
            url = f"https://127.0.0.1:{server.port}"
            async with asking(url, tls=ssl.create_default_context()) as client:
                with pytest.raises(httpx.ConnectError) as told:
                    await client.get("/")

        assert isinstance(told.value.__cause__, ssl.SSLCertVerificationError)

    async def test_a_name_that_cannot_be_one_is_an_error(self):
        url = "http://" + "a" * 70
        async with asking(url) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("/")

    async def test_the_second_address_is_tried_where_the_first_does_not_work(self, monkeypatch):
        async with between(one_by_one) as (server, _):
            url = f"http://localhost:{server.port}"
            loop, original = asyncio.get_running_loop(), socket.getaddrinfo

            async def both(*_: object, **__: object) -> list[object]:
                return [
                    *original("127.0.0.2", server.port, type=socket.SOCK_STREAM),
                    *original("127.0.0.1", server.port, type=socket.SOCK_STREAM),
                ]

            monkeypatch.setattr(loop, "getaddrinfo", both)
            async with asking(url) as client:
                assert (await client.get("/")).content == b"hi"

    async def test_what_is_no_url_of_a_server_is_told(self):
        url = "server.example"
        async with asking(url) as client:
            with pytest.raises(httpx.UnsupportedProtocol):
                await client.get("/")


class TestBytesHeldBack:
    async def test_the_last_ones_wait_until_the_others_have_left(self, tls):
        """A server that reads slowly: what asyncio still holds would leave without any permit."""
        asked: list[tuple[bool, int]] = []
        begun, reads = anyio.Event(), anyio.Event()

        async def talk(peer: Peer) -> None:
            await reads.wait()
            await one_by_one(peer)

        async with between(talk, tls=tls) as (server, client):

            def permit() -> None:
                [connection] = client.pool.open
                asked.append((reads.is_set(), connection.unsent))
                begun.set()

            async with anyio.create_task_group() as tasks:
                patch = partial(client.patch, "/", b"x" * 2**24, read=60.0, permit=permit)
                tasks.start_soon(patch)
                await begun.wait()
                await loop_turns(100)
                reads.set()

        assert asked == [(False, 0), (True, 0)]
        assert len(server.asked[0]) > 2**24


class TestRequests:
    async def test_head_and_body_arrive_as_they_were_given(self):
        async with between(one_by_one) as (server, client):
            await client.patch("/a%2Fb?x=1&y=%20", content=b"body", headers={"X-One": "1"})

        [asked] = server.asked
        assert asked.startswith(b"PATCH /a%2Fb?x=1&y=%20 HTTP/1.1\r\n")
        assert b"\r\nX-One: 1\r\n" in asked
        assert asked.endswith(b"\r\n\r\nbody")

    async def test_a_large_one_arrives_whole(self, tls):
        content = bytes(range(256)) * 1024
        async with between(one_by_one, tls=tls) as (server, client):
            await client.patch("/", content=content)

        assert server.asked[0].endswith(content)

    async def test_an_answer_before_it_is_all_sent_is_taken(self):
        """As the API server answers 413: it reads no more, and closes."""
        refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"

        async def talk(peer: Peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            await peer.say(refusal)
            await peer.reader.read()

        async with between(talk) as (server, client):
            assert (await client.patch("/", content=b"x" * 2**22)).code == 413
            server.talk = one_by_one
            await client.get("/")

        assert server.met == 2

    @pytest.mark.parametrize("value", ["a\r\nX-Two: 2", "a\nb", "a\rb"])
    async def test_a_line_break_in_a_header_is_not_sent(self, value):
        async with between(one_by_one) as (server, client):
            with pytest.raises(httpx.LocalProtocolError):
                await client.get("/", headers={"X-One": value})

        assert server.met == 0

    async def test_what_forbids_it_is_asked_again_before_the_last_bytes(self):
        left = iter([True, False])

        def permit() -> None:
            if not next(left):
                raise PermissionError

        async with between(one_by_one) as (server, client):
            with pytest.raises(PermissionError):
                await client.patch("/", content=b"x" * 2**18, permit=permit)
            assert list(left) == []
            await client.get("/")

        assert server.met == 2  # the first connection was cut in the middle of the request

    async def test_one_whose_connection_was_closed_right_before_is_not_sent(self):
        def cut() -> None:
            [connection] = client.pool.open
            connection.abort()

        async with between(one_by_one) as (server, client):
            with pytest.raises(httpx.ConnectError):
                await client.patch("/", b"x", permit=cut)

        assert (server.met, server.asked) == (1, [])

    async def test_what_is_forbidden_at_once_leaves_the_connection_as_it_was(self):
        def permit() -> None:
            raise PermissionError

        async with between(one_by_one) as (server, client):
            await client.get("/")
            with pytest.raises(PermissionError):
                await client.get("/", permit=permit)
            await client.get("/")

        assert server.met == 1
