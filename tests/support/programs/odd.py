"""Odd: an API server each of whose answers is full of what steers a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from copy import deepcopy
from typing import Any, Literal

import anyio

from hedgerow.controllers.scaler.windows import ASKED
from hedgerow.kube import wire
from hedgerow_schemas.base import ApiResource
from hedgerow_schemas.crd import CRD
from hedgerow_schemas.kubernetes_types import DOCUMENT_PATH
from support.objects.foreign import POISON
from support.server.apiserver import DONE, Act, ApiServer, Exchange, Reply
from support.server.streams import Opening, line

Object = dict[str, Any]
Mode = Literal["objects", "refusals", "conflicts"]
"""What it answers: odd objects; a refusal of all; the same objects, and a conflict to a write."""

OURS = "hedgerow-bluegreen"
SWITCH = {"routeTo": "Blue", "greenSpec": {}, "hold": True}
CONTAINER = 'k:{"name":"c"}'
HELD = {"f:spec": {"f:replicas": {}, f"f:{POISON}": {}, "f:template": {"f:spec": {"f:containers": {
    CONTAINER: {".": {}, "f:name": {}, "f:image": {}}
}}}}, "f:metadata": {"f:annotations": {f"f:{POISON}": {}}}}  # fmt: skip


class OddServer(ApiServer):
    """Every object is there, whatever its name; what is deleted is not there any more.

    A watch ends in Ctrl-C.
    """

    def __init__(self, mode: Mode) -> None:
        super().__init__(latency=0)
        self._mode = mode
        self._deleted: set[str] = set()
        self._interrupting: list[asyncio.Task[None]] = []
        self.hook, self.watch_hook = self._meet, self._interrupted
        self.answers[DOCUMENT_PATH] = _with_odd_descriptions
        self.answers["/version"] = Reply(200, {"gitVersion": POISON})

    async def _meet(self, exchange: Exchange, act: Act) -> Reply:
        if refused := self._refused(exchange):
            return refused
        if exchange.verb in {"get", "list"}:
            return await self.through(exchange, act)
        if exchange.verb == "delete":
            self._deleted.add(exchange.request.path)
        told = {
            "review": {"metadata": {}, "status": {"allowed": True, "reason": POISON}},
            "delete": DONE,
            "create": exchange.body,
        }
        return Reply(200, told.get(exchange.verb) or _named(exchange.api, exchange.name))

    def _refused(self, exchange: Exchange) -> Reply | None:
        """Return what refuses a request, if anything does."""
        if self._mode == "refusals":
            return Reply(403, _refusal())
        if self._mode == "conflicts" and exchange.request.method == "PATCH":
            return Reply(409, _refusal("FieldManagerConflict"))
        is_known = exchange.api.kind or exchange.verb == "get"
        is_gone = exchange.request.path in self._deleted or not is_known
        return Reply(404, _refusal()) if is_gone else None

    def shown(self, exchange: Exchange, version: int = 0) -> tuple[int, list[Object]]:
        """Return one object of each kind, and one with an odd name."""
        return 1, [_named(exchange.api), _named(exchange.api, POISON)]

    async def _interrupted(self, exchange: Exchange, _initial: bool) -> Opening | Reply:
        if refused := self._refused(exchange):
            return refused
        task = asyncio.get_running_loop().create_task(self._change(exchange.api))
        self._interrupting.append(task)
        return Opening()

    async def _change(self, api: ApiResource) -> None:
        """Tell of a change once everybody waits, and press Ctrl-C."""
        await anyio.wait_all_tasks_blocked()
        obj = _named(api)
        changed = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "3"}}
        for stream in self.streams:
            if stream.kind == api.kind:
                stream.line(line("MODIFIED", changed))
        await anyio.wait_all_tasks_blocked()
        os.kill(os.getpid(), signal.SIGINT)


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
            **(_defined(name) if api == CRD else {}),
        },
        "status": {
            "observedGeneration": 1,
            "phase": POISON,
            "conditions": conditions,
            "contested": contested,
        },
    }


def _defined(name: str) -> Object:
    """Return the spec of a definition, which has a field that ours does not have."""
    plural, _, group = name.partition(".")
    schema = {"type": "object", "properties": {POISON: {"type": "string"}}}
    whole = {"type": "object", "properties": {"spec": schema}}
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": whole}}
    names = {"kind": POISON, "plural": plural}
    return {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}


def _entry(manager: str, operation: str = "Apply") -> Object:
    named = {"manager": manager, "operation": operation, "apiVersion": POISON}
    more = {"subresource": POISON} if operation == "Update" else {}
    return {**named, **more, "time": "2026-01-01T00:00:00Z", "fieldsV1": deepcopy(HELD)}


_DOCUMENT: list[bytes] = []
"""What the first of the servers describes, which all describe alike: it takes long to encode."""


def _with_odd_descriptions(_exchange: Exchange, act: Act) -> Reply:
    if not _DOCUMENT:
        _DOCUMENT.append(wire.encode(_described(act().body)))
    return Reply(200, _DOCUMENT[0])


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
