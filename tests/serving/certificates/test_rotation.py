"""Rotation: what is stored after what, and when, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.serving.certificates.material import (
    MOST,
    VALIDITY,
    Material,
    create,
    issued,
    names_of,
)
from hedgerow.serving.certificates.rotation import SETTLES, Rules, following, is_usable
from hedgerow.x509 import Pair
from serving.certs import NAMES

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
DUE = NOW + 60 * DAY
RULES = Rules(NAMES)


def pair(made: datetime = NOW, names: tuple[str, ...] = NAMES) -> Pair:
    return create(names, made, VALIDITY)


def stored(current: Pair, coming: Pair | None = None, *former: Pair) -> Material:
    both = [one for one in (coming, current, *former) if one]
    return Material(current, coming, tuple(one.certificate for one in both))


ONE, NEXT, PAST = pair(), pair(DUE), pair(NOW - 85 * DAY)
LATE = NOW + VALIDITY
UNNAMED = pair(names=NAMES[:1])
AHEAD = pair(NOW + 400 * DAY)


def announces(found: Material | None, before: Material) -> bool:
    """Return whether a next pair is made, and trusted beside all that was trusted."""
    return (
        found is not None
        and found.current is before.current
        and found.coming is not None
        and found.coming is not before.coming
        and found.trusted[:2] == (found.coming.certificate, before.current.certificate)
        and set(before.trusted) <= set(found.trusted)
    )


def promotes(found: Material | None, before: Material) -> bool:
    """Return whether the next pair is served now, and all is trusted that was."""
    return found == Material(before.coming or before.current, None, before.trusted)


def begins_anew(found: Material | None, before: Material) -> bool:
    """Return whether there is a new pair to serve at once, and what is valid stays trusted."""
    return (
        found is not None
        and found.coming is None
        and found.current not in (before.current, before.coming)
        and found.trusted[0] == found.current.certificate
    )


def stays(found: Material | None, _: Material) -> bool:
    return found is None


@dataclass(frozen=True)
class Row:
    name: str
    before: Material
    now: datetime
    then: Callable[[Material | None, Material], bool]
    published: bool = True
    lost: bool = False


ROWS = [
    Row("just made", stored(ONE), NOW, stays),
    Row("made by a clock that is ahead", stored(ONE), NOW - 10 * SECOND, stays),
    Row("made by a clock that is hours ahead", stored(ONE), NOW - DAY + SECOND, stays),
    Row("before two thirds", stored(ONE), DUE - SECOND, stays),
    Row("at two thirds", stored(ONE), DUE, announces),
    Row("at two thirds, if nobody trusts the first yet", stored(ONE), DUE, announces, False),
    Row("while the next settles", stored(ONE, NEXT), DUE + SETTLES - SECOND, stays),
    Row("when it has settled", stored(ONE, NEXT), DUE + SETTLES, promotes),
    Row("settled, and not trusted", stored(ONE, NEXT), DUE + 20 * DAY, stays, False),
    Row("expired, the next one not trusted", stored(ONE, NEXT), LATE - SECOND, stays, False),
    Row("made anew while the former is trusted", stored(NEXT, None, ONE), DUE + DAY, stays),
    Row("expired without a next one", stored(ONE), LATE, begins_anew),
    Row("both expired", stored(ONE, NEXT), LATE + 60 * DAY, begins_anew),
    Row("made by a clock that was a year ahead", stored(AHEAD), NOW, begins_anew),
    Row("without a name", stored(UNNAMED), NOW, announces),
    Row("the next one without a name", stored(ONE, UNNAMED), NOW + DAY,
        lambda found, _: found == stored(ONE, None, UNNAMED)),
    Row("a next one that expired", stored(ONE, PAST), NOW + 10 * DAY,
        lambda found, _: found == stored(ONE)),
    Row("a next one from the future", stored(ONE, AHEAD), NOW,
        lambda found, _: found == stored(ONE)),
    Row("the current one expired", stored(ONE, NEXT), LATE,
        lambda found, _: found == stored(NEXT), False),
    Row("the former one expired", stored(NEXT, None, ONE), LATE,
        lambda found, _: found == stored(NEXT)),
    Row("lost", stored(ONE), NOW, announces, lost=True),
    Row("lost with a next one", stored(ONE, NEXT), DUE, announces, lost=True),
    Row("lost after it expired", stored(ONE, NEXT), LATE, begins_anew, lost=True),
    Row("nothing trusted", Material(ONE, None, ()), NOW,
        lambda found, _: found == stored(ONE)),
    Row("the next one not trusted by the bundle", Material(ONE, NEXT, stored(ONE).trusted), DUE,
        lambda found, _: found == stored(ONE, NEXT)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_what_follows(row: Row):
    found = following(row.before, RULES, row.now, published=row.published, lost=row.lost)

    assert row.then(found, row.before)
    if found is not None:
        assert following(found, RULES, row.now, published=False) is None


def test_without_anything_stored_a_pair_is_made():
    found = following(None, RULES, NOW, published=False)

    assert found is not None
    assert found == stored(found.current)
    assert names_of(found.current.certificate) == set(NAMES)
    assert found.current.certificate.not_valid_after_utc == NOW + VALIDITY


def test_what_is_trusted_is_bounded_and_has_both_pairs():
    many = [pair(NOW + n * SECOND) for n in range(2 * MOST)]
    found = following(stored(ONE, None, *many), RULES, DUE, published=True)

    assert found is not None
    assert found.coming is not None
    assert len(found.trusted) == MOST
    assert found.trusted[:2] == (found.coming.certificate, ONE.certificate)


@given(
    st.lists(st.tuples(st.integers(1, 30 * 24 * 3600), st.booleans(), st.booleans()), max_size=30)
)
@settings(max_examples=50)
def test_whatever_time_passes_a_usable_pair_is_stored_and_trusted_before_it_serves(steps):
    """Each step lets seconds pass, and says whether it is published, and whether it looks twice."""
    now, last = NOW, following(None, RULES, NOW, published=False)
    assert last is not None
    for seconds, published, twice in steps:
        now += seconds * SECOND
        for _ in range(1 + twice):
            before, found = last, following(last, RULES, now, published=published)
            last = found or last
            assert is_usable(last.current.certificate, now)
            assert last.current.certificate in last.trusted
            assert not last.coming or last.coming.certificate in last.trusted
            assert len(last.trusted) <= MOST
            if last.current != before.current and is_usable(before.current.certificate, now):
                assert published
                assert last.current.certificate in before.trusted
                assert now >= issued(last.current.certificate) + SETTLES
                assert before.current.certificate in last.trusted


def test_in_ten_years_each_pair_is_served_for_two_thirds_of_its_time():
    now, known, served = NOW, following(None, RULES, NOW, published=True), 1
    for _ in range(3650 * 2):
        now += DAY / 2
        assert known is not None
        found = following(known, RULES, now, published=True)
        served += found is not None and found.current != known.current
        known = found or known
        assert len(known.trusted) <= 2

    assert served == pytest.approx(3650 / 60, abs=2)


def test_the_settings_of_a_test_are_the_same_rules():
    brief = Rules(NAMES, timedelta(seconds=90), timedelta(seconds=5))
    made = following(None, brief, NOW, published=True)
    assert made is not None

    announced = following(made, brief, NOW + 60 * SECOND, published=True)
    assert announced is not None
    assert announced.coming is not None
    assert following(announced, brief, NOW + 64 * SECOND, published=True) is None
    served = following(announced, brief, NOW + 65 * SECOND, published=True)
    assert served == replace(announced, current=announced.coming, coming=None)
