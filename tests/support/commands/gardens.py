"""Gardens: the model of a cluster behind commands, with a BlueGreen and a Deployment of its."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from hedgerow.kube import wire
from support.cluster import bluegreens
from support.server.apiserver import Act, ApiServer, Exchange, Reply
from support.server.connected import connect

Object = dict[str, Any]
NAME, OURS = "demoblue-deployment", "hedgerow-bluegreen"
CHILD = f"deployment/{NAME}"
IMAGE = '.spec.template.spec.containers[name="c"].image'


RESOURCE = {
    "apiVersion": "app.demo.kakao.com/v1",
    "kind": "BlueGreen",
    "metadata": {"name": "demo", "namespace": "default"},
}


class Garden(ApiServer):
    """A cluster as commands ask it; `meanwhile` acts before the n-th write, counted from 1."""

    def __init__(self) -> None:
        super().__init__(latency=0)
        self.hook = self._meet
        self.connect = connect(self)
        self.before: Callable[[Exchange], Awaitable[None]] = self.interrupted
        """What befalls each request; what it raises is what the client makes of an answer."""
        self.interruptions: dict[int, Callable[[], object]] = {}
        self.odd: set[str] = set()
        """The kinds of which all that is told has bytes that are no UTF-8."""
        self._count = 0
        self.store.open_namespace("default")
        self.owner = self.store.apply(bluegreens.bluegreen("default"), "user")[0]
        self.target = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": NAME, "namespace": "default"},
        }

    @property
    def writes(self) -> list[Exchange]:
        """The applies and deletes so far, refused ones included."""
        return [exchange for exchange in self.exchanges if exchange.writes]

    async def interrupted(self, exchange: Exchange) -> None:
        """Have what comes between."""
        if exchange.verb in ("apply", "edit") and not exchange.dry_run:
            self._count += 1
            self.interruptions.get(self._count, int)()

    def interrupt(self, verb: str) -> None:
        """Have the process interrupted while it sends its first write of a kind."""

        async def before(exchange: Exchange) -> None:
            if exchange.verb == verb and not exchange.dry_run:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(20):  # until the loop has seen it
                    await anyio.lowlevel.checkpoint()

        self.before = before

    async def _meet(self, exchange: Exchange, act: Act) -> Reply:
        await self.before(exchange)
        reply = await self.through(exchange, act)
        is_told = exchange.verb in ("read", "list") and reply.code == 200
        return _damaged(reply) if is_told and exchange.api.kind in self.odd else reply

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
        return self.store.apply({**self.target, "metadata": body, "spec": spec}, manager)[0]

    def also(self, manager: str, **spec: Any) -> Object:
        """Apply some of its spec as another."""
        return self.store.apply({**self.target, "spec": spec}, manager)[0]

    def contest(self, *paths: str) -> None:
        """Report fields as contested, as the operator does."""
        fields = [{"object": f"Deployment/{NAME}", "path": p, "manager": "old"} for p in paths]
        self.note(contested=fields)

    def note(self, manager: str = OURS, **status: Any) -> None:
        """Apply the resource's status as the operator does, or as another."""
        self.store.apply({**RESOURCE, "status": status}, manager, subresource="status")

    def noted(self, field: str) -> tuple[Any, set[str]]:
        """Return a field of the resource's status, and everyone who holds it."""
        live = self.store.get(RESOURCE) or {}
        holders = {
            entry["manager"]
            for entry in live["metadata"]["managedFields"]
            if f"f:{field}" in entry["fieldsV1"].get("f:status", {})
        }
        return live["status"].get(field), holders

    def anew(self) -> None:
        """Delete it and make it anew."""
        self.store.delete(self.target)
        self.declare()

    @property
    def live(self) -> Object:
        found = self.store.get(self.target)
        assert found is not None
        return found

    def held(self, last: str) -> set[str]:
        """Return everyone whose entry has a leaf of that name."""
        entries = self.live["metadata"].get("managedFields", [])
        return {entry["manager"] for entry in entries if f'"f:{last}"' in json.dumps(entry)}


def _damaged(reply: Reply) -> Reply:
    """Return an answer in which each object has a text of bytes that are no UTF-8."""
    body = reply.body
    odd = {"odd": "DAMAGED"}
    if "items" in body:
        body = {**body, "items": [{**item, **odd} for item in body["items"]]}
    else:
        body = {**body, **odd}
    return Reply(reply.code, wire.encode(body).replace(b"DAMAGED", b"\xff"))
