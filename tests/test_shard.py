"""Shard: each namespace is in one of them, by a hash that is the same everywhere."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hedgerow.shard import (
    MOST,
    Shard,
    ends_as_shard,
    hashed,
    is_lease_of,
    point_of,
    shard_of,
)

# What Go's hash/fnv gives.
VECTORS = {
    "": 0xCBF29CE484222325,
    "default": 0xEBADA5168620C5FE,
    "kube-system": 0xDF65C7BC1D82B35E,
    "hedgerow-system": 0x161FC38E9B4CA968,
    "a": 0xAF63DC4C8601EC8C,
    "team-042": 0xC674DE3769B0D9BF,
    "a-namespace-with-the-longest-name-that-kubernetes-lets-it-have-0": 0xFCE84CFF6E64C350,
}
SHARDS = st.integers(2, MOST).flatmap(
    lambda count: st.builds(Shard, st.integers(0, count - 1), st.just(count))
)


@pytest.mark.parametrize(("namespace", "value"), VECTORS.items())
def test_a_point_is_24_bits_of_the_hash(namespace, value):
    assert hashed(namespace) == value
    assert point_of(namespace) == value >> 40


def test_names_that_differ_at_their_end_can_be_told_apart():
    teams = {point_of(f"team-{letter}") for letter in "abcdefghijklmnopqrstuvwxyz"}

    assert len(teams) == 26


@given(st.text(max_size=63), st.integers(2, MOST))
def test_one_shard_serves_a_namespace(namespace, count):
    serving = [number for number in range(count) if Shard(number, count).serves(namespace)]

    assert serving == [point_of(namespace) % count if namespace else 0]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_numbered_names_are_spread_evenly(count):
    found = Counter(point_of(f"team-{number:03}") % count for number in range(300))

    assert len(found) == count
    assert max(found.values()) < 1.15 * 300 / count


@given(SHARDS)
def test_what_is_written_is_read(shard):
    assert Shard.parse(str(shard)) == shard
    assert shard_of("hedgerow-x", f"hedgerow-x-{shard.suffix}") == shard
    assert is_lease_of("hedgerow-x", f"hedgerow-x-{shard.suffix}")


@pytest.mark.parametrize(
    "text",
    [
        *("", "2", "2/", "/8", "8/8", "0/1", "0/0", "0/101", "-1/8", "+1/8", "02/8", "2/08"),
        *("2/8/9", " 2/8", "2/8\n", "2 / 8", "2.0/8", "\u0662/8", "0x1/8", "1000/1001", "a/b"),
    ],
)
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(ValueError, match="no shard"):
        Shard.parse(text)


@pytest.mark.parametrize(
    "name",
    [
        "hedgerow",
        "hedgerow-x",
        "hedgerow-shard-2-of-2",
        "hedgerow-shard-01-of-2",
        "hedgerow-shard-1-of-2-x",
        "hedgerow-x-shard-1-of-2",
        "x-hedgerow-shard-1-of-2",
        "shard-1-of-2",
        "hedgerowshard-1-of-2",
    ],
)
def test_a_lease_of_another_name_is_no_shards(name):
    assert shard_of("hedgerow", name) is None
    assert is_lease_of("hedgerow", name) is (name == "hedgerow")


@pytest.mark.parametrize(
    ("instance", "ends"),
    [
        ("shard-0-of-2", True),
        ("a-shard-0-of-2", True),
        ("a-shard-9-of-2", True),
        ("ashard-0-of-2", False),
        ("shard-0-of-2-a", False),
        ("shard", False),
        ("", False),
    ],
)
def test_an_instance_may_not_end_as_a_shard_does(instance, ends):
    assert ends_as_shard(instance) is ends
