"""ApiServer: the cluster in memory behind the HTTP of an API server, answered by value.

It takes what `hedgerow.kube.session.Session` sends through a `Login`, and gives `httpx` responses:
everything above the socket is the operator's own. Watches have versions, bookmarks, initial events
and an end; what goes wrong on the way is decided by the `Exchange` that a caller passes each
request through.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

import anyio
import httpx

from hedgerow.encoding import decode
from hedgerow.kube import fence, wire
from hedgerow.kube.wire import Request
from hedgerow.testing.memory import kinds
from hedgerow.testing.memory.answers import Refused
from hedgerow.testing.memory.cluster import selects
from hedgerow.testing.memory.kind import ServedKind
from hedgerow.testing.memory.podspec import ANY
from hedgerow.testing.memory.schema import Atomic, Object, Struct
from hedgerow.testing.memory.server import Server, StoredKey
from hedgerow_schemas.base import ApiResource
from model import ours

EPOCH = 1_767_225_600
"""2026-01-01T00:00:00Z, the beginning of every run."""
BOOKMARKS = 60.0
"""Seconds between two bookmarks of a watch."""
COLLECTED = 1.0
"""Seconds until what was made for an owner that is gone goes too."""
LATENCY = 0.01
"""Seconds that a request takes there and back, unless a test says otherwise."""
SYNCED = {"k8s.io/initial-events-end": "true"}

NAMESPACE = ServedKind(
    ApiResource("v1", "Namespace", "namespaces", namespaced=False),
    {"spec": Struct({"finalizers": Atomic()}), "status": Struct({"phase": ANY})},
)


@dataclass(frozen=True)
class Entry:
    """One event of the log: what happened to an object, and what it was before."""

    version: int
    type: str
    key: StoredKey
    object: Object
    before: Object | None


class Store(Server):
    """The model's server with a log, a history and a clock that goes by itself."""

    def __init__(self, wall: Callable[[], float]) -> None:
        custom = (ours.bluegreen(), ours.cronjob(), ours.guestbook(), ours.memcached())
        self._wall = wall
        self.log: list[Entry] = []
        self.on_entry: Callable[[Entry], None] = lambda _entry: None
        seen = (NAMESPACE, kinds.POD, kinds.ENDPOINT_SLICE)
        super().__init__((*kinds.BUILTIN, *seen, *custom), namespaces=("",))
        self.kinds = {kind.api.plural: kind for kind in self._kinds.values()}
        self.past: list[tuple[int, dict[StoredKey, Object]]] = [(self.version, {})]
        """Every version, and all there was at it."""

    @property
    def now(self) -> int:
        """The server's wall clock, in seconds."""
        return math.floor(self._wall())

    @now.setter
    def now(self, _second: int) -> None:
        """The clock goes by itself."""

    def _append_event(self, event: Any, last: Object) -> None:
        key = self._key(last)
        before = self.past[-1][1].get(key)
        self.past.append((self.version, dict(self._objects)))
        entry = Entry(self.version, event, key, last, before)
        self.log.append(entry)
        self.on_entry(entry)

    def peek(self, target: Object) -> Object | None:
        """Return an object without a copy; not to be changed."""
        return self._objects.get(self._key(target))

    def all(self) -> dict[StoredKey, Object]:
        """Every object there is; not to be changed."""
        return dict(self._objects)

    def at(self, version: int) -> dict[StoredKey, Object]:
        """All there was at a version."""
        for number, objects in reversed(self.past):
            if number <= version:
                return objects
        return {}

    def restore(self, version: int) -> None:
        """Go back to an earlier version, as an etcd that is restored from a snapshot does."""
        objects = self.at(version)
        self.version, self._objects = version, dict(objects)
        self.log = [entry for entry in self.log if entry.version <= version]
        self.past = [one for one in self.past if one[0] <= version]
        names = {key[3] for key in objects if key[1] == "Namespace"}
        self._namespaces = {"": "Active"} | {
            name: "Terminating" if self._is_going(name) else "Active" for name in names
        }

    def forget_namespace(self, name: str) -> None:
        """Have a namespace gone."""
        self._namespaces.pop(name, None)

    def _is_going(self, namespace: str) -> bool:
        live = self._objects.get(("", "Namespace", "", namespace))
        return live is not None and "deletionTimestamp" in live["metadata"]


