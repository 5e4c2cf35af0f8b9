from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.applyconfiguration import declaring
from hedgerow.fields.sets import ABSENT, Values, is_key, members, with_places
from support.objects.judged import OTHER, OURS, item, live, want

LEAF: dict[str, Any] = {}
C = 'k:{"name":"c"}'
CONTAINERS = ("f:spec", "f:containers")
TREE = {
    "f:metadata": {"f:labels": {".": LEAF, "f:a": LEAF}},
    "f:spec": {"f:replicas": LEAF, "f:containers": {C: item("name", "image")}},
}
PLACES = [
    ("f:metadata", "f:labels", "f:a"),
    ("f:spec", "f:replicas"),
    (*CONTAINERS, C, "f:name"),
    (*CONTAINERS, C, "f:image"),
]


class TestPlaces:
    def test_members_are_the_fields_and_what_is_held_as_such(self):
        assert list(members(TREE)) == [
            ("f:metadata", "f:labels"),
            PLACES[0],
            PLACES[1],
            (*CONTAINERS, C),
            *PLACES[2:],
        ]

    @pytest.mark.parametrize(
        ("field_path", "key"),
        [
            ((*CONTAINERS, C, "f:name"), True),
            ((*CONTAINERS, C, "f:image"), False),
            ((*CONTAINERS, C), False),
            (("f:spec", "f:name"), False),
            (("f:spec",), False),
            (("f:finalizers", C, 'v:"name"'), False),
        ],
    )
    def test_the_keys_of_a_list_item_are_known(self, field_path, key):
        assert is_key(field_path) is key


class TestParts:
    def test_places_are_added_where_they_are_and_the_tree_itself_stays(self):
        more = with_places(
            TREE, [("f:spec", "f:paused"), ("f:spec", "f:replicas"), ("f:data", "f:x")]
        )

        assert more["f:spec"]["f:paused"] == LEAF
        assert more["f:data"] == {"f:x": LEAF}
        assert more["f:metadata"] == TREE["f:metadata"]
        assert list(members(more)) == [*members(TREE), ("f:spec", "f:paused"), ("f:data", "f:x")]
        assert "f:data" not in TREE


class TestValues:
    OBJECT = {
        "spec": {"replicas": None, "containers": [{"name": "b"}, {"name": "c", "image": "i"}]},
        "args": ["x", "x", "y"],
    }

    @pytest.mark.parametrize(
        ("field_path", "value"),
        [
            (("f:spec", "f:replicas"), None),
            ((*CONTAINERS, C, "f:image"), "i"),
            ((*CONTAINERS, C), {"name": "c", "image": "i"}),
            (("f:args", 'v:"y"'), "y"),
            (("f:args", 'v:"x"'), ["x", "x"]),
            ((), OBJECT),
        ],
    )
    def test_it_is_what_stands_there(self, field_path, value):
        assert Values(self.OBJECT).at(field_path) == value

    @pytest.mark.parametrize(
        "field_path",
        [
            ("f:status",), ("f:spec", "f:replicas", "f:x"), (*CONTAINERS, 'k:{"name":"z"}'),
            ("f:spec", C), ("f:args", "f:x"), ("?",),
        ],
    )  # fmt: skip
    def test_where_nothing_stands_it_is_absent(self, field_path):
        assert Values(self.OBJECT).at(field_path) is ABSENT


class TestDeclaring:
    def test_it_adds_to_what_was_declared_with_the_values_that_are_there(self):
        spec = {"replicas": 5, "containers": [{"name": "c", "image": "i", "tty": True}]}
        obj = live(
            want(spec=spec), (OURS, {"f:spec": {"f:replicas": LEAF}}), (OTHER, {"f:spec": LEAF})
        )

        body = declaring(obj, OURS, [(*CONTAINERS, C, "f:image")])

        assert body["spec"] == {"replicas": 5, "containers": [{"name": "c", "image": "i"}]}
        assert body["metadata"] == {
            "name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"
        }  # fmt: skip
        assert (body["apiVersion"], body["kind"]) == ("apps/v1", "Deployment")

    def test_one_that_declared_nothing_declares_just_that(self):
        obj = live(want(spec={"replicas": 5}, data={"a": 1}))

        assert declaring(obj, OURS, [("f:data", "f:a")])["data"] == {"a": 1}
        assert "spec" not in declaring(obj, OURS, [("f:data", "f:a")])
