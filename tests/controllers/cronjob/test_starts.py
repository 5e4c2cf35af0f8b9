from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.controllers.cronjob.starts import is_ahead, is_made_here, name_of, named
from hedgerow_schemas.job import Job

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = 1_767_268_800
END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """A Job, and the start that it tells of."""

    reason: str
    name: str
    start: datetime | None

    def __str__(self) -> str:
        return self.reason


CASES = (
    Case("the name tells", f"demo-{SECOND}", NOON),
    Case("a name of another kind", "demo-manual", None),
    Case("the name of another's Job", f"demo-2-{SECOND}", None),
    Case("no digits", "demo-", None),
    Case("digits of another script", "demo-\u0661\u0662", None),
    Case("a power", "demo-\u00b2", None),
    Case("the beginning", "demo-0", datetime.fromtimestamp(0, UTC)),
    Case("the last second there is", "demo-253402300799", END_OF_TIME),
    Case("beyond the end of time", "demo-253402300800", END_OF_TIME),
    Case("far beyond", "demo-999999999999", END_OF_TIME),
    Case("more digits than a number may have", f"demo-{'9' * 200}", END_OF_TIME),
)


class TestNamed:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_it_is_the_start_that_the_name_says(self, case):
        assert named("demo", case.name) == case.start

    @given(st.integers(0, 4_000_000_000), st.integers(0, 999_999))
    def test_a_name_leads_back_to_its_start(self, second, microsecond):
        start = datetime.fromtimestamp(second, UTC)

        assert named("my-job", name_of("my-job", start.replace(microsecond=microsecond))) == start

    def test_names_are_of_the_instant_whatever_the_zone(self):
        seoul = NOON.astimezone(timezone(timedelta(hours=9)))

        assert name_of("demo", seoul) == name_of("demo", NOON) == f"demo-{SECOND}"

    @given(st.text(), st.text())
    def test_it_never_raises(self, owner, name):
        named(owner, name)


class TestRecord:
    """The record is read with a CronJob, so its rules are in controllers/test_cronjob_records."""

    @pytest.mark.parametrize(
        ("entries", "expected"),
        [
            ([{"manager": "hedgerow-cronjob"}], True),
            ([{"manager": "kubectl"}, {"manager": "hedgerow-two-cronjob"}], True),
            ([{"manager": "kubectl"}], False),
            ([{}, None, "hedgerow-cronjob", {"manager": 7}], False),
            ("hedgerow-cronjob", False),
            (None, False),
        ],
    )
    def test_who_made_a_job_is_told_by_its_managed_fields(self, entries, expected):
        assert is_made_here(Job({"metadata": {"managedFields": entries}})) is expected

    def test_a_time_is_ahead_only_by_more_than_clocks_may_differ(self):
        assert not is_ahead(NOON, NOON)
        assert not is_ahead(NOON + timedelta(seconds=60), NOON)
        assert is_ahead(NOON + timedelta(seconds=61), NOON)
