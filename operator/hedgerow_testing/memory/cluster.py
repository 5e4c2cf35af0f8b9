"""Cluster: the model behind the methods of `hedgerow.kube.cluster.Cluster`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio

from hedgerow.kube import errors
from hedgerow.kube.cluster import WRITE_SECONDS
from hedgerow.kube.object_api import ApplyResult, ObjectApi
from hedgerow.kube.watch import Listing
from hedgerow_testing.memory.answers import Refused

if TYPE_CHECKING:
    from hedgerow_schemas.base import ApiResource
    from hedgerow_testing.memory.schema import Object
    from hedgerow_testing.memory.server import Server


@dataclass(frozen=True)
class Sent:
    """One request: `verb` is apply, read, list or delete; `body` what it carried."""

    verb: str
    api: ApiResource
    namespace: str
    name: str
    body: Mapping[str, Any]
    manager: str = ""
    subresource: str = ""
    force: bool = False
    dry_run: bool = False

    @property
    def writes(self) -> bool:
        """Whether it changes what is stored, unless it is refused."""
        return self.verb in {"apply", "delete"} and not self.dry_run

    def __str__(self) -> str:
        """Return verb, kind and object, for messages."""
        tail = f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {self.api.kind} {self.namespace}/{self.name}{tail}"


RequestHook = Callable[[Sent], Awaitable[None]]


async def _pass(_sent: Sent) -> None:
    """Let a request through."""


class MemoryCluster(ObjectApi):
    """One user of the model; every method raises the errors of `hedgerow.kube.errors`.

    `before` and `after` are awaited around each request and may wait or raise: what `after` raises
    is an answer lost on its way, the server has acted. One that is not answered in time raises
    Unreachable. `sent` is every request so far.
    """

    server = "https://model.invalid"

    def __init__(
        self,
        model: Server,
        *,
        namespace: str = "default",
        before: RequestHook = _pass,
        after: RequestHook = _pass,
    ) -> None:
        self.model, self.namespace = model, namespace
        self.before, self.after = before, after
        self.sent: list[Sent] = []
        self.permit: Callable[[], float] | None = None
        self.unanswered: Callable[[], object] = list

    def fenced(
        self, permit: Callable[[], float], unanswered: Callable[[], object]
    ) -> MemoryCluster:
        """Return the same cluster with writes bound to a permit, of seconds that are left."""
        fenced = copy(self)
        fenced.permit, fenced.unanswered = permit, unanswered
        return fenced

    def server_time(self) -> datetime:
        """Return the time of the model's clock."""
        return datetime.fromtimestamp(self.model.now, UTC)

    @property
    def writes(self) -> list[Sent]:
        """The mutating requests so far, refused ones included."""
        return [sent for sent in self.sent if sent.writes]

    async def apply(
        self,
        api: ApiResource,
        body: Mapping[str, Any],
        *,
        manager: str,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
        timeout: float = WRITE_SECONDS,
    ) -> ApplyResult:
        """Apply; raises Conflict, Stale, Missing, Forbidden, Invalid."""
        whole: Object = {"apiVersion": api.group_version, "kind": api.kind, **body}
        name, namespace = whole["metadata"]["name"], whole["metadata"].get("namespace", "")
        sent = Sent("apply", api, namespace, name, whole, manager, subresource, force, dry_run)
        with _in_time(timeout, sent):
            live, created = await self._ask(
                sent,
                lambda: self.model.apply(
                    whole, manager, subresource=subresource, force=force, dry_run=dry_run
                ),
            )
        return ApplyResult(live, created)

    async def dry_run_create(
        self, api: ApiResource, namespace: str, body: Object, *, manager: str
    ) -> ApplyResult:
        """Return the object that a POST would create."""
        name = body["metadata"]["name"]
        sent = Sent("create", api, namespace, name, body, manager, dry_run=True)
        return ApplyResult(
            await self._ask(sent, lambda: self.model.fork().create(body, manager)), True
        )

    async def read_object(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        partial: bool = False,
        timeout: float = 10.0,
    ) -> Object | None:
        """Return the object, or None; a `partial` one has nothing but metadata and its kind."""
        target = _target(api, name, namespace)
        sent = Sent("read", api, namespace, name, {})
        with _in_time(timeout, sent):
            live = await self._ask(sent, lambda: self.model.get(target))
        return {**target, "metadata": live["metadata"]} if live and partial else live

    async def list(
        self,
        api: ApiResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        version: str = "",
        page: int = 500,
        partial: bool = False,
        reduce: Callable[[Object], Object] = lambda item: item,
    ) -> Listing:
        """Return all objects that the selectors of labels and name select."""
        sent = Sent("list", api, namespace, "", {})
        listing = await self._ask(sent, lambda: self.model.list(api.group, api.kind, namespace))
        chosen = tuple(
            reduce(item)
            for item in listing.items
            if selects(labels, item) and has_fields(fields, item)
        )
        return Listing(chosen, listing.version)

    async def delete(
        self,
        api: ApiResource,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        version: str = "",
        timeout: float = 10.0,
    ) -> bool:
        """Delete the object of that uid; False if gone; raises Stale for another version."""
        target = _target(api, name, namespace)
        sent = Sent("delete", api, namespace, name, {"uid": uid, "version": version})
        try:
            with _in_time(timeout, sent):
                await self._ask(sent, lambda: self.model.delete(target, uid=uid, version=version))
        except errors.Missing as error:
            if not error.served:
                raise
            return False
        except errors.Stale:
            live = self.model.get(target)
            if live is not None and live["metadata"]["uid"] == uid:
                raise
            return False
        return True

    async def _ask(self, sent: Sent, act: Callable[[], Any]) -> Any:
        if sent.writes and self.permit and self.permit() <= 0:
            raise errors.NotLeading("not sent: the Lease has expired", request=str(sent))
        self.sent.append(sent)
        try:
            await self.before(sent)
        except BaseException:  # nobody waits for it any more
            self.unanswered()
            raise
        try:
            answer = act()
        except Refused as refused:
            await self.after(sent)
            raise errors.from_status(refused.status, request=str(sent)) from None
        await self.after(sent)
        return answer


@contextmanager
def _in_time(seconds: float, sent: Sent) -> Generator[None]:
    """Bound the time of a request; it may have been carried out all the same."""
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        raise errors.Unreachable("no answer in time", sent=True, request=str(sent)) from None


def selects(labels: str, item: Object) -> bool:
    """Return whether a label selector of equalities and existence selects an object."""
    have = item["metadata"].get("labels", {})
    for requirement in filter(None, labels.split(",")):
        name, equals, value = requirement.partition("=")
        if name not in have or (equals and have[name] != value):
            return False
    return True


def has_fields(fields: str, item: Object) -> bool:
    """Return whether a field selector of one equality selects an object."""
    if not fields:
        return True
    path, _, value = fields.partition("=")
    node: Any = item
    for step in path.split("."):
        node = node.get(step, {})
    return node == value


def _target(api: ApiResource, name: str, namespace: str) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api.group_version, "kind": api.kind, "metadata": metadata}
