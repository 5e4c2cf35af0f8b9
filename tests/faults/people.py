"""People: users and other programs on a real API server, who wait while it is away."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from faults.scenario import Object
from hedgerow.plan.yield_and_claim import ALLOW_CLAIMS
from hedgerow_testing.api import Api, Reply
from hedgerow_testing.waiting import eventually

AWAY = {429, 500, 502, 503, 504}
"""What is answered while there is no server."""
REQUEST_TIMEOUT = 120.0


class Refused(AssertionError):
    """The API server refused what somebody asked."""


class RealPeople:
    """Those of `faults.scenarios.People`, in one namespace; one object belongs to one thread."""

    def __init__(self, kubeconfig: Path, namespace: str, elsewhere: tuple[str, ...] = ()) -> None:
        self.namespace = namespace
        self._namespaces = {"": namespace, **{end: f"{namespace}-{end}" for end in elsewhere}}
        self._api = Api(kubeconfig)

    def close(self) -> None:
        self._api.close()

    def apply(self, body: Object, by: str, *, subresource: str = "", force: bool = False) -> Object:
        return self._asked(
            self._api.apply, self._placed(body), by, subresource=subresource, force=force
        )

    def edit(self, target: Object, patch: Object, by: str, *, subresource: str = "") -> Object:
        return self._asked(self._api.merge, self._placed(target), patch, by, subresource)

    def delete(self, target: Object) -> None:
        self._looked(self._api.delete, self._placed(target))

    def get(self, target: Object) -> Object | None:
        return self._looked(self._api.get, self._placed(target)) or None

    def every(self, kind: Object) -> list[Object]:
        found: list[Object] = []
        for end in self._namespaces:
            everyone = self._placed({**kind, "metadata": {"name": "", "namespace": end}})
            items = self._asked(self._list, everyone)["items"]
            found += sorted(items, key=lambda item: item["metadata"]["name"])
        return found

    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the API server is on this machine

    def version(self, back: int = 0) -> str:
        """Return the version that the API server's store has come to; it tells of no other one."""
        assert not back
        maps = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ""}}
        return self._asked(self._list, self._placed(maps))["metadata"]["resourceVersion"]

    def _list(self, target: Object) -> Reply:
        return self._api.raw("GET", self._api.path(target).rstrip("/"))

    def release(self, target: Object) -> None:
        """Take all finalizers off an object that is being deleted, if it is there."""
        try:
            self.edit(target, {"metadata": {"finalizers": None}}, "admin")
        except Refused:
            if self.get(target) is not None:
                raise

    def open_namespaces(self) -> None:
        """Have the namespaces there are, in which everybody may claim fields, and pods may be."""
        for name in self._namespaces.values():
            namespace = _namespace(name)
            namespace["metadata"]["labels"] = {ALLOW_CLAIMS: "true"}
            self._asked(self._api.apply, namespace, "faults")
            meta = {"name": "default", "namespace": name}
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
            self._asked(self._api.apply, account, "faults")

    def close_namespace(self) -> None:
        """Delete the own namespace; it stays until somebody empties it."""
        self._looked(self._api.delete, _namespace(self.namespace))

    def forget_namespaces(self) -> None:
        """Delete all of them, and have them gone: what is in them is looked for by nobody."""
        for name in self._namespaces.values():
            live = self._looked(self._api.delete, _namespace(name))
            if live.get("kind") == "Namespace":
                live["spec"] = {"finalizers": []}
                self._looked(self._api.put, live, "faults", "finalize")

    def _placed(self, body: Object) -> Object:
        namespace = self._namespaces[body["metadata"].get("namespace", "")]
        return {**body, "metadata": {**body["metadata"], "namespace": namespace}}

    def _looked(self, ask: Callable[..., Reply], *given: Any) -> Object:
        """Ask about what may be gone; return nothing then."""
        reply = _answer(ask, *given)
        return {} if reply.status == HTTPStatus.NOT_FOUND else _taken(reply)

    def _asked(self, ask: Callable[..., Reply], *given: Any, **how: Any) -> Object:
        return _taken(_answer(ask, *given, **how))


def _answer(ask: Callable[..., Reply], *given: Any, **how: Any) -> Reply:
    """Ask, again while there is no server."""

    def asked() -> Reply | None:
        try:
            reply = ask(*given, **how)
        except httpx.TransportError:
            return None
        return None if reply.status in AWAY else reply

    return eventually(asked, REQUEST_TIMEOUT, f"an answer about {given[0]['metadata']}")


def _taken(reply: Reply) -> Object:
    if not reply.ok:
        raise Refused(f"{reply.status} {reply.body}")
    return reply.body


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
