"""Assignment: what is written is read, what is not ours is refused, and little moves."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hedgerow.shards.assignment import (
    MOST_PARTS,
    Assignment,
    groups,
    heaviest,
    next_parts,
    read,
    text,
)
from hedgerow.shards.slices import ALL, COUNT, NONE, Slices, point_of

NAMES = ("a", "b", "c")
PLAIN = Assignment(7, "n", NAMES, ((0, 0), (10, 2), (20, 1)))
POINTS = st.integers(0, COUNT - 1)
WEIGHTS = st.dictionaries(POINTS, st.floats(0.5, 100), max_size=40).map(
    lambda found: tuple(sorted(found.items()))
)


def shares(parts, members) -> dict[str, Slices]:
    made = Assignment(1, "", tuple(members), parts)
    return {name: made.of(name) for name in members}


def test_what_was_written_is_read():
    assert read(text(PLAIN)) == PLAIN
    assert PLAIN.of("c") == Slices(((10, 20),))
    assert PLAIN.of("d") == NONE


@pytest.mark.parametrize(
    "other",
    [
        Assignment(8, "n", NAMES, PLAIN.parts),
        Assignment(7, "m", NAMES, PLAIN.parts),
        Assignment(7, "n", ("a", "b", "d"), PLAIN.parts),
        Assignment(7, "n", NAMES, ((0, 0), (10, 2), (21, 1))),
    ],
)
def test_a_token_is_about_all_of_it(other):
    assert PLAIN.token == Assignment(7, "n", NAMES, PLAIN.parts).token
    assert other.token != PLAIN.token


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"epoch":0,"nonce":"","members":["a"],"parts":[[0,0]]}',
        '{"epoch":1e99,"nonce":"","members":["a"],"parts":[[0,0]]}',
        '{"epoch":1,"nonce":"","members":["a"],"parts":[]}',
        '{"epoch":1,"nonce":"","members":["a"],"parts":[[1,0]]}',
        '{"epoch":1,"nonce":"","members":["a"],"parts":[[0,1]]}',
        '{"epoch":1,"nonce":"","members":["a","a"],"parts":[[0,0],[5,1]]}',
        '{"epoch":1,"nonce":"","members":["a"],"parts":[[0,0],[0,0]]}',
        '{"epoch":1,"nonce":"","members":["a"],"parts":[[0,0],[16777216,0]]}',
        '{"epoch":1,"nonce":"","members":["a"],"parts":[[0,-1]]}',
        " " * 65 * 1024 + text(PLAIN),
        "[" * 100_000,
    ],
)
def test_what_is_no_assignment_is_none(written):
    assert read(written) is None


@given(WEIGHTS, st.integers(1, 6), st.integers(1, 6))
def test_every_point_has_a_member_and_none_has_far_too_much(weights, before, after):
    old = [f"m{number}" for number in range(before)]
    new = [f"m{number}" for number in range(before // 2, before // 2 + after)]
    held = shares(next_parts({}, old, weights), old)
    found = shares(next_parts(held, new, weights), new)

    assert Slices.of(each for one in found.values() for each in one.ranges) == ALL
    assert sum(one.share for one in found.values()) == pytest.approx(1)
    assert heaviest(found, weights) <= 2.01


def test_what_comes_gets_its_share_and_what_goes_is_shared_out():
    three = shares(next_parts({}, NAMES), NAMES)
    four = shares(next_parts(three, (*NAMES, "d")), (*NAMES, "d"))
    again = shares(next_parts(four, NAMES), NAMES)

    assert [round(each.share, 2) for each in three.values()] == [0.34, 0.33, 0.33]
    assert all(four[name] - three[name] == NONE for name in NAMES)
    assert four["d"].share == pytest.approx(1 / 4, abs=0.01)
    assert all(four[name] - again[name] == NONE for name in NAMES)


def test_a_change_of_nothing_moves_nothing():
    held = shares(next_parts({}, NAMES), NAMES)

    assert shares(next_parts(held, NAMES), NAMES) == held


def test_the_points_are_cut_where_the_weight_is():
    """All but two of these namespaces are in one of 256 parts of the hash."""
    teams = tuple(sorted((point_of(f"team-{letter}"), 1.0) for letter in "abcdefghijklmnopqrst"))
    found = shares(next_parts({}, NAMES, teams), NAMES)
    counts = sorted(sum(point in each for point, _ in teams) for each in found.values())

    assert counts == [6, 7, 7]


def test_a_namespace_with_half_of_all_is_alone_with_a_member():
    weights = ((5, 10.0), *((100_000 * number, 1.0) for number in range(1, 11)))
    found = shares(next_parts({}, NAMES, weights), NAMES)
    [heavy] = [each for each in found.values() if 5 in each]

    assert sum(point in heavy for point, _ in weights) == 1
    assert heaviest(found, weights) <= 1.1


def test_members_that_stay_get_more_of_what_is_free():
    held = shares(next_parts({}, ("a", "b", "c", "d")), ("a", "b", "c", "d"))
    found = shares(next_parts(held, NAMES, preferred=frozenset("c")), NAMES)

    assert found["c"].share > found["a"].share


def test_what_is_too_scattered_is_made_anew():
    step = COUNT // (MOST_PARTS * 2)
    each = [(n * step, (n + 1) * step) for n in range(MOST_PARTS * 2)]
    held = {"a": Slices.of(each[::2]), "b": Slices.of(each[1::2])}

    assert len(next_parts(held, ("a", "b"))) == 2


def test_groups_are_of_neighbours_in_one_range():
    slices = Slices.of([(0, 100), (200, 300)])
    weights = {1: 1.0, 2: 1.0, 50: 30.0, 99: 1.0, 150: 9.0, 201: 1.0, 202: 1.0}

    assert groups(weights, slices, 10) == ((1, 2.0), (50, 30.0), (99, 1.0), (201, 2.0))
    assert groups({}, slices) == ()
    assert len(groups(dict.fromkeys(range(0, COUNT, 10_000), 1.0), ALL)) <= 65


def test_what_weighs_nothing_stays_where_it_is():
    weights = tuple((number * COUNT // 12, 1.0) for number in range(12))
    held = shares(next_parts({}, ("a", "b"), weights), ("a", "b"))
    found = shares(next_parts(held, NAMES, weights), NAMES)

    assert found["c"].share == pytest.approx(1 / 3, abs=0.01)
