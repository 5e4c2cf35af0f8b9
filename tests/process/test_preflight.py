"""What an operator says it is going to wait for, before it waits."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from hedgerow.kube.errors import Forbidden, Missing, Unreachable
from hedgerow.kube.reviews import NOWHERE, RULES
from hedgerow.process.preflight import _needed, log_missing, look
from hedgerow.settings import Settings
from hedgerow_schemas.crd import crd_name
from support.operator.registered import REGISTRY, RESOURCES

pytestmark = pytest.mark.anyio


@dataclass
class Cluster:
    """Answers from what it was made with."""

    served: bool = True
    namespaces: tuple[str, ...] = ()
    secretive: bool = False
    denied: frozenset[tuple[str, str]] = frozenset()
    incomplete: bool = False
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    reviewed: list[str] = field(default_factory=list)

    async def resource(self, _group_version, _kind):
        if not self.served:
            raise Missing("not served")

    async def read(self, _api, name):
        if self.secretive:
            raise Forbidden("you may not")
        return {} if name in self.namespaces else None

    async def review(self, kind, spec, **_):
        assert kind == RULES
        self.reviewed.append(spec["namespace"])
        rules = [] if self.incomplete else list(self.rules())
        return {"resourceRules": rules, "nonResourceRules": [], "incomplete": self.incomplete}

    def rules(self):
        for controller in REGISTRY.controllers:
            for api, verbs in _needed(controller):
                given = [verb for verb in verbs if (verb, api.plural) not in self.denied]
                yield {"verbs": given, "apiGroups": [api.group], "resources": [api.plural]}

    async def allowed(self, verb, api, namespace):
        self.asked.append((verb, api.plural, namespace))
        return (verb, api.plural) not in self.denied


async def told(cluster: Cluster, **settings) -> list[dict]:
    with capture_logs() as logs:
        await log_missing(cluster, Settings(**settings), REGISTRY)
    assert all(entry.pop("log_level") == "warning" for entry in logs)
    return logs


class TestLooking:
    async def test_a_cluster_that_does_not_answer_is_told_and_ends_nothing(self, monkeypatch):
        async def away(*_: object) -> None:
            raise Unreachable("connection refused", sent=False)

        monkeypatch.setattr(Cluster, "resource", away)
        with capture_logs() as logs:
            await look(Cluster(), Settings(), REGISTRY)

        [entry] = logs
        assert entry["event"] == "cannot find out what is missing in the cluster"
        assert "connection refused" in entry["error"]

    async def test_an_answer_that_makes_no_sense_ends_nothing(self, monkeypatch):
        async def odd(*_: object) -> None:
            raise KeyError("namespaced")

        monkeypatch.setattr(Cluster, "resource", odd)
        with capture_logs() as logs:
            await look(Cluster(), Settings(), REGISTRY)

        assert [entry["log_level"] for entry in logs] == ["error"]

    async def test_rules_that_cannot_be_read_are_asked_for_one_by_one(self, monkeypatch):
        async def odd(*_: object, **__: object) -> dict:
            return {"resourceRules": None, "incomplete": False}

        monkeypatch.setattr(Cluster, "review", odd)
        cluster = Cluster()

        assert await told(cluster) == []
        assert ("patch", "deployments", "") in cluster.asked


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

    async def test_whoever_shares_the_work_needs_the_leases_of_its_namespace(self):
        cluster = Cluster()
        [entry] = await told(cluster, shards=True, leader_elect=True, system_namespace="own")

        assert entry == {
            "event": "permission missing",
            "resource": "leases.coordination.k8s.io",
            "verbs": "list,watch,get,create,patch,delete",
            "namespace": "own",
            "remedy": "bind a role that grants them",
        }

    async def test_without_a_choice_every_controller_is_looked_at(self):
        entries = await told(Cluster(served=False))

        assert [entry["resource"] for entry in entries] == [crd_name(r) for r in RESOURCES]

    async def test_the_rights_take_one_request_a_namespace(self):
        cluster = Cluster(namespaces=("a", "b"))
        await told(cluster, namespaces=("a", "b"))

        assert (cluster.reviewed, cluster.asked) == (["a", "b"], [])

    async def test_rights_in_all_namespaces_are_those_in_one_that_cannot_be(self):
        cluster = Cluster()
        await told(cluster)

        assert (cluster.reviewed, cluster.asked) == ([NOWHERE], [])

    async def test_what_no_rule_allows_is_asked_for_if_the_rules_are_incomplete(self):
        cluster = Cluster(namespaces=("a", "b"), incomplete=True)

        assert await told(cluster, namespaces=("a", "b")) == []
        assert {namespace for _, _, namespace in cluster.asked} == {"a", "b"}
        assert "update" not in {verb for verb, _, _ in cluster.asked}
        assert ("list", "bluegreens", "a") in cluster.asked
        assert ("patch", "bluegreens", "a") not in cluster.asked
        assert ("patch", "deployments", "b") in cluster.asked
