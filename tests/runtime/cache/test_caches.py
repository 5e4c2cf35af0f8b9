"""The stores of one controller, and whom a change concerns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
import structlog
from structlog.testing import LogCapture

from hedgerow.contract import Controller, Key, Relation
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller
from hedgerow.objects import Installation
from hedgerow.runtime.cache.caches import Cache, Source, build
from hedgerow.shard import Shard
from hedgerow_schemas.base import Resource
from hedgerow_schemas.builtin import Deployment, Pod
from support.operator.registered import ALL

Object = dict[str, Any]

CONTROLLER = cast("Controller[Resource]", bluegreen.CONTROLLER)
SECRETSYNC = next(one for one in ALL.controllers if one.is_for_namespaces)
CRONJOBS = cast("Controller[Resource]", controller.CONTROLLER)


def built(*namespaces: str, instance: str = "") -> Cache:
    return build(CONTROLLER, Installation(instance), namespaces)


def source(cache: Cache, kind: str) -> Source:
    return next(source for source in cache if source.api.kind == kind)


def child(**owner: Any) -> Object:
    api = CONTROLLER.resource.api
    identity = {"apiVersion": api.group_version, "kind": api.kind, "name": "demo"}
    reference = {**identity, "uid": "u", "controller": True, **owner}
    meta = {"name": "x", "namespace": "ns", "resourceVersion": "1", "ownerReferences": [reference]}
    return {"metadata": meta}


class TestLayout:
    def test_all_namespaces_are_one_watch_a_kind(self):
        watched = [(s.api.kind, s.namespace, s.labels) for s in built()]

        assert watched == [
            ("BlueGreen", "", ""),
            ("Deployment", "", "hedgerow.dev/controller=bluegreen"),
            ("Service", "", "hedgerow.dev/controller=bluegreen"),
            ("Job", "", "hedgerow.dev/controller=bluegreen"),
            ("Pod", "", "app.kubernetes.io/managed-by=app.demo.kakao.com"),
            ("EndpointSlice", "", "app.demo.kakao.com/endpoints"),
        ]

    def test_some_namespaces_are_a_watch_each_and_none_twice(self):
        watched = [(s.api.kind, s.namespace) for s in built("a", "b", "a")]

        assert len(watched) == len(set(watched)) == 12
        assert {namespace for _, namespace in watched} == {"a", "b"}

    def test_a_shard_reads_its_part_of_what_is_in_the_resources_namespace(self):
        relations = (
            Relation(Pod, of=lambda _: (), same_namespace=True),
            Relation(Deployment, of=lambda _: ()),
        )
        both = replace(CONTROLLER, relates=relations)
        shard = Shard(1, 2)
        found = {s.api.kind: s.shard for s in build(both, Installation(), (), shard=shard)}

        assert found == {
            **dict.fromkeys(("BlueGreen", "Service", "Job", "Pod"), shard),
            "Deployment": None,  # last: all of them may be read by resources of any namespace
        }

    def test_of_the_namespaces_that_are_watched_a_shard_reads_its_own_whole(self):
        names = ("team-a", "team-b", "team-c", "team-d")
        shard = Shard(1, 2)
        found = [
            (s.namespace, s.shard) for s in build(CONTROLLER, Installation(), names, shard=shard)
        ]

        assert {name for name, _ in found} == set(filter(shard.serves, names))
        assert {each for _, each in found} == {None}

    def test_cluster_scoped_resources_and_all_that_is_theirs_are_read_whole(self):
        made = build(cast("Any", SECRETSYNC), Installation(), (), shard=Shard(0, 2))

        assert [s.shard for s in made] == [None] * len(tuple(made))
        assert made.shard is None

    def test_another_installation_watches_its_own_children(self):
        assert source(built(instance="two"), "Service").labels == (
            "hedgerow.dev/controller=two.bluegreen"
        )

    def test_related_objects_are_reduced_and_our_own_are_not(self):
        pod = {"metadata": {"name": "p", "managedFields": [{}]}, "spec": {"a": "b"}}
        cache = built()

        assert "spec" not in source(cache, "Pod").reduce(pod)
        assert source(cache, "Service").reduce(pod) is pod


class TestLooking:
    @pytest.mark.parametrize("namespaces", [(), ("ns",), ("other", "ns")])
    def test_objects_are_found_in_the_store_of_their_namespace(self, namespaces):
        cache = built(*namespaces)
        resource = {"metadata": {"name": "demo", "namespace": "ns", "resourceVersion": "1"}}
        cache.store("BlueGreen", "ns").put(resource)
        cache.store("Deployment", "ns").put(child())

        assert cache.resource(("ns", "demo")) is resource
        assert [kind for kind, _ in cache.owned("u", "ns")] == [Deployment]
        assert cache.owned("other", "ns") == []

    def test_what_is_out_of_scope_has_no_store(self):
        cache = built("ns")

        for look in (
            lambda: cache.store("BlueGreen", "other"),
            lambda: cache.store("Deployment", "other"),
            lambda: cache.store("ConfigMap", "ns"),
        ):
            with pytest.raises(LookupError, match="not watched by this controller"):
                look()

    def test_what_is_out_of_scope_is_no_resource(self):
        assert built("ns").resource(("other", "demo")) is None

    def test_an_object_without_controller_belongs_to_nobody(self):
        cache = built()
        cache.store("Deployment", "ns").put(child(controller=False))

        assert cache.owned("u", "ns") == []

    def test_related_objects_are_found_by_the_resource_that_they_concern(self):
        cache = built()
        labels = {"app.kubernetes.io/name": "demo"}
        meta = {"name": "p", "namespace": "ns", "resourceVersion": "1", "labels": labels}
        source(cache, "Pod").store.put({"metadata": meta})

        (found,) = cache.concerning(("ns", "demo"))
        assert isinstance(found, Pod)
        assert cache.concerning(("ns", "other")) == []


class TestConcerned:
    def of(self, kind: str, obj: Object) -> list[tuple[str, str]]:
        return list(source(built(), kind).store.shelf.concerned(obj))

    def test_a_resource_concerns_itself(self):
        obj = {"metadata": {"name": "demo", "namespace": "ns"}}

        assert self.of("BlueGreen", obj) == [("ns", "demo")]

    @pytest.mark.parametrize(
        "owner", [{"uid": "former"}, {"apiVersion": "app.demo.kakao.com/v1alpha1"}]
    )
    def test_a_child_concerns_the_resource_of_its_controllers_name_whatever_the_uid(self, owner):
        assert self.of("Service", child(**owner)) == [("ns", "demo")]

    @pytest.mark.parametrize(
        "owner", [{"kind": "Other"}, {"apiVersion": "example.com/v1"}, {"controller": False}]
    )
    def test_a_child_of_another_concerns_nobody(self, owner):
        assert self.of("Service", child(**owner)) == []

    def test_a_child_without_owner_concerns_nobody(self):
        assert self.of("Service", {"metadata": {"name": "x", "namespace": "ns"}}) == []

    def test_a_related_object_concerns_whom_its_relation_names(self):
        labels = {"app.kubernetes.io/name": "demo"}
        obj = {"metadata": {"name": "p", "namespace": "ns", "labels": labels}}

        assert self.of("Pod", obj) == [("ns", "demo")]


class TestSameNamespace:
    def test_a_key_of_another_namespace_is_refused_and_the_first_one_logged(self, captured):
        theirs = replace(
            CONTROLLER.relates[0], of=lambda pod: [Key("other", "demo"), Key(pod.namespace, "demo")]
        )
        cache = build(replace(CONTROLLER, relates=(theirs,)), Installation(), ())
        pods = source(cache, "Pod")
        for name in ("a", "b"):
            obj = {"metadata": {"name": name, "namespace": "ns"}}
            pods.store.put(obj)
            assert pods.store.shelf.concerned(obj) == (Key("ns", "demo"),)

        assert [pod.name for pod in cache.concerning(Key("ns", "demo"))] == ["a", "b"]
        assert cache.concerning(Key("other", "demo")) == []
        assert [(entry["object"], entry["key"]) for entry in captured.entries] == [
            ("ns/a", "other/demo")
        ]

    def test_it_needs_to_be_known_whom_an_object_concerns(self):
        with pytest.raises(ValueError, match="needs `of`"):
            Relation(Pod, same_namespace=True)


@pytest.fixture
def captured() -> LogCapture:
    logs = LogCapture()
    structlog.configure(processors=[logs])
    return logs
