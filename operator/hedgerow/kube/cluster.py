"""Cluster: the requests that hedgerow sends to an API server: applies, deletes, reads, reviews."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import checkpoint

from hedgerow.contract import unreduced
from hedgerow.kube import bodies, dry_runs, fence, selection, wire
from hedgerow.kube.errors import Gone, Missing, Oversized, Stale, discovery_of
from hedgerow.kube.object_api import ApplyResult
from hedgerow.kube.review_requests import review
from hedgerow.kube.watch import IDLE, Listing, Undecoded, WatchEvent
from hedgerow.kube.wire import APPLY, JSON, METADATA, METADATA_LIST, Request
from hedgerow_schemas.base import ApiResource, Object

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
    from datetime import datetime

    from msgspec import Raw

    from hedgerow.kube.session import Session
    from hedgerow.shard import Shard

AT_ONCE = 128 * 1024
"""Bytes of a page that are decoded between two turns of the event loop: a few milliseconds."""
SMALLER = 10
"""The factor by which a page of a list is made smaller if it had too many bytes."""
SECONDS = 10.0
"""Seconds for all attempts at a request, where the one who connects names no other number."""
PAGE_SECONDS = 60.0
"""The same for one page of a list."""
GET_SECONDS = 30.0
"""The same for what is at any path."""
WRITE_SECONDS = 35.0
"""The same for a write and a dry run: an API server ends them itself after 34, with webhooks."""


class Cluster:
    """One API server, as one user. Every method raises a `hedgerow.kube.errors.KubeError`."""

    def __init__(
        self,
        session: Session,
        writes: Session | fence.Fence | None = None,
        shard: Shard | None = None,
        patience: float = 0.0,
    ) -> None:
        """`patience`: the seconds for each request; 0 leaves it to the kind of request."""
        self._session = session
        self._writes = writes or session
        self._shard = shard
        self._patience = patience

    def fenced(self, permit: fence.Permit, unanswered: fence.Hook = fence.unheard) -> Cluster:
        """Return the same cluster with a Fence: every write except dry runs needs a permit."""
        fenced = fence.Fence(self._session, permit, unanswered)
        return Cluster(self._session, fenced, patience=self._patience)

    def only(self, shard: Shard) -> Cluster:
        """Return the same cluster, whose lists and watches have a shard's objects alone."""
        return Cluster(self._session, self._writes, shard, self._patience)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._session.server

    @property
    def namespace(self) -> str:
        """The namespace of the context, or in a pod that of its service account, or `default`."""
        return self._session.namespace

    def server_time(self) -> datetime | None:
        """Return the time of the API server's clock; None if no answer has told it.

        See `hedgerow.kube.server_clock`.
        """
        return self._session.server_time()

    async def apply(
        self,
        api: ApiResource,
        body: Mapping[str, Any],
        *,
        manager: str,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
        timeout: float = 0.0,  # noqa: ASYNC109 - a budget, over several attempts
    ) -> ApplyResult:
        """Apply `body`, all that `manager` declares, and return the result.

        Raises Conflict if other managers hold fields with other values, unless `force` is set. A
        body with a uid or version is sent once: in the meantime, what it was made from may have
        changed, such as who owns the object. After Unreachable with `sent`, it may have arrived.
        """
        metadata: Mapping[str, Any] = body["metadata"]
        name, namespace = str(metadata["name"]), str(metadata.get("namespace", ""))
        params = {"fieldManager": manager, "fieldValidation": "Strict"}
        if force:
            params["force"] = "true"
        if dry_run:
            params["dryRun"] = "All"
        request = Request(
            "PATCH",
            wire.path(api, namespace, name, subresource),
            params,
            bodies.whole(api, body),
            APPLY,
            repeatable=dry_run or not metadata.keys() & {"uid", "resourceVersion"},
        )
        sender = self._session if dry_run else self._writes
        answer = await sender.send(request, seconds=timeout or self._patience or WRITE_SECONDS)
        return ApplyResult(
            await bodies.kubernetes(answer, request),
            answer.code == HTTPStatus.CREATED,
            answer.warnings,
        )

    async def dry_run_create(
        self, api: ApiResource, namespace: str, body: Object, *, manager: str
    ) -> ApplyResult:
        """Return what a client-side apply would create, by a dry run."""
        request = dry_runs.created(api, namespace, body, manager=manager)
        answer = await self._session.send(request, seconds=self._patience or WRITE_SECONDS)
        return ApplyResult(await bodies.kubernetes(answer, request), False, answer.warnings)

    async def send(self, request: Request) -> Object:
        """Send a request that a command made itself, and return the object in the answer.

        The operator never does: `tests/architecture/test_writes.py` names the commands.
        """
        answer = await self._writes.send(request, seconds=self._patience or WRITE_SECONDS)
        return await bodies.kubernetes(answer, request)

    async def read_object(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        partial: bool = False,
        timeout: float = 0.0,  # noqa: ASYNC109
    ) -> Object | None:
        """Return the object, or None; raises Missing if the server does not serve the kind.

        A `partial` object has nothing but metadata, besides its kind.
        """
        accept = METADATA if partial else JSON
        request = Request("GET", wire.path(api, namespace, name), accept=accept)
        try:
            answer = await self._session.send(request, seconds=timeout or self._patience or SECONDS)
        except Missing as error:
            if error.served:
                return None
            raise
        obj = await bodies.kubernetes(answer, request)
        if partial:
            obj.update({"apiVersion": api.group_version, "kind": api.kind})
        return obj

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: str = "",
        page: int = 500,
        reduce: Callable[[Object], Object] = unreduced,
        partial: bool = False,
    ) -> Listing:
        """Return all objects as of one version; each is reduced when its page arrives.

        With `version`, the list is not older than that. If the continue token expires, the list is
        read again in one piece, as client-go does. `partial` objects have nothing but metadata.
        """
        params = _selected(labels, fields)
        if version:
            params |= {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
        path = wire.path(api, namespace)
        try:
            limited = {**params, "limit": str(page)}
            return await self._pages(api, path, limited, reduce, partial=partial)
        except Gone:
            return await self._pages(api, path, params, reduce, partial=partial)

    async def _pages(
        self,
        api: ApiResource,
        path: str,
        params: dict[str, str],
        reduce: Callable[[Object], Object],
        *,
        partial: bool,
    ) -> Listing:
        accept = METADATA_LIST if partial else JSON
        items: list[Object] = []
        undecoded: list[Undecoded] = []
        identity = {"apiVersion": api.group_version, "kind": api.kind}
        while True:
            limit = int(params.get("limit", "0"))
            most = wire.PAGE_LIMIT if limit > 1 else 0
            request = Request("GET", path, params, most=most, accept=accept)
            try:
                answer = await self._session.send(request, seconds=self._patience or PAGE_SECONDS)
            except Oversized:
                if limit <= 1:
                    raise
                params = {**params, "limit": str(max(1, limit // SMALLER))}
                continue
            metadata, contents = await bodies.items(answer, request, self._shard)
            async for item in _decoded(contents, request, self._shard):
                if isinstance(item, Undecoded):
                    undecoded.append(item)
                else:
                    item.update(identity)
                    items.append(reduce(item))
            if not metadata.get("continue"):
                version = str(metadata.get("resourceVersion", ""))
                return Listing(tuple(items), version, tuple(undecoded))
            params = {**params, "continue": str(metadata["continue"])}
            params.pop("resourceVersion", None)  # the token holds the version
            params.pop("resourceVersionMatch", None)

    async def watch(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        since: str = "",
        initial: bool = False,
        partial: bool = False,
        seconds: int = 290,
        idle: float = IDLE,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield the events after version `since`, until the server ends the watch after `seconds`.

        `partial` objects have nothing but metadata.

        With `initial`, first yield every object as ADDED and a Bookmark that is `synced` (a
        WatchList). Raises Gone if `since` is too old, Dropped if the stream is cut or silent for
        `idle` seconds (bookmarks come each minute), and Garbled if a line is not an event.
        """
        params = _selected(labels, fields)
        params |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        if initial:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if since:
            params["resourceVersion"] = since
        accept = METADATA if partial else JSON
        request = Request("GET", wire.path(api, namespace), params, accept=accept)
        lines, shard = wire.LineSplitter(), self._shard
        async with self._session.stream(request, idle=idle) as chunks:
            async for chunk in chunks:
                for line in bodies.lines(lines, chunk, request):
                    if shard is not None and selection.drops(shard, line):
                        continue
                    event = await bodies.event(line, request)
                    if shard is None or selection.has(shard, event):
                        yield event

    async def delete(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        version: str = "",
        timeout: float = 0.0,  # noqa: ASYNC109
    ) -> bool:
        """Delete the object with this `uid`, and this `version` if given; False if it is gone.

        Raises Stale if it exists, but has another version.
        """
        path = wire.path(api, namespace, name)
        options = bodies.delete(uid, version)
        request = Request("DELETE", path, content=options, content_type=JSON, repeatable=False)
        try:
            await self._writes.send(request, seconds=timeout or self._patience or WRITE_SECONDS)
        except Missing as error:
            if not error.served:
                raise
            return False
        except Stale:
            live = await self.read_object(api, name, namespace, timeout=timeout)
            if live is not None and live["metadata"]["uid"] == uid:
                raise
            return False
        return True

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        timeout: float = 0.0,  # noqa: ASYNC109
    ) -> Any:
        """Return what is at any path (`/version`, `/openapi/v3/…`): a JSON value, or else text."""
        request = Request("GET", path, params or {})
        answer = await self._session.send(request, seconds=timeout or self._patience or GET_SECONDS)
        if not answer.header(b"content-type").startswith(JSON):
            return answer.content.decode("utf-8", "replace")
        return bodies.json(answer, request)

    async def resource(self, group_version: str, kind: str) -> ApiResource:
        """Return a kind from the server's discovery; raises Missing if it is not served."""
        root = "apis" if "/" in group_version else "api"
        request = discovery_of(kind, group_version)
        try:
            listing = await self.get(f"/{root}/{group_version}")
        except Missing as error:
            raise Missing(_UNSERVED, code=error.code, request=request) from error
        for entry in listing.get("resources") or ():
            if entry["kind"] == kind and "/" not in entry["name"]:
                return ApiResource(group_version, kind, entry["name"], entry["namespaced"])
        raise Missing(_UNSERVED, code=HTTPStatus.NOT_FOUND, request=request)

    async def review(
        self,
        kind: str,
        spec: Mapping[str, Any],
        *,
        timeout: float = 0.0,  # noqa: ASYNC109
    ) -> Object:
        """Return the status of a review, of a kind in `hedgerow.kube.review_requests`."""
        request = review(kind, spec)
        answer = await self._session.send(request, seconds=timeout or self._patience or SECONDS)
        return (await bodies.kubernetes(answer, request)).get("status") or {}


_UNSERVED = "the server does not serve it; is its CRD installed?"


async def _decoded(
    contents: Iterable[Raw], request: Request, shard: Shard | None
) -> AsyncGenerator[Object | Undecoded]:
    """Yield the objects of a page that are a shard's, in stretches that the event loop can bear."""
    size = 0
    for content in contents:
        size += len(content)
        if size > AT_ONCE:
            size = 0
            await checkpoint()
        item = bodies.item(content, request)
        if shard is None or selection.has(shard, item):
            yield item


def _selected(labels: str, fields: str) -> dict[str, str]:
    return {k: v for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v}
