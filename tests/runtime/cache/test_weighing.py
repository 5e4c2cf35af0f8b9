"""Weighing: bytes of JSON hold up against what Python takes for the objects they are."""

from __future__ import annotations

import sys
from typing import Any

import pydantic
import pytest
from pydantic_core import to_json

from hedgerow.encoding import decode
from hedgerow.runtime.cache.budget import weight, weight_of

PYDANTIC = tuple(map(int, pydantic.VERSION.split(".")[:3]))
SIZE = 5000
NUMBERS = range(SIZE)
FIELDS = {".": {}, "f:name": {}, "f:value": {}}
SHAPES = {
    "env": [{"name": f"A{n}", "value": "x"} for n in NUMBERS],
    "managed fields": {f'k:{{"name":"A{n}"}}': FIELDS for n in NUMBERS},
    "ports": [{"containerPort": n, "protocol": "TCP"} for n in NUMBERS],
    "empty maps": [{} for _ in NUMBERS],
    "empty lists": [[] for _ in NUMBERS],
    "lists of one": [[1] for _ in NUMBERS],
    "maps of one": [{"a": n} for n in NUMBERS],
    "maps in maps": [{"a": {"b": {"c": {}}}} for _ in NUMBERS],
    "maps of twelve": [dict.fromkeys("abcdefghijkl", f"zz{n}") for n in NUMBERS],
    "short strings": [f"{n}" for n in NUMBERS],
    "long strings": ["x" * 200 for _ in NUMBERS],
    "wide letters": ["日本" * 100 for _ in NUMBERS],
    "widest letters": ["x" * 200 + "\U0001f600" for _ in NUMBERS],
    "numbers": [n * 1000 for n in NUMBERS],
    "a wide map": {f"k{n}": f"v{n}" for n in NUMBERS},
}


def taken(value: Any) -> int:
    """Count the bytes of each value and key, all that is one object but once."""
    seen: dict[int, int] = {}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen[id(one)] = (sys.getsizeof(one) + 15) // 16 * 16
            if isinstance(one, dict):
                waiting += [*one, *one.values()]
            elif isinstance(one, list):
                waiting += one
    return sum(seen.values())


class TestWeight:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_bytes_tell_about_what_their_objects_take(self, shape):
        content = to_json(SHAPES[shape])
        truth = taken(decode(content))

        # pydantic before 2.14.3 makes larger maps of a large text.
        least = 0.8 if PYDANTIC >= (2, 14, 3) else 0.7
        assert least * truth <= weight(content) <= 2.8 * truth

    def test_the_same_number_of_bytes_may_weigh_many_times_as_much(self):
        long = to_json(["x" * 300_000])
        short = to_json([{} for _ in range(100_000)])

        assert weight(short) > 20 * weight(long)


TEXTS = {
    "commas": "a,b," * 10_000,
    "JSON in a string": str(to_json(SHAPES["env"][:1000]), "ascii"),
    "ASCII and one wide letter": "x" * 70_000,
}
SMALL_TEXTS = {
    "a few commas": "a,b," * 500,
    "a little JSON in a string": str(to_json(SHAPES["env"][:60]), "ascii"),
}


class TestWeightOf:
    @pytest.mark.parametrize("text", TEXTS)
    def test_what_is_in_strings_does_not_count_as_maps_and_lists(self, text):
        obj = {"data": {"key": TEXTS[text]}, "metadata": {"annotations": {"mood": "\U0001f600"}}}

        assert taken(obj) * 0.9 <= weight_of(obj) <= taken(obj) * 1.1

    @pytest.mark.parametrize("text", SMALL_TEXTS)
    def test_in_small_objects_it_counts_for_little(self, text):
        obj = {"data": {"key": SMALL_TEXTS[text]}}

        assert weight_of(obj) <= 10 * len(to_json(obj))

    @pytest.mark.parametrize("shape", ["a wide map", "managed fields"])
    def test_names_that_somebody_gave_count(self, shape):
        fields = dict(list(dict(SHAPES[shape]).items())[:300])
        named = {f"{name}-{'x' * 40}": value for name, value in fields.items()}
        obj = decode(to_json({"data": named}))

        assert 0.8 * taken(obj) <= weight_of(obj) <= 2.8 * taken(obj)

    def test_an_object_with_too_many_values_is_weighed_by_its_bytes(self):
        large = {"env": SHAPES["env"]}

        assert weight_of(large) == weight(to_json(large))

    @pytest.mark.parametrize("size", [25, 100, 200, 600])
    def test_it_tells_about_the_same_on_both_sides_of_each_border(self, size):
        one, more = (
            {"env": [{"name": f"A{n}", "value": "x"} for n in range(items)]}
            for items in (size, size * 5)
        )

        assert 3 * weight_of(one) < weight_of(more) < 8 * weight_of(one)
