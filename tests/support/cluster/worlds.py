"""Worlds: the real server for the requests that the model answers too."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from hedgerow_schemas import crd
from hedgerow_testing.api import Api, Object, Reply
from model.programs import Outcome, refused
from support.cluster.definitions import define
from support.operator.registered import ALL


class RealWorld:
    """The real server as a world."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def apply(
        self,
        body: Object,
        manager: str,
        *,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Outcome:
        return _outcome(
            self.api.apply(body, manager, subresource=subresource, force=force, dry_run=dry_run)
        )

    def create(self, body: Object, manager: str) -> Outcome:
        return _outcome(self.api.create(body, manager))

    def put(self, body: Object, manager: str) -> Outcome:
        return _outcome(self.api.put(body, manager))

    def merge(self, target: Object, patch: Object, manager: str, subresource: str = "") -> Outcome:
        reply = self.api.merge(target, patch, manager, subresource)
        return _outcome(self.api.get(target) if reply.ok and subresource == "scale" else reply)

    def delete(self, target: Object, *, uid: str = "", version: str = "") -> Outcome:
        wanted = {"uid": uid, "resourceVersion": version}
        return _outcome(self.api.delete(target, **{k: v for k, v in wanted.items() if v}))

    def open_namespace(self, name: str) -> None:
        self.api.namespace(name)

    def terminate(self, namespace: str) -> None:
        self.api.raw("DELETE", f"/api/v1/namespaces/{namespace}").must()

    def get(self, target: Object) -> Object | None:
        reply = self.api.get(target)
        return reply.body if reply.ok else None


def with_custom_resources(api: Api) -> Api:
    """Have our CRDs served."""
    for definition in _definitions():
        define(api, definition, "test", force=True)
    for resource in ALL.resources:
        api.served(resource.api.group_version)
    return api


@cache
def _definitions() -> tuple[Object, ...]:
    document = json.loads((files("hedgerow_schemas") / "openapi.json").read_text("utf-8"))
    return tuple(crd.render(resource, document, describe=False) for resource in ALL.resources)


def _outcome(reply: Reply) -> Outcome:
    return Outcome(reply.status, reply.body) if reply.ok else refused(reply.status, reply.body)
