"""What promotes a switch or rolls it back, and how it ended: the table of what a status says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.switch.decision import (
    Setting,
    is_observed,
    outcome,
    progress,
    promotion,
    rollback,
)

Object = dict[str, Any]
T, OTHER = "00aa11bb22", "ffffffffff"
PODS: Object = {"containers": []}
TO_GREEN: Object = {"from": "Blue", "to": "Green", "template": T}


def live(spec: Object | None = None, **status: Any) -> Object:
    full = {"routeTo": "Green", "blueSpec": PODS, "greenSpec": PODS, **(spec or {})}
    return {
        "kind": "BlueGreen",
        "metadata": {"name": "demo", "generation": 2},
        "spec": {key: value for key, value in full.items() if value is not None},
        "status": {"observedGeneration": 2, **status},
    }


def condition(kind: str, status: str, message: str = "") -> Object:
    return {"type": kind, "status": status, "message": message}


@dataclass(frozen=True)
class Case:
    """A BlueGreen, and what is to be set, or why nothing is."""

    reason: str
    spec: Object
    status: Object
    value: str = ""
    told: str = ""
    notes: tuple[str, ...] = field(default=())


HOLD = {"hold": True}
PROMOTIONS = [
    Case("it is held", HOLD, {"phase": "Held", "switch": TO_GREEN}, T,
         notes=("Green may be routed with this template",)),
    Case("held although another one is promoted", {**HOLD, "promoted": OTHER},
         {"phase": "Held", "switch": TO_GREEN}, T),
    Case("it goes on", {**HOLD, "promoted": T}, {"phase": "Overlapping", "switch": TO_GREEN}, T),
    Case("promoted before it is held", {**HOLD, "promoted": T},
         {"phase": "Checking", "switch": TO_GREEN}, T),
    Case("it has ended", {**HOLD, "promoted": T},
         {"phase": "Routed", "routed": {"phase": "Green", "template": T}}, T),
    Case("another one is routed", {**HOLD, "promoted": T},
         {"phase": "Routed", "routed": {"phase": "Green", "template": OTHER}},
         told="no switch waits for a promotion"),
    Case("nothing is under way", HOLD, {"phase": "Routed"}, told="no switch waits for a promotion"),
    Case("no status yet", HOLD, {}, told="no switch waits for a promotion"),
    Case("nothing is held", {}, {"phase": "Checking", "switch": TO_GREEN},
         told="BlueGreen/demo holds nothing back: spec.hold is not true"),
    Case("its checks run", HOLD,
         {"phase": "Checking", "switch": TO_GREEN,
          "conditions": [condition("Ready", "False", "check a runs\x1b[31m")]},
         told="is not held yet, it is Checking: check a runs\\u001b[31m; promote it once"),
    Case("a phase without a template", HOLD, {"phase": "Held"}, told="is not held yet, it is Held"),
    Case("a status of odd types", HOLD,
         {"phase": 3, "switch": [], "routed": "x", "conditions": {"type": "Ready"}},
         told="no switch waits for a promotion"),
]  # fmt: skip
GUARDS = {**HOLD, "promotion": "WhenChecked"}
PREVIOUS = {"phase": "Routed", "routeTo": "Green", "previous": {"phase": "Blue", "template": T}}
AT_ONCE = "Blue was routed before"
DELAY = "it waits for spec.checks and spec.hold only if its pods have changed since then"
ROLLBACKS = [
    Case("nothing was recorded", {}, {"routeTo": "Green"}, "Blue"),
    Case("a switch is under way", {}, {"phase": "Overlapping", "routeTo": "Blue",
                                       "switch": TO_GREEN}, "Blue",
         notes=("Blue still gets traffic",)),
    Case("it was rolled back by itself", GUARDS, {"phase": "RolledBack", "routeTo": "Blue"}, "Blue",
         notes=("Blue still gets traffic",)),
    Case("it was routed before", {}, PREVIOUS, "Blue", notes=(AT_ONCE,)),
    Case("it was routed before, and is guarded", GUARDS, PREVIOUS, "Blue",
         notes=(AT_ONCE, DELAY)),
    Case("from Blue to Green", {**HOLD, "routeTo": "Blue"}, {"routeTo": "Blue"}, "Green",
         notes=("Green is not recorded as routed before, so it may wait for spec.hold",)),
    Case("the other colour has no pods", {"blueSpec": None}, {"routeTo": "Green"},
         told="BlueGreen/demo has no other colour to go back to: no blueSpec"),
    Case("no colour at all", {"routeTo": "Red"}, {}, told="has no other colour to go back to"),
]  # fmt: skip


class TestDecision:
    @pytest.mark.parametrize("case", PROMOTIONS, ids=lambda case: case.reason)
    def test_a_promotion_names_the_template_that_is_held(self, case):
        self.check(promotion, "promoted", case)

    @pytest.mark.parametrize("case", ROLLBACKS, ids=lambda case: case.reason)
    def test_a_rollback_goes_to_the_other_colour(self, case):
        self.check(rollback, "routeTo", case)

    def check(self, decide: Any, name: str, case: Case) -> None:
        found = live(case.spec, **case.status)
        if case.told:
            with pytest.raises(MoveRefused) as refused:
                decide(found)
            assert case.told in str(refused.value)
            return
        setting = decide(found)
        assert (setting.field, setting.value) == (name, case.value)
        assert setting.is_set(found) is (case.spec.get(name) == case.value)
        if case.notes or name == "routeTo":
            assert setting.notes == case.notes


class TestObserved:
    @pytest.mark.parametrize(("generation", "seen"), [(1, False), (2, True), (None, False)])
    def test_a_status_counts_only_for_the_present_spec(self, generation, seen):
        assert is_observed(live(observedGeneration=generation)) is seen


BACK = Setting("routeTo", "Green")
READY, WAITING = condition("Ready", "True", "fine"), condition("Ready", "False", "pod x: crash")
STALLED = condition("Stalled", "True")


@dataclass(frozen=True)
class End:
    """What a status says after the field was set, and whether that is the end."""

    reason: str
    status: Object
    done: bool | None
    words: str = ""


ENDS = [
    End("routed", {"phase": "Routed", "routeTo": "Green"}, True, "Green is routed"),
    End("without phases", {"routeTo": "Green", "conditions": [READY]}, True, "Green is routed"),
    End("routed, and its rollout does not end",
        {"phase": "Routed", "routeTo": "Green", "conditions": [STALLED, WAITING]}, True,
        "Green is routed"),
    End("not ready", {"routeTo": "Green", "conditions": [WAITING]}, None),
    End("not routed", {"routeTo": "Blue", "conditions": [READY]}, None),
    End("the other one is routed", {"phase": "Routed", "routeTo": "Blue"}, None),
    End("on its way", {"phase": "Overlapping", "routeTo": "Blue"}, None),
    End("an old status", {"observedGeneration": 1, "phase": "Routed", "routeTo": "Green"}, None),
    End("stalled", {"conditions": [STALLED, WAITING]}, False, "Stalled: pod x: crash"),
    *(
        End(phase, {"phase": phase, "conditions": [WAITING]}, False, f"{phase}: pod x: crash")
        for phase in ("CheckFailed", "RolledBack", "Held")
    ),
]  # fmt: skip


class TestOutcome:
    @pytest.mark.parametrize("case", ENDS, ids=lambda case: case.reason)
    def test_it_ends_where_waiting_longer_changes_nothing(self, case):
        ended = outcome(live(**case.status), BACK)

        assert (ended and (ended.done, ended.words)) == (
            None if case.done is None else (case.done, case.words)
        )

    def test_a_change_by_somebody_else_ends_it(self):
        ended = outcome(live({"routeTo": "Blue"}, observedGeneration=1), BACK)

        assert ended
        assert (ended.done, ended.words) == (
            False,
            "somebody else has changed .spec.routeTo meanwhile",
        )

    def test_progress_is_the_phase_and_what_it_waits_for(self):
        assert progress(live(phase="Baking", conditions=[WAITING])) == "Baking: pod x: crash"
        assert progress(live(conditions=[WAITING])) == "pod x: crash"
        assert progress(live(phase="Baking")) == "Baking"
