"""Operating: one operator process on the cluster in memory, which is this very process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from hedgerow import app
from hedgerow.kube.review_requests import RULES
from hedgerow.process.leaderelection.record import LEASES
from hedgerow.settings import Settings
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.cluster import Sent
from hedgerow_testing.memory.server import Server
from hedgerow_testing.memory.watched import Watched
from model import ours

BLUEGREEN = {
    "apiVersion": "app.demo.kakao.com/v1",
    "kind": "BlueGreen",
    "metadata": {"name": "demo", "namespace": "default"},
    "spec": {
        "routeTo": "Blue",
        "blueSpec": {"containers": [{"name": "c", "image": "example/echo:1"}]},
    },
}


def quiet(**given: Any) -> Settings:
    """Return settings that open no port."""
    usual = {"metrics_bind_address": "0", "health_probe_bind_address": "0"}
    return Settings(**{**usual, **given})


class Process:
    """The operator, and the cluster that it is connected to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        server = Server(
            (*kinds.BUILTIN, ours.bluegreen(), ours.memcached(), ours.cronjob()),
            ("default", "hedgerow-system"),
        )
        self.cluster = Watched(server)
        self.server = server
        self.asked: list[dict[str, Any]] = []
        self.closed = False
        self.denied: set[tuple[str, str]] = set()
        """The verbs and resources to which it has no right."""
        self.log_in: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint

        @asynccontextmanager
        async def connect(**how: Any) -> AsyncGenerator[Watched, None]:
            self.asked.append(how)
            try:
                await self.log_in()
                yield self.cluster
            finally:
                self.closed = True

        monkeypatch.setattr(app, "connect", connect)
        monkeypatch.setattr(self.cluster, "review", self._review, raising=False)
        monkeypatch.setattr(self.cluster, "resource", _served, raising=False)
        monkeypatch.setattr(self.cluster, "get", _version, raising=False)

    @property
    def writes(self) -> list[Sent]:
        """The writes so far, but for those by which operators tell of themselves."""
        return [sent for sent in self.cluster.writes if sent.api != LEASES]

    async def _review(self, kind: str, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Say what it may do; no rule shows it where some of it is denied."""
        if kind == RULES:
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            return {"resourceRules": [] if self.denied else [everything]}
        asked = spec["resourceAttributes"]
        return {"allowed": (asked["verb"], asked["resource"]) not in self.denied}

    def hold_writes(self) -> anyio.Event:
        """Let no write but those of Leases come to its end before the event is set."""
        gate = anyio.Event()

        async def hook(sent: Sent) -> None:
            if sent.writes and sent.api != LEASES:
                await gate.wait()

        self.cluster.before = hook
        return gate

    async def until(self, fact: Callable[[], object]) -> None:
        with anyio.fail_after(10):
            while not fact():
                await anyio.lowlevel.checkpoint()


async def _version(_path: str) -> dict[str, str]:
    return {"gitVersion": "v1.37.2"}


async def _served(group_version: str, kind: str) -> None:
    """Serve every kind."""
