"""ApiServer: the cluster in memory behind the HTTP of an API server, answered by value.

It takes what `hedgerow.kube.session.Session` sends through a `Login`, and gives `httpx` responses:
everything above the socket is the operator's own. Watches have versions, bookmarks, initial events
and an end. What goes wrong on the way is decided by the `hook` that each request passes through.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, cast
from urllib.parse import unquote

import anyio
import httpx

from hedgerow.encoding import decode
from hedgerow.kube import fence, review_requests, wire
from hedgerow.kube.wire import Request
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.crd import CRD
from hedgerow_testing.memory.answers import Refused, missing
from hedgerow_testing.memory.cluster import has_fields, selects
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_testing.memory.schema import Object
from hedgerow_testing.memory.server import Server
from hedgerow_tools.planning.client_side import MERGE_PATCH
from support.server import itself
from support.server.store import Entry, Store
from support.server.streams import SYNCED, Body, Opening, Stream, line

EPOCH = 1_767_225_600
"""2026-01-01T00:00:00Z, the beginning of every run."""
COLLECTED = 1.0
"""Seconds until what was made for an owner that is gone goes too."""
LATENCY = 0.01
"""Seconds that a request takes there and back, unless a test says otherwise."""
REVIEWS = frozenset(review_requests.REVIEWS.values())
ESTABLISHED: Object = {
    "status": {
        "conditions": [
            {"type": "NamesAccepted", "status": "True"},
            {"type": "Established", "status": "True"},
        ]
    }
}
"""What becomes of a definition, at once."""
DONE: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}}


@dataclass(eq=False)
class Exchange:
    """One request on its way, and what came of it; `client` names who sent it."""

    number: int
    client: str
    request: Request
    verb: str
    """apply, delete, read, list, watch, create, patch, edit (by JSON patch), review or get."""
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
    def dry_run(self) -> bool:
        return "dryRun" in self.request.params

    @property
    def writes(self) -> bool:
        return self.verb in {"apply", "delete"} and not self.dry_run

    @property
    def key(self) -> str:
        """What `ApiServer.answers` knows it by."""
        return self.request.path if self.verb == "get" else f"{self.verb} {self.api.kind}"

    @property
    def right(self) -> str:
        """What one needs for it: a verb of the API, and the resource."""
        verb = {"apply": "patch", "edit": "patch", "read": "get"}.get(self.verb, self.verb)
        return f"{verb} {'/'.join(filter(None, (self.api.plural, self.subresource)))}"

    @property
    def manager(self) -> str:
        return self.request.params.get("fieldManager", "")

    @property
    def force(self) -> bool:
        return self.request.params.get("force") == "true"

    def __str__(self) -> str:
        tail = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.api.kind} {self.namespace}/{self.name}{tail}"


@dataclass(frozen=True)
class Reply:
    """An answer before it is sent."""

    code: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


Act = Callable[[], Reply]
Answer = Reply | Exception | Callable[[Exchange, Act], Reply | Awaitable[Reply]]


class ApiServer:
    """The API server: a store, its log, and the watches on it.

    `hook` is what each exchange goes through: it calls `act` to have the request carried out and
    gives the reply, or raises what httpx raises; it may wait. The usual one gives what `answers`
    has for the verb and kind, as in `list Lease`, or for the path of anything else: a reply, an
    error that is raised, or a function that may wait, and act first.

    `model` is what a world has already; nothing of it can be watched here.
    """

    def __init__(
        self,
        wall: Callable[[], float] = lambda: EPOCH,
        *,
        kinds: Iterable[ServedKind] = (),
        latency: float = LATENCY,
        model: Server | None = None,
    ) -> None:
        self.store = cast("Store", model) if model else Store(wall, kinds)
        self.store.on_entry = self._told
        self.streams: list[Stream] = []
        self.exchanges: list[Exchange] = []
        self.answers: dict[str, Answer] = {}
        self.denied: set[str] = set()
        """The rights that nobody has, as in `patch services` or `patch bluegreens/status`."""
        self.rules: list[Object] | None = None
        """The rights that are shown: by default all, and none where any is denied."""
        self.logins: list[dict[str, Any]] = []
        """What its clients were connected with."""
        self.warnings: tuple[str, ...] = ()
        """What each write is answered with besides."""
        self.hook: Callable[[Exchange, Act], Any] = self.through
        self.watch_hook: Callable[[Exchange, bool], Any] = self._open
        self.line_hook: Callable[[Stream, bytes], object] = Stream.send
        self.compacted = 0
        """Versions below this one are gone: a watch from there gets 410."""
        self._latency = latency

    def asked(self, *verbs: str) -> list[tuple[str, str, str]]:
        """Return kind, namespace and name of each request with one of these verbs."""
        found = [exchange for exchange in self.exchanges if exchange.verb in verbs]
        return [(one.api.kind, one.namespace, one.name) for one in found]

    def refuse(self, kind: str, answer: Answer) -> None:
        """Answer whatever is applied to a kind, tried as client-side apply does, or edited."""
        self.answers |= {f"{verb} {kind}": answer for verb in ("apply", "create", "patch", "edit")}

    async def through(self, exchange: Exchange, act: Act) -> Reply:
        """Carry a request out, unless there is an answer for it."""
        await anyio.sleep(self._latency / 2)
        answer = self.answers.get(exchange.key)
        if isinstance(answer, Exception):
            raise answer
        reply = answer or act()
        if not isinstance(reply, Reply):
            reply = reply(exchange, act)
        if not isinstance(reply, Reply):
            reply = await reply
        await anyio.sleep(self._latency / 2)
        return reply

    async def _open(self, exchange: Exchange, _initial: bool) -> Opening | Reply:
        await anyio.sleep(self._latency)
        return self._barred(exchange) or Opening()

    def _barred(self, exchange: Exchange) -> Reply | None:
        """Refuse what nobody has the right to."""
        if exchange.right not in self.denied:
            return None
        return refusal(403, "Forbidden", f"you cannot {exchange.right}")

    def _told(self, entry: Entry) -> None:
        for stream in self.streams:
            stream.tell(entry)
        if entry.type == "ADDED" and entry.object["kind"] == CRD.kind:
            self.store.merge(entry.object, ESTABLISHED, "kube-apiserver", "status")
        if entry.type == "ADDED" and entry.object["metadata"].get("ownerReferences"):
            with suppress(RuntimeError):  # what is laid out before a loop runs stays
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
        depth = 1 if root == "api" else 2
        version, steps = "/".join(steps[:depth]), steps[depth:]
        if root not in {"api", "apis"} or not steps:
            api = ApiResource("", "", "", namespaced=False)
            return Exchange(number, client, request, "get", api, "", "", "", body, now)
        namespace = ""
        if steps[0] == "namespaces" and len(steps) > 2:
            namespace, steps = steps[1], steps[2:]
        plural, name, subresource, *_ = (*steps, "", "")
        verb = _verb(request, name, is_review=version in REVIEWS)
        api = self._api(version, plural, body if verb == "review" else {})
        return Exchange(number, client, request, verb, api, namespace, name, subresource, body, now)

    def _api(self, version: str, plural: str, body: Object) -> ApiResource:
        found = (a for a in self.store.apis if (a.group_version, a.plural) == (version, plural))
        return next(found, None) or ApiResource(version, body.get("kind", ""), plural)

    def _act(self, exchange: Exchange) -> Reply:
        """Carry a request out."""
        if exchange.verb == "get":
            return self._get(exchange)
        if exchange.verb == "review":
            return self._review(exchange)
        if barred := self._barred(exchange):
            return barred
        try:
            return self._list(exchange) if exchange.verb == "list" else self._one(exchange)
        except Refused as refused:
            return Reply(refused.code, refused.status)

    def _one(self, exchange: Exchange) -> Reply:
        """Read or write an object."""
        store, target = self.store, _target(exchange)
        exchange.before = store.peek(target)
        if exchange.verb == "read":
            return _found(exchange)
        version = store.version
        reply = self._write(exchange, target, exchange.body)
        exchange.effect = store.version != version
        exchange.after = store.peek(target)
        return reply

    def _review(self, exchange: Exchange) -> Reply:
        shown = ([] if self.denied else [itself.EVERY]) if self.rules is None else self.rules
        status = itself.reviewed(exchange.body, self.denied, shown)
        return Reply(201, {"metadata": {}, "status": status})

    def _get(self, exchange: Exchange) -> Reply:
        found = itself.told(exchange.request.path, self.store.apis)
        return Reply(200, found) if found else Reply(404, unserved().status)

    def _write(self, exchange: Exchange, target: Object, body: Any) -> Reply:
        """Write; the body of an `edit` is a JSON patch."""
        dry_run, manager = exchange.dry_run, exchange.manager
        store = self.store.fork() if dry_run else self.store
        created, live = False, DONE
        match exchange.verb:
            case "delete":
                wanted: Object = body.get("preconditions", {})
                uid, version = wanted.get("uid", ""), wanted.get("resourceVersion", "")
                store.delete(target, uid=uid, version=version)
            case "create":
                live, created = store.create(body, manager), True
            case "patch":
                live = store.merge(target, body, manager, exchange.subresource)
            case "edit":
                live = store.edit(target, body)
            case _:
                how: Any = {"subresource": exchange.subresource, "dry_run": dry_run}
                live, created = self.store.apply(body, manager, force=exchange.force, **how)
        headers = {"Warning": ", ".join(f'299 - "{text}"' for text in self.warnings)}
        return Reply(201 if created else 200, live, headers if self.warnings else {})

    def _list(self, exchange: Exchange) -> Reply:
        if not exchange.api.kind:
            raise unserved()
        params = exchange.request.params
        at, _, first = params.get("continue", "0.0").partition(".")
        version, items = self.shown(exchange, int(at))
        end = int(first) + int(params.get("limit", len(items)))
        metadata: Object = {"resourceVersion": str(version)}
        if more := len(items[end:]):
            metadata |= {"continue": f"{version}.{end}", "remainingItemCount": more}
        body = {
            "apiVersion": exchange.api.group_version,
            "kind": f"{exchange.api.kind}List",
            "metadata": metadata,
            "items": [_as_asked(exchange, item) for item in items[int(first) : end]],
        }
        return Reply(200, body)

    def shown(self, exchange: Exchange, version: int = 0) -> tuple[int, list[Object]]:
        """Return a version (the newest for 0) and the objects that are selected at it."""
        objects = self.store.at(version) if version else self.store.all()
        api, params = exchange.api, exchange.request.params
        labels, fields = params.get("labelSelector", ""), params.get("fieldSelector", "")
        return version or self.store.version, [
            obj
            for (group, kind, namespace, _), obj in sorted(objects.items())
            if (group, kind) == (api.group, api.kind)
            and exchange.namespace in {"", namespace}
            and selects(labels, obj)
            and has_fields(fields, obj)
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
            yield httpx.Response(200, headers=self._dated(), stream=Body(stream.chunks(idle)))
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


def expired() -> Reply:
    """Answer that a version is too old."""
    return refusal(410, "Expired", "too old resource version")


def refusal(code: int, reason: str, message: str = "", *, after: int = 0) -> Reply:
    """Answer with a Status."""
    headers = {"Retry-After": str(after)} if after else {}
    status = Refused(code, reason, message or f"the server says {code}").status
    return Reply(code, status, headers)


def unserved() -> Refused:
    """Return the 404 of a path at which nothing is served."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def _verb(request: Request, name: str, *, is_review: bool) -> str:
    if request.method == "POST":
        return "review" if is_review else "create"
    if request.method == "PATCH" and request.verb != "apply":
        return "patch" if request.content_type == MERGE_PATCH else "edit"
    verb = request.verb if request.verb in {"apply", "delete", "watch"} else "read"
    return "list" if verb == "read" and not name else verb


def _as_asked(exchange: Exchange, obj: Object) -> Object:
    """Return an object, without all but its metadata where no more was asked for."""
    is_partial = exchange.request.accept in {wire.METADATA, wire.METADATA_LIST}
    return {"metadata": obj["metadata"]} if is_partial else obj


def _found(exchange: Exchange) -> Reply:
    if exchange.before is None:
        raise missing(exchange.name)
    return Reply(200, _as_asked(exchange, exchange.before))


def _target(exchange: Exchange) -> Object:
    metadata = {"name": exchange.name}
    if exchange.namespace:
        metadata["namespace"] = exchange.namespace
    api = exchange.api
    return {"apiVersion": api.group_version, "kind": api.kind, "metadata": metadata}
