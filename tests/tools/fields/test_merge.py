"""Merge: an apply worked out without a server comes to what the server makes of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hedgerow.fields import ownership
from hedgerow_testing.memory.server import Server
from hedgerow_tools.fields.merge import cut, merge, tree_of
from hedgerow_tools.fields.structure import Structure
from support.objects.judged import OURS

Object = dict[str, Any]
NAME = {"name": "web", "namespace": "default"}
LABELS = {"app": "web"}


def container(name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "app:1", **more}


def deployment(*containers: Object, replicas: int | None = None, **more: Any) -> Object:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": list(containers), **more}}
    spec: Object = {"selector": {"matchLabels": LABELS}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": NAME, "spec": spec}


def labelled(**labels: str) -> Object:
    body = deployment(container())
    return {**body, "metadata": {**NAME, "labels": labels}}


SETS = [
    ("the same again", deployment(container()), deployment(container())),
    ("a value", deployment(container()), deployment(container(image="app:2"))),
    ("a field more", deployment(container()), deployment(container(), replicas=3)),
    ("an item less", deployment(container(), container("side")), deployment(container())),
    (
        "an inner field less",
        deployment(container(args=["a"], command=["b"])),
        deployment(container(command=["b"])),
    ),
    (
        "items in another order",
        deployment(container("a"), container("b"), container("c")),
        deployment(container("c"), container("a"), container("b")),
    ),
    (
        "items of an item in another order",
        deployment(container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])),
        deployment(container(env=[{"name": "B", "value": "2"}, {"name": "A", "value": "1"}])),
    ),
    ("an atomic list", deployment(container(args=["a"])), deployment(container(args=["b", "c"]))),
    ("a label", labelled(a="1"), labelled(a="2")),
    ("another label", labelled(a="1"), labelled(b="2")),
    ("a label less", labelled(a="1", b="2"), labelled(b="2")),
]


class TestAgainstAServer:
    @pytest.mark.parametrize(("first", "second"), [s[1:] for s in SETS], ids=[s[0] for s in SETS])
    def test_it_comes_to_the_same(self, first, second):
        server = Server()
        live, _ = server.apply(first, OURS)
        merged = merge(copy.deepcopy(live), second, OURS)
        asked, _ = server.apply(second, OURS)

        assert merged["spec"] == asked["spec"]
        assert merged["metadata"].get("labels") == asked["metadata"].get("labels")
        assert ownership.judge(second, merged, OURS).settled

    def test_an_item_more_comes_without_its_defaults(self):
        server = Server()
        live, _ = server.apply(deployment(container()), OURS)
        body = deployment(container(), container("side"))
        merged = merge(live, body, OURS)

        first, second = merged["spec"]["template"]["spec"]["containers"]
        assert first == live["spec"]["template"]["spec"]["containers"][0]
        assert second == container("side")
        assert ownership.judge(body, merged, OURS).settled

    @pytest.mark.parametrize("wanted", ["cab", "xac", "bxa", "cxba"])
    def test_items_come_to_stand_where_the_server_puts_them(self, wanted):
        server = Server()
        server.apply(deployment(*map(container, "dae")), "other")
        live, _ = server.apply(deployment(*map(container, "abc")), OURS)
        body = deployment(*map(container, wanted))
        merged = merge(copy.deepcopy(live), body, OURS)
        asked, _ = server.apply(body, OURS)

        names = [
            [one["name"] for one in each["spec"]["template"]["spec"]["containers"]]
            for each in (merged, asked)
        ]
        assert names[0] == names[1]

    def test_what_others_hold_too_stays(self):
        server = Server()
        live, _ = server.apply(deployment(container(), replicas=3), OURS)
        live, _ = server.apply(deployment(container(), replicas=3), "other")

        assert merge(live, deployment(container()), OURS)["spec"]["replicas"] == 3

    def test_what_is_made_is_what_is_declared(self):
        born = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**NAME, "uid": "u"}}
        body = deployment(container(), replicas=3)
        made = merge(born, {**body, "metadata": {**NAME, "labels": {"a": "1"}}}, OURS)

        assert made["spec"] == body["spec"]
        assert made["metadata"]["labels"] == {"a": "1"}
        assert ownership.judge(body, made, OURS).leaves[0].why == "surplus"

    def test_a_status_is_booked_on_its_subresource(self):
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": NAME}
        merged = merge(body, {**body, "status": {"replicas": 1}}, OURS, "status")

        [entry] = merged["metadata"]["managedFields"]
        assert (entry["subresource"], entry["fieldsV1"]) == (
            "status", {"f:status": {"f:replicas": {}}},
        )  # fmt: skip


class TestTaken:
    def test_the_value_and_the_field_change_hands(self):
        server = Server()
        server.apply(deployment(container()), OURS)
        theirs = deployment(container(image="theirs:1"), replicas=9)
        live, _ = server.apply(theirs, "other", force=True)
        want = deployment(container())
        leaves = ownership.judge(want, live, OURS).contested
        after = merge(live, want, OURS, taken=leaves)

        assert [leaf.path for leaf in leaves] == [
            '.spec.template.spec.containers[name="main"].image'
        ]
        assert ownership.judge(want, after, OURS).settled
        assert ownership.entry(after, "other") != ownership.entry(live, "other")


class TestTreeOf:
    def test_items_without_keys_are_left_out_of_a_tree(self):
        known = [{'k:{"name":"a"}': {".": {}, "f:name": {}}}]

        assert tree_of([{"name": "a"}, "odd"], known) == {'k:{"name":"a"}': {".": {}, "f:name": {}}}

    def test_an_atomic_map_stays_whole(self):
        assert tree_of({"a": 1}, [{}]) == {}
        granular = Structure({"additionalProperties": {"type": "string"}}, {})
        assert tree_of({"a": 1}, [{}], granular) == {"f:a": {}}


def test_what_loses_its_last_leaf_goes_or_it_would_hold_all():
    item = 'k:{"name":"c"}'
    tree: dict[str, Any] = {
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {"f:replicas": {}, "f:containers": {item: {".": {}}}},
    }

    left = cut(tree, [("f:spec", "f:replicas"), ("f:spec", "f:containers", item)])

    assert left == {"f:metadata": tree["f:metadata"]}
    assert cut(tree, [("f:metadata", "f:labels", "f:a")])["f:metadata"] == {"f:labels": {".": {}}}
    assert cut({"f:a": {}, "f:b": {}}, [("f:a",)]) == {"f:b": {}}
    assert cut(tree, []) == tree
