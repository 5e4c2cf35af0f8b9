"""Streams: the watches of the API server in memory, told line by line, late or cut on request."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import httpx

from hedgerow.kube import wire
from hedgerow_testing.memory.cluster import selects
from hedgerow_testing.memory.schema import Object
from support.server.store import Entry

if TYPE_CHECKING:
    from support.server.apiserver import ApiServer, Exchange

BOOKMARKS = 60.0
"""Seconds between two bookmarks of a watch."""
SYNCED = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True)
class Opening:
    """How a watch begins: at which version its initial events are, and how late the rest comes."""

    version: int = 0
    lag: float = 0.0


class Stream:
    """One watch that is open: what it is told leaves as lines, in order, `lag` seconds late."""

    def __init__(self, server: ApiServer, exchange: Exchange) -> None:
        params = exchange.request.params
        self.server, self.exchange = server, exchange
        self.labels = params.get("labelSelector", "")
        self._ends = anyio.current_time() + float(params.get("timeoutSeconds", "290"))
        self.silent = False
        """Whether nothing arrives any more, its end neither: a half-open connection."""
        self.lag = 0.0
        self._lines: list[tuple[float, bytes]] = []
        self._error: Exception | None = None
        self._over = False
        self._news = anyio.Event()
        self.least = 0
        """Nothing of a version that is not above this is told, bookmarks included."""

    @property
    def kind(self) -> str:
        return self.exchange.api.kind

    def line(self, line: bytes) -> None:
        """Send a line, unless the server's `line_hook` does something else with it."""
        self.server.line_hook(self, line)

    def send(self, line: bytes) -> None:
        """Send a line, whatever it is."""
        if not self.silent and not self._over and not self._error:
            due = anyio.current_time() + self.lag
            self._lines.append((max([due, *(at for at, _ in self._lines[-1:])]), line))
            self._rouse()

    def tell(self, entry: Entry) -> None:
        """Send an event, if the watch is about its object."""
        line = self.line_of(entry)
        if line and entry.version > self.least:
            self.line(line)

    def line_of(self, entry: Entry) -> bytes:
        """Write an event as this watch tells it; nothing for what it does not select."""
        group, kind, namespace, _ = entry.key
        api = self.exchange.api
        if (api.group, api.kind) != (group, kind):
            return b""
        if self.exchange.namespace not in {"", namespace}:
            return b""
        was = entry.before is not None and selects(self.labels, entry.before)
        now = entry.type != "DELETED" and selects(self.labels, entry.object)
        if now:
            return line("MODIFIED" if was else "ADDED", entry.object)
        if not was or entry.before is None:
            return b""
        # What the selector selects no more is told as deleted: its last form, at the new version.
        metadata = {**entry.before["metadata"], "resourceVersion": str(entry.version)}
        return line("DELETED", {**entry.before, "metadata": metadata})

    def bookmark(self, *, synced: bool = False) -> None:
        version = self.server.store.version
        if version < self.least:
            return
        metadata: Object = {"resourceVersion": str(version)}
        if synced:
            metadata["annotations"] = SYNCED
        self.line(line("BOOKMARK", {"metadata": metadata}))

    def end(self) -> None:
        """Close it in good order, once everything on its way has left."""
        self._over = True
        self._rouse()

    def cut(self, error: Exception | None = None, *, rest: bytes = b"") -> None:
        """Cut it, with what is on its way, after part of a line perhaps."""
        self._lines = [(0.0, rest)] if rest else []
        self._error = error or httpx.RemoteProtocolError("peer closed connection")
        self._rouse()

    async def chunks(self, idle: float) -> AsyncIterator[bytes]:
        """Yield what is sent, as it becomes due; raises what httpx raises."""
        bookmark = anyio.current_time() + BOOKMARKS
        # The very number that is waited for: `now - heard >= idle` may be false at that time.
        tired = anyio.current_time() + idle
        while True:
            now = anyio.current_time()
            if self._lines and self._lines[0][0] <= now:
                ripe = [text for due, text in self._lines if due <= now]
                self._lines = self._lines[len(ripe) :]
                tired = now + idle
                yield b"".join(ripe)
                continue
            if self._error:
                raise self._error
            if (self._over and not self._lines) or (now >= self._ends and not self.silent):
                return
            if now >= bookmark:
                bookmark += BOOKMARKS
                self.bookmark()
                continue
            if now >= tired:
                raise httpx.ReadTimeout("")
            ends = math.inf if self.silent else self._ends
            until = min(bookmark, tired, ends, *(due for due, _ in self._lines[:1]))
            news = self._news
            with anyio.move_on_after(max(0.0, until - now)):
                await news.wait()

    def _rouse(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class Body(httpx.AsyncByteStream):
    """The body of an answer that comes piece by piece."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks


def line(event: str, obj: Object) -> bytes:
    """Write one event of a watch."""
    return wire.encode({"type": event, "object": obj}) + b"\n"
