"""People: everybody but the operator, who write to the API server in memory as they please."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from faults.inmemory.machine import SYSTEM
from hedgerow.testing.memory.answers import Refused
from hedgerow.testing.memory.schema import Object
from support.server.store import Store

HOME = "default"
LEASE: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "hedgerow", "namespace": SYSTEM},
}


class ModelPeople:
    """The `People` of a scenario."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def settle_in(self) -> None:
        """Have the namespaces there are, and a Lease that was given up: nobody waits for it."""
        for name in (HOME, SYSTEM):
            self.open_namespace(name)
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        self._store.apply({**LEASE, "spec": spec}, "hedgerow-lease")

    def open_namespace(self, name: str) -> None:
        """Have a namespace, in which things can be made."""
        self._store.open_namespace(name)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self._store.create(namespace, "kubectl-create")

    # --- what scenarios ask for ---------------------------------------------------------------

    def apply(self, body: Object, by: str, *, subresource: str = "", force: bool = False) -> Object:
        try:
            return self._store.apply(_placed(body), by, subresource=subresource, force=force)[0]
        except Refused:
            return self._disown(_placed(body), by)

    def _disown(self, target: Object, by: str) -> Object:
        live = self._store.get(target)
        assert live
        entries = live["metadata"]["managedFields"]
        live["metadata"]["managedFields"] = [e for e in entries if e["manager"] != by]
        return self._store.update(live, by)

    def edit(self, target: Object, patch: Object, by: str, *, subresource: str = "") -> Object:
        if subresource == "scale":
            return self._store.scale(_placed(target), patch["spec"]["replicas"], by)
        return self._store.merge(_placed(target), patch, by, subresource)

    def delete(self, target: Object) -> None:
        if self.get(target) is not None:
            self._store.delete(_placed(target))

    def get(self, target: Object) -> Object | None:
        return self._store.peek(_placed(target))

    def every(self, kind: Object) -> list[Object]:
        group = kind["apiVersion"].rpartition("/")[0]
        return [
            obj
            for key, obj in sorted(self._store.all().items())
            if key[:3] == (group, kind["kind"], HOME)
        ]

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._store.now, UTC)


def _placed(body: Any) -> Object:
    return {**body, "metadata": {"namespace": HOME, **body["metadata"]}}
