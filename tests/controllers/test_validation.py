"""Validation: a resource that is admitted is one that compose can make something of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controllers.crons import at, composed, cronjob
from hedgerow.contract import Observed
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.controllers.cronjob import controller as cronjobs
from hedgerow_schemas.bluegreen import BlueGreen

Object = dict[str, Any]
FIELD = st.sampled_from(["*", "0", "61", "*/5", "1-3", "5-1", "MON", "x", "?"])
SCHEDULES = st.one_of(
    st.lists(FIELD, min_size=4, max_size=6).map(" ".join),
    st.sampled_from(["@daily", "@never", "@every 1h", "@every x", "TZ=UTC", ""]),
    st.tuples(st.sampled_from(["TZ=UTC", "CRON_TZ=Mars/X"]), st.just("0 0 * * *")).map(" ".join),
    st.text(max_size=20),
)
ZONES = st.one_of(st.none(), st.sampled_from(["UTC", "Europe/Berlin", "Mars/X", "Local", "../x"]))


class TestCronJob:
    @given(SCHEDULES, ZONES)
    @example("CRON_TZ=UTC 0 0 * * *", "UTC")
    @example("0 0 * * *", "Europe/Berlin")
    def test_compose_stalls_for_its_spec_exactly_when_there_are_errors(self, schedule, zone):
        cj = cronjob(schedule=schedule, timeZone=zone)
        stalled = {c.reason for c in composed(cj, at(0)).status.conditions if c.type == "Stalled"}

        errors = list(cronjobs.CONTROLLER.validate(cj))

        assert bool(errors) == bool({"UnparseableSchedule", "UnknownTimeZone"} & stalled)
        assert {error.field for error in errors} <= {"spec.schedule", "spec.timeZone"}

    def test_schedule_and_zone_are_judged_apart(self):
        errors = list(cronjobs.CONTROLLER.validate(cronjob(schedule="61 * * * *", timeZone="X/Y")))

        assert [(error.field, error.value) for error in errors] == [
            ("spec.schedule", "61 * * * *"),
            ("spec.timeZone", "X/Y"),
        ]

    def test_the_value_is_not_said_twice(self):
        (error,) = cronjobs.CONTROLLER.validate(cronjob(schedule="* *"))

        assert error.detail.startswith("it takes 5 fields")

    def test_a_zone_given_twice_is_an_error_of_time_zone(self):
        (error,) = cronjobs.CONTROLLER.validate(cronjob(schedule="TZ=UTC @daily", timeZone="UTC"))

        assert error.field == "spec.timeZone"
        assert "the schedule names a zone of its own" in str(error)

    @pytest.mark.parametrize(("length", "errors"), [(52, 0), (53, 1)])
    def test_a_name_has_room_for_the_second_of_a_start(self, length, errors):
        cj = cronjob()
        named = cj.model_copy(
            update={"metadata": cj.metadata.model_copy(update={"name": "x" * length})}
        )

        assert len(list(cronjobs.CONTROLLER.validate(named))) == errors


class TestBlueGreen:
    @pytest.mark.parametrize("route", ["Blue", "Green"])
    @pytest.mark.parametrize("specs", [("blueSpec",), ("greenSpec",), ("blueSpec", "greenSpec")])
    def test_compose_stalls_for_its_spec_exactly_when_there_are_errors(self, route, specs):
        spec: Object = {"routeTo": route} | {name: {"containers": []} for name in specs}
        bg = BlueGreen.model_validate({"metadata": {"name": "demo"}, "spec": spec})
        status = bluegreen.compose(bg, Observed(now=at(0))).status
        assert status is not None
        stalled = [c.message for c in status.conditions if c.type == "Stalled"]

        errors = list(bluegreen.CONTROLLER.validate(bg))

        assert stalled == [error.detail for error in errors]
        assert [error.field for error in errors] == (
            [] if f"{route.lower()}Spec" in specs else [f"spec.{route.lower()}Spec"]
        )