@dataclass(eq=False)
class Exchange:
    """One request on its way, and what came of it; `client` names who sent it."""

    number: int
    client: str
    request: Request
    verb: str
    """apply, delete, read, list, watch, review or get."""
    api: ApiResource
    namespace: str
    name: str
    subresource: str
    body: Object
    sent: float
    code: int = 0
    """What was answered; 0 when nothing was."""
    effect: bool = False
    """Whether the server carried it out."""
    before: Object | None = None
    after: Object | None = None

    @property
    def writes(self) -> bool:
        return self.verb in {"apply", "delete"} and "dryRun" not in self.request.params

    @property
    def manager(self) -> str:
        return self.request.params.get("fieldManager", "")

    @property
    def force(self) -> bool:
        return self.request.params.get("force") == "true"

    def __str__(self) -> str:
        tail = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.api.kind} {self.namespace}/{self.name}{tail}"


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
        self.swaps = False
        """Whether the next event comes after the one that follows it."""
        self._held = b""
        self.least = 0
        """Nothing of a version that is not above this is told, bookmarks included."""

    @property
    def kind(self) -> str:
        return self.exchange.api.kind

    def line(self, line: bytes) -> None:
        """Send a line, whatever it is."""
        if not self.silent and not self._over:
            due = anyio.current_time() + self.lag
            self._lines.append((max([due, *(at for at, _ in self._lines[-1:])]), line))
            self._rouse()

    def tell(self, entry: Entry) -> None:
        """Send an event, if the watch is about its object."""
        line = self.line_of(entry)
        if not line or entry.version <= self.least:
            return
        if self.swaps:
            self.swaps, self._held = False, line
            return
        self.line(line)
        self.release()

    def release(self) -> None:
        """Send what is held back for the next event, which may never come."""
        self.swaps, held, self._held = False, self._held, b""
        if held:
            self.line(held)

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


class _Body(httpx.AsyncByteStream):
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks


def line(event: str, obj: Object) -> bytes:
    """Write one event of a watch."""
    return wire.encode({"type": event, "object": obj}) + b"\n"


