"""Forecast: the worst that is to be told, what is yielded, and what a rollout would bring."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from hedgerow.contract import Create, Desired, Keep
from hedgerow.kube.errors import Invalid, from_status
from hedgerow.plan.conditions import condition
from hedgerow.plan.yield_and_claim import YIELD, field_policy_of
from hedgerow.workloads import waits_for
from hedgerow_schemas.base import ContestedField
from hedgerow_schemas.builtin import Deployment
from hedgerow_tools.fields.forecast import (
    Forecast,
    ObjectForecast,
    Planned,
    WriteRefusal,
    details,
    facts,
    further,
    judged,
    rolled_out,
    worst,
    yielded,
)
from hedgerow_tools.fields.identity import named
from hedgerow_tools.fields.selection import Dispute
from plan.made import entry, live
from plan.one_child import CHILD, DATA, OWNER, WANT, plan_input

NOTHING = Forecast(**named(OWNER), field_manager="hedgerow-bluegreen")
SAME, CONFIGURED = (
    ObjectForecast(**named(OWNER), action=action) for action in ("unchanged", "configured")
)
CHANGED = structs.replace(NOTHING, objects=(CONFIGURED,))
HELD = Dispute(ContestedField(object="a", path=".b", manager="c"))
CONTESTED = structs.replace(CHANGED, contested=(HELD,))
TAKEN, STALLED = (
    structs.replace(NOTHING, conditions=Planned((), (condition("Stalled", True, reason),)))
    for reason in ("NameTaken", "InvalidSpec")
)
REFUSED = structs.replace(CONTESTED, refusals=(WriteRefusal("a", ("no",)),))


class TestVerdict:
    @pytest.mark.parametrize(
        ("forecast", "verdict"),
        [
            (NOTHING, "nothing"),
            (structs.replace(NOTHING, objects=(SAME,)), "nothing"),
            (CHANGED, "changes"),
            (CONTESTED, "conflicts"),
            (TAKEN, "conflicts"),
            (STALLED, "failed"),
            (REFUSED, "failed"),
        ],
    )
    def test_it_is_the_worst_of_what_there_is(self, forecast, verdict):
        assert judged(forecast).verdict == verdict

    def test_of_several_forecasts_the_worst_counts(self):
        assert worst([]) == "nothing"
        assert worst(map(judged, [NOTHING, CHANGED])) == "changes"
        assert worst(map(judged, [CONTESTED, CHANGED])) == "conflicts"
        assert worst(map(judged, [CONTESTED, STALLED, CHANGED])) == "failed"


class TestYielded:
    def told(self, desired: Desired) -> list[tuple[str, str, str]]:
        theirs = {**WANT, "data": {**DATA, "a": "theirs"}}
        there = live(theirs, entry({**WANT, "data": {"a": "theirs"}}, "other"))
        made = structs.replace(
            plan_input(there),
            field_policy=field_policy_of({YIELD: "ConfigMap/*: data.a"}),
        )
        return [(h.object, h.path, h.manager) for h in yielded(made, desired)]

    def test_it_is_what_others_hold_and_the_resource_leaves_to_them(self):
        assert self.told(Desired(children=(CHILD,))) == [("ConfigMap/settings", ".data.a", "other")]

    def test_what_is_kept_or_missing_yields_nothing(self):
        once = Create(CHILD.kind, CHILD.name, CHILD.fields)
        other = replace(CHILD, name="missing")

        assert self.told(Desired(children=(Keep(CHILD.kind, CHILD.name), once, other))) == []


class TestStatus:
    def test_what_every_status_has_is_told_elsewhere(self):
        every = {"conditions": [], "contested": [], "contestedCount": 1, "observedGeneration": 2}

        assert further({"status": {**every, "phase": "Held"}}) == {"phase": "Held"}
        assert further(None) == {}

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ("Held", {"a": "Held"}),
            (3, {"a": "3"}),
            (["one", "two"], {"a": "one; two"}),
            (
                {"steps": ["one", "two"], "to": "Green", "more": {"b": ["c"]}},
                {"a.steps": "one; two"},
            ),
            ([], {}),
            ([{"name": "b"}], {}),
            (None, {}),
        ],
    )
    def test_single_values_and_lists_of_texts_are_told_in_a_line(self, value, told):
        assert dict(facts({"a": value})) == told


class TestRolledOut:
    @pytest.mark.parametrize("spec", [{}, {"replicas": 3}])
    def test_it_waits_for_nothing(self, spec):
        obj = {"metadata": {"name": "x", "generation": 4}, "spec": spec}

        assert waits_for(Deployment(obj)) != ""
        assert waits_for(Deployment(rolled_out(obj))) in ("", "it is scaled to zero")
        assert rolled_out(obj)["status"]["replicas"] == spec.get("replicas", 1)


class TestDetails:
    def test_each_cause_is_there_once_uncut_and_in_order(self):
        causes = [
            {"field": "spec.b", "message": "b" * 900},
            {"field": "<nil>", "message": "some rules were not checked"},
            {"field": "spec.a", "message": "no"},
            {"field": "spec.a", "message": "no"},
        ]
        error = from_status({"code": 422, "message": "x", "details": {"causes": causes}})

        assert details(error) == (
            "some rules were not checked",
            "spec.a: no",
            f"spec.b: {'b' * 900}",
        )

    def test_without_causes_it_is_the_whole_message(self):
        assert details(from_status({"code": 400, "message": "x" * 900})) == ("x" * 900,)
        assert details(Invalid("no")) == ("no",)
