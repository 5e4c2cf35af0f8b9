"""Edits: values put at places and taken away, and list keys spelled out."""

from __future__ import annotations

from typing import ClassVar

import pytest

from hedgerow_tools.fields.edits import arranged, keyed, put, without


class TestPlaces:
    @pytest.mark.parametrize(
        ("value", "field_path", "want", "after"),
        [
            ({"a": 1}, ("f:a",), 2, {"a": 2}),
            (None, ("f:a", "f:b"), 2, {"a": {"b": 2}}),
            ([{"n": "x"}], ('k:{"n":"x"}', "f:v"), 2, [{"n": "x", "v": 2}]),
            ([], ('k:{"n":"x"}', "f:v"), 2, [{"n": "x", "v": 2}]),
            (None, ('v:"x"',), "x", ["x"]),
            ([{"n": "y"}], ('k:{"n":"x"}',), {"n": "x"}, [{"n": "y"}, {"n": "x"}]),
        ],
    )
    def test_a_value_is_put_there(self, value, field_path, want, after):
        assert put(value, {field_path: want}) == after

    @pytest.mark.parametrize(
        ("value", "field_path", "after"),
        [
            ({"a": 1, "b": 2}, ("f:a",), {"b": 2}),
            ({"a": {"b": 1}}, ("f:a", "f:b"), {}),
            ({"a": {"b": 1, "c": 2}}, ("f:a", "f:b"), {"a": {"c": 2}}),
            ({}, ("f:a", "f:b"), {}),
            ([{"n": "x"}, {"n": "y"}], ('k:{"n":"x"}',), [{"n": "y"}]),
            ([{"n": "x", "v": 1}], ('k:{"n":"x"}', "f:v"), [{"n": "x"}]),
            (["x", "y"], ('v:"x"',), ["y"]),
            ("text", ("f:a",), "text"),
        ],
    )
    def test_a_value_is_taken_away(self, value, field_path, after):
        assert without(value, [field_path]) == after

    def test_what_becomes_empty_stays_if_it_is_to(self):
        live = {"a": {"b": {"c": 1}}, "d": [{"n": "x", "e": {"f": 1}}]}
        places = [("f:a", "f:b", "f:c"), ("f:d", 'k:{"n":"x"}', "f:e", "f:f")]

        assert without(live, places, keep_empty=True) == {
            "a": {"b": {}}, "d": [{"n": "x", "e": {}}]
        }  # fmt: skip


class TestKeyed:
    PORTS: ClassVar = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}

    def test_a_key_that_is_left_to_a_default_is_told(self):
        want = {"spec": {"ports": [{"port": 80, "name": "web"}], "size": 1}}

        assert keyed(want, [{"f:spec": self.PORTS}]) == {
            "spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "web"}], "size": 1}
        }

    @pytest.mark.parametrize(
        "want",
        [
            {"ports": [{"port": 80, "protocol": "UDP"}]},
            {"ports": [{"port": 81, "protocol": "TCP"}]},
            {"ports": ["odd"]},
            {"ports": []},
            {"other": [{"port": 80}]},
        ],
        ids=str,
    )
    def test_everything_else_stays_as_it_is(self, want):
        assert keyed(want, [self.PORTS]) == want


class TestArranged:
    A, B = 'k:{"n":"a"}', 'k:{"n":"b"}'
    ONE: ClassVar = [{"n": "a"}]
    TWO: ClassVar = [{"n": "b"}, {"n": "a"}]

    def test_a_list_gets_the_order_that_the_server_gives_it(self):
        known = {self.A: {}, self.B: {}}

        assert arranged([*self.ONE, {"n": "b"}], self.ONE, self.TWO, [known]) == self.TWO

    def test_a_list_with_items_that_no_tree_names_stays_as_it_is(self):
        merged = [{"n": "a"}, {"m": "odd"}]

        assert arranged(merged, self.ONE, self.TWO, [{self.A: {}}]) == merged
