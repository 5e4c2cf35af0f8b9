"""hedgerow schedule next KIND/NAME of a workload: its windows, and what each would set."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow.controllers.scaler.windows import BEFORE, DOMAIN
from hedgerow_schemas.builtin import HorizontalPodAutoscaler
from hedgerow_tools.schedule import command
from support.server.store import Store

Object = dict[str, Any]
NOW = datetime(2026, 3, 27, 18, 30, tzinfo=UTC)
OFFICE = {
    "scale-out": "0 8 * * 1-5", "scale-in": "0 18 * * 1-5", "scale-out-replicas": "10",
    "time-zone": "Europe/Berlin",
}  # fmt: skip


def workload(kind: str, notes: Object, replicas: int = 2, **holders: str) -> Object:
    entries = [
        {"manager": name, "operation": how, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        for name, how in holders.items()
    ]
    named = {key if "/" in key else DOMAIN + key: value for key, value in notes.items()}
    meta = {"name": "web", "namespace": "shop", "uid": "u", "annotations": named}
    return {
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {**meta, "managedFields": entries}, "spec": {"replicas": replicas},
    }  # fmt: skip


def autoscaler(name: str, kind: str = "Deployment") -> Object:
    target = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    api = HorizontalPodAutoscaler.api
    return {
        "apiVersion": api.group_version, "kind": api.kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"scaleTargetRef": target, "minReplicas": 3},
    }  # fmt: skip


@pytest.fixture
def cluster(server, monkeypatch) -> Store:
    monkeypatch.setattr(command, "SystemClock", lambda: SimpleNamespace(now=lambda: NOW))
    return server.store


@pytest.fixture
def typed(cluster, typing, monkeypatch):
    """Type a line without a terminal; give the exit code, standard output and error."""
    monkeypatch.delenv("COLUMNS", raising=False)
    return partial(typing, "schedule", "next")


class TestTable:
    def test_windows_and_what_each_sets(self, cluster, typed):
        cluster.put(workload("Deployment", OFFICE))
        code, out, err = typed("deployment/web")

        assert (code, err) == (0, "")
        heading, titles, *rows = out.splitlines()
        assert heading == (
            "Deployment/web: windows in Europe/Berlin, which set Deployment/web: spec.replicas"
        )
        assert titles.split() == ["from", "(Europe/Berlin)", "UTC", "what", "sets"]
        assert [" ".join(row.split()) for row in rows[:3]] == [
            "Fri 2026-03-27 18:00:00 CET +01:00 2026-03-27T17:00:00Z no window (now) 2, as before",
            "Mon 2026-03-30 08:00:00 CEST +02:00 2026-03-30T06:00:00Z window 10",
            "Mon 2026-03-30 18:00:00 CEST +02:00 2026-03-30T16:00:00Z no window 2, as before",
        ]
        assert len(rows) == 10

    def test_on_eighty_columns_no_time_is_broken(self, cluster, typed, monkeypatch):
        cluster.put(workload("Deployment", OFFICE))
        monkeypatch.setenv("COLUMNS", "80")
        out = typed("deployment/web", "--count", "1")[1]

        assert "Fri 2026-03-27 18:00:00 CET +01:00  no window (now)  2, as before" in out

    def test_who_holds_the_field_is_told(self, cluster, typed):
        cluster.put(workload("StatefulSet", OFFICE, 3, helm="Apply"))

        assert "spec.replicas is 3, held by helm: another number" in typed("statefulset/web")[1]

    def test_a_window_that_never_comes_is_told(self, cluster, typed):
        notes = OFFICE | {"scale-out": "0 0 31 2 *", "scale-in-replicas": "4"}
        cluster.put(workload("Deployment", notes))
        out = typed("deployment/web")[1]

        assert "no window (now)  4" in out
        assert out.endswith("Nothing changes after that.\n")


class TestJson:
    def test_it_has_the_recorded_number_and_the_autoscalers_field(self, cluster, typed):
        cluster.put(workload("Deployment", OFFICE))
        cluster.put(autoscaler("a"))
        cluster.put(autoscaler("b", "StatefulSet"))
        found = json.loads(typed("deployment/web", "-o", "json", "--count", "3")[1])[0]

        assert found["sets"] == {"object": "HorizontalPodAutoscaler/a", "field": "spec.minReplicas"}
        assert [(one["inForce"], one["replicas"], one["former"]) for one in found["phases"]] == [
            (False, 3, True), (True, 10, False), (False, 3, True)
        ]  # fmt: skip

    def test_in_a_window_the_former_number_is_that_of_the_record(self, cluster, typed):
        notes = OFFICE | {BEFORE: '{"replicas":5,"takenFrom":"helm"}'}
        held = {"hedgerow-scaler": "Apply"}
        cluster.put(workload("Deployment", notes, 10, **held))
        found = json.loads(typed("deployment/web", "-o", "json")[1])[0]

        assert (found["phases"][0]["replicas"], found["heldBy"]) == (5, [])


class TestRefused:
    @pytest.mark.parametrize(
        ("words", "code", "why"),
        [
            (("deployment", "web", "more"), 2, "the schedule came as 3 words"),
            (("deployment/",), 2, "is no KIND/NAME"),
            (
                ("service/web",),
                2,
                "cronjob/NAME has one, deployment/NAME and statefulset/NAME may have windows",
            ),
            (("statefulset/web",), 1, "does not exist in namespace shop"),
        ],
    )
    def test_it_says_what_is_wrong(self, cluster, typed, words, code, why):
        cluster.put(workload("Deployment", OFFICE))
        ended, out, err = typed(*words)

        assert (ended, out) == (code, "")
        assert why in " ".join(err.split())

    @pytest.mark.parametrize(
        ("notes", "why"),
        [({}, "has none of the annotations"), ({"scale-in": "0 99 * * *"}, "99 is above 23")],
    )
    def test_an_object_without_windows_has_none_to_show(self, cluster, typed, notes, why):
        cluster.put(workload("Deployment", notes))
        ended, out, err = typed("deployment/web")

        assert (ended, out) == (1, "")
        assert why in err

    def test_nor_has_one_with_several_autoscalers(self, cluster, typed):
        cluster.put(workload("Deployment", OFFICE))
        cluster.put(autoscaler("a"))
        cluster.put(autoscaler("b"))

        assert "hedgerow scales nothing until only one does" in typed("deployment/web")[2]
