"""Encoding: what is read and written as JSON, and what is beside that which cannot be."""

from __future__ import annotations

import enum
import json
from contextlib import nullcontext
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel
from pydantic_core import from_json

from hedgerow.encoding import DEEPEST, decode, encode, reader, shallow

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


ODD = {
    "deep": deep(DEEPEST + 1),
    "deeper": deep(900),
    "deepest": deep(9_990),
    "no UTF-8": b'"\xff"',
    "surrogate": b'"\xed\xa0\x80"',
    "number": b"1" * 5_000,
    "range": b"1e999",
}
"""JSON that an API server sends, and that cannot be decoded."""


class TestDecode:
    @given(VALUES)
    def test_it_reads_what_was_written(self, value):
        content = json.dumps(value).encode()
        if b"Infinity" not in content:
            assert decode(content) == from_json(content) == json.loads(content)

    @pytest.mark.parametrize(
        "content",
        [
            b"", b"{", b"NaN", b"-Infinity", b'{"a":NaN}', b"[1,]", b"{} x", b'"a\nb"',
            b"\xef\xbb\xbf{}", rb'"\ud800"', *ODD.values(),
        ],
        ids=lambda content: repr(content[:12]),
    )  # fmt: skip
    def test_what_is_no_json_or_too_deep_is_an_error(self, content):
        with pytest.raises(ValueError):
            decode(content)

    @pytest.mark.parametrize(
        ("content", "is_read"),
        [
            (deep(DEEPEST), True),
            (deep(DEEPEST + 1), False),
            (b"[" + deep(DEEPEST) + b"]", False),
            (b"[" + b"[]," * 9_000 + b"[]]", True),
            (b'["' + b"[" * 900 + b'"]', True),
            (b'["\\\\","' + b"]" * 900 + b'",' + deep(DEEPEST) + b"]", False),
            (rb'["\"' + b"]" * 900 + b'",' + deep(DEEPEST) + b"]", False),
        ],
        ids=["deepest", "deeper", "in a list", "wide", "text", "text beside", "quoted text beside"],
    )  # fmt: skip
    def test_levels_are_counted_outside_of_texts(self, content, is_read):
        with nullcontext() if is_read else pytest.raises(ValueError, match="more than 190 levels"):
            decode(content)

    def test_whatever_was_read_can_be_written_and_read_by_a_caller_deep_down(self):
        found = decode(deep(DEEPEST))

        def below(frames: int) -> Any:
            return below(frames - 1) if frames else decode(encode(found))

        assert below(600) == found

    def test_equal_keys_are_one_string(self):
        one, other = (list(decode(b'[{"name":1}]')[0]) for _ in range(2))
        assert one[0] is other[0]


class Named(Struct):
    name: str


class TestShallow:
    """What cannot be decoded still cannot; but what is beside it can be read."""

    @given(VALUES)
    def test_what_can_be_decoded_stays_as_it_is(self, value):
        content = json.dumps(value).encode()
        assert shallow(content) == content

    @pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
    def test_an_object_is_named_whatever_is_in_it(self, odd):
        content = b'{"more":[' + odd + b',"\\"["],"name":"x"}'
        found = shallow(content)

        assert reader(Named)(found).name == "x"
        with pytest.raises(ValueError):
            decode(found)

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[1", b'{"a":"b', b"}", b"[}", b"nonsense", b"[" * 9_990, b'"' + b'\\"' * 900],
        ids=lambda content: repr(content[:12]),
    )  # fmt: skip
    def test_what_is_no_json_at_all_is_read_by_nobody(self, content):
        with pytest.raises(ValueError):
            reader(Named)(shallow(content))


def nest(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


class TestEncode:
    @given(VALUES)
    def test_the_same_value_is_the_same_bytes(self, value):
        assert encode(value) == encode(value)
        if "Infinity" not in json.dumps(value):
            assert json.loads(encode(value)) == value

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ({"a": Word("b")}, '{"a":"b"}'), ({Word("a"): 1}, '{"a":1}'),
            ({"a": Colour.BLUE}, '{"a":"Blue"}'), ({Colour.BLUE: 1}, '{"Blue":1}'),
            ({"a": Spec()}, '{"a":{"replicas":1}}'), (("a", ("b",)), '["a",["b"]]'),
            ({"a": float("nan")}, '{"a":null}'), ("\x00é\u2028\x7f", '"\\u0000é\u2028\x7f"'),
            (2**64, str(2**64)), (datetime(2026, 1, 1, tzinfo=UTC), '"2026-01-01T00:00:00Z"'),
        ],
    )  # fmt: skip
    def test_it_writes_what_stands_for_json(self, value, text):
        assert encode(value).decode() == text

    def test_or_in_lines(self):
        assert encode({"a": [], "b": [1]}, indent=1) == b'{\n "a": [],\n "b": [\n  1\n ]\n}'

    @pytest.mark.parametrize(
        "value",
        ["\ud800", {"a": object()}, MappingProxyType({"a": 1}), {("a",): 1}, nest(100_000)],
        ids=["lone", "no", "view", "key", "deep"],
    )
    def test_what_has_no_json_is_an_error(self, value):
        with pytest.raises(ValueError):
            encode(value)
