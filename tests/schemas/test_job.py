from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow_schemas.base import instant
from hedgerow_schemas.job import Job


def job(*conditions: Any, **status: Any) -> Job:
    return Job({"status": {"conditions": list(conditions), **status}})


def said(type_: str, status: str = "True") -> dict[str, str]:
    return {"type": type_, "status": status}


class TestInstant:
    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("2026-01-01T12:00:00Z", datetime(2026, 1, 1, 12, tzinfo=UTC)),
            (
                "2026-01-01T21:00:00+09:00",
                datetime(2026, 1, 1, 21, tzinfo=timezone(timedelta(hours=9))),
            ),
            ("2026-01-01T12:00:00.25Z", datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)),
            ("2026-01-01T12:00:00,25Z", datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)),
        ],
    )
    def test_what_go_reads_is_a_time(self, text, read):
        assert instant(text) == read
        assert instant(text).tzinfo is not None

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "Thu, 1 Jan 2026",
            "2026-01-01",
            "2026-W01-4",
            "20260101T120000Z",
            "2026-01-01T12:00:00",
            "2026-01-01T12:00Z",
            "2026-01-01 12:00:00Z",
            "2026-01-01t12:00:00z",
            "2026-01-01T12:00:00+0100",
            "2026-01-01T12:00:60Z",
            "\u0662026-01-01T12:00:00Z",
        ],
    )
    def test_what_is_no_time_is_none(self, text):
        assert instant(text) is None

    @given(st.text() | st.datetimes().map(str))
    def test_it_never_raises(self, text):
        read = instant(text)

        assert read is None or read.utcoffset() is not None


class TestJob:
    @pytest.mark.parametrize(
        ("conditions", "succeeded", "failed"),
        [
            ([], False, False),
            ([said("Complete")], True, False),
            ([said("Failed")], False, True),
            ([said("Complete", "False"), said("Failed", "Unknown")], False, False),
            ([said("SuccessCriteriaMet")], False, False),
            ([said("FailureTarget")], False, False),
            ([said("Suspended"), said("Complete")], True, False),
        ],
    )
    def test_it_has_ended_when_its_conditions_say_so(self, conditions, succeeded, failed):
        view = job(*conditions)

        assert (view.succeeded, view.failed) == (succeeded, failed)
        assert view.finished is (succeeded or failed)

    def test_times_are_read(self):
        view = job(startTime="2026-01-01T12:00:00Z", completionTime="2026-01-01T12:00:09Z")

        assert view.start_time == datetime(2026, 1, 1, 12, tzinfo=UTC)
        assert view.completion_time == datetime(2026, 1, 1, 12, 0, 9, tzinfo=UTC)

    def test_a_job_that_nobody_looked_at_yet_says_nothing(self):
        view = Job({"metadata": {"name": "j"}})

        assert (view.start_time, view.completion_time) == (None, None)
        assert (view.finished, view.going) == (False, False)

    def test_it_is_going_once_its_deletion_began(self):
        assert Job({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}).going

    @pytest.mark.parametrize("value", [None, 7, "x", [], {}, [7], ["Complete"], {"type": 1}])
    def test_hostile_values_read_as_absent(self, value):
        view = Job(
            {
                "metadata": {"name": value},
                "status": {"conditions": value, "startTime": value, "completionTime": [value]},
            }
        )

        assert (view.finished, view.start_time, view.completion_time) == (False, None, None)
