"""Leases: one Lease in memory, refused and answered as the API server refuses and answers it."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from hedgerow.kube.cluster import ApplyResult
from hedgerow.kube.errors import Cause, Conflict, Stale, Unreachable
from hedgerow_schemas.base import ApiResource

Object = dict[str, Any]
MANAGER = "hedgerow-lease"
NAME, NAMESPACE = "hedgerow", "hedgerow-system"


class Server:
    """Knows versions, uids, and which field manager holds which field of the spec."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.owners: dict[str, str] = {}
        self._version = 100
        self._uids = 0
        self.history: list[str] = []
        """Every holder that the Lease has had, in order."""

    def read(self) -> Object | None:
        return copy.deepcopy(self.lease)

    def apply(self, meta: Mapping[str, Any], spec: Object, manager: str = MANAGER) -> Object:
        live = self.lease
        if live is None:
            if meta.get("uid"):
                raise Stale("uid mismatch", code=409)
            self._uids += 1
            live = {"metadata": {"name": NAME, "uid": f"uid-{self._uids}"}, "spec": {}}
            self.owners = {}
        else:
            self._refuse(live, meta, spec, manager)
        marks = {"annotations": meta.get("annotations", {}), "labels": meta.get("labels", {})}
        self._store({**live["metadata"], **marks}, dict(spec))
        self.owners |= dict.fromkeys(spec, manager)
        return copy.deepcopy(self.lease)

    def _refuse(self, live: Object, meta: Mapping[str, Any], spec: Object, manager: str) -> None:
        other = [
            name
            for name, value in spec.items()
            if self.owners.get(name, manager) != manager and live["spec"].get(name) != value
        ]
        if other:
            causes = [Cause(f".spec.{name}", self.owners[name], "") for name in other]
            raise Conflict("held", causes=causes, code=409)
        if meta.get("uid") not in (None, live["metadata"]["uid"]):
            raise Stale("field is immutable", code=422)
        if meta["resourceVersion"] != live["metadata"]["resourceVersion"]:
            raise Stale("the object has been modified", code=409)

    def delete(self, uid: str, version: str) -> bool:
        live = self.lease
        if live is None or live["metadata"]["uid"] != uid:
            return False
        if live["metadata"]["resourceVersion"] != version:
            raise Stale("the precondition failed", code=409)
        self.lease = None
        return True

    # --- people, and other operators ----------------------------------------------------------

    def update(self, manager: str = "kubectl-edit", **spec: Any) -> None:
        """Write fields as an Update does, which asks nobody; None takes one away."""
        live = self.lease or {"metadata": {"name": NAME, "uid": f"uid-of-{manager}"}, "spec": {}}
        spec = {k: v for k, v in spec.items() if live["spec"].get(k) != v}
        merged = live["spec"] | spec
        self._store(live["metadata"], {k: v for k, v in merged.items() if v is not None})
        self.owners |= {k: manager for k, v in spec.items() if v is not None}
        self.owners = {k: v for k, v in self.owners.items() if k in merged and k in self.spec}

    def annotate(self) -> None:
        assert self.lease is not None
        self._store(self.lease["metadata"], self.spec)

    @property
    def spec(self) -> Object:
        return self.lease["spec"] if self.lease else {}

    def _store(self, metadata: Object, spec: Object) -> None:
        self._version += 1
        metadata = {**metadata, "resourceVersion": str(self._version)}
        self.lease = {"metadata": metadata, "spec": spec}
        holder = spec.get("holderIdentity", "")
        if [holder] != self.history[-1:]:
            self.history.append(holder)


Hook = Callable[[str], Awaitable[None]]


async def _at_once(_verb: str) -> None:
    """Nothing is in the way."""


class Cluster:
    """One candidate's way to it: `before` and `after` may wait, or raise what went wrong.

    What `after` raises is an answer that was lost: the server has acted.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.before: Hook = _at_once
        self.after: Hook = _at_once
        self.sent: list[str] = []

    async def read(
        self, api: ApiResource, name: str, namespace: str, *, timeout: float = 10
    ) -> Any:
        assert (api.plural, name, namespace) == ("leases", NAME, NAMESPACE)
        return await self._ask("read", timeout, self.server.read)

    async def apply(
        self, api: ApiResource, body: Mapping[str, Any], *, manager: str, timeout: float = 10
    ) -> ApplyResult:
        meta, spec = body["metadata"], body["spec"]
        answer = await self._ask("apply", timeout, lambda: self.server.apply(meta, spec, manager))
        return ApplyResult(answer, created=meta["resourceVersion"] == "1")

    async def delete(
        self, api: ApiResource, *where: str, uid: str, version: str, timeout: float = 10
    ) -> bool:
        return await self._ask("delete", timeout, lambda: self.server.delete(uid, version))

    async def _ask(self, verb: str, timeout: float, act: Callable[[], Any]) -> Any:
        self.sent.append(verb)
        with anyio.move_on_after(timeout):
            await self.before(verb)
            try:
                return act()
            finally:
                await self.after(verb)
        raise Unreachable("no answer in time", sent=True)
