"""What the conformance tests cannot hold against the real server: the model's own levers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hedgerow_testing.memory.answers import Refused
from hedgerow_testing.memory.kind import ServedKind, custom
from hedgerow_testing.memory.kinds import BUILTIN, SERVICE
from hedgerow_testing.memory.server import Server
from hedgerow_testing.memory.structural import wrong
from model.bounds import INT32, of_bounds, values
from model.mistyped import is_dropped, mistyped
from model.ours import bluegreen, cronjob, guestbook, memcached
from model.programs import laid
from model.subjects import SUBJECTS

Object = dict[str, Any]
OURS = "hedgerow-test"
SERVED: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "x", "namespace": "default"},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}},
}
KINDS = [*BUILTIN, bluegreen(), memcached(), guestbook(), cronjob()]
UNNAMED: Object = {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}


def reading(key: Any) -> Object:
    env = [{"name": "a", "valueFrom": {"configMapKeyRef": key}}]
    containers = [{"name": "c", "image": "x", "env": env}]
    return {**SERVED, "spec": {"template": {"spec": {"containers": containers}}}}


def config_map(name: str = "x", **metadata: Any) -> Object:
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


@pytest.fixture
def server() -> Server:
    return Server()


class TestEvents:
    def test_every_write_is_told_once_and_in_order(self, server: Server) -> None:
        body = config_map()
        server.apply(body, OURS)
        server.apply(body, OURS)
        server.apply({**body, "data": {"a": "2"}}, OURS)
        server.delete(body)

        events = server.events_since(0)
        assert ["ADDED", "MODIFIED", "DELETED"] == [event.type for event in events]
        assert ["101", "102", "103"] == [event.version for event in events]
        assert ["101", "102", "103"] == [e.object["metadata"]["resourceVersion"] for e in events]
        assert 3 == server.writes

    def test_they_can_be_had_in_steps_and_by_kind(self, server: Server) -> None:
        server.apply(config_map("a"), OURS)
        seen = server.version
        server.apply(config_map("b"), OURS)

        assert ["b"] == [e.object["metadata"]["name"] for e in server.events_since(seen)]
        assert () == server.events_since(0, SERVICE.api)

    def test_an_event_keeps_the_object_as_it_was(self, server: Server) -> None:
        live, _ = server.apply(config_map(), OURS)
        live["data"]["a"] = "broken"
        server.events_since(0)[0].object["data"]["a"] = "broken"

        assert "1" == server.events_since(0)[0].object["data"]["a"]
        assert {"a": "1"} == (server.get(config_map()) or {})["data"]

    def test_what_is_refused_or_dry_is_not_told(self, server: Server) -> None:
        server.apply(config_map(), OURS, dry_run=True)
        with pytest.raises(Refused):
            server.apply(config_map(uid="u"), OURS)

        assert () == server.events_since(0)


class TestTypes:
    """A value of another type than the server's schema has is refused, wherever it is."""

    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.api.kind)
    def test_it_is_refused_at_every_sort_of_place_of_a_kind(self, kind: ServedKind) -> None:
        server, places = Server([kind]), 0
        target = {"apiVersion": kind.api.group_version, "kind": kind.api.kind}
        target |= {"metadata": {"name": "x", "namespace": "default"}}
        for path, body in mistyped(kind):
            places += 1
            with pytest.raises(Refused) as refused:
                server.apply(laid(target, body), OURS)
            assert refused.value.code == 500, (path, refused.value)
            if not is_dropped(kind, path):
                with pytest.raises(Refused) as refused:
                    server.create(laid(target, body), OURS)
                is_read = kind.builtin or path.startswith(".metadata")
                assert refused.value.code == (400 if is_read else 422), path

        assert places > 20
        assert server.get(target) is None

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            ({"data": {"a": 5}}, ".data.a: expected string, got int"),
            ({"data": {"a": True}}, ".data.a: expected string, got bool"),
            ({"data": ["a"]}, ".data: expected map, got list"),
            ({"binaryData": {"a": "no base64"}}, ".binaryData.a: expected bytes, got str"),
            ({"immutable": "true"}, ".immutable: expected boolean, got str"),
            ({"dta": {"a": "5"}}, "dta: field not declared in schema"),
        ],
    )
    def test_it_says_where(self, server: Server, body: Object, told: str) -> None:
        with pytest.raises(Refused, match=re.escape(told)):
            server.apply({**config_map(), **body}, OURS)

    @pytest.mark.parametrize(
        "spec",
        [
            {"replicas": 1.5},
            {"replicas": True},
            {"selector": {"matchLabel": {"a": "b"}}},
            {"template": {"spec": {"nodeSelector": {"a": 1}}}},
            {"template": {"spec": {"tolerations": [{"ky": "a"}]}}},
        ],
    )
    def test_it_is_so_within_values_that_have_one_owner(self, server: Server, spec: Object) -> None:
        with pytest.raises(Refused, match="failed to create typed patch object"):
            server.apply({**SERVED, "spec": spec}, OURS)

    @pytest.mark.parametrize("amount", [1, 0.5, "500m"])
    def test_a_number_or_a_text_may_be_either(self, server: Server, amount: Any) -> None:
        limits = {"resources": {"limits": {"cpu": amount}}}
        containers = [{"name": "c", "image": "x", **limits}]
        spec = {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}},
            "replicas": 2.0,
        }

        assert server.apply({**SERVED, "spec": spec}, OURS)[1]


