"""The scaler on the cluster in memory: contest, claim, and giving back, across its windows."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from hedgerow.contract import Controller, Desired
from hedgerow.controllers.scaler.controller import CONTROLLER
from hedgerow.controllers.scaler.record import SOMEBODY, FormerValue
from hedgerow.controllers.scaler.windows import (
    BEFORE,
    HOLDS,
    IN_REPLICAS,
    OUT_REPLICAS,
    SCALE_IN,
    SCALE_OUT,
)
from hedgerow.fields import managed_fields
from hedgerow.kube.errors import Forbidden
from hedgerow.plan.status_annotation import STATUS_ANNOTATION
from hedgerow.testing.memory import kinds
from hedgerow.testing.memory.cluster import MemoryCluster
from hedgerow_schemas.base import Object
from model import scaled
from runtime.scenes import refuse
from runtime.world import Crash, ModelClock, World, crash

pytestmark = pytest.mark.anyio

MANAGER = "hedgerow-scaler"
HPA = "HorizontalPodAutoscaler"
WINDOWS = {SCALE_OUT: "0 8 * * *", SCALE_IN: "0 18 * * *", OUT_REPLICAS: "10"}
LABELS = {"app": "web"}
SPEC: Object = {
    "selector": {"matchLabels": LABELS},
    "template": {
        "metadata": {"labels": LABELS},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    },
}
CLAIM = {"hedgerow.dev/claim": "*/*: spec.replicas"}
CLAIM_LEAST = {"hedgerow.dev/claim": "HorizontalPodAutoscaler/web: spec.minReplicas"}


class Scene(World):
    """A world with the scaler, at midnight; `go` lets the hours pass."""

    def __init__(self, controller: Controller[Any] = CONTROLLER[0], beside: Scene | None = None):
        super().__init__(controller=controller)
        if beside is not None:
            self.server = beside.server
            self.cluster, self.clock = MemoryCluster(self.server), ModelClock(self.server)
            self.restart()
        else:
            self.server.now = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())

    async def go(self, day: int, hour: int) -> None:
        """Let everything happen until this hour in March; the operator runs meanwhile."""
        self.server.now = int(datetime(2026, 3, day, hour, tzinfo=UTC).timestamp())
        for _ in range(3):
            self.deliver()
            await self.work()
        assert self.failures == []

    def object(self, kind: str, **annotations: str) -> Object:
        found = self.target(kind, "web")
        if annotations:
            found["metadata"]["annotations"] = annotations
        return found

    def deploy(
        self, notes: dict[str, str] = WINDOWS, kind: str = "Deployment", **spec: Any
    ) -> None:
        self.server.apply({**self.object(kind, **notes), "spec": {**SPEC, **spec}}, "helm")

    def autoscale(self, kind: str = "Deployment", **spec: Any) -> None:
        target = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
        body = {"scaleTargetRef": target, "maxReplicas": 20, **spec}
        self.server.apply({**self.object(HPA), "spec": body}, "helm")

    def live(self, kind: str = "Deployment") -> Object:
        found = self.server.get(self.object(kind))
        assert found is not None
        return found

    def value(self, kind: str = "Deployment") -> int:
        return self.live(kind)["spec"]["minReplicas" if kind == HPA else "replicas"]

    def held(self, kind: str = "Deployment") -> set[str]:
        """The names of the fields and annotations that are held, without the status annotation."""
        tree: Object = managed_fields.entry(self.live(kind), MANAGER) or {}
        notes: Object = tree.get("f:metadata", {}).get("f:annotations", {})
        both = {*tree.get("f:spec", {}), *notes}
        return {name[2:] for name in both} - {STATUS_ANNOTATION}

    def record(self, kind: str = "Deployment") -> FormerValue | None:
        text = self.live(kind)["metadata"].get("annotations", {}).get(BEFORE)
        return FormerValue.model_validate_json(text) if text else None

    def told(self) -> Object:
        notes: Object = self.live()["metadata"].get("annotations", {})
        return json.loads(notes.get(STATUS_ANNOTATION, "{}"))

    def contested(self, name: str = "web") -> list[tuple[str, str, str | None]]:
        found = self.told().get("contested", [])
        return [(one["object"], one["path"], one.get("manager")) for one in found]

    def annotate(self, kind: str = "Deployment", **patch: str | None) -> None:
        target = self.object(kind)
        self.server.merge(target, {"metadata": {"annotations": patch}}, "kubectl-annotate")

    def events(self) -> list[str]:
        return sorted(super().events())

    @property
    def forced(self) -> list[str]:
        return [str(sent) for sent in self.cluster.writes if sent.force]


@pytest.fixture(autouse=True)
def more_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    more = (scaled.STATEFUL_SET, scaled.HORIZONTAL_POD_AUTOSCALER)
    monkeypatch.setattr(kinds, "BUILTIN", (*kinds.BUILTIN, *more))


class TestFree:
    """Nobody else holds the field."""

    async def test_it_is_held_in_the_window_and_given_back_after_it(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 7)
        assert (scene.value(), scene.held(), scene.writes) == (1, set(), [])

        await scene.go(2, 8)
        assert (scene.value(), scene.held()) == (10, {"replicas", BEFORE})
        assert scene.record() == FormerValue(replicas=1)

        await scene.go(2, 18)
        assert (scene.value(), scene.held()) == (1, set())
        assert len(scene.writes) == 2
        assert scene.forced == []

    async def test_the_timer_alone_begins_and_ends_it(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 7)
        for hour, value in ((9, 10), (19, 1), (20, 1)):
            scene.server.now = int(datetime(2026, 3, 2, hour, tzinfo=UTC).timestamp())
            await scene.work()
            assert scene.value() == value

    async def test_outside_of_windows_it_has_the_number_for_that(self):
        scene = Scene()
        scene.deploy(WINDOWS | {IN_REPLICAS: "2"})
        for day, hour, value in ((2, 7, 2), (2, 8, 10), (2, 18, 2), (3, 8, 10)):
            await scene.go(day, hour)
            assert scene.value() == value
        assert scene.record() == FormerValue(replicas=1)

    async def test_an_operator_that_was_down_does_what_is_due(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.restart()
        await scene.go(2, 19)
        assert scene.value() == 1
        scene.restart()
        await scene.go(5, 12)
        assert scene.value() == 10

    async def test_a_clock_that_was_set_back_changes_what_is_in_force(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.runner.queue.add_everyone()  # as the runner does when the clock jumps
        await scene.go(2, 6)

        assert (scene.value(), scene.held()) == (1, set())

    async def test_a_settled_window_gets_no_request_even_after_a_restart(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        before = len(scene.cluster.sent)
        scene.restart()
        for hour in (10, 12, 17):
            await scene.go(2, hour)

        assert scene.cluster.sent[before:] == []

    async def test_a_refused_annotation_brings_no_compose_that_fails_forward(self):
        """Nothing is declared then, so the write is not sent again, and nothing waits for it."""
        bug: list[Exception] = []

        def failing(resource: Any, observed: Any) -> Desired:
            for error in bug:
                raise error
            return CONTROLLER[0].compose(resource, observed)

        scene = Scene(dataclasses.replace(CONTROLLER[0], compose=failing))
        scene.deploy()
        await scene.go(2, 7)
        refused = refuse(scene, Forbidden("may not", code=403))
        await scene.go(2, 8)
        assert refused
        bug.append(LookupError())
        scene.runner.queue.add_everyone()
        waits: list[float] = []
        for _ in range(15):
            scene.server.now += int(max([1.0, *waits[-1:]])) + 1
            await scene.work()
            waits.append(min(scene.runner.queue._delays.at.values()) - scene.clock.monotonic())

        assert waits[-1] > 100

    async def test_annotations_may_change_in_the_middle_of_a_window(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.annotate(**{OUT_REPLICAS: "12"})
        await scene.go(2, 10)
        assert scene.value() == 12

        scene.annotate(**{SCALE_IN: "0 11 * * *"})
        await scene.go(2, 12)
        assert (scene.value(), scene.held()) == (1, set())

    async def test_annotations_that_go_in_the_middle_of_a_window_end_it(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.server.apply({**scene.object("Deployment"), "spec": SPEC}, "helm")
        await scene.go(2, 10)

        assert (scene.value(), scene.held()) == (1, set())
        assert scene.cache.resource_keys() == ()


class TestContested:
    """The author declares the field and claims nothing."""

    async def test_it_is_told_with_what_settles_it_and_not_touched(self):
        scene = Scene()
        scene.deploy(replicas=3)
        await scene.go(2, 9)

        assert (scene.value(), scene.held()) == (3, set())
        assert scene.contested() == [("Deployment/web", ".spec.replicas", "helm")]
        (event,) = scene.server.list("events.k8s.io", "Event").items
        assert (event["reason"], event["regarding"]["kind"]) == ("FieldConflict", "Deployment")
        assert "hedgerow.dev/claim=Deployment/web: spec.replicas" in event["note"]
        metric = scene.meters.contested.labels("scaler", "helm")
        assert metric._value.get() == 1

        await scene.go(2, 18)
        assert (scene.contested(), scene.told()) == ([], {})
        assert scene.forced == []

    async def test_it_is_taken_up_as_soon_as_it_is_let_go(self):
        scene = Scene()
        scene.deploy(replicas=3)
        await scene.go(2, 9)
        scene.deploy()
        await scene.go(2, 10)
        assert (scene.value(), scene.contested()) == (10, [])

        await scene.go(2, 18)
        assert scene.value() == 1

    async def test_one_that_is_lost_in_the_window_is_left(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.server.scale(scene.object("Deployment"), 4, "kubectl")
        await scene.go(2, 10)
        assert (scene.value(), scene.held()) == (4, set())
        assert scene.contested() == [("Deployment/web", ".spec.replicas", "kubectl")]

        await scene.go(2, 18)
        assert (scene.value(), scene.held()) == (4, set())

    async def test_what_was_scaled_to_nothing_stays_so(self):
        scene = Scene()
        scene.deploy()
        scene.server.scale(scene.object("Deployment"), 0, "kubectl")
        await scene.go(2, 9)

        assert scene.value() == 0
        assert scene.held() == set()
        assert scene.contested() == [("Deployment/web", ".spec.replicas", None)]

    async def test_a_number_that_nobody_was_recorded_for_comes_back(self):
        scene = Scene()
        scene.deploy()
        scene.server.scale(scene.object("Deployment"), 5, "kubectl")
        await scene.go(2, 9)
        assert (scene.value(), scene.record()) == (10, FormerValue(replicas=5))

        await scene.go(2, 18)
        assert (scene.value(), scene.held()) == (5, {"replicas", BEFORE})

    async def test_a_number_that_others_hold_too_is_held_with_them(self):
        scene = Scene()
        scene.deploy(replicas=10)
        await scene.go(2, 9)
        assert scene.held() == {"replicas", BEFORE}

        await scene.go(2, 18)
        assert (scene.value(), scene.held()) == (10, set())

    async def test_a_yielded_field_is_left_without_a_word(self):
        scene = Scene()
        scene.deploy(WINDOWS | {"hedgerow.dev/yield": "Deployment/web: spec.replicas"}, replicas=10)
        await scene.go(2, 9)

        assert (scene.held(), scene.told()) == (set(), {})


class TestScaledToNothing:
    """Somebody scales to 0 in a window; the API server records nobody for that."""

    async def scene(self, **more: str) -> Scene:
        scene = Scene()
        scene.deploy(WINDOWS | more)
        await scene.go(2, 9)
        assert scene.value() == 10
        scene.server.scale(scene.object("Deployment"), 0, "kubectl")
        return scene

    async def test_it_is_left_and_told_until_the_window_ends(self):
        scene = await self.scene()
        for hour in (10, 11, 17):
            await scene.go(2, hour)
            assert (scene.value(), scene.held()) == (0, {BEFORE})
            assert scene.record() == FormerValue(replicas=1)
        assert scene.contested() == [("Deployment/web", ".spec.replicas", None)]

        scene.restart()
        await scene.go(2, 17)
        assert (scene.value(), scene.record()) == (0, FormerValue(replicas=1))

        await scene.go(2, 18)
        assert (scene.value(), scene.held(), scene.told()) == (0, set(), {})

    async def test_an_operator_that_was_down_meanwhile_leaves_it_too(self):
        scene = await self.scene()
        scene.restart()
        await scene.go(2, 10)

        assert (scene.value(), scene.record()) == (0, FormerValue(replicas=1))

    async def test_a_transition_that_comes_before_it_was_seen_does_not_take_it(self):
        scene = await self.scene(**{IN_REPLICAS: "2"})
        await scene.go(2, 18)

        assert (scene.value(), scene.record()) == (0, FormerValue(replicas=1))

    @pytest.mark.parametrize(
        "edit", [{OUT_REPLICAS: "12"}, {SCALE_IN: "whenever"}], ids=["the number", "not readable"]
    )
    async def test_an_edit_of_the_annotations_does_not_take_it_or_what_is_recorded(self, edit):
        scene = await self.scene()
        await scene.go(2, 10)
        scene.annotate(**edit)
        await scene.go(2, 11)

        assert (scene.value(), scene.record()) == (0, FormerValue(replicas=1))

    async def test_scaled_up_again_it_is_held_and_gets_what_was_there_before_the_window(self):
        scene = await self.scene()
        await scene.go(2, 10)
        scene.server.scale(scene.object("Deployment"), 10, "kubectl")
        await scene.go(2, 11)
        assert (scene.held(), scene.record()) == ({"replicas", BEFORE}, FormerValue(replicas=1))

        await scene.go(2, 18)
        assert scene.value() == 1

    async def test_another_number_for_which_nobody_is_recorded_is_left_as_well(self):
        scene = await self.scene()
        await scene.go(2, 10)
        scene.server.scale(scene.object("Deployment"), 4, "kubectl")
        for hour in (11, 12):
            await scene.go(2, hour)
            assert (scene.value(), scene.record()) == (4, FormerValue(replicas=1))
        scene.restart()
        await scene.go(2, 13)
        assert (scene.value(), scene.record()) == (4, FormerValue(replicas=1))

        await scene.go(2, 18)
        assert (scene.value(), scene.held()) == (4, set())

    async def test_with_a_claim_it_is_taken_once_and_the_word_is_that_somebody_scaled_it(self):
        scene = await self.scene(**CLAIM)
        await scene.go(2, 10)
        taken = FormerValue(
            replicas=0, taken_from=SOMEBODY, taken_at=datetime(2026, 3, 2, 8, tzinfo=UTC)
        )
        assert (scene.value(), scene.record()) == (10, taken)
        assert "FormerValueLost" not in scene.events()

        scene.server.scale(scene.object("Deployment"), 0, "kubectl")
        for hour in (11, 17):
            await scene.go(2, hour)
            assert (scene.value(), scene.record()) == (0, taken)

    async def test_what_was_taken_by_a_claim_and_then_scaled_to_nothing_is_left(self):
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM, replicas=3)
        await scene.go(2, 9)
        record = scene.record()
        for number in (0, 4):
            scene.server.scale(scene.object("Deployment"), number, "kubectl")
            for hour in (10, 11):
                await scene.go(2, hour)
                assert (scene.value(), scene.record()) == (number, record)
        assert len(scene.forced) == 1


class TestClaimed:
    """The author declares the field, and writes that it may be taken."""

    async def scene(self, **more: str) -> Scene:
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM | more, replicas=3)
        await scene.go(2, 9)
        return scene

    async def test_it_is_taken_at_the_transition_with_an_event(self):
        scene = await self.scene()

        assert (scene.value(), scene.held()) == (10, {"replicas", BEFORE})
        taken_at = datetime(2026, 3, 2, 8, tzinfo=UTC)
        assert scene.record() == FormerValue(replicas=3, taken_from="helm", taken_at=taken_at)
        assert len(scene.forced) == 1
        assert "FieldClaimed" in scene.events()

    async def test_the_former_number_is_held_after_the_window(self):
        scene = await self.scene()
        await scene.go(2, 18)
        assert (scene.value(), scene.held()) == (3, {"replicas", BEFORE})

        await scene.go(3, 8)
        assert scene.value() == 10
        await scene.go(3, 18)
        assert scene.value() == 3
        assert len(scene.forced) == 1

    async def test_what_others_held_meanwhile_is_what_was_there_before(self):
        scene = await self.scene(**{IN_REPLICAS: "7"})

        def declare(**spec: Any) -> None:
            notes = WINDOWS | CLAIM | {IN_REPLICAS: "7"}
            body = {**scene.object("Deployment", **notes), "spec": SPEC | spec}
            scene.server.apply(body, "helm", force=True)

        declare(replicas=7)
        await scene.go(2, 10)
        await scene.go(2, 18)
        declare()
        await scene.go(2, 19)
        scene.annotate(**dict.fromkeys(WINDOWS | CLAIM | {IN_REPLICAS: ""}))
        await scene.go(2, 20)

        assert scene.value() == 7

    @pytest.mark.parametrize("number", [3, 5])
    async def test_it_is_held_until_somebody_else_takes_it(self, number):
        scene = await self.scene()
        await scene.go(2, 18)
        body = {
            **scene.object("Deployment", **WINDOWS, **CLAIM),
            "spec": SPEC | {"replicas": number},
        }
        scene.server.apply(body, "helm", force=True)
        await scene.go(2, 19)

        assert (scene.value(), scene.held()) == (number, set())
        await scene.go(3, 8)
        assert scene.value() == 10
        assert len(scene.forced) == 2

    async def test_one_that_is_lost_again_is_told_and_left_until_the_next_transition(self):
        scene = await self.scene()
        scene.server.scale(scene.object("Deployment"), 4, "kubectl")
        for hour in (10, 11, 17):
            await scene.go(2, hour)
        assert scene.value() == 4
        assert scene.contested() == [("Deployment/web", ".spec.replicas", "kubectl")]
        (why,) = [c for c in scene.told()["conditions"] if c["type"] == "AnnotationIgnored"]
        assert "taken in the transition of 2026-03-02T08:00:00Z and lost again" in why["message"]
        assert "left until 2026-03-02T18:00:00Z" in why["message"]

        scene.restart()
        await scene.go(2, 17)
        assert len(scene.forced) == 1

        await scene.go(2, 18)
        assert (scene.value(), scene.held(), scene.told()) == (4, set(), {})
        await scene.go(3, 8)
        assert scene.value() == 10
        assert len(scene.forced) == 2

    @pytest.mark.parametrize(
        ("name", "value", "before"),
        [
            (SCALE_IN, "whenever", WINDOWS[SCALE_IN]),
            ("hedgerow.dev/yield", "Deployment/web: spec.replicas", None),
        ],
        ids=["not readable", "yielded"],
    )
    async def test_an_edit_that_is_taken_back_does_not_let_it_be_taken_twice(
        self, name, value, before
    ):
        scene = await self.scene()
        record = scene.record()
        scene.server.scale(scene.object("Deployment"), 4, "kubectl")
        await scene.go(2, 10)
        scene.annotate(**{name: value})
        await scene.go(2, 11)
        assert (scene.held(), scene.record()) == ({BEFORE}, record)

        scene.annotate(**{name: before})
        await scene.go(2, 12)
        assert (scene.value(), scene.record(), len(scene.forced)) == (4, record, 1)

    async def test_outside_of_windows_it_is_taken_once_as_well(self):
        scene = await self.scene(**{IN_REPLICAS: "2"})
        scene.server.scale(scene.object("Deployment"), 4, "kubectl")
        await scene.go(2, 18)
        assert scene.value() == 2
        record = scene.record()
        assert record is not None
        assert (record.replicas, record.taken_from) == (4, "kubectl")

        scene.server.scale(scene.object("Deployment"), 5, "kubectl")
        await scene.go(2, 19)
        assert scene.value() == 5
        assert len(scene.forced) == 2

    async def test_a_claim_that_comes_late_is_carried_out_at_once(self):
        scene = Scene()
        scene.deploy(replicas=3)
        await scene.go(2, 9)
        scene.annotate(**CLAIM)
        await scene.go(2, 10)

        assert scene.value() == 10

    async def test_a_namespace_that_does_not_allow_claims_keeps_its_fields(self):
        scene = Scene()
        scene.claiming["default"] = False
        scene.deploy(WINDOWS | CLAIM, replicas=3)
        await scene.go(2, 9)
        assert (scene.value(), scene.held()) == (3, set())
        assert "ClaimRefused" in scene.events()

        scene.claiming["default"] = True
        scene.runner.queue.add_everyone()
        await scene.go(2, 10)
        assert scene.value() == 10

    async def test_annotations_that_go_give_the_former_number_back(self):
        scene = await self.scene()
        body = {**scene.object("Deployment"), "spec": SPEC}
        scene.server.apply(body, "helm")
        await scene.go(2, 10)
        assert (scene.value(), scene.held()) == (3, {"replicas", BEFORE})

        scene.restart()
        await scene.go(2, 11)
        assert scene.value() == 3
        scene.server.apply({**body, "spec": {**SPEC, "replicas": 3}}, "helm")
        await scene.go(2, 12)
        assert (scene.value(), scene.held()) == (3, set())

    async def test_without_its_record_the_number_stays_and_that_is_told(self):
        scene = await self.scene()
        scene.annotate(**{BEFORE: None})
        await scene.go(2, 18)

        assert scene.value() == 10
        assert [one["type"] for one in scene.told()["conditions"]] == ["FormerValueLost"]
        assert "FormerValueLost" in scene.events()

    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize(("kind", "number"), [*(("Deployment", n) for n in range(2)),
                                                  *((HPA, n) for n in range(3))])  # fmt: skip
    async def test_a_crash_at_any_request_loses_no_former_number(self, kind, number, when):
        scene = Scene()
        if kind == HPA:
            scene.deploy(WINDOWS | CLAIM_LEAST)
            scene.autoscale(minReplicas=3)
        else:
            scene.deploy(WINDOWS | CLAIM, replicas=3)

        scene.during(number, crash, when=when)
        with pytest.raises(Crash):
            await scene.go(2, 9)
        scene.restart()
        await scene.go(2, 10)
        assert scene.value(kind) == 10
        scene.during(0, crash, when=when)
        with pytest.raises(Crash):
            await scene.go(2, 18)
        scene.restart()
        await scene.go(2, 19)
        assert (scene.value(kind), scene.held(kind) & {BEFORE}) == (3, {BEFORE})


class TestMalformed:
    async def test_it_is_told_once_and_nothing_else_is_touched(self):
        scene = Scene()
        scene.deploy(WINDOWS | {SCALE_OUT: "0 25 * * *"})
        for hour in (7, 9, 19):
            await scene.go(2, hour)
        scene.restart()
        await scene.go(2, 20)

        assert (scene.value(), scene.held()) == (1, set())
        (event,) = scene.server.list("events.k8s.io", "Event").items
        assert (event["reason"], event["type"]) == ("InvalidAnnotation", "Warning")
        assert "hour '25': 25 is above 23" in event["note"]

    async def test_what_is_held_is_held_on(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.annotate(**{SCALE_IN: "whenever"})
        for hour in (10, 19):
            await scene.go(2, hour)
        assert (scene.value(), scene.held()) == (10, {"replicas", BEFORE})

        scene.annotate(**{SCALE_IN: "0 18 * * *"})
        await scene.go(2, 20)
        assert (scene.value(), scene.held(), scene.told()) == (1, set(), {})


class TestAutoscaler:
    async def test_its_least_replicas_are_held_and_the_objects_own_are_not(self):
        scene = Scene()
        scene.deploy()
        scene.autoscale()
        await scene.go(2, 9)
        assert (scene.value(HPA), scene.held(HPA)) == (10, {"minReplicas", BEFORE})
        assert scene.held() == {HOLDS}

        await scene.go(2, 18)
        assert (scene.value(HPA), scene.held(HPA), scene.held()) == (1, set(), set())

    async def test_its_author_may_apply_it_again(self):
        scene = Scene()
        scene.deploy()
        scene.autoscale()
        await scene.go(2, 9)
        scene.autoscale()
        await scene.go(2, 10)

        assert scene.value(HPA) == 10

    async def test_what_its_author_declares_is_contested_and_then_claimed(self):
        scene = Scene()
        scene.deploy()
        scene.autoscale(minReplicas=2)
        await scene.go(2, 9)
        assert (scene.value(HPA), scene.held(HPA)) == (2, set())
        assert scene.contested() == [(f"{HPA}/web", ".spec.minReplicas", "helm")]

        scene.annotate(**CLAIM_LEAST)
        await scene.go(2, 10)
        assert (scene.value(HPA), scene.contested()) == (10, [])
        scene.server.merge(scene.object(HPA), {"spec": {"minReplicas": 4}}, "kubectl")
        await scene.go(2, 11)
        assert scene.value(HPA) == 4
        assert len(scene.forced) == 1

    async def test_the_former_number_outlives_the_annotations(self):
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM_LEAST)
        scene.autoscale(minReplicas=2)
        await scene.go(2, 9)
        scene.server.apply({**scene.object("Deployment"), "spec": SPEC}, "helm")
        await scene.go(2, 10)
        assert (scene.value(HPA), scene.held(HPA)) == (2, {"minReplicas", BEFORE})

        scene.restart()
        await scene.go(2, 11)
        assert (scene.value(HPA), scene.held()) == (2, {HOLDS})
        scene.autoscale(minReplicas=2)
        await scene.go(2, 12)
        assert (scene.value(HPA), scene.held(HPA), scene.held()) == (2, set(), set())

    async def test_one_that_comes_during_a_window_gets_it_and_the_replicas_stay_for_it(self):
        scene = Scene()
        scene.deploy()
        await scene.go(2, 9)
        scene.autoscale()
        await scene.go(2, 10)
        assert (scene.value(HPA), scene.value()) == (10, 10)

        scene.server.scale(scene.object("Deployment"), 12, "kube-controller-manager")
        await scene.go(2, 11)
        assert (scene.value(), scene.held(), scene.contested()) == (12, {HOLDS}, [])

    async def test_what_is_held_of_it_is_held_on_while_the_annotations_cannot_be_read(self):
        scene = Scene()
        scene.deploy()
        scene.autoscale()
        await scene.go(2, 9)
        scene.annotate(**{SCALE_IN: "whenever"})
        await scene.go(2, 19)
        assert (scene.value(HPA), scene.held(HPA)) == (10, {"minReplicas", BEFORE})
        assert scene.held() == {HOLDS}

        scene.annotate(**{SCALE_IN: "0 18 * * *"})
        await scene.go(2, 20)
        assert (scene.value(HPA), scene.held()) == (1, set())

    @pytest.mark.parametrize("why", ["InvalidAnnotation", "SeveralAutoscalers"])
    async def test_one_that_is_lost_is_not_taken_twice_when_all_was_left_meanwhile(self, why):
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM_LEAST)
        scene.autoscale(minReplicas=2)
        await scene.go(2, 9)
        record = scene.record(HPA)
        scene.server.merge(scene.object(HPA), {"spec": {"minReplicas": 4}}, "kubectl")
        await scene.go(2, 10)
        other = scene.object(HPA)
        other["metadata"]["name"] = "other"
        if why == "InvalidAnnotation":
            scene.annotate(**{SCALE_IN: "whenever"})
        else:
            scene.server.apply({**other, "spec": scene.live(HPA)["spec"]}, "helm")
        await scene.go(2, 11)
        assert why in scene.events()
        assert (scene.value(HPA), scene.held(HPA), scene.held()) == (4, {BEFORE}, {HOLDS})

        scene.annotate(**{SCALE_IN: "0 18 * * *"})
        if scene.server.get(other):
            scene.server.delete(other)
        await scene.go(2, 12)
        assert (scene.value(HPA), scene.record(HPA), len(scene.forced)) == (4, record, 1)

    async def test_one_that_comes_and_goes_does_not_let_the_objects_own_be_taken_twice(self):
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM, replicas=3)
        await scene.go(2, 9)
        record = scene.record()
        scene.server.scale(scene.object("Deployment"), 4, "kubectl")
        await scene.go(2, 10)
        scene.autoscale()
        await scene.go(2, 11)
        assert (scene.value(HPA), scene.held(), scene.record()) == (10, {HOLDS, BEFORE}, record)
        scene.server.delete(scene.object(HPA))
        await scene.go(2, 12)
        assert (scene.value(), scene.record(), len(scene.forced)) == (4, record, 1)

        scene.autoscale()
        await scene.go(2, 18)
        assert (scene.value(HPA), scene.held(), scene.held(HPA)) == (1, set(), set())

    async def test_two_that_target_one_object_are_both_left(self):
        scene = Scene()
        scene.deploy()
        scene.autoscale()
        other = scene.object(HPA)
        other["metadata"]["name"] = "other"
        spec = scene.live(HPA)["spec"]
        scene.server.apply({**other, "spec": spec}, "helm")
        await scene.go(2, 9)

        assert (scene.value(HPA), scene.value()) == (1, 1)
        assert scene.events() == ["SeveralAutoscalers"]

    async def test_a_number_that_it_does_not_allow_is_told(self):
        scene = Scene()
        scene.deploy(WINDOWS | {OUT_REPLICAS: "50"})
        scene.autoscale()
        await scene.go(2, 9)

        assert scene.value(HPA) == 1
        assert [c["type"] for c in scene.told()["conditions"]] == ["Ready", "Stalled"]

    async def test_it_is_given_back_once_the_object_is_gone(self):
        scene = Scene()
        scene.deploy()
        scene.autoscale()
        await scene.go(2, 9)
        scene.server.delete(scene.object("Deployment"))
        await scene.go(2, 10)

        assert scene.held(HPA) == set()


class TestAutoscalerOfNobody:
    """An autoscaler is held after a claim, and there is no resource any more that claims it."""

    HELD: ClassVar[tuple[int, set[str]]] = (2, {"minReplicas", BEFORE})

    async def scene(self) -> Scene:
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM_LEAST)
        scene.autoscale(minReplicas=2)
        await scene.go(2, 9)
        assert scene.value(HPA) == 10
        return scene

    def retarget(self, scene: Scene, kind: str, name: str, version: str = "apps/v1") -> None:
        spec = {"scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name}}
        scene.server.apply({**scene.object(HPA), "spec": spec | {"maxReplicas": 20}}, "helm")

    def end(self, scene: Scene, how: str) -> None:
        live = scene.live()
        match how:
            case "the object is deleted":
                scene.server.delete(live)
            case "the object is replaced":
                live["metadata"].pop("annotations")
                scene.server.update(live, "kubectl-replace")
            case "the object is made anew":
                scene.server.delete(live)
                scene.deploy({})
            case "it is given to another object":
                self.retarget(scene, "Deployment", "other")
            case _:
                self.retarget(scene, "Rollout", "web", "argoproj.io/v1alpha1")

    @pytest.mark.parametrize("restarts", [False, True])
    @pytest.mark.parametrize(
        "how",
        [
            "the object is deleted",
            "the object is replaced",
            "the object is made anew",
            "it is given to another object",
            "it is given to an object of another kind",
        ],
    )
    async def test_the_former_number_is_applied_and_held_until_somebody_else_takes_it(
        self, how, restarts
    ):
        scene = await self.scene()
        self.end(scene, how)
        if restarts:
            scene.restart()
        await scene.go(2, 10)
        assert (scene.value(HPA), scene.held(HPA)) == self.HELD
        assert len(scene.forced) == 1

        before = len(scene.cluster.sent)
        for hour in (11, 19):
            await scene.go(2, hour)
        about = [str(sent) for sent in scene.cluster.sent[before:] if HPA in str(sent)]
        assert about == []

        body = {**scene.object(HPA), "spec": {"minReplicas": 2}}
        scene.server.apply(body, "somebody")
        await scene.go(2, 20)
        assert (scene.value(HPA), scene.held(HPA)) == (2, set())

    async def test_another_object_that_asks_for_windows_goes_on_with_the_former_number(self):
        scene = await self.scene()
        other = scene.object("Deployment", **WINDOWS)
        other["metadata"]["name"] = "other"
        scene.server.apply({**other, "spec": SPEC}, "helm")
        self.retarget(scene, "Deployment", "other")
        await scene.go(2, 10)
        assert (scene.value(HPA), scene.value(), len(scene.forced)) == (10, 10, 1)
        assert scene.held() == {"replicas", BEFORE}

        await scene.go(2, 18)
        assert (scene.value(HPA), scene.held(HPA)) == self.HELD
        assert (scene.value(), scene.held()) == (1, set())

    async def test_somebody_else_takes_it_at_the_same_time(self):
        scene = await self.scene()
        scene.server.delete(scene.live())
        scene.server.merge(scene.object(HPA), {"spec": {"minReplicas": 4}}, "kubectl")
        await scene.go(2, 10)

        assert (scene.value(HPA), scene.held(HPA)) == (4, set())

    async def test_an_object_that_is_made_anew_goes_on_and_keeps_the_former_number(self):
        scene = await self.scene()
        scene.server.delete(scene.live())
        await scene.go(2, 10)
        scene.deploy(WINDOWS | CLAIM_LEAST)
        await scene.go(2, 11)
        assert (scene.value(HPA), scene.held()) == (10, {HOLDS})
        assert len(scene.forced) == 1

        await scene.go(2, 18)
        assert (scene.value(HPA), scene.held(HPA)) == self.HELD


class TestGoing:
    """The object is being deleted, in the foreground."""

    async def scene(self, **least: int) -> Scene:
        scene = Scene()
        scene.deploy(WINDOWS | CLAIM_LEAST)
        if least:
            scene.autoscale(**least)
        finalizers = {"metadata": {"finalizers": ["foregroundDeletion"]}}
        scene.server.merge(scene.object("Deployment"), finalizers, "kubectl")
        return scene

    async def test_no_window_begins_for_it(self):
        scene = await self.scene()
        scene.server.delete(scene.live())
        await scene.go(2, 9)

        assert (scene.value(), scene.writes) == (1, [])

    async def test_its_autoscaler_gets_the_former_number_once(self):
        scene = await self.scene(minReplicas=2)
        await scene.go(2, 9)
        assert scene.value(HPA) == 10
        scene.server.delete(scene.live())
        await scene.go(2, 10)
        before = len(scene.cluster.sent)
        await scene.go(2, 11)

        assert (scene.value(HPA), scene.held(HPA)) == (2, {"minReplicas", BEFORE})
        assert scene.cluster.sent[before:] == []


class TestBothKinds:
    """Two controllers of one name and one field manager, side by side."""

    async def test_each_leaves_the_autoscaler_of_the_other_alone(self):
        first = Scene(CONTROLLER[0])
        first.deploy(kind="StatefulSet")
        first.deploy({})
        first.autoscale("StatefulSet")
        second = Scene(CONTROLLER[1], beside=first)
        for _ in range(2):
            await second.go(2, 9)
            await first.go(2, 9)

        assert second.value(HPA) == 10
        assert second.held("StatefulSet") == {HOLDS}
        assert first.writes == []
        await second.go(2, 18)
        assert second.value(HPA) == 1

    async def test_an_autoscaler_that_is_given_to_the_other_kind_keeps_its_former_number(self):
        first = Scene(CONTROLLER[0])
        first.deploy(WINDOWS | CLAIM_LEAST)
        first.deploy({}, kind="StatefulSet")
        first.autoscale(minReplicas=2)
        second = Scene(CONTROLLER[1], beside=first)
        await first.go(2, 9)
        assert first.value(HPA) == 10
        target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
        spec = {"scaleTargetRef": target, "maxReplicas": 20}
        first.server.apply({**first.object(HPA), "spec": spec}, "helm")
        for _ in range(2):
            await first.go(2, 10)
            await second.go(2, 10)

        assert (first.value(HPA), first.held(HPA)) == (2, {"minReplicas", BEFORE})
        assert first.held() == {"replicas", BEFORE}

    async def test_a_stateful_set_is_scaled(self):
        scene = Scene(CONTROLLER[1])
        scene.deploy(kind="StatefulSet")
        await scene.go(2, 9)
        assert scene.value("StatefulSet") == 10

        await scene.go(2, 18)
        assert scene.value("StatefulSet") == 1


class TestForeign:
    NAMES: ClassVar[range] = range(50)

    async def test_objects_without_annotations_are_not_cached(self):
        scene = Scene()
        for number in self.NAMES:
            body = scene.object("Deployment")
            body["metadata"]["name"] = f"web{number}"
            scene.server.apply({**body, "spec": SPEC}, "helm")
        scene.deploy()
        await scene.go(2, 9)

        assert scene.cache.resource_keys() == (("default", "web"),)
