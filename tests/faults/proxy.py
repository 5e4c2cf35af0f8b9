"""Proxy: stands between operators and the API server, records what passes, and may spoil it.

It speaks TLS on both sides and HTTP/1.1 as httpx and the API server speak it. Each run has a line
of its own: a port, a record, and the trouble that is made on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from faults.exchange import Drop, Exchange, Line, Reply, Silence, Watch

LIMIT = 2**24
"""Bytes of one head or one line of a stream."""


class ProxyWatch:
    """A watch that is open: what is sent on it waits here; None cuts it, nothing ends it."""

    def __init__(self) -> None:
        self.silent = False
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(self, line: bytes) -> None:
        if not self.silent:
            self._lines.put_nowait(line)

    def cut(self, *, rest: bytes = b"") -> None:
        if rest:
            self._lines.put_nowait(rest)
        self._lines.put_nowait(None)

    async def next(self) -> bytes | None:
        return await self._lines.get()


class ProxyLine(Line):
    """One way to the API server: a port."""

    def __init__(self) -> None:
        super().__init__("")
        self.port = 0
        self.cutters: set[asyncio.Task[None]] = set()
        self.open: dict[Exchange, Watch] = {}

    @property
    def streams(self) -> dict[Exchange, Watch]:
        return self.open

    async def call(self, act: Callable[[], object]) -> None:
        await asyncio.to_thread(act)


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
    def line(self) -> Iterator[ProxyLine]:
        """Open a line for as long as this lasts."""
        line: ProxyLine = self.call(self._open())
        try:
            yield line
        finally:
            self.call(self._close(line))

    def begin(self, line: Any, step: int) -> None:
        """Tell the trouble on a line that a step begins."""

        def begin() -> None:
            line.step = step
            line.trouble.begins(line, step)

        self.do(begin)

    def do(self, act: Callable[[], object]) -> None:
        """Do something on the loop."""

        async def done() -> None:
            act()

        self.call(done())

    def cut(self, line: Any) -> None:
        """Cut all connections of a line."""
        self.call(self._cut(line))

    async def _open(self) -> ProxyLine:
        line = ProxyLine()

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
        line.client = str(line.port)
        self._servers[line.port] = server
        return line

    async def _cut(self, line: ProxyLine) -> None:
        for task in list(line.cutters):
            task.cancel()
        await asyncio.sleep(0)

    async def _close(self, line: ProxyLine) -> None:
        self._servers.pop(line.port).close()
        await self._cut(line)

    async def _stop(self) -> None:
        for server in self._servers.values():
            server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._target, ssl=self._far, limit=LIMIT)


class _Connection:
    """One connection of an operator, and the one to the API server behind it."""

    def __init__(
        self,
        proxy: Proxy,
        line: ProxyLine,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
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
            client=self._line.client,
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
        reply = await line.trouble.request(line, asked, partial(self._carried_out, asked))
        asked.told = reply.status
        if reply.opens:
            await self._stream(asked, reply)
        else:
            await self._tell(reply)

    async def _carried_out(self, asked: Exchange) -> Reply:
        """Have the API server carry out a request; it ends with the answer, or as a watch opens."""
        try:
            shown = await self._show_older(asked) if asked.older else b""
            status, headers = await self._ask(asked)
            asked.done = status
            if asked.watches and status == HTTPStatus.OK:
                return Reply(status, shown, headers, opens=True)
            reply = Reply(status, await self._content(headers), headers)
        except (OSError, asyncio.IncompleteReadError):
            # What the operator would meet: a connection that is refused or closed.
            raise Drop from None
        asked.answer = reply.body if asked.writes else b""
        return reply

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

    async def _tell(self, reply: Reply) -> None:
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

    async def _stream(self, asked: Exchange, reply: Reply) -> None:
        """Pass on a watch, event by event, until either end closes."""
        kind = reply.headers.get("content-type", "application/json")
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        self._writer.write(head.encode())
        await self._writer.drain()
        watch = self._line.open[asked] = ProxyWatch()
        for line in reply.body.splitlines(keepends=True):
            watch.send(line)
        heard = asyncio.create_task(self._hear(asked, watch))
        told = asyncio.create_task(self._say(watch))
        closed = asyncio.create_task(self._reader.read(1))
        try:
            await asyncio.wait({told, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not told.done() or told.result() is None:
                raise Drop
        finally:
            del self._line.open[asked]
            for task in (heard, told, closed):
                task.cancel()
            await asyncio.gather(heard, told, closed, return_exceptions=True)

    async def _hear(self, asked: Exchange, watch: ProxyWatch) -> None:
        """Hear the API server's events, and have the trouble tell them."""
        assert self._far
        held = b""
        try:
            if asked.lag:
                await asyncio.sleep(asked.lag)
            async for chunk in _chunks(self._far[0]):
                *whole, held = (held + chunk).split(b"\n")
                for event in whole:
                    self._line.trouble.event(self._line, asked, event + b"\n", watch.send)
        except (OSError, ValueError, asyncio.IncompleteReadError):
            watch.cut()
        else:
            watch.send(b"")

    async def _say(self, watch: ProxyWatch) -> bytes | None:
        """Say what there is to say, until it is cut or, with an empty piece, at its end."""
        while piece := await watch.next():
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