class TestBounds:
    """A custom resource's values are within the bounds of its definition."""

    def test_others_are_refused(self) -> None:
        server = Server([custom(of_bounds())])
        taken: list[tuple[str, Any, bool]] = []
        for name, value, _ in values():
            thing = {"apiVersion": "bounds.example.com/v1", "kind": "Bound"}
            thing |= {"metadata": {"name": "x", "namespace": "default"}, "spec": {name: value}}
            try:
                server.apply(thing, OURS, dry_run=True)
            except Refused:
                taken += [(name, value, False)]
            else:
                taken += [(name, value, True)]

        assert taken == values()

    @pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
    def test_a_number_of_more_bits_is_refused_as_newer_servers_do(self, number: int) -> None:
        assert dict(wrong(INT32, number, ".spec.a")) == {"spec.a": "Invalid value"}


class TestListing:
    def test_a_list_has_the_version_of_the_whole(self, server: Server) -> None:
        server.open_namespace("other")
        for body in (config_map("b"), config_map("a"), config_map("c", namespace="other")):
            server.apply(body, OURS)

        everything, one = server.list("", "ConfigMap"), server.list("", "ConfigMap", "default")
        assert ["a", "b", "c"] == [item["metadata"]["name"] for item in everything.items]
        assert ["a", "b"] == [item["metadata"]["name"] for item in one.items]
        assert str(server.version) == everything.version


class TestGarbage:
    def test_what_has_lost_all_its_owners_is_collected(self, server: Server) -> None:
        owners = [server.apply(config_map(name), OURS)[0] for name in ("one", "two")]
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": o["metadata"]["name"],
                "uid": o["metadata"]["uid"],
            }
            for o in owners
        ]
        server.apply(config_map("both", ownerReferences=references), OURS)
        server.apply(config_map("single", ownerReferences=references[:1]), OURS)
        assert 0 == server.collect()

        server.delete(owners[0])
        assert 1 == server.collect()
        assert server.get(config_map("single")) is None

        server.delete(owners[1])
        assert 1 == server.collect()
        assert server.get(config_map("both")) is None

    def test_a_finalizer_holds_what_is_collected(self, server: Server) -> None:
        gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}
        server.apply(config_map(ownerReferences=[gone], finalizers=["hedgerow.dev/x"]), OURS)
        server.collect()

        assert "deletionTimestamp" in (server.get(config_map()) or {})["metadata"]


class TestTime:
    def test_it_stands_still_until_it_is_moved(self, server: Server) -> None:
        live, _ = server.apply(config_map(), OURS)
        server.now += 60
        later, _ = server.apply({**config_map(), "data": {"a": "2"}}, OURS)

        assert "2026-01-01T00:00:00Z" == live["metadata"]["managedFields"][0]["time"]
        assert "2026-01-01T00:01:00Z" == later["metadata"]["managedFields"][0]["time"]
        assert "2026-01-01T00:00:00Z" == later["metadata"]["creationTimestamp"]

    def test_an_apply_that_changes_nothing_does_not_move_its_entry(self, server: Server) -> None:
        deployment = SUBJECTS["Deployment"].first
        metadata = {"name": "x", "namespace": "default"}
        body = {**deployment, "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        body["spec"] = {**body["spec"], "paused": False}
        live, _ = server.apply(body, OURS)
        server.now += 60

        assert live == server.apply(body, OURS)[0]

    def test_the_oldest_of_more_than_ten_updaters_are_merged(self, server: Server) -> None:
        server.apply(config_map(), OURS)
        for number in range(12):
            server.now += 1
            server.merge(config_map(), {"data": {f"k{number}": "1"}}, f"updater-{number}")
        live = server.get(config_map()) or {}
        updates = [e for e in live["metadata"]["managedFields"] if e["operation"] == "Update"]

        assert 10 == len(updates)
        assert ["f:k0", "f:k1", "f:k2"] == sorted(
            next(e for e in updates if e["manager"] == "ancient-changes")["fieldsV1"]["f:data"]
        )


class TestForking:
    def test_a_fork_goes_its_own_way(self, server: Server) -> None:
        server.apply(config_map(), OURS)
        fork = server.fork()
        fork.delete(config_map())
        fork.terminate("default")

        assert server.get(config_map()) is not None
        assert 1 == len(server.events_since(0))
        assert server.apply(config_map("y"), OURS)[1]


class TestRefusing:
    @pytest.mark.parametrize(
        ("act", "code", "reason"),
        [
            (lambda s: s.apply({**config_map(), "kind": "Nothing"}, OURS), 404, "NotFound"),
            (lambda s: s.apply({**config_map(), "apiVersion": "v2"}, OURS), 404, "NotFound"),
            (lambda s: s.update(config_map(), OURS), 404, "NotFound"),
            (lambda s: s.delete(config_map()), 404, "NotFound"),
            (lambda s: [s.create(config_map(), OURS) for _ in "ab"], 409, "AlreadyExists"),
            (lambda s: [s.apply(SERVED, OURS), s.merge(SERVED, UNNAMED, OURS)], 422, "Invalid"),
            (lambda s: s.apply(reading(["x"]), OURS), 500, "InternalError"),
        ],
    )
    def test_what_cannot_be_done_is_refused(
        self, server: Server, act: Callable[[Server], Any], code: int, reason: str
    ) -> None:
        with pytest.raises(Refused) as refused:
            act(server)

        assert (code, reason) == (refused.value.code, refused.value.status["reason"])
