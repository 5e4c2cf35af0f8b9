"""Slices: the hash is the API server's, and ranges of points are what sets of points are."""

from __future__ import annotations

from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hedgerow.shards.slices import (
    ALL,
    COUNT,
    NONE,
    Slices,
    parse,
    selector,
    written,
)

EDGES = (*range(9), COUNT)
"""Few enough that what is drawn touches and overlaps."""
SETS = st.lists(st.tuples(st.sampled_from(EDGES), st.sampled_from(EDGES))).map(Slices.of)


def points(slices: Slices) -> frozenset[int]:
    return frozenset(each for each in (*EDGES[:-1], COUNT - 1, COUNT) if each in slices)


@given(SETS, SETS)
def test_ranges_are_joined_and_cut_as_sets_are(one, two):
    assert points(one | two) == points(one) | points(two)
    assert points(one & two) == points(one) & points(two)
    assert points(one - two) == points(one) - points(two)
    assert (one | two) - two == one - two
    assert bool(one) == bool(points(one)) == (one != NONE)
    assert all(before[1] < after[0] for before, after in pairwise(one.ranges))


@given(SETS)
def test_what_was_written_is_read(slices):
    assert parse(written(slices)) == slices


@given(SETS)
def test_all_is_everything(slices):
    assert (ALL | slices, ALL & slices, slices - ALL) == (ALL, slices, NONE)
    assert slices.share + (ALL - slices).share == 1


@pytest.mark.parametrize(
    ("ranges", "told"),
    [
        ((), ""),
        ([(0, COUNT)], "'0x0000000000000000', '0x10000000000000000'"),
        ([(0, 1)], "'0x0000000000000000', '0x0000010000000000'"),
        ([(0xEBADA5, COUNT)], "'0xebada50000000000', '0x10000000000000000'"),
        ([(1, 2), (2, 3)], "'0x0000010000000000', '0x0000030000000000'"),
    ],
)
def test_a_range_is_told_as_an_api_server_reads_it(ranges, told):
    call = told and f"shardRange(object.metadata.namespace, {told})"

    assert selector(Slices.of(ranges)) == call


def test_each_range_of_a_selector_is_one_call():
    first, second = Slices.of([(1, 2)]), Slices.of([(4, 9)])

    assert selector(second | first) == f"{selector(first)} || {selector(second)}"


@pytest.mark.parametrize("text", ["x", "-", "1", "1-", "2-1", "1-1", "0-1000001", "-1-2", "1-2,"])
def test_what_is_no_range_is_refused(text):
    with pytest.raises(ValueError, match=r"range of points|invalid literal"):
        parse(text)


def test_a_range_of_nothing_is_none():
    assert Slices.of([(5, 5), (9, 7)]) == NONE
    assert Slices.of([(5, 5), (7, 9)]) == Slices(((7, 9),))
