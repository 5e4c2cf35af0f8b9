"""Leases: the model with one Lease, as candidates take it and people change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hedgerow.kube import errors
from hedgerow.process.leaderelection.record import LEASES
from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kinds import LEASE
from hedgerow_testing.memory.server import Server

Object = dict[str, Any]
MANAGER = "hedgerow-lease"
NAME, NAMESPACE = "hedgerow", "hedgerow-system"


class Leases(Server):
    """What is asked by value raises the errors of `hedgerow.kube`."""

    def __init__(self, name: str = NAME) -> None:
        super().__init__((LEASE,), (NAMESPACE,))
        metadata = {"name": name, "namespace": NAMESPACE}
        self.target: Object = {
            "apiVersion": LEASES.group_version, "kind": LEASES.kind, "metadata": metadata
        }  # fmt: skip

    @property
    def lease(self) -> Object | None:
        return self.get(self.target)

    @property
    def spec(self) -> Object:
        return (self.lease or {}).get("spec", {})

    @property
    def history(self) -> list[str]:
        """Every holder that the Lease has had, in order."""
        told = [event.object.get("spec", {}) for event in self.events_since(0)]
        holders = [spec.get("holderIdentity", "") for spec in told]
        return [one for n, one in enumerate(holders) if n == 0 or one != holders[n - 1]]

    def take(self, meta: Mapping[str, Any], spec: Object, manager: str = MANAGER) -> Object:
        """Apply as a candidate does; raises Conflict and Stale."""
        body = {**self.target, "metadata": {**self.target["metadata"], **meta}, "spec": spec}
        return _asked(lambda: self.apply(body, manager)[0])

    def remove(self, uid: str = "", version: str = "") -> bool:
        """Delete it, if it has that uid and version; raises Stale."""
        live = self.lease
        if live is None or uid not in {"", live["metadata"]["uid"]}:
            return False
        _asked(lambda: self.delete(self.target, uid=uid, version=version))
        return True

    def edit(self, manager: str = "kubectl-edit", **spec: Any) -> Object:
        """Write fields as an Update does, which asks nobody; None takes one away."""
        if self.lease is None:
            given = {name: value for name, value in spec.items() if value is not None}
            return self.create({**self.target, "spec": given}, manager)
        return self.merge(self.target, {"spec": spec}, manager)

    def annotate(self) -> None:
        """Change nothing of it but its version."""
        note = {"metadata": {"annotations": {"note": str(self.version)}}}
        self.merge(self.target, note, "kubectl-edit")


def _asked(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except Refused as refused:
        raise errors.from_status(refused.status) from None
