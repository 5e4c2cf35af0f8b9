"""What an operator says it is going to wait for, before it waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from hedgerow.kube.errors import Forbidden, Missing, Unreachable
from hedgerow.process import preflight
from hedgerow.process.preflight import tell
from hedgerow.settings import Settings
from hedgerow_schemas.crd import crd_name
from support.registered import REGISTRY, RESOURCES

pytestmark = pytest.mark.anyio


@dataclass
class Cluster:
    """Answers from what it was made with."""

    served: bool = True
    namespaces: tuple[str, ...] = ()
    secretive: bool = False
    denied: frozenset[tuple[str, str]] = frozenset()
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    async def get(self, _path):
        return {"gitVersion": "v1.36.3"}

    async def resource(self, _group_version, _kind):
        if not self.served:
            raise Missing("not served")

    async def read(self, _api, name):
        if self.secretive:
            raise Forbidden("you may not")
        return {} if name in self.namespaces else None

    async def allowed(self, verb, api, namespace):
        self.asked.append((verb, api.plural, namespace))
        return (verb, api.plural) not in self.denied


async def told(cluster: Cluster, **settings) -> list[dict]:
    with capture_logs() as logs:
        await tell(cluster, Settings(**settings), REGISTRY)
    assert all(entry.pop("log_level") == "warning" for entry in logs)
    return logs


class TestLooking:
    @pytest.fixture
    def connected(self, monkeypatch) -> list[dict[str, Any]]:
        """Note how a cluster is connected to that serves nothing."""
        asked: list[dict[str, Any]] = []

        @asynccontextmanager
        async def connect(**how: Any) -> AsyncGenerator[Cluster]:
            asked.append(how)
            yield Cluster(served=False)

        monkeypatch.setattr(preflight, "connect", connect)
        return asked

    async def test_it_tells_of_the_cluster_that_the_settings_name(self, connected):
        settings = Settings(kubeconfig="k", context="c", controllers=("bluegreen",))
        with capture_logs() as logs:
            await preflight.look(settings, REGISTRY)

        assert [(how["kubeconfig"], how["context"]) for how in connected] == [("k", "c")]
        assert [entry["log_level"] for entry in logs] == ["warning"]

    async def test_a_cluster_that_does_not_answer_is_no_cluster_to_begin_with(
        self, connected, monkeypatch
    ):
        async def away(_cluster: Cluster, _path: str) -> None:
            raise Unreachable("connection refused", sent=False)

        monkeypatch.setattr(Cluster, "get", away)
        with pytest.raises(Unreachable):
            await preflight.look(Settings(), REGISTRY)


class TestPreflight:
    async def test_where_nothing_is_missing_it_says_nothing(self):
        assert await told(Cluster(namespaces=("shop",)), namespaces=("shop",)) == []

    async def test_a_custom_resource_that_is_not_installed_is_named_with_the_remedy(self):
        [entry] = await told(Cluster(served=False), controllers=("bluegreen",))

        assert entry == {
            "event": "custom resource not installed",
            "resource": "bluegreens.app.demo.kakao.com",
            "remedy": "`hedgerow install`",
        }

    async def test_a_namespace_that_is_not_there_is_named(self):
        [entry] = await told(Cluster(namespaces=("shop",)), namespaces=("shop", "shpo"))

        assert entry["event"] == "namespace does not exist"
        assert entry["namespace"] == "shpo"

    async def test_whoever_may_not_look_at_namespaces_is_not_bothered(self):
        assert await told(Cluster(secretive=True), namespaces=("shop",)) == []

    async def test_missing_permissions_are_one_line_for_each_kind_and_namespace(self):
        denied = frozenset({("patch", "services"), ("create", "services"), ("watch", "pods")})
        entries = await told(Cluster(denied=denied), controllers=("bluegreen",))

        assert [(e["event"], e["resource"], e["verbs"]) for e in entries] == [
            ("permission missing", "pods", "watch"),
            ("permission missing", "services", "create,patch"),
        ]
        assert all("--namespace" in entry["remedy"] for entry in entries)

    async def test_without_a_choice_every_controller_is_looked_at(self):
        entries = await told(Cluster(served=False))

        assert [entry["resource"] for entry in entries] == [crd_name(r) for r in RESOURCES]

    async def test_what_is_not_used_is_not_asked_for(self):
        cluster = Cluster(namespaces=("a", "b"))
        await told(cluster, namespaces=("a", "b"))

        assert {namespace for _, _, namespace in cluster.asked} == {"a", "b"}
        assert "update" not in {verb for verb, _, _ in cluster.asked}
        assert ("list", "bluegreens", "a") in cluster.asked
        assert ("patch", "bluegreens", "a") not in cluster.asked
        assert ("patch", "deployments", "b") in cluster.asked
