"""Proxy: stands between operators and the API server, records what passes, and may spoil it.

It speaks TLS on both sides and HTTP/1.1 as httpx and the API server speak it. Each run has a line
of its own: a port, a record, and the trouble that is made on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from faults.scenario import Object

LIMIT = 2**24
"""Bytes of one head or one line of a stream."""
REVIEWS = "/apis/authorization.k8s.io/"
Tell = Callable[[bytes | None], None]
"""Sends bytes on a watch; None cuts it."""


class Drop(Exception):
    """The connection is cut here, with nothing more said on it."""


class Silence(Exception):
    """Nothing more comes on the connection, and it stays open."""


@dataclass
class Reply:
    """An answer to one request."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def json(self) -> Object:
        return json.loads(self.body) if self.body else {}


@dataclass(eq=False)
class Exchange:
    """One request, and what became of it; times by the monotonic clock."""

    number: int
    port: int
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    began: float
    ended: float = 0.0
    done: int = 0
    """The status that the API server answered with; 0 when it was not asked."""
    told: int = 0
    """The status that the operator was told; 0 for none."""
    answer: bytes = b""
    step: int = 0
    older: str = ""
    """The version to show first on a watch with initial events; the rest follows after `lag`."""
    lag: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it changes what is stored: neither a review nor a dry run does."""
        if "dryRun" in self.query or self.path.startswith(REVIEWS):
            return False
        return self.method not in {"GET", "HEAD"}

    @property
    def watches(self) -> bool:
        return self.query.get("watch") in {"1", "true"}

    @property
    def of_lease(self) -> bool:
        return "/leases/" in self.path

    @property
    def agent(self) -> str:
        return self.headers.get("user-agent", "")

    def json(self) -> Object:
        return json.loads(self.body) if self.body else {}

    def __str__(self) -> str:
        return f"{self.method} {self.path} -> {self.done or '-'}/{self.told or '-'}"


class Trouble:
    """What may go wrong on a line: nothing, unless a subclass says so.

    `before` and `after` may return a Reply to have instead of the API server's, raise Drop or
    Silence, or do something and let it pass. `told` counts how often something went wrong.
    """

    def __init__(self) -> None:
        self.fired = 0

    async def before(self, line: Line, asked: Exchange) -> Reply | None:
        """A request has come, and was not passed on yet."""
        return None

    async def after(self, line: Line, asked: Exchange, reply: Reply) -> Reply | None:
        """The API server has answered, and nobody was told yet."""
        return None

    def event(self, line: Line, asked: Exchange, event: bytes, tell: Tell) -> None:
        """An event has come on a watch, as one line, to be told or not."""
        tell(event)

    def begins(self, line: Line, step: int) -> None:
        """A step of the scenario begins."""


class Line:
    """One way to the API server: a port, what passed on it, and the trouble on it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.record: list[Exchange] = []
        self.trouble = Trouble()
        self.step = 0
        self.cutters: set[asyncio.Task[None]] = set()
        self.streams: dict[Exchange, Tell] = {}

    def writes(self, *, leases: bool = False) -> list[Exchange]:
        """Return the writes so far."""
        return [one for one in list(self.record) if one.writes and (leases or not one.of_lease)]

    def last_write(self) -> float:
        """Return when the last write began, Leases aside; 0 if there was none."""
        return max((one.began for one in self.writes()), default=0.0)


class Proxy:
    """All lines to one API server, on an event loop in a thread of its own."""

    def __init__(self, server: str, authority: str, certificate: str, key: str) -> None:
        address = urlsplit(server)
        self._target = (address.hostname or "", address.port or 443)
        self._near = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._near.load_cert_chain(certificate, key)
        self._far = ssl.create_default_context(cafile=authority)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._numbers = itertools.count()
        self._servers: dict[int, asyncio.Server] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run something on the loop, and return what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    @contextlib.contextmanager
    def line(self) -> Iterator[Line]:
        """Open a line for as long as this lasts."""
        line: Line = self.call(self._open())
        try:
            yield line
        finally:
            self.call(self._close(line))

    def begin(self, line: Line, step: int) -> None:
        """Tell the trouble on a line that a step begins."""

        async def begin() -> None:
            line.step = step
            line.trouble.begins(line, step)

        self.call(begin())

    def cut(self, line: Line) -> None:
        """Cut all connections of a line."""
        self.call(self._cut(line))

    async def _open(self) -> Line:
        line = Line(0)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task
            line.cutters.add(task)
            try:
                await _Connection(self, line, reader, writer).serve()
            finally:
                line.cutters.discard(task)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self._near, limit=LIMIT)
        line.port = server.sockets[0].getsockname()[1]
        self._servers[line.port] = server
        return line

    async def _cut(self, line: Line) -> None:
        for task in list(line.cutters):
            task.cancel()
        await asyncio.sleep(0)

    async def _close(self, line: Line) -> None:
        self._servers.pop(line.port).close()
        await self._cut(line)

    async def _stop(self) -> None:
        for server in self._servers.values():
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def number(self) -> int:
        return next(self._numbers)

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._target, ssl=self._far, limit=LIMIT)


