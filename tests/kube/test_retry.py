"""Retry: when to ask again, and after how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.backoff import FIRST, LONGEST, backoff
from hedgerow.kube import errors
from hedgerow.kube.retry import ATTEMPTS, pause

DRAWS = st.floats(0, 1, exclude_max=True)


class TestBackoff:
    @given(st.integers(0, 10_000), DRAWS)
    def test_is_never_nothing_and_never_longer_than_the_longest(self, failures, draw):
        assert FIRST / 2 <= backoff(failures, draw) <= LONGEST

    @pytest.mark.parametrize(
        ("failures", "least"),
        [(0, 0.1), (1, 0.1), (2, 0.2), (3, 0.4), (8, 12.8), (9, 15), (99, 15)],
    )
    def test_doubles_up_to_the_longest(self, failures, least):
        assert backoff(failures, 0.0) == pytest.approx(least)

    @pytest.mark.parametrize(("failures", "least"), [(1, 1.5), (2, 3.0), (3, 5.0), (9999, 5.0)])
    def test_doubles_from_and_to_what_the_caller_says(self, failures, least):
        assert backoff(failures, 0.0, first=3.0, longest=10.0) == pytest.approx(least)

    @given(st.integers(0, 20), DRAWS, st.floats(0, 1000))
    def test_never_ends_before_the_server_said(self, failures, draw, after):
        assert backoff(failures, draw, after) >= after

    def test_is_spread_by_the_dice(self):
        assert backoff(5, 0.0) < backoff(5, 0.5) < backoff(5, 0.9)
        assert backoff(1, 0.0, 60) < backoff(1, 0.5, 60)


AGAIN = [
    # error, asked again
    (errors.Throttled(), True),
    (errors.Unreachable(sent=False), True),
    (errors.Unreachable(sent=True), True),
    (errors.Unavailable(code=503), True),
    (errors.Unavailable(code=500), False),
    (errors.Invalid(code=500), False),
    (errors.Forbidden(code=403), False),
    (errors.Conflict(code=409), False),
    (errors.Stale(code=409), False),
    (errors.Missing(code=404), False),
    (errors.Garbled(), False),
]


class TestPause:
    @pytest.mark.parametrize(("error", "again"), AGAIN)
    def test_is_taken_where_asking_again_may_help(self, error, again):
        assert (pause(error, 1, remaining=10, draw=0.5) is not None) is again

    def test_comes_to_an_end(self):
        error = errors.Throttled()

        waits = [pause(error, n, remaining=99, draw=0) for n in range(1, ATTEMPTS + 1)]

        assert waits == [pytest.approx(w) for w in (0.1, 0.2, 0.4, 0.8)] + [None]

    def test_is_not_taken_when_it_would_use_up_the_budget(self):
        error = errors.Throttled(after=5)

        assert pause(error, 1, remaining=4, draw=0) is None
        assert pause(error, 1, remaining=6, draw=0) == 5
