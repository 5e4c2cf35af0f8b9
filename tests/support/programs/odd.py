"""Odd: an API server each of whose answers is full of what steers a terminal."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any, Literal

import anyio
import httpx

from hedgerow.cli.install.definitions import packaged_document
from hedgerow.cli.schedule.windows import ASKED
from hedgerow.testing.memory.kinds import BUILTIN, NAMESPACE, POD
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.crd import CRD
from support.objects.foreign import POISON
from support.operator.registered import ALL

Object = dict[str, Any]
Mode = Literal["objects", "refusals", "conflicts"]
"""What it answers: odd objects; a refusal of all; the same objects, and a conflict to a write."""

APIS = {
    api.plural: api
    for api in (
        *(kind.api for kind in (*BUILTIN, POD, NAMESPACE)),
        CRD,
        *(controller.resource.api for controller in ALL.controllers),
    )
}
OURS = "hedgerow-bluegreen"
SWITCH = {"routeTo": "Blue", "greenSpec": {}, "hold": True}
CONTAINER = 'k:{"name":"c"}'
HELD = {"f:spec": {"f:replicas": {}, f"f:{POISON}": {}, "f:template": {"f:spec": {"f:containers": {
    CONTAINER: {".": {}, "f:name": {}, "f:image": {}}
}}}}, "f:metadata": {"f:annotations": {f"f:{POISON}": {}}}}  # fmt: skip


class OddServer:
    """What it is asked of a watch ends in Ctrl-C; what is deleted is not there any more."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self._deleted: set[str] = set()
        self.transport = httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if request.method == "DELETE":
            self._deleted.add(path)
        if self._mode == "refusals":
            return httpx.Response(403, json=_refusal())
        if request.method == "PATCH" and self._mode == "conflicts":
            return httpx.Response(409, json=_refusal("FieldManagerConflict"))
        if path in self._deleted or not _read(path):
            return httpx.Response(404, json=_refusal())
        if request.url.params.get("watch"):
            return httpx.Response(200, stream=_Watched(_read(path)["items"][0]))
        if request.method == "GET":
            return httpx.Response(200, json=_read(path))
        told = json.loads(request.content) if request.content[:1] == b"{" else {}
        review = {"allowed": True, "reason": POISON}
        found = _read(path) if request.method == "PATCH" else {"status": review}
        return httpx.Response(200, json={"metadata": {}, **told, **found})


class _Watched(httpx.AsyncByteStream):
    def __init__(self, obj: Object) -> None:
        self._obj = obj

    async def __aiter__(self) -> AsyncIterator[bytes]:
        meta = {"resourceVersion": "2", "annotations": {"k8s.io/initial-events-end": "true"}}
        for kind, obj in (("ADDED", self._obj), ("BOOKMARK", {"metadata": meta})):
            yield json.dumps({"type": kind, "object": obj}).encode() + b"\n"
        changed = {**self._obj, "metadata": {**self._obj["metadata"], "resourceVersion": "3"}}
        yield json.dumps({"type": "MODIFIED", "object": changed}).encode() + b"\n"
        await anyio.wait_all_tasks_blocked()
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()


def _read(path: str) -> Object:
    """Return the answer to a GET: of discovery or OpenAPI, a list, or one object; else empty."""
    kind, *steps = path.strip("/").split("/")
    version = "/".join(steps)
    if kind == "openapi":
        return _described(packaged_document())
    if not steps:
        versions = sorted({api.group_version for api in APIS.values()} - {"v1"})
        groups = [{"preferredVersion": {"groupVersion": found}} for found in versions]
        return {"api": {"versions": ["v1"]}, "apis": {"groups": groups}}.get(kind, {})
    if served := [api for api in APIS.values() if api.group_version == version]:
        return {"resources": [_resource(api) for api in served]}
    plural = next((step for step in reversed(steps) if step in APIS), "")
    if not plural:
        return {}
    if plural != steps[-1]:
        return _named(APIS[plural], steps[steps.index(plural) + 1])
    items = [_named(APIS[plural]), _named(APIS[plural], POISON)]
    return {"metadata": {"resourceVersion": "1"}, "items": items}


def _resource(api: ApiResource) -> Object:
    verbs = {"verbs": ["get", "list", "watch"], "shortNames": [api.kind.lower()[:6]]}
    return {"name": api.plural, "kind": api.kind, "namespaced": api.namespaced, **verbs}


def _named(api: ApiResource, name: str = "web") -> Object:
    """Return an object that hedgerow holds fields of, as others do, with all that may be odd."""
    place = {"namespace": "default"} if api.namespaced else {}
    owner = {"apiVersion": "app.demo.kakao.com/v1", "kind": "BlueGreen", "name": "demo"}
    is_ours = api.group not in {"app.demo.kakao.com", "apiextensions.k8s.io"}
    containers = [{"name": "c", "image": POISON}]
    conditions = [
        {"type": "Ready", "status": "False", "reason": POISON, "message": POISON},
        {"type": "Established", "status": "True", "reason": POISON, "message": POISON},
    ]
    contested = [
        {"object": f"Deployment/{POISON}", "path": f".spec.{POISON}", "manager": POISON},
        {"object": "Deployment/web", "path": ".spec.replicas", "manager": POISON, "live": POISON},
    ]
    return {
        "apiVersion": api.group_version,
        "kind": api.kind,
        "metadata": {
            "name": name,
            **place,
            "uid": f"{api.plural}-{name}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"hedgerow.dev/controller": "bluegreen", POISON: POISON},
            "annotations": {POISON: POISON, **dict.fromkeys(ASKED, POISON)},
            "finalizers": [POISON],
            "ownerReferences": [{**owner, "uid": "bluegreens-demo", "controller": True}]
            if is_ours
            else [],
            "managedFields": [_entry(OURS), _entry("old"), _entry(POISON), _entry("x", "Update")],
        },
        "spec": {
            "replicas": 3,
            POISON: POISON,
            "template": {"spec": {"containers": containers}},
            **(SWITCH if api.plural == "bluegreens" else {}),
        },
        "status": {
            "observedGeneration": 1,
            "phase": POISON,
            "conditions": conditions,
            "contested": contested,
        },
    }


def _entry(manager: str, operation: str = "Apply") -> Object:
    named = {"manager": manager, "operation": operation, "apiVersion": POISON}
    more = {"subresource": POISON} if operation == "Update" else {}
    return {**named, **more, "time": "2026-01-01T00:00:00Z", "fieldsV1": deepcopy(HELD)}


def _described(value: Any) -> Any:
    """Return a document with odd descriptions."""
    if isinstance(value, list):
        return [_described(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _described(inner) for name, inner in value.items()}
    return found | ({"description": POISON} if isinstance(found.get("type"), str) else {})


def _refusal(reason: str = "") -> Object:
    quoted = json.dumps(POISON)
    cause = {"field": f".spec.{POISON}", "message": f"conflict with {quoted} using {POISON}"}
    details = {"name": POISON, "causes": [{**cause, "reason": reason or POISON}]}
    return {"kind": "Status", "message": POISON, "reason": POISON, "details": details}
