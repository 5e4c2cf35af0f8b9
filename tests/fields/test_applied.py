from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.applyconfiguration import leave_out, without_nulls
from hedgerow.fields.ownership import Leaf

MAIN = 'k:{"name":"main"}'
WANT = {
    "apiVersion": "apps/v1",
    "metadata": {"name": "x", "labels": {"app": "a"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "strategy": {"rollingUpdate": {"maxSurge": 1}},
        "containers": [
            {"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]},
            {"name": "side", "emptied": {}},
        ],
        "ports": [{"port": 80, "name": "http"}, {"port": 80, "protocol": "UDP"}],
        "finalizers": ["a", "b"],
        "securityContext": {},
    },
}


def leaf(*field_path: str) -> Leaf:
    return Leaf("", field_path, "lost", None, None, (), equal=False)


def spec_without(*leaves: Leaf) -> dict[str, Any]:
    return leave_out(WANT, leaves).get("spec", {})


class TestLeaveOut:
    def test_nothing_contested_leaves_all(self) -> None:
        assert WANT == leave_out(WANT, [])

    def test_a_field_goes_and_its_neighbours_stay(self) -> None:
        left = leave_out(WANT, [leaf("f:spec", "f:replicas")])

        assert {**WANT, "spec": {k: v for k, v in WANT["spec"].items() if k != "replicas"}} == left

    def test_an_atomic_field_goes_whole(self) -> None:
        assert "selector" not in spec_without(leaf("f:spec", "f:selector"))

    def test_a_map_that_is_emptied_goes_too(self) -> None:
        left = spec_without(leaf("f:spec", "f:strategy", "f:rollingUpdate", "f:maxSurge"))

        assert "strategy" not in left

    def test_a_map_that_was_declared_empty_stays(self) -> None:
        left = spec_without(leaf("f:spec", "f:replicas"), leaf("f:spec", "f:containers", MAIN))

        assert left["securityContext"] == {}
        assert left["containers"] == [{"name": "side", "emptied": {}}]

    def test_a_leaf_in_a_list_item_goes_inside_that_item(self) -> None:
        left = spec_without(leaf("f:spec", "f:containers", MAIN, "f:image"))

        assert left["containers"][0] == {"name": "main", "env": [{"name": "A", "value": "1"}]}
        assert left["containers"][1] == WANT["spec"]["containers"][1]

    def test_the_keys_of_list_items_stay(self) -> None:
        left = spec_without(
            leaf("f:spec", "f:containers", MAIN, "f:image"),
            leaf("f:spec", "f:containers", MAIN, "f:name"),
            leaf("f:spec", "f:containers", MAIN, "f:env", 'k:{"name":"A"}', "f:value"),
        )

        assert left["containers"][0] == {"name": "main", "env": [{"name": "A"}]}

    def test_a_list_that_is_emptied_goes_too(self) -> None:
        field_path = ("f:spec", "f:containers", MAIN, "f:env", 'k:{"name":"A"}')

        assert "env" not in spec_without(leaf(*field_path))["containers"][0]

    def test_an_item_that_leaves_out_a_key_is_found_all_the_same(self) -> None:
        tcp = 'k:{"port":80,"protocol":"TCP"}'
        left = spec_without(leaf("f:spec", "f:ports", tcp, "f:name"))

        assert left["ports"] == [{"port": 80}, {"port": 80, "protocol": "UDP"}]

    def test_a_set_item_goes(self) -> None:
        assert spec_without(leaf("f:spec", "f:finalizers", 'v:"a"'))["finalizers"] == ["b"]

    def test_everything_contested_leaves_the_identity(self) -> None:
        left = leave_out(WANT, [leaf("f:spec"), leaf("f:metadata", "f:labels")])

        assert left == {"apiVersion": "apps/v1", "metadata": {"name": "x"}}

    @pytest.mark.parametrize(
        "field_path",
        [(), ("f:no",), ("f:spec", "f:replicas", "f:deeper"), ("f:spec", "f:containers", "f:image"),
         ("f:spec", "f:containers", 'k:{"name":"no"}', "f:image"), ("f:spec", MAIN),
         ("f:spec", "f:finalizers", 'v:"a"', "f:x"), ("f:spec", "f:containers", "nonsense")],
    )  # fmt: skip
    def test_what_is_not_there_is_not_missed(self, field_path: tuple[str, ...]) -> None:
        assert WANT == leave_out(WANT, [leaf(*field_path)])


class TestWithoutNulls:
    def test_nulls_go_at_every_depth_and_all_else_stays(self) -> None:
        sent = {"a": None, "b": [None, {"c": None, "d": 0}], "e": {}, "f": [], "g": "", "h": False}

        assert {"b": [{"d": 0}], "e": {}, "f": [], "g": "", "h": False} == without_nulls(sent)