@dataclass(frozen=True)
class Reply:
    """An answer before it is sent."""

    code: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class ApiServer:
    """The API server: a store, its log, and the watches on it.

    `hook` is what each exchange goes through: it calls `act` to have the request carried out and
    gives the reply, or raises what httpx raises; it may wait.
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        self.store = Store(wall)
        self.store.on_entry = self._told
        self.streams: list[Stream] = []
        self.exchanges: list[Exchange] = []
        self.hook: Callable[[Exchange, Callable[[], Reply]], Any] = _through
        self.watch_hook: Callable[[Exchange, bool], Any] = _open
        self.compacted = 0
        """Versions below this one are gone: a watch from there gets 410."""

    def _told(self, entry: Entry) -> None:
        for stream in self.streams:
            stream.tell(entry)
        if entry.type == "ADDED" and entry.object["metadata"].get("ownerReferences"):
            asyncio.get_running_loop().call_later(COLLECTED, self._collect, entry.object)

    def _collect(self, obj: Object) -> None:
        """Delete what was made for an owner that is gone, as the garbage collector does."""
        meta, live = obj["metadata"], self.store.peek(obj)
        if live is None or live["metadata"]["uid"] != meta["uid"]:
            return
        there = {other["metadata"]["uid"] for other in self.store.all().values()}
        if not any(owner["uid"] in there for owner in meta["ownerReferences"]):
            self.store.delete(obj, uid=meta["uid"])

    @asynccontextmanager
    async def call(
        self, client: str, request: Request, *, read: float, watch: bool
    ) -> AsyncGenerator[httpx.Response]:
        """Answer one request as a `Login` does."""
        if request.permit is not None:
            fence.check(request, request.permit)
        exchange = self._exchange(client, request)
        self.exchanges.append(exchange)
        if watch:
            async with self._watch(exchange, read) as response:
                yield response
            return
        try:
            with anyio.fail_after(read):
                reply = await self.hook(exchange, lambda: self._act(exchange))
        except TimeoutError:
            raise httpx.ReadTimeout("") from None
        exchange.code = reply.code
        yield self._response(reply)

    def _response(self, reply: Reply) -> httpx.Response:
        content = reply.body if isinstance(reply.body, bytes) else wire.encode(reply.body)
        headers = {"Content-Type": "application/json", **self._dated(), **reply.headers}
        return httpx.Response(reply.code, headers=headers, content=content)

    def _dated(self) -> dict[str, str]:
        return {"Date": formatdate(self.store.now, usegmt=True)}

    # --- requests -----------------------------------------------------------------------------

    def _exchange(self, client: str, request: Request) -> Exchange:
        number, now = len(self.exchanges), anyio.current_time()
        steps = [unquote(step) for step in request.path.split("/")[1:]]
        root, steps = steps[0], steps[1:]
        body = decode(request.content) if request.content else {}
        verb = {"apply": "apply", "delete": "delete", "watch": "watch"}.get(request.verb, "read")
        version = steps[0] if root == "api" else "/".join(steps[:2])
        steps = steps[1:] if root == "api" else steps[2:]
        if root not in {"api", "apis"} or not steps:
            api = ApiResource("", "", "", namespaced=False)
            return Exchange(number, client, request, "get", api, "", "", "", body, now)
        namespace = ""
        if steps[0] == "namespaces" and len(steps) > 2:
            namespace, steps = steps[1], steps[2:]
        plural, name, subresource, *_ = (*steps, "", "")
        if request.method == "POST":
            verb = "review"
        elif verb == "read" and not name:
            verb = "list"
        kind = self.store.kinds.get(plural)
        api = kind.api if kind else ApiResource(version, "", plural)
        return Exchange(number, client, request, verb, api, namespace, name, subresource, body, now)

    def _act(self, exchange: Exchange) -> Reply:
        """Carry a request out."""
        store, body = self.store, exchange.body
        if exchange.verb == "get":
            return Reply(200, {"gitVersion": "v1.36.0", "metadata": {}})
        if exchange.verb == "review":
            return Reply(201, {"metadata": {}, "status": {"allowed": True}})
        target = _target(exchange)
        try:
            if exchange.verb == "list":
                return self._list(exchange)
            exchange.before = store.peek(target)
            if exchange.verb == "read":
                return _found(exchange)
            version = store.version
            reply = self._write(exchange, target, body)
            exchange.effect = store.version != version
        except Refused as refused:
            return Reply(refused.code, refused.status)
        exchange.after = store.peek(target)
        return reply

    def _write(self, exchange: Exchange, target: Object, body: Object) -> Reply:
        if exchange.verb == "delete":
            wanted: Object = body.get("preconditions", {})
            self.store.delete(
                target, uid=wanted.get("uid", ""), version=wanted.get("resourceVersion", "")
            )
            return Reply(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}})
        live, created = self.store.apply(
            body,
            exchange.manager,
            subresource=exchange.subresource,
            force=exchange.force,
            dry_run="dryRun" in exchange.request.params,
        )
        return Reply(201 if created else 200, live)

    def _list(self, exchange: Exchange) -> Reply:
        version, items = self.shown(exchange)
        body = {
            "apiVersion": exchange.api.group_version,
            "kind": f"{exchange.api.kind}List",
            "metadata": {"resourceVersion": str(version)},
            "items": items,
        }
        return Reply(200, body)

    def shown(self, exchange: Exchange, version: int = 0) -> tuple[int, list[Object]]:
        """Return a version (the newest for 0) and the objects that are selected at it."""
        objects = self.store.at(version) if version else self.store.all()
        api, labels = exchange.api, exchange.request.params.get("labelSelector", "")
        return version or self.store.version, [
            obj
            for (group, kind, namespace, _), obj in sorted(objects.items())
            if (group, kind) == (api.group, api.kind)
            and exchange.namespace in {"", namespace}
            and selects(labels, obj)
        ]

    # --- watches ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _watch(self, exchange: Exchange, idle: float) -> AsyncGenerator[httpx.Response]:
        params = exchange.request.params
        initial = params.get("sendInitialEvents") == "true"
        opening: Opening | Reply = await self.watch_hook(exchange, initial)
        if isinstance(opening, Reply):
            exchange.code = opening.code
            yield self._response(opening)
            return
        exchange.code = 200
        stream = Stream(self, exchange)
        self._begin(stream, opening, initial=initial)
        self.streams.append(stream)
        try:
            yield httpx.Response(200, headers=self._dated(), stream=_Body(stream.chunks(idle)))
        finally:
            self.streams.remove(stream)

    def _begin(self, stream: Stream, opening: Opening, *, initial: bool) -> None:
        """Tell what there is, or what has happened since a version."""
        store = self.store
        if initial:
            version, items = self.shown(stream.exchange, opening.version)
            for item in items:
                stream.line(line("ADDED", item))
            metadata = {"resourceVersion": str(version), "annotations": SYNCED}
            stream.line(line("BOOKMARK", {"metadata": metadata}))
            since = version
        else:
            since = int(stream.exchange.request.params["resourceVersion"])
            stream.least = since
            if since < self.compacted:
                stream.line(line("ERROR", expired().body))
                stream.end()
                return
        stream.lag = opening.lag
        for entry in store.log:
            if entry.version > since:
                stream.tell(entry)
        stream.lag = 0.0
        stream.silent = opening.silent


@dataclass(frozen=True)
class Opening:
    """How a watch begins: at which version its initial events are, and how late the rest comes."""

    version: int = 0
    lag: float = 0.0
    silent: bool = False


def expired() -> Reply:
    """Answer that a version is too old."""
    return refusal(410, "Expired", "too old resource version")


def refusal(code: int, reason: str, message: str = "", *, after: int = 0) -> Reply:
    """Answer with a Status."""
    headers = {"Retry-After": str(after)} if after else {}
    status = Refused(code, reason, message or f"the server says {code}").status
    return Reply(code, status, headers)


async def _through(_exchange: Exchange, act: Callable[[], Reply]) -> Reply:
    await anyio.sleep(LATENCY / 2)
    reply = act()
    await anyio.sleep(LATENCY / 2)
    return reply


async def _open(_exchange: Exchange, _initial: bool) -> Opening:
    await anyio.sleep(LATENCY)
    return Opening()


def _found(exchange: Exchange) -> Reply:
    if exchange.before is None:
        raise Refused(404, "NotFound", "not found", name=exchange.name)
    return Reply(200, exchange.before)


def _target(exchange: Exchange) -> Object:
    metadata = {"name": exchange.name}
    if exchange.namespace:
        metadata["namespace"] = exchange.namespace
    api = exchange.api
    return {"apiVersion": api.group_version, "kind": api.kind, "metadata": metadata}
