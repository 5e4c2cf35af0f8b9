"""Configs: an API server with ConfigMaps, and what befalls them and the watches of them."""

from __future__ import annotations

from typing import Any

import httpx

from hedgerow_schemas.base import ApiResource
from support.server.apiserver import EPOCH, Act, ApiServer, Exchange, Reply, refusal
from support.server.streams import Opening

Object = dict[str, Any]
CONFIG_MAP = ApiResource("v1", "ConfigMap", "configmaps")
AWAY = httpx.ConnectError("connection refused")
FORBIDDEN = refusal(403, "Forbidden", "you may no longer")


class Configs(ApiServer):
    """The next lists and watches meet what `fails` has.

    Each watch meets what `refused` has for whether it asks for initial events. `later` is how many
    seconds have gone by.
    """

    def __init__(self) -> None:
        self.later = 0
        super().__init__(lambda: EPOCH + self.later, latency=0)
        self.fails: list[Reply | Exception] = []
        self.refused: dict[bool, Reply] = {}
        self.hook, self.watch_hook = self._met, self._opened
        for namespace in ("default", "other"):
            self.store.open_namespace(namespace)

    def do(self, acts: str) -> None:
        """Do `put a 2; remove b; cut` and the like, before anything of it is seen.

        Where a watch is cut, nothing of the step arrives.
        """
        for act in filter(None, acts.split(";")):
            word, *given = act.split()
            getattr(self, f"_{word}")(*given)
        if any(word in acts for word in ("cut", "down", "forbid")):
            for stream in self.streams:
                stream.cut()

    def _put(self, name: str, *value: str) -> None:
        self.put(name, **({"x": value[0]} if value else {}))

    def _elsewhere(self, name: str) -> None:
        self.put(name, "other")

    def _remove(self, name: str) -> None:
        if self.store.peek(config(name)):
            self.store.delete(config(name))

    def _cut(self) -> None:
        """Have the watches end, as they do once all of the step is done."""

    def _down(self, attempts: str) -> None:
        self.fails = [AWAY] * int(attempts)

    def _forbid(self, attempts: str) -> None:
        self.fails = [FORBIDDEN] * int(attempts)

    def _compact(self) -> None:
        self.store.version += 1
        self.compacted = self.store.version

    def _restore(self, version: str) -> None:
        self.store.restore(int(version))

    def put(self, name: str, namespace: str = "default", **data: str) -> None:
        """Apply a ConfigMap."""
        self.store.apply({**config(name, namespace), "data": data}, "user")

    async def _met(self, exchange: Exchange, act: Act) -> Reply:
        failed = self._failed() if exchange.verb == "list" else None
        return failed or await self.through(exchange, act)

    async def _opened(self, _exchange: Exchange, initial: bool) -> Opening | Reply:
        return self._failed() or self.refused.get(initial) or Opening()

    def _failed(self) -> Reply | None:
        """Return the next failure, if there is one; raises it if it is no answer."""
        failed = self.fails.pop(0) if self.fails else None
        if isinstance(failed, Exception):
            raise failed
        return failed


def config(name: str, namespace: str = "default") -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
