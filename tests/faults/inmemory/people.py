"""People: everybody but the operator, who write to the API server in memory as they please."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS
from hedgerow_testing.memory.schema import Object
from hedgerow_testing.memory.server import Server

HOME, SYSTEM = "default", "hedgerow-system"
LEASE: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "hedgerow", "namespace": SYSTEM},
}


class ModelPeople:
    """The `People` of a scenario; `home` is the namespace of objects that name none."""

    def __init__(self, server: Server, home: str = HOME, elsewhere: tuple[str, ...] = ()) -> None:
        self._server, self._home = server, home
        self._namespaces = {"": home, **{end: f"{home}-{end}" for end in elsewhere}}

    def settle_in(self) -> None:
        """Have the namespaces there are, and a Lease that was given up: nobody waits for it."""
        for name in (*self._namespaces.values(), SYSTEM):
            self.open_namespace(name)
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        self._server.apply({**LEASE, "spec": spec}, "hedgerow-lease")

    def open_namespace(self, name: str) -> None:
        """Have a namespace, in which things can be made, and everybody may claim fields."""
        self._server.open_namespace(name)
        labels = {"kubernetes.io/metadata.name": name, ALLOW_CLAIMS: "true"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        namespace["metadata"]["labels"] = labels
        self._server.create(namespace, "kubectl-create")

    # --- what scenarios ask for ---------------------------------------------------------------

    def apply(self, body: Object, by: str, *, subresource: str = "", force: bool = False) -> Object:
        placed = self._placed(body)
        return self._server.apply(placed, by, subresource=subresource, force=force)[0]

    def edit(self, target: Object, patch: Object, by: str, *, subresource: str = "") -> Object:
        if subresource == "scale":
            return self._server.scale(self._placed(target), patch["spec"]["replicas"], by)
        return self._server.merge(self._placed(target), patch, by, subresource)

    def delete(self, target: Object) -> None:
        if self.get(target) is not None:
            self._server.delete(self._placed(target))

    def get(self, target: Object) -> Object | None:
        return self._server.get(self._placed(target))

    def every(self, kind: Object) -> list[Object]:
        group = kind["apiVersion"].rpartition("/")[0]
        listed = (self._server.list(group, kind["kind"], n) for n in self._namespaces.values())
        return [item for each in listed for item in each.items]

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._server.now, UTC)

    def _placed(self, body: Any) -> Object:
        if body["kind"] == "Namespace":
            return body
        named = body["metadata"].get("namespace", "")
        namespace = self._namespaces.get(named, named)
        return {**body, "metadata": {**body["metadata"], "namespace": namespace}}
