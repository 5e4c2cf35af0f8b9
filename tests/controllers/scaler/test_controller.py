"""Compose of the scaler: what it contributes, at any time, of objects in any state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hedgerow import Contribution, Deployment, HorizontalPodAutoscaler, Observed, View, timetable
from hedgerow.contract import Answers
from hedgerow.controllers.scaler.controller import (
    DEPLOYMENTS,
    STATEFUL_SETS,
    ScaledDeployment,
    reduced,
)
from hedgerow.controllers.scaler.record import FormerValue, recorded
from hedgerow.controllers.scaler.windows import (
    BEFORE,
    HOLDS,
    IN_REPLICAS,
    OUT_REPLICAS,
    SCALE_IN,
    SCALE_OUT,
    TIME_ZONE,
)

MANAGER = "hedgerow-scaler"
CREATED = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]


def deployment(notes: dict[str, str], replicas: int = 1, **holders: str) -> Object:
    """Return a Deployment; `holders` are the managers that hold its replicas, by operation."""
    entries = [
        {"manager": name, "operation": operation, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        for name, operation in holders.items()
    ]
    meta = {"name": "web", "namespace": "shop", "uid": "u", "annotations": notes}
    return {
        "metadata": {
            **meta, "creationTimestamp": CREATED.isoformat(), "managedFields": entries
        },
        "spec": {"replicas": replicas},
    }  # fmt: skip


def composed(
    live: Object,
    now: datetime,
    *autoscalers: Object,
    word: str = "",
    server: datetime | None = None,
) -> Any:
    observed = Observed(
        now=now,
        server_time=server,
        contributable=tuple(map(HorizontalPodAutoscaler, autoscalers)),
        resource=View(live),
        field_manager=MANAGER,
        answers=Answers(word=lambda *_: word),  # type: ignore[arg-type,return-value]
    )
    return DEPLOYMENTS.compose(ScaledDeployment.model_validate(live), observed)


FORWARD, BACK = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 4, 4, tzinfo=UTC)
"""Days in UTC on which the clocks go forward in Berlin, and back in Sydney."""


@pytest.mark.untraced
class TestChangeOfClocks:
    @pytest.mark.parametrize(
        ("day", "zone", "begins", "ends"),
        [
            (FORWARD, "Europe/Berlin", "30 2 * * *", "30 3 * * *"),
            (FORWARD, "Europe/Berlin", "30 1 * * *", "15 2 * * *"),
            (FORWARD, "Europe/Berlin", "0 8 * * 1-5", "0 18 * * 1-5"),
            (BACK, "Australia/Sydney", "30 2 * * *", "0 4 * * *"),
            (BACK, "Australia/Sydney", "15 1 * * *", "45 2 * * *"),
            (BACK, "Australia/Sydney", "0 22 * * *", "30 2 * * *"),
        ],
    )
    def test_it_contributes_within_windows_alone_and_asks_to_be_called_at_their_ends(
        self, day, zone, begins, ends
    ):
        place = ZoneInfo(zone)
        offsets = {(day + timedelta(hours=n)).astimezone(place).utcoffset() for n in range(24)}
        assert len(offsets) == 2, "the clocks change on this day"
        notes = {SCALE_OUT: begins, SCALE_IN: ends, OUT_REPLICAS: "10", TIME_ZONE: zone}
        live = deployment(notes)
        out, back = (timetable(one, zone, CREATED) for one in (begins, ends))
        begin, now = day - timedelta(days=1), day - timedelta(days=2)
        in_force, due, changes = False, None, 0
        while now < day + timedelta(days=2):
            before = in_force
            in_force = (in_force and not back.has(now)) or out.has(now)
            changes += before != in_force
            if now >= begin:
                desired = composed(live, now)
                assert bool(desired.contributions) == in_force
                assert due is None or before == in_force or due == now
                due = now + desired.requeue_after
            now += timedelta(minutes=15)

        assert changes >= 3


HOURS = timedelta(hours=11)


class TestContribution:
    NOTES = {SCALE_OUT: "0 8 * * *", SCALE_IN: "0 18 * * *", OUT_REPLICAS: "10"}
    NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
    NIGHT = datetime(2026, 3, 2, 20, tzinfo=UTC)

    def test_the_number_and_the_record_are_one_declaration(self):
        (contribution,) = composed(deployment(self.NOTES), self.NOON).contributions

        assert contribution == Contribution(
            Deployment,
            "web",
            {
                "metadata": {"annotations": {BEFORE: '{"replicas":1}'}},
                "spec": {"replicas": 10},
            },
        )

    def test_a_window_is_in_force_by_the_servers_clock_if_ours_is_behind(self):
        behind = timedelta(hours=11)
        noon = composed(deployment(self.NOTES), self.NOON - behind, server=self.NOON)
        night = composed(deployment(self.NOTES), self.NIGHT - behind, server=self.NIGHT)

        assert noon.contributions[0].fields["spec"] == {"replicas": 10}
        assert noon.requeue_after == timedelta(hours=6)
        assert night.contributions == ()
        assert night.requeue_after == timedelta(hours=12)

    def test_a_window_is_in_force_by_our_clock_if_that_is_ahead(self):
        assert (
            composed(deployment(self.NOTES), self.NOON, server=self.NOON - HOURS).contributions
            != ()
        )

    def test_by_a_minute_our_clock_may_differ(self):
        almost = self.NOON.replace(hour=7, minute=59, second=30)
        begun = self.NOON.replace(hour=8, second=10)

        assert composed(deployment(self.NOTES), almost, server=begun).contributions == ()
        assert composed(deployment(self.NOTES), begun, server=almost).contributions != ()

    def test_what_others_hold_is_declared_without_a_record(self):
        live = deployment(self.NOTES, 3, helm="Apply")
        (contribution,) = composed(live, self.NOON).contributions

        assert contribution == Contribution(Deployment, "web", {"spec": {"replicas": 10}})

    def test_an_update_under_our_name_is_somebody_elses(self):
        live = deployment(self.NOTES, 3, **{MANAGER: "Update"})

        assert BEFORE not in str(composed(live, self.NOON).contributions)

    def test_a_contribution_records_from_whom_and_in_which_transition(self):
        live = deployment(self.NOTES, 3, helm="Apply")
        (contribution,) = composed(live, self.NOON, word="claim").contributions
        record = recorded(contribution.fields["metadata"]["annotations"][BEFORE])

        assert record == FormerValue(
            replicas=3, taken_from="helm", taken_at=datetime(2026, 3, 2, 8, tzinfo=UTC)
        )
        assert contribution.waits == ""

    def test_in_the_same_transition_it_waits(self):
        taken = FormerValue(
            replicas=3, taken_from="helm", taken_at=datetime(2026, 3, 2, 8, tzinfo=UTC)
        )
        live = deployment(self.NOTES | {BEFORE: taken.text()}, 5, kubectl="Update")
        (contribution,) = composed(live, self.NOON, word="claim").contributions

        assert "lost again" in contribution.waits
        (contribution,) = composed(live, self.NOON + timedelta(days=1), word="claim").contributions
        assert contribution.waits == ""

    def test_at_night_nothing_is_held_but_a_former_number(self):
        held = {MANAGER: "Apply"}
        free, taken = FormerValue(replicas=1), FormerValue(replicas=3, taken_from="helm")
        for record, number in ((free, None), (taken, 3), (FormerValue(replicas=0), 0)):
            live = deployment(self.NOTES | {BEFORE: record.text()}, 10, **held)
            contributions = composed(live, self.NIGHT).contributions
            assert [contribution.fields["spec"]["replicas"] for contribution in contributions] == (
                [] if number is None else [number]
            )

    def test_a_record_that_cannot_be_read_counts_as_lost(self):
        live = deployment(self.NOTES | {BEFORE: '{"replicas":-1}'}, 10, **{MANAGER: "Apply"})
        desired = composed(live, self.NIGHT)

        assert desired.contributions[0].fields["spec"]["replicas"] == 10
        assert [notice.reason for notice in desired.events] == ["FormerValueLost"]

    def test_a_number_for_the_night_is_held_all_night(self):
        (contribution,) = composed(
            deployment(self.NOTES | {IN_REPLICAS: "0"}), self.NIGHT
        ).contributions

        assert contribution.fields["spec"]["replicas"] == 0


def autoscaler(kind: str = "Deployment", version: str = "apps/v1") -> Object:
    target = {"apiVersion": version, "kind": kind, "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "hpa",
            "namespace": "shop",
            "annotations": {"big": "text"},
            "managedFields": [
                {"manager": "helm", "fieldsV1": {"f:spec": {}}},
                {"manager": "kcm", "subresource": "status", "fieldsV1": {}},
            ],
        },
        "spec": {"scaleTargetRef": target, "minReplicas": 2, "metrics": [{}]},
        "status": {"currentReplicas": 2},
    }


class TestAutoscaler:
    def test_the_object_is_marked_before_the_autoscaler_is_touched(self):
        live, noon = deployment(TestContribution.NOTES), TestContribution.NOON
        (mark,) = composed(live, noon, autoscaler()).contributions
        assert mark.fields == {"metadata": {"annotations": {HOLDS: "HorizontalPodAutoscaler/hpa"}}}

        live["metadata"]["annotations"][HOLDS] = "HorizontalPodAutoscaler/hpa"
        _, contribution = composed(live, noon, autoscaler()).contributions
        assert contribution.fields["spec"] == {"minReplicas": 10}

    @pytest.mark.parametrize(
        ("kind", "version", "of_deployments", "of_stateful_sets"),
        [
            ("Deployment", "apps/v1", ("shop", "web"), None),
            ("StatefulSet", "apps/v1", None, ("shop", "web")),
            ("Deployment", "example.com/v1", None, None),
            ("Rollout", "argoproj.io/v1alpha1", None, None),
        ],
    )
    def test_each_is_of_one_object_and_of_one_controller(
        self, kind, version, of_deployments, of_stateful_sets
    ):
        view = HorizontalPodAutoscaler(autoscaler(kind, version))
        (first,), (second,) = DEPLOYMENTS.contributes, STATEFUL_SETS.contributes

        assert (first.of(view), second.of(view)) == (of_deployments, of_stateful_sets)
        assert first.concerns(view) != second.concerns(view)

    def test_its_status_and_metrics_are_not_cached(self):
        found = reduced(autoscaler())

        assert set(found) == {"apiVersion", "kind", "metadata", "spec"}
        assert set(found["spec"]) == {"scaleTargetRef", "minReplicas"}
        assert "annotations" not in found["metadata"]
        assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["helm"]
