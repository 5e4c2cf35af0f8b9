from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.controllers.cronjob.history import last_success, outdated
from hedgerow_schemas.job import Job


def job(name: str, how: str = "Complete", started: int | None = 0) -> Job:
    """A Job that ended; `started` is the minute, None for one that never did."""
    status = {"conditions": [{"type": how, "status": "True"}] if how else []}
    if started is not None:
        status["startTime"] = f"2026-01-01T12:{started:02}:00Z"
    return Job({"metadata": {"name": name}, "status": status})


@dataclass(frozen=True)
class Case:
    """Jobs, limits, and what is beyond them."""

    reason: str
    jobs: tuple[Job, ...]
    succeeded: int
    failed: int
    outdated: set[str]

    def __str__(self) -> str:
        return self.reason


ONE, TWO, THREE = job("a", started=1), job("b", started=2), job("c", started=3)
BAD = job("f", "Failed")
CASES = (
    Case("nothing there", (), 0, 0, set()),
    Case("just enough", (ONE, TWO, THREE), 3, 0, set()),
    Case("the oldest goes", (THREE, ONE, TWO), 2, 0, {"a"}),
    Case("all but one go", (THREE, ONE, TWO), 1, 0, {"a", "b"}),
    Case("none is kept", (ONE, TWO), 0, 1, {"a", "b"}),
    Case("without start time is oldest", (ONE, job("z", started=None)), 1, 0, {"z"}),
    Case("the name tells equals apart", (job("b"), job("a"), job("c")), 1, 0, {"a", "b"}),
    Case("failed ones are counted apart", (ONE, BAD, job("g", "Failed", 5)), 1, 1, {"f"}),
    Case("failed ones kept, others not", (ONE, BAD), 0, 1, {"a"}),
    Case("what runs is no history", (job("r", ""), job("s", "", None)), 0, 0, set()),
)  # fmt: skip


class TestOutdated:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_the_oldest_beyond_the_limits_are_named(self, case):
        assert outdated(case.jobs, case.succeeded, case.failed) == case.outdated

    @given(
        st.lists(
            st.tuples(st.sampled_from(["Complete", "Failed", ""]), st.none() | st.integers(0, 59)),
            max_size=8,
        ),
        st.integers(0, 4),
        st.integers(0, 4),
    )
    def test_what_is_left_is_within_the_limits_and_at_them_where_anything_goes(
        self, drawn, succeeded, failed
    ):
        jobs = [job(f"j{number}", how, started) for number, (how, started) in enumerate(drawn)]
        gone = outdated(jobs, succeeded, failed)
        for how, limit in (("Complete", succeeded), ("Failed", failed)):
            ended = [j for (kind, _), j in zip(drawn, jobs, strict=True) if kind == how]
            left = [j for j in ended if j.name not in gone]
            assert len(left) == min(limit, len(ended))
        assert not {j.name for (kind, _), j in zip(drawn, jobs, strict=True) if not kind} & gone


class TestLastSuccess:
    @pytest.mark.parametrize(
        ("there", "recorded", "last"),
        [
            ((), None, None),
            ((), 3, 3),
            ((("Complete", 1), ("Complete", 2)), None, 2),
            ((("Complete", 2), ("Complete", 1)), 3, 3),
            ((("Failed", 4), ("", 5), ("Complete", None)), None, None),
        ],
    )
    def test_it_is_the_latest_on_record_or_there(self, there, recorded, last):
        jobs = [ended(how, minute) for how, minute in there]

        assert last_success(jobs, noon(recorded)) == noon(last)


def noon(minute: int | None) -> datetime | None:
    return None if minute is None else datetime(2026, 1, 1, 12, minute, tzinfo=UTC)


def ended(how: str, minute: int | None) -> Job:
    """A Job whose status tells that it was complete at that minute."""
    at = {} if minute is None else {"completionTime": f"2026-01-01T12:{minute:02}:00Z"}
    found = job("a", how)
    return Job({**found.raw, "status": {**found.raw["status"], **at}})
