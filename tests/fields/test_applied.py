from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.applyconfiguration import without_nulls
from hedgerow.fields.ownership import Leaf, leave_out

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


CONTAINERS = ("f:spec", "f:containers")
ENV = (*CONTAINERS, MAIN, "f:env", 'k:{"name":"A"}')
ITEMS = WANT["spec"]["containers"]
GONE = object()
LEFT: dict[str, tuple[list[tuple[str, ...]], dict[str, Any]]] = {
    "nothing contested leaves all": ([], {}),
    "a field goes and its neighbours stay": ([("f:spec", "f:replicas")], {"replicas": GONE}),
    "an atomic field goes whole": ([("f:spec", "f:selector")], {"selector": GONE}),
    "a map that is emptied goes too": (
        [("f:spec", "f:strategy", "f:rollingUpdate", "f:maxSurge")], {"strategy": GONE},
    ),
    "an item goes, and a map that was declared empty stays": (
        [(*CONTAINERS, MAIN)], {"containers": ITEMS[1:], "securityContext": {}},
    ),
    "a leaf in a list item goes inside that item": (
        [(*CONTAINERS, MAIN, "f:image")],
        {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}, ITEMS[1]]},
    ),
    "the keys of list items stay": (
        [(*CONTAINERS, MAIN, "f:image"), (*CONTAINERS, MAIN, "f:name"), (*ENV, "f:value")],
        {"containers": [{"name": "main", "env": [{"name": "A"}]}, ITEMS[1]]},
    ),
    "a list that is emptied goes too": (
        [ENV], {"containers": [{"name": "main", "image": "i"}, ITEMS[1]]},
    ),
    "an item that leaves out a key is found all the same": (
        [("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:name")],
        {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]},
    ),
    "a set item goes": ([("f:spec", "f:finalizers", 'v:"a"')], {"finalizers": ["b"]}),
}  # fmt: skip
"""What is contested, and which fields of the spec are others then."""


class TestLeaveOut:
    @pytest.mark.parametrize(("places", "others"), LEFT.values(), ids=LEFT)
    def test_what_is_left(self, places: list[tuple[str, ...]], others: dict[str, Any]) -> None:
        left = leave_out(WANT, [leaf(*place) for place in places])

        spec = {**WANT["spec"], **others}
        assert left == {**WANT, "spec": {k: v for k, v in spec.items() if v is not GONE}}

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