class _Connection:
    """One connection of an operator, and the one to the API server behind it."""

    def __init__(
        self, proxy: Proxy, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy, self._line = proxy, line
        self._reader, self._writer = reader, writer
        self._far: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def serve(self) -> None:
        try:
            while (asked := await self._request()) is not None:
                self._line.record.append(asked)
                try:
                    await self._exchange(asked)
                finally:
                    asked.ended = time.monotonic()
        except (Drop, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except Silence:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._reader.read()
        except asyncio.CancelledError:
            pass
        finally:
            self._writer.transport.abort()
            if self._far:
                self._far[1].transport.abort()

    async def _request(self) -> Exchange | None:
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, headers = _head(head)
        method, target, _ = first.split(" ", 2)
        url = urlsplit(target)
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return Exchange(
            number=self._proxy.number(),
            port=self._line.port,
            method=method,
            path=url.path,
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers=headers | {":target": target},
            body=body,
            began=time.monotonic(),
            step=self._line.step,
        )

    async def _exchange(self, asked: Exchange) -> None:
        line = self._line
        reply = await line.trouble.before(line, asked)
        if reply is None:
            shown = b""
            try:
                if asked.older:
                    shown = await self._show_older(asked)
                status, headers = await self._ask(asked)
            except (OSError, asyncio.IncompleteReadError):
                # What the operator would meet: a connection that is refused or closed.
                raise Drop from None
            if asked.watches and status == 200:
                await self._stream(asked, headers, shown)
                return
            reply = Reply(status, await self._content(headers), headers)
            asked.done, asked.answer = status, reply.body if asked.writes else b""
            reply = await line.trouble.after(line, asked, reply) or reply
        await self._tell(asked, reply)

    async def _ask(self, asked: Exchange) -> tuple[int, dict[str, str]]:
        if self._far is None:
            self._far = await self._proxy.dial()
        reader, writer = self._far
        skipped = {":target", "accept-encoding"}
        names = (f"{k}: {v}" for k, v in asked.headers.items() if k not in skipped)
        head = "\r\n".join([f"{asked.method} {asked.headers[':target']} HTTP/1.1", *names])
        writer.write(f"{head}\r\n\r\n".encode() + asked.body)
        await writer.drain()
        first, headers = _head(await reader.readuntil(b"\r\n\r\n"))
        return int(first.split(" ", 2)[1]), headers

    async def _content(self, headers: dict[str, str]) -> bytes:
        assert self._far
        if headers.get("transfer-encoding") == "chunked":
            return b"".join([chunk async for chunk in _chunks(self._far[0])])
        return await self._far[0].readexactly(int(headers.get("content-length", "0")))

    async def _tell(self, asked: Exchange, reply: Reply) -> None:
        asked.told = reply.status
        kept = {
            k: v
            for k, v in reply.headers.items()
            if k not in {"content-length", "transfer-encoding", "connection"}
        }
        kept = {"content-type": "application/json", **kept}
        names = [*(f"{k}: {v}" for k, v in kept.items()), f"content-length: {len(reply.body)}"]
        head = "\r\n".join([f"HTTP/1.1 {reply.status} Told", *names])
        self._writer.write(f"{head}\r\n\r\n".encode() + reply.body)
        await self._writer.drain()

    async def _stream(self, asked: Exchange, headers: dict[str, str], shown: bytes) -> None:
        """Pass on a watch, event by event, until either end closes."""
        asked.done = asked.told = 200
        kind = headers.get("content-type", "application/json")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        self._writer.write(head.encode())
        await self._writer.drain()
        said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._line.streams[asked] = said.put_nowait
        if shown:
            said.put_nowait(shown)
        heard = asyncio.create_task(self._hear(asked, said.put_nowait))
        told = asyncio.create_task(self._say(said))
        closed = asyncio.create_task(self._reader.read(1))
        try:
            await asyncio.wait({told, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not told.done() or told.result() is None:
                raise Drop
        finally:
            del self._line.streams[asked]
            for task in (heard, told, closed):
                task.cancel()
            await asyncio.gather(heard, told, closed, return_exceptions=True)

    async def _hear(self, asked: Exchange, tell: Tell) -> None:
        """Hear the API server's events, and have the trouble tell them."""
        assert self._far
        held = b""
        try:
            if asked.lag:
                await asyncio.sleep(asked.lag)
            async for chunk in _chunks(self._far[0]):
                *whole, held = (held + chunk).split(b"\n")
                for event in whole:
                    self._line.trouble.event(self._line, asked, event + b"\n", tell)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            tell(None)
        else:
            tell(b"")

    async def _say(self, said: asyncio.Queue[bytes | None]) -> bytes | None:
        """Say what there is to say, until it is cut or, with an empty piece, at its end."""
        while piece := await said.get():
            self._writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await self._writer.drain()
        if piece == b"":
            self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()
        return piece

    async def _show_older(self, asked: Exchange) -> bytes:
        """List what there was at an older version, as a watch shows it, and go on from there."""
        old = {"resourceVersion": asked.older, "resourceVersionMatch": "Exact"}
        kept = {k: v for k, v in asked.query.items() if k == "labelSelector"}
        target = asked.headers[":target"]
        asked.headers[":target"] = f"{asked.path}?{urlencode(kept | old)}"
        status, headers = await self._ask(asked)
        found = json.loads(await self._content(headers))
        if status != HTTPStatus.OK:
            asked.headers[":target"] = target
            return b""
        kind, version = found["kind"].removesuffix("List"), found["apiVersion"]
        whole = [{"apiVersion": version, "kind": kind, **item} for item in found["items"]]
        events = [{"type": "ADDED", "object": item} for item in whole]
        marked = {"resourceVersion": asked.older}
        marked["annotations"] = {"k8s.io/initial-events-end": "true"}
        end = {"apiVersion": version, "kind": kind, "metadata": marked}
        events.append({"type": "BOOKMARK", "object": end})
        rest = {k: v for k, v in asked.query.items() if not k.startswith(("sendIn", "resourceV"))}
        rest["resourceVersion"] = asked.older
        asked.headers[":target"] = f"{asked.path}?{urlencode(rest)}"
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def _head(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return first, {name.lower(): value.strip() for name, value in pairs}


async def _chunks(reader: asyncio.StreamReader) -> Any:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
