"""Cluster: the few things that hedgerow asks of an API server; all but one write are applies."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from hedgerow.kube import adoption, bodies, clientside, fence, reviews, wire
from hedgerow.kube.errors import Gone, Invalid, Missing, Oversized, Stale
from hedgerow.kube.watch import Listing, WatchEvent
from hedgerow.kube.wire import APPLY, JSON, Request
from hedgerow_schemas.base import ApiResource, Object

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from hedgerow.kube.fence import Sender
    from hedgerow.kube.session import Session

SMALLER = 10
"""Times: how much smaller a page is asked for than one that had too many bytes."""
PAGE_SECONDS = 60.0
"""Seconds for one page of a list, all attempts together."""
REHEARSAL_SECONDS = 30.0
"""Seconds for a dry run of a client-side apply, all attempts together."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The object as the server has it after an apply; `created` when it was not there before."""

    object: Object
    created: bool
    warnings: tuple[str, ...] = ()


def _whole(item: Object) -> Object:
    return item


class Cluster:
    """One API server, as one user. Every method raises a `hedgerow.kube.errors.KubeError`."""

    def __init__(self, session: Session, writes: Sender | None = None) -> None:
        self._session = session
        self._writes = writes or session

    def fenced(self, permit: fence.Permit, unanswered: fence.Hook = fence.unheard) -> Cluster:
        """Return the same cluster with every write but a dry run bound to a permit, by a Fence."""
        return Cluster(self._session, fence.Fence(self._session, permit, unanswered))

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self._session.server

    @property
    def namespace(self) -> str:
        """The context's namespace; in a pod, that of its service account; else `default`."""
        return self._session.namespace

    async def apply(
        self,
        api: ApiResource,
        body: Mapping[str, Any],
        *,
        manager: str,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
        timeout: float = 10.0,  # noqa: ASYNC109 - a budget, over several attempts
    ) -> Applied:
        """Apply `body`, the whole of what `manager` declares; raises Conflict, never takes over.

        A body with `metadata.resourceVersion` is sent again only when the first certainly did not
        arrive: after Unreachable with `sent`, the caller has to look.
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
            repeatable=dry_run or not metadata.get("resourceVersion"),
        )
        sender = self._session if dry_run else self._writes
        answer = await sender.send(request, seconds=timeout)
        return Applied(
            bodies.kubernetes(answer, request), answer.code == HTTPStatus.CREATED, answer.warnings
        )

    async def rehearse_create(
        self, api: ApiResource, namespace: str, body: Object, *, manager: str
    ) -> Applied:
        """Return what a client-side apply would create: a dry run."""
        return await self._rehearsed(clientside.created(api, namespace, body, manager=manager))

    async def rehearse_patch(
        self, api: ApiResource, namespace: str, name: str, patch: Object, *, manager: str
    ) -> Applied:
        """Return what a client-side apply would make of an object that is there: a dry run."""
        request = clientside.patched(api, namespace, name, patch, manager=manager)
        return await self._rehearsed(request)

    async def _rehearsed(self, request: Request) -> Applied:
        answer = await self._session.send(request, seconds=REHEARSAL_SECONDS)
        return Applied(bodies.kubernetes(answer, request), False, answer.warnings)

    async def replace_managed_fields(
        self,
        api: ApiResource,
        live: Object,
        edits: Mapping[int, Mapping[str, Any] | None],
        *,
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Object:
        """Have entries of managed fields go, or keep less: the one write that is no apply.

        See `hedgerow.kube.adoption.request`. Raises Stale when the object is no longer `live`.
        """
        request = adoption.request(api, live, edits)
        try:
            answer = await self._writes.send(request, seconds=timeout)
        except Invalid as error:
            if error.code == HTTPStatus.UNPROCESSABLE_ENTITY and not error.causes:
                # All that a server says of a test that fails.
                raise Stale("it changed in the meantime", request=str(request)) from error
            raise
        return bodies.kubernetes(answer, request)

    async def read(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Object | None:
        """Return the object, or None; raises Missing when the server does not know the kind."""
        request = Request("GET", wire.path(api, namespace, name))
        try:
            return bodies.kubernetes(await self._session.send(request, seconds=timeout), request)
        except Missing as error:
            if error.served:
                return None
            raise

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: str = "",
        page: int = 500,
        reduce: Callable[[Object], Object] = _whole,
    ) -> Listing:
        """Return all objects as of one version, page by page, each reduced as its page arrives.

        With `version`, not older than that one. When it takes so long that the continue token
        expires, the list is taken again in one piece, as client-go does.
        """
        params = _selected(labels, fields)
        if version:
            params |= {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
        path = wire.path(api, namespace)
        try:
            return await self._pages(api, path, {**params, "limit": str(page)}, reduce)
        except Gone:
            return await self._pages(api, path, params, reduce)

    async def _pages(
        self,
        api: ApiResource,
        path: str,
        params: dict[str, str],
        reduce: Callable[[Object], Object],
    ) -> Listing:
        items: list[Object] = []
        identity = {"apiVersion": api.group_version, "kind": api.kind}
        while True:
            limit = int(params.get("limit", "0"))
            request = Request("GET", path, params, most=wire.PAGE_LIMIT if limit > 1 else 0)
            try:
                answer = await self._session.send(request, seconds=PAGE_SECONDS)
            except Oversized:
                if limit <= 1:
                    raise
                params = {**params, "limit": str(max(1, limit // SMALLER))}
                continue
            body = bodies.kubernetes(answer, request)
            items += [reduce({**identity, **item}) for item in body.get("items") or ()]
            metadata: Object = body["metadata"]
            if not metadata.get("continue"):
                return Listing(tuple(items), str(metadata.get("resourceVersion", "")))
            params = {**params, "continue": str(metadata["continue"])}
            params.pop("resourceVersion", None)  # the token holds the version
            params.pop("resourceVersionMatch", None)

    async def watch(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        since: str = "",
        initial: bool = False,
        seconds: int = 290,
        idle: float = 90.0,
    ) -> AsyncGenerator[WatchEvent]:
        """Yield what happens after version `since`, for `seconds`; ends when the server says so.

        With `initial`, first every object as ADDED and a Bookmark that is `synced` (a WatchList).
        Raises Gone when `since` is too old, Dropped when the stream is cut or silent for `idle`
        seconds (bookmarks come each minute), Garbled for a line that is no event.
        """
        params = _selected(labels, "")
        params |= {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        if initial:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if since:
            params["resourceVersion"] = since
        request = Request("GET", wire.path(api, namespace), params)
        lines = wire.Lines()
        async with self._session.stream(request, idle=idle) as chunks:
            async for chunk in chunks:
                for line in bodies.lines(lines, chunk, request):
                    yield bodies.event(line, request)

    async def delete(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        version: str = "",
        propagation: str = "Background",
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> bool:
        """Delete the object of that `uid`, and of that `version` if given; False when it is gone.

        Raises Stale when it is there, but no longer of that version.
        """
        path = wire.path(api, namespace, name)
        options = bodies.delete(uid, version, propagation)
        request = Request("DELETE", path, content=options, content_type=JSON)
        try:
            await self._writes.send(request, seconds=timeout)
        except Missing as error:
            if not error.served:
                raise
            return False
        except Stale:
            live = await self.read(api, name, namespace, timeout=timeout)
            if live is not None and live["metadata"]["uid"] == uid:
                raise
            return False
        return True

    async def get(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        timeout: float = 30.0,  # noqa: ASYNC109
    ) -> Any:
        """Read any path (`/version`, `/openapi/v3/…`): JSON, or text where it is none."""
        request = Request("GET", path, params or {})
        answer = await self._session.send(request, seconds=timeout)
        if not answer.content_type.startswith(JSON):
            return answer.content.decode("utf-8", "replace")
        return bodies.json(answer, request)

    async def resource(self, group_version: str, kind: str) -> ApiResource:
        """Look a kind up in the server's discovery; raises Missing when it is not served."""
        root = "apis" if "/" in group_version else "api"
        request = f"discovery of {kind} in {group_version}"
        try:
            found = await self.get(f"/{root}/{group_version}")
        except Missing as error:
            raise Missing(_UNSERVED, code=error.code, request=request) from error
        for entry in found.get("resources") or ():
            if entry["kind"] == kind and "/" not in entry["name"]:
                return ApiResource(group_version, kind, entry["name"], entry["namespaced"])
        raise Missing(_UNSERVED, code=HTTPStatus.NOT_FOUND, request=request)

    async def allowed(
        self, verb: str, api: ApiResource, namespace: str = "", *, name: str = ""
    ) -> bool:
        """Ask whether we may `verb` the kind, or the object of that name."""
        attributes = {"group": api.group, "resource": api.plural, "verb": verb}
        if namespace:
            attributes["namespace"] = namespace
        if name:
            attributes["name"] = name
        status = await self.review(reviews.SELF, {"resourceAttributes": attributes})
        return bool(status.get("allowed"))

    async def review(
        self,
        kind: str,
        spec: Mapping[str, Any],
        *,
        timeout: float = 10.0,  # noqa: ASYNC109
    ) -> Object:
        """Return the status of one of `hedgerow.kube.reviews`; nothing is stored by it."""
        request = reviews.request(kind, spec)
        answer = bodies.kubernetes(await self._session.send(request, seconds=timeout), request)
        return answer.get("status") or {}


_UNSERVED = "the server does not serve it; is its CRD installed?"


def _selected(labels: str, fields: str) -> dict[str, str]:
    return {k: v for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v}
