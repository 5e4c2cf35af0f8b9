"""What a resource's status is to say, and whether it says so already."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from hedgerow.fields import ownership
from hedgerow.objects import ChildId, Installation, ObjectRef
from hedgerow.plan.children import Plan
from hedgerow.plan.conditions import Problem, ready
from hedgerow.plan.input import PlanInput
from hedgerow.plan.ledger import LedgerEntry
from hedgerow.plan.status import StatusReport, read_resource, said
from hedgerow.plan.status import report as made_report
from hedgerow_schemas.base import ContestedField, Status
from hedgerow_schemas.bluegreen import BlueGreen, BlueGreenStatus
from plan.made import entry, without

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, 0, 0, 500, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OWNER = ObjectRef(BlueGreen.api, "ns", "demo", "owner-uid")
COMPOSED = BlueGreenStatus(route_to="Blue", conditions=(ready(True, "Serving", "Blue serves"),))
FIELD = ContestedField(object="Service/demo", path=".spec.selector", manager="kubectl", since=NOW)


def plan_input(now: datetime = NOW) -> PlanInput:
    return PlanInput(OWNER, "bluegreen", Installation(), now, {})


def resource(status: Object | None = None, *entries: Object, generation: int = 4) -> Object:
    return {
        "apiVersion": BlueGreen.api.group_version,
        "kind": "BlueGreen",
        "metadata": {
            "name": "demo",
            "namespace": "ns",
            "uid": "owner-uid",
            "generation": generation,
            "resourceVersion": "7",
            "managedFields": list(entries),
        },
        **({"status": status} if status else {}),
    }


def applied(body: Object, *others: Object, ours: Object | None = None, **status: Any) -> Object:
    """Return the resource after a status body was applied, with what others wrote over it."""
    mine = ours or entry(body, subresource="status")
    return resource({**body["status"], **status}, mine, *others)


def fresh(**how: Any) -> StatusReport:
    return report(
        plan_input(), resource(), COMPOSED, how.get("contested", ()), how.get("problems", ())
    )


def report(given: PlanInput, live: Object, *found: Any, **how: Any) -> StatusReport:
    """Return the report of a resource that says what its live status says."""
    composed, contested, *problems = found
    plan = Plan(contested=tuple(contested))
    return made_report(replace(given, before=said(live)), live, composed, plan, *problems, **how)


def body_of(made: StatusReport) -> Object:
    assert made.write is not None
    return made.write.body


class TestRead:
    HELD: ClassVar = {"object": "Service/demo", "path": ".spec.selector", "manager": "kubectl"}

    @pytest.mark.parametrize("conditions", ["none", [{"type": "Ready"}], {}])
    def test_what_cannot_be_read_of_a_status_is_left_out(self, conditions):
        live = resource({"conditions": conditions, "contested": [self.HELD], "routeTo": "Blue"})
        found = said(live)

        assert (found.conditions, [f.wire() for f in found.contested]) == ((), [self.HELD])
        pods = {"containers": [{"name": "a", "image": "a:1"}]}
        live["spec"] = {"routeTo": "Blue", "blueSpec": pods, "greenSpec": pods}
        assert read_resource(BlueGreen, live).status.route_to == "Blue"

    def test_one_condition_or_contested_field_is_left_out_of_several(self):
        condition = {"type": "Ready", "status": "True", "reason": "Serving", "message": "m"}
        condition["lastTransitionTime"] = "2026-01-01T12:00:00Z"
        live = resource(
            {
                "conditions": [{"type": "Progressing"}, condition],
                "contested": [self.HELD, {**self.HELD, "since": "yesterday"}],
            }
        )
        found = said(live)

        assert [c.wire() for c in found.conditions] == [condition]
        assert [f.wire() for f in found.contested] == [self.HELD]

    @pytest.mark.parametrize("status", ["Ready", ["Ready"], None])
    def test_a_status_that_is_no_map_says_nothing(self, status):
        assert said({**resource(), "status": status}) == Status()

    def test_a_spec_that_cannot_be_read_is_refused(self):
        with pytest.raises(ValidationError, match="routeTo"):
            read_resource(BlueGreen, resource({"conditions": "none"}) | {"spec": {"routeTo": 1}})


class TestReport:
    def test_a_status_is_applied_to_this_version_with_nothing_of_the_spec(self):
        body = body_of(fresh())

        meta = {"name": "demo", "namespace": "ns", "uid": "owner-uid", "resourceVersion": "7"}
        assert body["metadata"] == meta
        assert body.keys() == {"apiVersion", "kind", "metadata", "status"}

    def test_it_says_what_was_composed_of_which_generation_and_since_when(self):
        assert body_of(fresh())["status"] == {
            "observedGeneration": 4,
            "routeTo": "Blue",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "Serving",
                    "message": "Blue serves",
                    "lastTransitionTime": "2026-01-01T12:00:00Z",
                    "observedGeneration": 4,
                }
            ],
        }

    def test_empty_lists_are_never_sent(self):
        assert "contested" not in body_of(fresh())["status"]

    def test_what_is_contested_is_listed_with_its_holder(self):
        made = fresh(contested=(FIELD,))

        assert made.contested == (FIELD,)
        assert body_of(made)["status"]["contested"] == [
            {
                "object": "Service/demo",
                "path": ".spec.selector",
                "manager": "kubectl",
                "since": "2026-01-01T12:00:00Z",
            }
        ]

    def test_problems_end_in_the_conditions(self):
        conditions = body_of(fresh(problems=(Problem("Rejected", "no"),)))["status"]["conditions"]

        assert [(c["type"], c["status"]) for c in conditions] == [
            ("Ready", "False"),
            ("Stalled", "True"),
        ]

    def test_a_controller_without_a_status_still_says_ready(self):
        body = body_of(report(plan_input(), resource(), Status(), (), ()))

        assert [c["type"] for c in body["status"]["conditions"]] == ["Ready"]

    def test_one_field_of_an_object_is_listed_once_whoever_holds_it(self):
        # The server refuses two items of one list-map key.
        twice = FIELD.model_copy(update={"manager": "other"})

        assert len(body_of(fresh(contested=(FIELD, twice)))["status"]["contested"]) == 1


class TestAdmitted:
    """What admission made of children, for the next start."""

    def said(self, *children: ChildId) -> list[Object]:
        plan = Plan(judged={child: LedgerEntry(admitted="d") for child in children})
        found = made_report(plan_input(), resource(), Status(), plan, ())
        return body_of(found)["status"].get("admitted", [])

    def test_it_is_listed_by_object_and_nothing_of_a_secret(self):
        children = (ChildId("Service", "b"), ChildId("Secret", "s"), ChildId("Job", "a"))

        assert self.said(*children) == [
            {"object": "Job/a", "digest": "d"},
            {"object": "Service/b", "digest": "d"},
        ]

    def test_fifty_are_listed(self):
        assert len(self.said(*(ChildId("Job", f"{n}") for n in range(60)))) == 50

    def test_it_stays_while_it_is_not_known_what_is_declared(self):
        live = resource({"admitted": [{"object": "Job/a", "digest": "d"}]})

        body = body_of(report(plan_input(), live, COMPOSED, (), ()))

        assert body["status"]["admitted"] == [{"object": "Job/a", "digest": "d"}]


class TestSettled:
    def test_a_status_that_says_it_all_already_is_not_sent(self):
        live = applied(body_of(fresh()))

        found = report(plan_input(LATER), live, COMPOSED, (), ())
        assert (found.write, found.contested, found.is_news) == (None, (), False)

    def test_a_contested_status_that_says_it_all_is_not_sent(self):
        live = applied(body_of(fresh(contested=(FIELD,))))

        assert report(plan_input(LATER), live, COMPOSED, (FIELD,), ()).write is None

    def test_what_is_contested_no_longer_is_taken_off(self):
        live = applied(body_of(fresh(contested=(FIELD,))))

        body = body_of(report(plan_input(LATER), live, COMPOSED, (), ()))

        assert "contested" not in body["status"]

    def test_another_generation_is_told(self):
        live = applied(body_of(fresh()))
        live["metadata"]["generation"] = 5

        assert (
            body_of(report(plan_input(), live, COMPOSED, (), ()))["status"]["observedGeneration"]
            == 5
        )


class TestOwnStatusContested:
    """Somebody else writes the status: reported like any other field, never overwritten."""

    @staticmethod
    def world(*, path: tuple[str, ...], **status: Any) -> Object:
        body = body_of(fresh())
        mine = without(entry(body, subresource="status"), *path)
        theirs = {"apiVersion": body["apiVersion"], "status": status}
        other = entry(theirs, "meddler", "Update", subresource="status")
        return applied(body, other, ours=mine, **status)

    def test_the_field_is_reported_and_left_out_and_the_rest_is_sent(self):
        live = self.world(path=("f:status", "f:routeTo"), routeTo="Green")

        made = report(plan_input(LATER), live, COMPOSED, (), ())

        assert [(f.object, f.path, f.manager) for f in made.contested] == [
            ("BlueGreen/demo", ".status.routeTo", "meddler")
        ]
        assert "routeTo" not in body_of(made)["status"]
        assert body_of(made)["status"]["contested"][0]["path"] == ".status.routeTo"
        conditions = {c["type"]: c["status"] for c in body_of(made)["status"]["conditions"]}
        assert conditions == {"Ready": "False", "Contested": "True"}

    def test_once_reported_nothing_more_is_sent(self):
        live = self.world(path=("f:status", "f:routeTo"), routeTo="Green")
        first = report(plan_input(LATER), live, COMPOSED, (), ())
        status = {**body_of(first)["status"], "routeTo": "Green"}
        mine = entry(body_of(first), subresource="status")
        other = live["metadata"]["managedFields"][1]
        told = resource(status, mine, other)

        again = report(plan_input(LATER), told, COMPOSED, (), ())

        assert (again.write, again.is_news) == (None, False)
        assert again.contested == again.listed == first.contested

    def test_a_field_that_only_the_report_itself_meets_is_left_out(self):
        # Somebody holds the condition's reason with the value that we used to say; saying that
        # routeTo is contested means saying another reason.
        body = body_of(fresh())
        mine = without(entry(body, subresource="status"), "f:status", "f:routeTo")
        key = {"type": "Ready", "reason": "Serving"}
        theirs = {
            "apiVersion": body["apiVersion"],
            "status": {"routeTo": "Green", "conditions": [key]},
        }
        other = entry(theirs, "meddler", subresource="status")
        live = applied(body, other, ours=mine, routeTo="Green")

        made = report(plan_input(LATER), live, COMPOSED, (), ())

        assert [f.path for f in made.contested] == [".status.routeTo"]
        ready_, _ = body_of(made)["status"]["conditions"]
        assert "reason" not in ready_

    def test_who_holds_the_list_of_what_he_holds_is_left_out_at_once(self, monkeypatch):
        live = self.world(path=("f:status", "f:routeTo"), routeTo="Green")
        (item,) = body_of(report(plan_input(), live, COMPOSED, (), ()))["status"]["contested"]
        held = [{k: item[k] for k in ("object", "path")} | {"reason": "his"}]
        live = self.world(path=("f:status", "f:routeTo"), routeTo="Green", contested=held)
        rounds = Mock(wraps=ownership.judge)
        monkeypatch.setattr(ownership, "judge", rounds)

        made = report(plan_input(LATER), live, COMPOSED, (), ())

        told = body_of(made)["status"]
        assert [f.path for f in made.contested] == [".status.routeTo"]
        assert ["reason" in one for one in told["contested"]] == [False]
        assert rounds.call_count == 3

    def test_a_status_wholly_held_by_another_leaves_only_the_identity_to_declare(self):
        other = {"observedGeneration": 0, "routeTo": "Green"}
        theirs = {"apiVersion": BlueGreen.api.group_version, "status": other}
        bare = Status(observed_generation=4)
        live = resource(other, entry(theirs, "meddler", subresource="status"))

        made = report(plan_input(), live, bare, (), ())

        assert "observedGeneration" not in body_of(made)["status"]
        assert "routeTo" not in body_of(made)["status"]

    def test_a_condition_of_another_status_is_reported_without_its_time(self):
        # Our time of it would be that of each look, since the status is never as we say.
        theirs = {"status": "Unknown", "lastTransitionTime": "2020-01-01T00:00:00Z"}
        body = body_of(fresh())
        item = {**body["status"]["conditions"][0], **theirs}
        element = 'k:{"type": "Ready"}'
        mine = entry(body, subresource="status")
        for name in theirs:
            mine = without(mine, "f:status", "f:conditions", element, f"f:{name}")
        held = {
            "apiVersion": body["apiVersion"],
            "status": {"conditions": [{"type": "Ready", **theirs}]},
        }
        live = applied(
            body, entry(held, "meddler", subresource="status"), ours=mine, conditions=[item]
        )

        first, later = (report(plan_input(at), live, COMPOSED, (), ()) for at in (NOW, LATER))

        assert [field.path for field in first.contested] == [
            '.status.conditions[type="Ready"].status'
        ]
        assert body_of(first)["status"]["contested"] == body_of(later)["status"]["contested"]


class TestPlanInput:
    @pytest.mark.parametrize("instance", ["", "two"])
    def test_the_instance_is_part_of_the_field_manager(self, instance):
        made = PlanInput(OWNER, "bluegreen", Installation(instance), NOW, {})

        assert made.field_manager == "-".join(filter(None, ["hedgerow", instance, "bluegreen"]))
