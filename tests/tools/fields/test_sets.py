"""The leaves of fieldsV1 trees, and what two trees hold together."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.sets import members
from hedgerow_tools.fields.sets import leaves, union
from support.objects.judged import item

LEAF: dict[str, Any] = {}
C = 'k:{"name":"c"}'
CONTAINERS = ("f:spec", "f:containers")
TREE = {
    "f:metadata": {"f:labels": {".": LEAF, "f:a": LEAF}},
    "f:spec": {"f:replicas": LEAF, "f:containers": {C: item("name", "image")}},
}


class TestLeaves:
    def test_they_are_the_places_with_nothing_below(self):
        assert list(leaves(TREE)) == [
            ("f:metadata", "f:labels", "f:a"),
            ("f:spec", "f:replicas"),
            (*CONTAINERS, C, "f:name"),
            (*CONTAINERS, C, "f:image"),
        ]

    def test_what_is_held_as_such_alone_is_one(self):
        tree = {"f:a": {".": LEAF}, "f:b": LEAF, ".": LEAF, "f:s": {'v:"x"': LEAF}}

        assert list(leaves(tree)) == [("f:a",), ("f:b",), ("f:s", 'v:"x"')]


class TestUnion:
    @pytest.mark.parametrize(
        ("one", "other", "both"),
        [
            ({}, TREE, TREE),
            ({"f:a": LEAF}, {"f:b": LEAF}, {"f:a": LEAF, "f:b": LEAF}),
            ({"f:a": LEAF}, {"f:a": LEAF}, {"f:a": LEAF}),
            ({"f:a": LEAF}, {"f:a": {"f:b": LEAF}}, {"f:a": {".": LEAF, "f:b": LEAF}}),
            ({"f:a": {".": LEAF}}, {"f:a": {"f:b": LEAF}}, {"f:a": {".": LEAF, "f:b": LEAF}}),
            ({"f:a": {"f:c": LEAF}}, {"f:a": {"f:b": LEAF}}, {"f:a": {"f:c": LEAF, "f:b": LEAF}}),
        ],
    )
    def test_it_holds_what_either_holds_and_no_more(self, one, other, both):
        for found in (union(one, other), union(other, one)):
            assert found == both
            assert set(members(found)) == {*members(one), *members(other)}
