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

from hedgerow.encoding import OPENINGS, decode, encode

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
