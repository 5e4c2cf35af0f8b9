"""Gardens: the model of a cluster behind commands, with a BlueGreen and a Deployment of its."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hedgerow.kube import adoption, errors
from hedgerow.kube.cluster import Cluster
from hedgerow.objects import Salvaged
from hedgerow.testing.memory.cluster import MemoryCluster, Sent
from hedgerow.testing.memory.kinds import BUILTIN
from hedgerow.testing.memory.server import Server
from hedgerow_schemas.base import ApiResource
from model.ours import bluegreen
from support.cluster import bluegreens

Object = dict[str, Any]
NAME, OURS = "demoblue-deployment", "hedgerow-bluegreen"
CHILD = f"deployment/{NAME}"
IMAGE = '.spec.template.spec.containers[name="c"].image'


RESOURCE = {
    "apiVersion": "app.demo.kakao.com/v1",
    "kind": "BlueGreen",
    "metadata": {"name": "demo", "namespace": "default"},
}


class Garden(MemoryCluster):
    """A cluster as commands ask it; `meanwhile` acts before the n-th write, counted from 1."""

    def __init__(self) -> None:
        super().__init__(Server([*BUILTIN, bluegreen()]), before=self._interrupted)
        self.interruptions: dict[int, Callable[[], object]] = {}
        self.odd: set[str] = set()
        self._count = 0
        resource = bluegreens.bluegreen("default")
        self.owner = self.model.apply(resource, "user")[0]
        self.target = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": "default"},
        }

    @asynccontextmanager
    async def connect(self, **_: Any):
        yield self

    async def read(self, api: ApiResource, name: str, namespace: str = "", **more: Any) -> Any:
        """Return an object, which was not decoded strictly if its kind is among the `odd`."""
        live = await super().read(api, name, namespace, **more)
        return Salvaged(live) if live and api.kind in self.odd else live

    async def _interrupted(self, sent: Sent) -> None:
        if sent.verb in ("apply", "edit") and not sent.dry_run:
            self._count += 1
            self.interruptions.get(self._count, int)()

    resource = Cluster.resource

    async def get(self, path: str, **_: Any) -> Any:
        kinds = {"/apis/apps/v1": "Deployment", "/apis/app.demo.kakao.com/v1": "BlueGreen"}
        if path == "/api":
            return {"versions": []}
        if path == "/apis":
            versions = [path.removeprefix("/apis/") for path in kinds]
            return {"groups": [{"preferredVersion": {"groupVersion": v}} for v in versions]}
        name = kinds.get(path)
        if name is None:
            raise errors.Missing("the server could not find the requested resource", code=404)
        verbs = ["get", "list", "patch"]
        more = {"shortNames": ["dup"], "verbs": verbs, "namespaced": True, "kind": name}
        return {"resources": [{"name": f"{name.lower()}s", **more}]}

    async def replace_managed_fields(
        self, api: ApiResource, live: Object, edits: Mapping[int, Any], **_: Any
    ) -> Object:
        """Carry out the request's patch on the model's object."""
        await self.before(Sent("edit", api, "default", live["metadata"]["name"], {}))
        there = self.model.get(live)
        *tests, replaced = json.loads(adoption.request(api, live, edits).content)
        for test in tests:
            place: Any = there
            for step in test["path"].strip("/").split("/"):
                place = place[int(step)] if isinstance(place, list) else place[step]
            if place != test["value"]:
                raise errors.Stale("it changed in the meantime")
        there["metadata"]["managedFields"] = replaced["value"]
        return self.model.put(there)

    def declare(self, manager: str = OURS, image: str = "new:1", **more: Any) -> Object:
        """Apply the Deployment as the operator does, or as another who is at work."""
        reference = {key: self.owner[key] for key in ("apiVersion", "kind")}
        meta = self.owner["metadata"]
        reference |= {"name": meta["name"], "uid": meta["uid"], "controller": True}
        labels = {"a": "b"}
        containers = [{"name": "c", "image": image}] if image else []
        pod = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        template = {"template": pod} if image else {}
        spec = {"selector": {"matchLabels": labels}, **template, **more}
        marks = {"labels": {"hedgerow.dev/controller": "bluegreen"}} if manager == OURS else {}
        body = {**self.target["metadata"], **marks, "ownerReferences": [reference]}
        return self.model.apply({**self.target, "metadata": body, "spec": spec}, manager)[0]

    def also(self, manager: str, **spec: Any) -> Object:
        """Apply some of its spec as another."""
        return self.model.apply({**self.target, "spec": spec}, manager)[0]

    def contest(self, *paths: str) -> None:
        """Report fields as contested, as the operator does."""
        fields = [{"object": f"Deployment/{NAME}", "path": p, "manager": "old"} for p in paths]
        self.note(contested=fields)

    def note(self, manager: str = OURS, **status: Any) -> None:
        """Apply the resource's status as the operator does, or as another."""
        self.model.apply({**RESOURCE, "status": status}, manager, subresource="status")

    def noted(self, field: str) -> tuple[Any, set[str]]:
        """Return a field of the resource's status, and everyone who holds it."""
        live = self.model.get(RESOURCE) or {}
        holders = {
            entry["manager"]
            for entry in live["metadata"]["managedFields"]
            if f"f:{field}" in entry["fieldsV1"].get("f:status", {})
        }
        return live["status"].get(field), holders

    def anew(self) -> None:
        """Delete it and make it anew."""
        self.model.delete(self.target)
        self.declare()

    @property
    def live(self) -> Object:
        found = self.model.get(self.target)
        assert found is not None
        return found

    def held(self, last: str) -> set[str]:
        """Return everyone whose entry has a leaf of that name."""
        entries = self.live["metadata"].get("managedFields", [])
        return {entry["manager"] for entry in entries if f'"f:{last}"' in json.dumps(entry)}
