"""Encoding: the same values as pydantic reads and writes, wherever msgspec serves."""

from __future__ import annotations

import enum
import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from hedgerow.encoding import DEEPEST, LONGEST_NUMBER, OPENINGS, decode, encode, nested, salvage

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


class Word(str):
    """A text of an author's own class."""

    __slots__ = ()


class Colour(enum.Enum):
    BLUE = "Blue"


class Spec(BaseModel):
    replicas: int = 1


def deep(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


class TestDecode:
    @given(VALUES)
    def test_it_reads_what_was_written(self, value):
        content = json.dumps(value).encode()
        if b"Infinity" not in content:
            assert decode(content) == from_json(content) == json.loads(content)

    @pytest.mark.parametrize(
        "content",
        [
            b"", b"{", b"NaN", b"-Infinity", b'{"a":NaN}', b"[1,]", b"{} x", b'"\xff"', b'"a\nb"',
            b'"\\ud800"', b"1" * 5000, b"\xef\xbb\xbf{}",
            b"[" + b"[]," * OPENINGS + b"NaN]", deep(OPENINGS + 3), deep(900), b"[" * 100_000,
        ],
        ids=lambda content: repr(content[:12]),
    )  # fmt: skip
    def test_what_is_no_json_or_too_deep_is_an_error(self, content):
        with pytest.raises(ValueError):
            decode(content)

    def test_whatever_was_read_can_be_written_and_read_by_a_caller_deep_down(self):
        found = decode(deep(OPENINGS))

        def below(frames: int) -> Any:
            return below(frames - 1) if frames else decode(encode(found))

        assert below(600) == found

    def test_equal_keys_are_one_string(self):
        for size in (1, OPENINGS + 1):
            one, other = (list(decode(b'[{"name":1}' + b",[]" * size + b"]")[0]) for _ in range(2))
            assert one[0] is other[0]


class TestSalvage:
    @given(VALUES)
    def test_it_reads_what_a_strict_decoder_reads(self, value):
        content = json.dumps(value).encode()
        if b"Infinity" not in content:
            assert salvage(content) == json.loads(content)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b'{"a":"\xff","\xed\xa0\x80":1}', {"a": "\ufffd", "\ufffd" * 3: 1}),
            (rb'["\ud800", "\udc00x", "\\ud800"]', ["\ufffd", "\ufffdx", r"\ud800"]),
            (rb'["\ud83d\ude00", "\udead\ud800"]', ["😀", "\ufffd\ufffd"]),
            (b'["a\nb\x00"]', ["a b "]),
            (b"[" + b"1" * (LONGEST_NUMBER + 1) + b",-2.5e3]", [None, -2500.0]),
            (b'["' + b"1" * (LONGEST_NUMBER + 1) + b'"]', ["1" * (LONGEST_NUMBER + 1)]),
            (b'{"a":"{[\\"[{","b":[]}', {"a": '{["[{', "b": []}),
        ],
        ids=["no UTF-8", "surrogates", "pairs", "control", "number", "digits", "brackets"],
    )  # fmt: skip
    def test_it_replaces_what_no_strict_decoder_reads(self, content, expected):
        assert salvage(content) == expected

    def test_what_is_nested_too_deep_is_left_out_and_the_rest_is_there(self):
        inner = deep(9_990)
        found = salvage(b'{"x":' + inner + b',"y":[' + inner + b',2],"z":"q"}')

        assert (found["y"][1], found["z"]) == (2, "q")
        levels, place = 1, found["x"]
        while place:
            levels, place = levels + 1, place["a"]
        assert levels == DEEPEST

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[1", b'{"a":"b', b"}", b"[}", b"nonsense", b"[" * 9_990, b'"' + b'\\"' * 900],
        ids=lambda content: repr(content[:12]),
    )  # fmt: skip
    def test_what_is_no_json_at_all_is_an_error(self, content):
        with pytest.raises(ValueError):
            salvage(content)

    def test_maps_and_lists_are_found_by_how_deep_they_are_nested(self):
        content = b'{"a":[{"b":[]},{}],"c":"[{"}'

        found = {depth: [content[slice(*at)] for at in nested(content, depth)] for depth in (1, 3)}

        assert found == {1: [content], 3: [b'{"b":[]}', b"{}"]}


class TestEncode:
    @given(VALUES)
    def test_the_same_value_is_the_same_bytes(self, value):
        assert encode(value) == encode(value)
        if "Infinity" not in json.dumps(value):
            assert json.loads(encode(value)) == value

    @pytest.mark.parametrize(
        "value",
        [
            {"a": Word("b")}, {Word("a"): 1}, {"a": Colour.BLUE}, {Colour.BLUE: 1}, {"a": Spec()},
            {None: 1}, {True: 1}, {("a", "b"): 1}, ({"a", "b"} - {"b"}, ("c",)),
        ],
        ids=repr,
    )  # fmt: skip
    def test_it_writes_what_pydantic_writes(self, value):
        assert encode(value) == to_json(value)

    @pytest.mark.parametrize(
        "value", ["\ud800", {"a": object()}, MappingProxyType({"a": 1})], ids=["lone", "no", "view"]
    )
    def test_what_has_no_json_is_an_error(self, value):
        with pytest.raises(ValueError):
            encode(value)
