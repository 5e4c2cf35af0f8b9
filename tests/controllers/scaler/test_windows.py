"""Windows: they follow from the annotations and the clock alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import timetable
from hedgerow.controllers.scaler.controller import CONTROLLER
from hedgerow.controllers.scaler.windows import (
    ASKED,
    BEFORE,
    DOMAIN,
    HOLDS,
    IN_REPLICAS,
    NEVER,
    OUT_REPLICAS,
    SCALE_IN,
    SCALE_OUT,
    TIME_ZONE,
    WRITTEN,
    AnnotationsError,
    read_plan,
)

MINUTE = timedelta(minutes=1)
CREATED = datetime(2026, 1, 1, 0, 7, tzinfo=UTC)


def asked(out: str, back: str, replicas: str = "10", **more: str) -> dict[str, str]:
    given = {SCALE_OUT: out, SCALE_IN: back, OUT_REPLICAS: replicas}
    return given | {DOMAIN + key.replace("_", "-"): value for key, value in more.items()}


def at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


OFFICE = asked("0 8 * * 1-5", "0 18 * * 1-5", time_zone="Europe/Berlin")


class TestPhase:
    @pytest.mark.parametrize(
        ("now", "in_force", "since", "until"),
        [
            ("2026-03-02 07:59:59", False, "2026-02-27 18:00", "2026-03-02 08:00"),
            ("2026-03-02 08:00:00", True, "2026-03-02 08:00", "2026-03-02 18:00"),
            ("2026-03-02 17:59:59", True, "2026-03-02 08:00", "2026-03-02 18:00"),
            ("2026-03-02 18:00:00", False, "2026-03-02 18:00", "2026-03-03 08:00"),
            ("2026-03-07 12:00:00", False, "2026-03-06 18:00", "2026-03-09 08:00"),
        ],
    )
    def test_it_is_that_of_the_clock(self, now, in_force, since, until):
        plan = read_plan(OFFICE, CREATED)
        assert plan is not None
        phase = plan.at(at(now, "Europe/Berlin"))

        assert (phase.in_force, phase.replicas) == (in_force, 10 if in_force else None)
        assert (phase.since, phase.until) == (
            at(since, "Europe/Berlin"),
            at(until, "Europe/Berlin"),
        )

    def test_a_start_within_a_window_neither_begins_nor_renews_one(self):
        plan = read_plan(asked("0 8,9,10 * * *", "0 18,19 * * *", scale_in_replicas="2"), CREATED)
        assert plan is not None

        assert plan.at(at("2026-03-02 10:30")).since == at("2026-03-02 08:00")
        outside = plan.at(at("2026-03-02 20:00"))
        assert (outside.replicas, outside.since) == (2, at("2026-03-02 18:00"))

    def test_of_two_starts_at_once_the_window_begins(self):
        plan = read_plan(asked("0 8 * * *", "0 */8 * * *"), CREATED)
        assert plan is not None
        phase = plan.at(at("2026-03-02 08:00"))

        assert phase.in_force
        assert phase.until == at("2026-03-02 16:00")

    def test_before_the_first_window_there_was_no_transition(self):
        plan = read_plan(asked("0 8 29 2 *", "0 18 31 2 *"), CREATED)
        assert plan is not None

        assert plan.at(at("2021-01-01 00:00")).since == at("2020-02-29 08:00")
        never = read_plan(asked("0 0 31 2 *", "0 0 * * *"), CREATED)
        assert never is not None
        phase = never.at(at("2026-03-02 08:00"))
        assert (phase.in_force, phase.since, phase.until) == (False, NEVER, None)

    def test_the_phases_of_a_time_end_with_it(self):
        plan = read_plan(OFFICE, CREATED)
        assert plan is not None
        since, until = at("2026-03-06 12:00", "Europe/Berlin"), at("2026-03-09 09:00")

        assert [phase.in_force for phase in plan.phases(since, until)] == [True, False, True]

    def test_every_counts_from_the_creation(self):
        plan = read_plan(asked("@every 2h", "@every 3h"), CREATED)
        assert plan is not None

        assert plan.at(CREATED + timedelta(hours=2)).in_force
        assert not plan.at(CREATED + timedelta(hours=3)).in_force


SCHEDULES = st.sampled_from([
    "0 8 * * *", "30 2 * * *", "0 3 * * *", "*/50 * * * *", "15 1,2,3 * * *", "0 18 * * 1-5",
    "0 0 * * 0", "59 23 * * *", "@hourly", "@every 7h", "@every 95m", "5 */7 * * *",
])  # fmt: skip
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Cairo"]
)
BEGINS = st.sampled_from([
    "2026-03-28 12:00", "2026-10-24 12:00", "2026-04-04 06:00", "2026-10-03 06:00",
    "2018-11-03 12:00", "2026-06-01 00:00", "2027-04-29 12:00",
])  # fmt: skip


def starts(text: str, zone: str, now: datetime) -> set[datetime]:
    """Return the starts of weeks around an instant."""
    schedule, found = timetable(text, zone, CREATED), now - timedelta(days=45)
    there_are: set[datetime] = set()
    while (following := schedule.after(found)) and following < now + timedelta(days=16):
        found = following
        there_are.add(found)
    return there_are


class TestBruteForce:
    @settings(max_examples=15, deadline=None)
    @given(out=SCHEDULES, back=SCHEDULES, zone=ZONES, begins=BEGINS, offset=st.integers(0, 600))
    def test_windows_are_those_of_a_walk_by_minutes(self, out, back, zone, begins, offset):
        plan = read_plan(asked(out, back, time_zone=zone), CREATED)
        assert plan is not None
        now = at(begins) + offset * MINUTE
        outs, backs = (starts(one, zone, now) for one in (out, back))
        phase = plan.at(now)
        in_force, since = phase.in_force, phase.since
        for _ in range(30 * 60):
            now += MINUTE
            before = since
            if in_force and now in backs:
                in_force, since = False, now
            if not in_force and now in outs:
                in_force, since = True, now
            if since == before and now.minute % 17:
                continue  # there is no need to ask at each minute between two transitions
            found = plan.at(now)
            assert found.in_force == in_force
            if in_force or since > phase.since:
                assert found.since == since
            assert found.until is None or found.until > now

    @settings(max_examples=20, deadline=None)
    @given(out=SCHEDULES, back=SCHEDULES, zone=ZONES, begins=BEGINS)
    def test_phases_follow_each_other_without_a_gap(self, out, back, zone, begins):
        plan = read_plan(asked(out, back, time_zone=zone), CREATED)
        assert plan is not None
        phases = list(plan.phases(at(begins), at(begins) + timedelta(days=7)))

        for one, after in pairwise(phases):
            assert one.until is not None
            assert plan.at(one.until) == after
            assert one.in_force != after.in_force or after.since == one.until


class TestMidnight:
    """Where a day has no midnight, as on the Friday on which Cairo's clocks go forward."""

    @pytest.mark.parametrize(
        ("weekdays", "windows"), [("0-4", ["04-28", "04-29", "05-02"]), ("5", ["04-30", "05-07"])]
    )
    def test_a_window_is_on_the_days_that_are_named(self, weekdays, windows):
        zone = "Africa/Cairo"
        plan = read_plan(
            asked(f"0 8 * * {weekdays}", f"0 18 * * {weekdays}", time_zone=zone), CREATED
        )
        assert plan is not None
        found = plan.phases(at("2027-04-28 00:00", zone), at("2027-05-08 00:00", zone))
        days = [one.since.astimezone(ZoneInfo(zone)) for one in found if one.in_force]

        assert [f"{day:%m-%d}" for day in days][: len(windows)] == windows
        assert {day.hour for day in days} == {8}


