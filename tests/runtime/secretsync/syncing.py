"""Syncing: secretsync over one cluster in memory, and people's Secrets."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from hedgerow.contract import Controller
from hedgerow.controllers.secretsync.controller import secretsync
from hedgerow.controllers.secretsync.options import Selection
from hedgerow.controllers.secretsync.sources import TARGET_NAME
from hedgerow_testing.memory.kinds import BUILTIN, NAMESPACE
from runtime.world import World
from support.server.store import Editable

Object = dict[str, Any]
HOME = "secretsync"
TYPE = "k8s.ziwon.dev/secretsync"
MANAGER = "hedgerow-secretsync"


def coded(value: str) -> str:
    """Return a value as it is in `data`."""
    return b64encode(value.encode()).decode()


class Syncing:
    """One operator that runs secretsync, over a server with some namespaces."""

    def __init__(
        self,
        *namespaces: str,
        options: Selection | None = None,
    ) -> None:
        self.server = Editable((*BUILTIN, NAMESPACE), namespaces=())
        for name in (HOME, "hedgerow-system", "kube-system", *(namespaces or ("team-a", "team-b"))):
            self.open(name)
        self.restart(options=options or Selection())

    def restart(self, *, options: Selection | None = None) -> None:
        """End this life of the operator and begin another, with other options if given."""
        if options is not None:
            self.controller: Controller[Any] = secretsync(options)
        self.world = World(controller=self.controller, server=self.server)

    async def settle(self) -> None:
        for _ in range(12):
            before = self.server.version
            await self.world.settle()
            if self.server.version == before:
                break
        assert self.world.failures == []

    @property
    def writes(self) -> list[str]:
        """The operator's mutating requests, those of Events left out."""
        return [line for line in self.world.writes if "Event" not in line]

    @property
    def problems(self) -> list[Any]:
        """What the log tells of what is wrong."""
        return [entry for entry in self.world.logs.entries if entry["event"] == "problem"]

    @property
    def counted(self) -> float:
        """How many problems the metric counts."""
        labels = {"controller": "secretsync"}
        registry = self.world.meters.registry
        return registry.get_sample_value("hedgerow_logged_problems_total", labels) or 0.0

    # --- people -------------------------------------------------------------------------------

    def open(self, name: str, **labels: str) -> None:
        self.server.open_namespace(name)
        meta = {"name": name, "labels": labels}
        self.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, "kubectl")

    def label(self, name: str, **labels: str | None) -> None:
        self.server.merge(namespace(name), {"metadata": {"labels": labels}}, "kubectl-label")

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        """Annotate a namespace."""
        body = {"metadata": {"annotations": annotations}}
        self.server.merge(namespace(name), body, "kubectl-annotate")

    def terminate(self, name: str) -> None:
        """Delete a namespace, which its own finalizer keeps for now."""
        target = namespace(name)
        self.server.merge(target, {"metadata": {"finalizers": ["kubernetes"]}}, "kube")
        self.server.delete(target)
        self.server.terminate(name)

    def source(self, name: str, data: dict[str, str], target: str = "", **more: Any) -> Object:
        """Make or change a source as `kubectl apply --server-side` does."""
        annotations = more.pop("annotations", {}) | ({TARGET_NAME: target} if target else {})
        body = {
            **secret(name, HOME, annotations),
            "type": TYPE,
            "data": {key: coded(value) for key, value in data.items()},
            **more,
        }
        made = self.server.apply(body, "kubectl", force=True)[0]
        self.server.now += 1
        return made

    def put(self, name: str, namespace: str, data: dict[str, str], by: str = "somebody") -> None:
        """Apply keys to a Secret somewhere, by force."""
        coding = {key: coded(value) for key, value in data.items()}
        self.server.apply({**secret(name, namespace), "data": coding}, by, force=True)

    def delete(self, name: str, namespace: str = HOME) -> None:
        self.server.delete(secret(name, namespace))

    # --- looks --------------------------------------------------------------------------------

    def get(self, name: str, namespace: str = HOME) -> Object | None:
        return self.server.get(secret(name, namespace))

    def data(self, name: str, namespace: str) -> Object | None:
        found = self.get(name, namespace)
        return None if found is None else found.get("data", {})

    def the(self, name: str, namespace: str = HOME) -> Object:
        found = self.get(name, namespace)
        assert found is not None
        return found

    def told(self, name: str) -> dict[str, str]:
        """The newest Event about a source, by reason."""
        found = self.server.list("events.k8s.io", "Event").items
        return {
            one["reason"]: one["note"]
            for one in sorted(found, key=lambda one: one["eventTime"])
            if (one["regarding"]["namespace"], one["regarding"]["name"]) == (HOME, name)
        }

    def events(self, kind: str = "Secret") -> list[tuple[str, str, str]]:
        """The regarded object and reason of each Event about a kind."""
        found = self.server.list("events.k8s.io", "Event").items
        return sorted(
            (one["regarding"]["namespace"], one["regarding"]["name"], one["reason"])
            for one in found
            if one["regarding"]["kind"] == kind
        )


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def secret(name: str, namespace: str, annotations: dict[str, str] | None = None) -> Object:
    meta: Object = {"name": name, "namespace": namespace}
    if annotations:
        meta["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}
