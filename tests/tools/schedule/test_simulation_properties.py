"""The simulation against a plain loop over compose, on CronJobs and histories made up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hedgerow.contract import Create, Observed
from hedgerow.controllers.cronjob.controller import CONTROLLER
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job
from hedgerow_tools.schedule.simulation import Happens
from tools.schedule.asked import BEGIN, at, cronjob, foresee

MINUTES = 130
SCHEDULES = (
    "* * * * *",
    "*/7 * * * *",
    "*/10 * * * *",
    "0,5,6 * * * *",
    "@every 11m",
    "30 1 * * *",
)
MADE = {Happens.RUNS, Happens.LATE, Happens.REPLACES}

pairs = st.tuples(st.integers(0, MINUTES), st.integers(0, MINUTES)).filter(lambda p: p[0] < p[1])
durations = st.sampled_from((15, 25, 9, 4, 0, 110))
specs = st.fixed_dictionaries(
    {"concurrencyPolicy": st.sampled_from(("Forbid", "Forbid", "Replace", "Allow"))},
    optional={
        "startingDeadlineSeconds": st.sampled_from((0, 60, 300, 1800, 6600)),
        "successfulJobsHistoryLimit": st.integers(0, 3),
    },
)


@dataclass
class Loop:
    """The operator as a clock that ticks each minute; it looks when it asked to or a Job ended."""

    cj: CronJob
    takes: int
    down: tuple[tuple[int, int], ...]
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    ends: dict[str, datetime] = field(default_factory=dict)
    made: dict[str, datetime] = field(default_factory=dict)
    due: datetime | None = BEGIN

    def run(self, minutes: int) -> dict[str, datetime]:
        looked_at = -1
        for minute in range(minutes + 1):
            now = at(minute)
            ended = any(
                looked_at < (end - BEGIN) / timedelta(minutes=1) <= minute
                for end in self.ends.values()
            )
            back = any(minute == end for _, end in self.down)
            away = any(begin <= minute < end for begin, end in self.down)
            if not away and (back or ended or (self.due and self.due <= now)):
                self.look(now)
                looked_at = minute
        return self.made

    def look(self, now: datetime) -> None:
        for _ in range(2 * MINUTES):
            desired = CONTROLLER.compose(self.cj, Observed(now, tuple(self.views(now))))
            assert desired.status is not None
            changed = self.carry_out(desired.children, now)
            status = desired.status.model_copy(update={"observed_generation": 1})
            if not changed and status == self.cj.status:
                self.due = now + desired.requeue_after if desired.requeue_after else None
                return
            if not changed:
                self.cj = self.cj.model_copy(update={"status": status})
        raise AssertionError("it does not settle")

    def views(self, now: datetime) -> Iterator[Job]:
        for name, job in self.jobs.items():
            over = self.ends[name] <= now
            conditions = [{"type": "Complete", "status": "True"}] if over else []
            times = {"completionTime": self.ends[name].isoformat()} if over else {}
            yield Job({**job, "status": {**job["status"], "conditions": conditions, **times}})

    def carry_out(self, children: Any, now: datetime) -> bool:
        """Make the first change there is to make."""
        for child in children:
            if isinstance(child, Create) and child.name not in self.jobs:
                meta = {**child.fields["metadata"], "name": child.name, "namespace": "default"}
                meta["uid"] = child.name
                status = {"startTime": now.isoformat()}
                self.jobs[child.name] = {"metadata": meta, "status": status}
                self.ends[child.name] = now + timedelta(minutes=self.takes)
                self.made[child.name] = now
                return True
        named = {child.name for child in children}
        for name in self.jobs.keys() - named:
            del self.jobs[name], self.ends[name]
            return True
        return False


class TestSimulation:
    @settings(max_examples=50, deadline=None)
    @given(
        schedule=st.sampled_from(SCHEDULES),
        spec=specs,
        takes=durations,
        down=st.lists(pairs, max_size=2).map(tuple),
    )
    @example(schedule="*/7 * * * *", spec={"concurrencyPolicy": "Forbid"}, takes=25, down=())
    @example(
        schedule="* * * * *",
        spec={"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 6600},
        takes=110,
        down=((112, 120),),
    )
    @example(
        schedule="0,5,6 * * * *",
        spec={"concurrencyPolicy": "Replace", "successfulJobsHistoryLimit": 0},
        takes=9,
        down=((3, 5), (6, 61)),
    )
    def test_its_jobs_are_those_of_a_plain_loop(self, schedule, spec, takes, down):
        cj = cronjob(schedule, **spec)
        created = cj.metadata.model_copy(update={"creation_timestamp": BEGIN})
        loop = Loop(cj.model_copy(update={"metadata": created}), takes, down)
        expected = loop.run(MINUTES)

        fates = foresee(cj, minutes=MINUTES, takes=takes, down=down, limit=1000).fates
        told = {fate.job: fate.began for fate in fates if fate.began and fate.began <= at(MINUTES)}

        assert told == expected

    @settings(max_examples=50, deadline=None)
    @given(
        schedule=st.sampled_from(SCHEDULES),
        spec=specs,
        takes=durations,
        down=st.lists(pairs, max_size=2).map(tuple),
        limit=st.integers(1, 150),
    )
    def test_every_start_is_told_once_and_in_order_with_a_reason(
        self, schedule, spec, takes, down, limit
    ):
        forecast = foresee(
            cronjob(schedule, **spec), minutes=MINUTES, takes=takes, down=down, limit=limit
        )
        starts = [fate.start for fate in forecast.fates]

        assert starts == sorted(set(starts))
        assert len(starts) + forecast.more == len(every_start(schedule))
        for fate in forecast.fates:
            assert fate.why
            assert bool(fate.job) is bool(fate.began) is (fate.happens in MADE)
            assert fate.began is None or fate.began >= fate.start

    @settings(max_examples=15, deadline=None)
    @given(
        schedule=st.sampled_from(SCHEDULES),
        policy=st.sampled_from(("Allow", "Replace")),
        takes=st.integers(0, 20),
    )
    def test_with_nothing_in_the_way_each_start_is_made_on_time(self, schedule, policy, takes):
        cj = cronjob(schedule, concurrencyPolicy=policy)
        fates = foresee(cj, minutes=MINUTES, takes=takes, limit=1000).fates

        assert [fate.began for fate in fates] == every_start(schedule)


def every_start(schedule: str) -> list[datetime]:
    """Return the starts until MINUTES by hand."""
    each = {
        "* * * * *": range(1, MINUTES + 1),
        "*/7 * * * *": [h * 60 + m for h in range(4) for m in range(0, 60, 7)],
        "*/10 * * * *": range(10, MINUTES + 1, 10),
        "0,5,6 * * * *": [h * 60 + m for h in range(4) for m in (0, 5, 6)],
        "@every 11m": range(11, MINUTES + 1, 11),
        "30 1 * * *": [90],
    }[schedule]
    return [at(minute) for minute in each if 0 < minute <= MINUTES]