class TestAnnotations:
    def test_others_ask_for_nothing(self):
        assert read_plan({"a/b": "c", BEFORE: "{}", HOLDS: "x"}, CREATED) is None

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({SCALE_OUT: "0 8 * * *"}, f"{SCALE_IN} is missing"),
            ({SCALE_IN: "0 8 * * *"}, f"{SCALE_OUT} is missing"),
            ({SCALE_OUT: "0 8 * * *", SCALE_IN: "1 1 * * *"}, f"{OUT_REPLICAS} is missing"),
            (OFFICE | {OUT_REPLICAS: "-1"}, f"{OUT_REPLICAS}: '-1' is no number of replicas"),
            (OFFICE | {OUT_REPLICAS: "2147483648"}, "is no number of replicas"),
            (OFFICE | {IN_REPLICAS: "\u0661"}, f"{IN_REPLICAS}: '\u0661' is no number"),
            (OFFICE | {IN_REPLICAS: ""}, f"{IN_REPLICAS}: '' is no number"),
            (OFFICE | {SCALE_OUT: "0 25 * * *"}, f"{SCALE_OUT}: hour '25': 25 is above 23"),
            (OFFICE | {TIME_ZONE: "Berlin"}, "the IANA database has none of this name"),
            (OFFICE | {SCALE_OUT: "TZ=UTC 0 8 * * *"}, "names a zone of its own"),
            (OFFICE | {DOMAIN + "scaleout": "x"}, "scaleout is no annotation of the scaler"),
        ],
    )
    def test_what_is_wrong_is_told_with_the_annotation(self, wrong, why):
        with pytest.raises(AnnotationsError) as error:
            read_plan(wrong, CREATED)
        assert why in str(error.value)

    def test_everything_that_is_wrong_is_told_at_once(self):
        with pytest.raises(AnnotationsError) as error:
            read_plan({SCALE_OUT: "x", SCALE_IN: "0 99 * * *", OUT_REPLICAS: "y"}, CREATED)
        assert str(error.value).count(";") == 2

    def test_an_object_is_picked_by_any_annotation_of_the_domain(self):
        for controller in CONTROLLER:
            assert controller.built_in.annotation_prefix == DOMAIN
        assert all(key.startswith(DOMAIN) for key in (*ASKED, *WRITTEN))


class TestSample:
    def test_it_is_the_guides_and_asks_for_windows(self):
        root = Path(__file__).parents[3]
        sample = (root / "manifests/samples/scaler/web.yaml").read_text("utf-8")
        guide = (root / "docs/guides/scaler.md").read_text("utf-8")
        shown = guide.partition("<!-- sample -->")[2].partition("```yaml\n")[2]
        assert shown.partition("```\n")[0] == sample

        plan = read_plan(yaml.safe_load(sample)["metadata"]["annotations"], CREATED)
        assert plan is not None
        assert plan.at(at("2026-03-02 12:00", "Europe/Berlin")).replicas == 10


class TestBefore:
    @settings(max_examples=60, deadline=None)
    @given(text=SCHEDULES, zone=ZONES, begins=BEGINS, offset=st.integers(0, 5000))
    def test_the_latest_start_is_the_one_that_after_leads_to(self, text, zone, begins, offset):
        now = at(begins) + offset * MINUTE
        known, schedule = starts(text, zone, now), timetable(text, zone, CREATED)

        assert schedule.before(now) == max((one for one in known if one <= now), default=None)
        assert schedule.after(now) == min(one for one in known if one > now)

    def test_never_is_five_years(self):
        schedule = timetable("0 0 31 2 *", None, None)

        assert schedule.before(at("2026-04-04 16:00")) is None
        assert schedule.after(at("2026-04-04 16:00")) is None
