"""The scaler on the cluster in memory: contest, claim, and giving back, across its windows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from faults.built_in import EVENTS, SCALING, WEB, annotate, noted
from faults.scenario import STATUS, Object, People, Step, scale, target, value_at
from hedgerow.contract import Controller, Desired
from hedgerow.controllers.scaler.controller import CONTROLLER
from hedgerow.controllers.scaler.record import SOMEBODY, recorded
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
from hedgerow_testing.memory import kinds
from hedgerow_testing.memory.cluster import MemoryCluster
from model import scaled
from runtime.scenes import refuse
from runtime.stepwise import Shows, WorldPeople, is_settled, play
from runtime.world import Crash, ModelClock, World, crash

pytestmark = pytest.mark.anyio

HPA = "HorizontalPodAutoscaler"
SET = target("apps/v1", "StatefulSet", "web")
OTHER_WEB, OTHER_SCALING = ({**one, "metadata": {"name": "other"}} for one in (WEB, SCALING))
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
YIELD = {"hedgerow.dev/yield": "Deployment/web: spec.replicas"}
BOTH, BOTH_LEAST = "before replicas", "before minReplicas"
Act = Callable[[People], object]


@pytest.fixture(autouse=True)
def more_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    more = (scaled.STATEFUL_SET, scaled.HORIZONTAL_POD_AUTOSCALER)
    monkeypatch.setattr(kinds, "BUILTIN", (*kinds.BUILTIN, *more))


# --- what people do -------------------------------------------------------------------------------


def deploy(
    notes: dict[str, str] = WINDOWS, identity: Object = WEB, *, force: bool = False, **spec: Any
) -> Act:
    """Have a workload applied by its author."""
    meta = {**identity["metadata"], **({"annotations": notes} if notes else {})}
    body = {**identity, "metadata": meta, "spec": {**SPEC, **spec}}
    return lambda people: people.apply(body, "helm", force=force)


def autoscale(to: Object = WEB, identity: Object = SCALING, **spec: Any) -> Act:
    """Have an autoscaler applied by the same author."""
    ref = {"apiVersion": to["apiVersion"], "kind": to["kind"], "name": to["metadata"]["name"]}
    body = {**identity, "spec": {"scaleTargetRef": ref, "maxReplicas": 20, **spec}}
    return lambda people: people.apply(body, "helm")


def least(number: int) -> Act:
    """Have the least number of an autoscaler edited."""
    return lambda people: people.edit(SCALING, {"spec": {"minReplicas": number}}, "kubectl")


def take_least(number: int) -> Act:
    """Have somebody else apply it, with a number that is there already."""
    body = {**SCALING, "spec": {"minReplicas": number}}
    return lambda people: people.apply(body, "somebody")


def delete(identity: Object) -> Act:
    return lambda people: people.delete(identity)


def finalize(people: People) -> None:
    """Let a deletion of the Deployment wait for its dependents."""
    people.edit(WEB, {"metadata": {"finalizers": ["foregroundDeletion"]}}, "kubectl")


# --- what is to be seen ---------------------------------------------------------------------------


def value(identity: Object, field: str, people: People) -> int | None:
    return value_at(people.get(identity), ("spec", field))


def held(identity: Object, people: People) -> str:
    """Return the fields and annotations that the scaler holds, without the status annotation."""
    tree: Object = managed_fields.entry(people.get(identity) or {}, "hedgerow-scaler") or {}
    notes: Object = tree.get("f:metadata", {}).get("f:annotations", {})
    names = {name[2:] for name in (*tree.get("f:spec", {}), *notes)} - {STATUS_ANNOTATION}
    return " ".join(sorted({BEFORE: "before", HOLDS: "holds"}.get(name, name) for name in names))


def before(identity: Object, people: People) -> str:
    """Return the record: the former number, whom it was taken from, and the day and hour."""
    found = recorded(value_at(people.get(identity), ("metadata", "annotations", BEFORE)) or "")
    if found is None:
        return ""
    taken = f"{found.taken_at:%d %H}" if found.taken_at else ""
    return f"{found.replicas} {found.taken_from} {taken}".strip()


def said(people: People) -> Object:
    return json.loads(value_at(people.get(WEB), STATUS) or "{}")


def contested(people: People) -> str:
    found = said(people).get("contested", [])
    return "; ".join(f"{one['object']} {one['path']} {one.get('manager')}" for one in found)


def conditions(people: People) -> str:
    return " ".join(one["type"] for one in said(people).get("conditions", []))


def events(people: People) -> str:
    """Return the reasons of the Events; all are warnings."""
    found = people.every(EVENTS)
    assert all(one["type"] == "Warning" for one in found)
    return " ".join(sorted(one["reason"] for one in found))


LOOKS: dict[str, Callable[[People], object]] = {
    "web": partial(value, WEB, "replicas"),
    "held": partial(held, WEB),
    "before": partial(before, WEB),
    "set": partial(value, SET, "replicas"),
    "set_held": partial(held, SET),
    "hpa": partial(value, SCALING, "minReplicas"),
    "hpa_held": partial(held, SCALING),
    "hpa_before": partial(before, SCALING),
    "contested": contested,
    "conditions": conditions,
    "said": said,
    "events": events,
}


def hour(hour: int, *acts: Act, day: int = 2, restarted: bool = False, **wanted: object) -> Step:
    """Return what people do at an hour in March, and what is to be seen then."""
    return Step(
        f"{day} March, {hour} h",
        lambda people: [act(people) for act in acts],
        Shows(LOOKS, wanted),
        at=datetime(2026, 3, day, hour, tzinfo=UTC),
        restarted=restarted,
    )


def looked(hour_: int, look: Act) -> Step:
    """Return one more look at an hour."""
    return dataclasses.replace(hour(hour_), seen=look)


def explained(*words: str) -> Act:
    """Look for words in the conditions."""
    return lambda people: all(word in json.dumps(said(people)["conditions"]) for word in words)


# --- the timelines --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timeline:
    """What happens from hour to hour, and how often the scaler writes, or forces, in all of it."""

    name: str
    steps: tuple[Step, ...]
    forced: int = 0
    writes: int | None = None
    is_refused: bool = False
    """Whether a write is refused in the end, and so tried again."""


def line(name: str, *steps: Step, **counts: Any) -> Timeline:
    return Timeline(name, steps, **counts)


FREE = (
    line(
        "it is held in the window and given back after it, by the clock alone",
        hour(7, deploy(), web=1, held=""),
        hour(8, web=10, held=BOTH, before="1"),
        hour(18, web=1, held=""),
        hour(20, web=1, held=""),
        writes=2,
    ),
    line(
        "outside of windows it has the number for that",
        hour(7, deploy(WINDOWS | {IN_REPLICAS: "2"}), web=2),
        hour(8, web=10),
        hour(18, web=2),
        hour(8, day=3, web=10, before="1"),
    ),
    line(
        "an operator that was down does what is due",
        hour(9, deploy(), web=10),
        hour(19, restarted=True, web=1),
        hour(12, restarted=True, day=5, web=10),
    ),
    line(
        "a clock that was set back changes what is in force",
        hour(9, deploy(), web=10),
        hour(6, web=1, held=""),
    ),
    line(
        "a settled window gets no request, even after a restart",
        hour(9, deploy(), web=10),
        hour(10, restarted=True, web=10),
        hour(12, web=10),
        hour(17, web=10),
        writes=1,
    ),
    line(
        "annotations may change in the middle of a window",
        hour(9, deploy(), web=10),
        hour(10, annotate(WEB, **{OUT_REPLICAS: "12"}), web=12),
        hour(12, annotate(WEB, **{SCALE_IN: "0 11 * * *"}), web=1, held=""),
    ),
    line(
        "annotations that go in the middle of a window end it",
        hour(9, deploy(), web=10),
        hour(10, deploy({}), web=1, held=""),
    ),
    line(
        "a StatefulSet is left to its own controller",
        hour(9, deploy(identity=SET), set=1, set_held=""),
        writes=0,
    ),
)

BY_HELM = "Deployment/web .spec.replicas helm"
BY_KUBECTL = "Deployment/web .spec.replicas kubectl"
BY_NOBODY = "Deployment/web .spec.replicas None"
CONTESTED = (
    line(
        "a field of the author is told with what settles it, and not touched",
        hour(9, deploy(replicas=3), web=3, held="", contested=BY_HELM, events="FieldConflict"),
        looked(9, noted(WEB, "FieldConflict", "hedgerow.dev/claim=Deployment/web: spec.replicas")),
        hour(18, web=3, said={}),
    ),
    line(
        "it is taken up as soon as it is let go",
        hour(9, deploy(replicas=3), web=3),
        hour(10, deploy(), web=10, contested=""),
        hour(18, web=1),
    ),
    line(
        "one that is lost in the window is left",
        hour(9, deploy(), web=10),
        hour(10, scale(WEB, 4), web=4, held="", contested=BY_KUBECTL),
        hour(18, web=4, held=""),
    ),
    line(
        "what was scaled to nothing stays so",
        hour(9, deploy(), scale(WEB, 0), web=0, held="", contested=BY_NOBODY),
    ),
    line(
        "a number that nobody was recorded for comes back",
        hour(9, deploy(), scale(WEB, 5), web=10, before="5"),
        hour(18, web=5, held=BOTH),
    ),
    line(
        "a number that others hold too is held with them",
        hour(9, deploy(replicas=10), held=BOTH),
        hour(18, web=10, held=""),
    ),
    line(
        "a yielded field is left without a word",
        hour(9, deploy(WINDOWS | YIELD, replicas=10), held="", said={}),
    ),
)

# Somebody scales to 0 in a window; the API server records nobody for that.
DOWN = (hour(9, deploy(), web=10), hour(10, scale(WEB, 0), web=0, held="before", before="1"))
SCALED_DOWN = (
    line(
        "it is left and told until the window ends",
        *DOWN,
        hour(11, web=0, held="before", before="1"),
        hour(17, web=0, held="before", before="1", contested=BY_NOBODY),
        hour(17, restarted=True, web=0, before="1"),
        hour(18, web=0, held="", said={}),
    ),
    line(
        "an operator that was down meanwhile leaves it too",
        hour(9, deploy(), web=10),
        hour(10, scale(WEB, 0), restarted=True, web=0, before="1"),
    ),
    line(
        "a transition that comes before it was seen does not take it",
        hour(9, deploy(WINDOWS | {IN_REPLICAS: "2"}), web=10),
        hour(18, scale(WEB, 0), web=0, before="1"),
    ),
    *(
        line(
            f"an edit of the annotations to {edit} does not take it or what is recorded",
            *DOWN,
            hour(11, annotate(WEB, **edit), web=0, before="1"),
        )
        for edit in ({OUT_REPLICAS: "12"}, {SCALE_IN: "whenever"})
    ),
    line(
        "scaled up again it is held and gets what was there before the window",
        *DOWN,
        hour(11, scale(WEB, 10), held=BOTH, before="1"),
        hour(18, web=1),
    ),
    line(
        "another number for which nobody is recorded is left as well",
        *DOWN,
        hour(11, scale(WEB, 4), web=4, before="1"),
        hour(12, web=4, before="1"),
        hour(13, restarted=True, web=4, before="1"),
        hour(18, web=4, held=""),
    ),
    line(
        "with a claim it is taken once, and the word is that somebody scaled it",
        hour(9, deploy(WINDOWS | CLAIM), web=10),
        hour(10, scale(WEB, 0), web=10, before=f"0 {SOMEBODY} 02 08", events="FieldRestored"),
        hour(11, scale(WEB, 0), web=0, before=f"0 {SOMEBODY} 02 08"),
        hour(17, web=0, before=f"0 {SOMEBODY} 02 08"),
    ),
    line(
        "what was taken by a claim and then scaled to nothing is left",
        hour(9, deploy(WINDOWS | CLAIM, replicas=3), web=10, before="3 helm 02 08"),
        hour(10, scale(WEB, 0), web=0, before="3 helm 02 08"),
        hour(11, web=0, before="3 helm 02 08"),
        hour(12, scale(WEB, 4), web=4, before="3 helm 02 08"),
        hour(13, web=4, before="3 helm 02 08"),
        forced=1,
    ),
)

# The author declares the field, and writes that it may be taken.
TAKEN = "3 helm 02 08"
CLAIMED_IN = WINDOWS | CLAIM | {IN_REPLICAS: "7"}


def claimed(**more: str) -> Step:
    return hour(9, deploy(WINDOWS | CLAIM | more, replicas=3), web=10, held=BOTH, before=TAKEN)


CLAIMED = (
    line(
        "it is taken at the transition with an Event, and the former number held after the window",
        claimed(),
        hour(10, events="FieldClaimed"),
        hour(18, web=3, held=BOTH),
        hour(8, day=3, web=10),
        hour(18, day=3, web=3),
        forced=1,
    ),
    line(
        "what others held meanwhile is what was there before",
        claimed(**{IN_REPLICAS: "7"}),
        hour(10, deploy(CLAIMED_IN, force=True, replicas=7)),
        hour(18),
        hour(19, deploy(CLAIMED_IN, force=True)),
        hour(20, annotate(WEB, **dict.fromkeys(CLAIMED_IN)), web=7),
        forced=1,
    ),
    *(
        line(
            f"it is held until somebody else takes it, as {number}",
            claimed(),
            hour(18),
            hour(
                19,
                deploy(WINDOWS | CLAIM, force=True, replicas=number),
                web=number,
                held="",
            ),
            hour(8, day=3, web=10),
            forced=2,
        )
        for number in (3, 5)
    ),
    line(
        "one that is lost again is told and left until the next transition",
        claimed(),
        hour(10, scale(WEB, 4), web=4),
        hour(11, web=4),
        hour(17, web=4, contested=BY_KUBECTL),
        looked(
            17,
            explained(
                "AnnotationIgnored",
                "taken in the transition of 2026-03-02T08:00:00Z and lost again",
                "left until 2026-03-02T18:00:00Z",
            ),
        ),
        hour(17, restarted=True, web=4),
        hour(18, web=4, held="", said={}),
        hour(8, day=3, web=10),
        forced=2,
    ),
    *(
        line(
            f"an edit to {name}: {note} that is taken back does not let it be taken twice",
            claimed(),
            hour(10, scale(WEB, 4)),
            hour(11, annotate(WEB, **{name: note}), held="before", before=TAKEN),
            hour(12, annotate(WEB, **{name: WINDOWS.get(name)}), web=4, before=TAKEN),
            forced=1,
        )
        for name, note in ({SCALE_IN: "whenever"} | YIELD).items()
    ),
    line(
        "outside of windows it is taken once as well",
        claimed(**{IN_REPLICAS: "2"}),
        hour(18, scale(WEB, 4), web=2, before="4 kubectl 02 18"),
        hour(19, scale(WEB, 5), web=5),
        forced=2,
    ),
    line(
        "a claim that comes late is carried out at once",
        hour(9, deploy(replicas=3), web=3),
        hour(10, annotate(WEB, **CLAIM), web=10),
        forced=1,
    ),
    line(
        "annotations that go give the former number back",
        claimed(),
        hour(10, deploy({}), web=3, held=BOTH),
        hour(11, restarted=True, web=3),
        hour(12, deploy({}, replicas=3), web=3, held=""),
        forced=1,
    ),
    line(
        "without its record the number stays, and that is told",
        claimed(),
        hour(18, annotate(WEB, **{BEFORE: None}), web=10, conditions="FormerValueLost"),
        looked(18, noted(WEB, "FormerValueLost")),
        forced=1,
    ),
)

MALFORMED = (
    line(
        "annotations that cannot be read are told once, and nothing else is touched",
        hour(7, deploy(WINDOWS | {SCALE_OUT: "0 25 * * *"})),
        hour(9),
        hour(19),
        hour(20, restarted=True, web=1, held="", events="InvalidAnnotation"),
        looked(20, noted(WEB, "InvalidAnnotation", "hour '25': 25 is above 23")),
    ),
    line(
        "what is held is held on while they cannot be read",
        hour(9, deploy(), web=10),
        hour(10, annotate(WEB, **{SCALE_IN: "whenever"}), web=10, held=BOTH),
        hour(19, web=10, held=BOTH),
        hour(20, annotate(WEB, **{SCALE_IN: WINDOWS[SCALE_IN]}), web=1, held="", said={}),
    ),
)

TAKEN_LEAST = "2 helm 02 08"
AUTOSCALED = (
    line(
        "its least replicas are held, and the object's own are not",
        hour(9, deploy(), autoscale(), hpa=10, hpa_held=BOTH_LEAST, held="holds"),
        hour(10, autoscale(), hpa=10),  # its author may apply it again
        hour(18, hpa=1, hpa_held="", held=""),
    ),
    line(
        "what its author declares is contested and then claimed",
        hour(
            9,
            *(deploy(), autoscale(minReplicas=2)),
            hpa=2,
            hpa_held="",
            contested=f"{HPA}/web .spec.minReplicas helm",
        ),
        hour(10, annotate(WEB, **CLAIM_LEAST), hpa=10, contested=""),
        hour(11, least(4), hpa=4),
        forced=1,
    ),
    line(
        "the former number outlives the annotations",
        hour(9, deploy(WINDOWS | CLAIM_LEAST), autoscale(minReplicas=2), hpa=10),
        hour(10, deploy({}), hpa=2, hpa_held=BOTH_LEAST),
        hour(11, restarted=True, hpa=2, held="holds"),
        hour(12, autoscale(minReplicas=2), hpa=2, hpa_held="", held=""),
        forced=1,
    ),
    line(
        "one that comes during a window gets it, and the replicas stay for it",
        hour(9, deploy(), web=10),
        hour(10, autoscale(), hpa=10, web=10),
        hour(11, scale(WEB, 12, "kube-controller-manager"), web=12, held="holds", contested=""),
    ),
    line(
        "what is held of it is held on while the annotations cannot be read",
        hour(9, deploy(), autoscale()),
        hour(
            19,
            annotate(WEB, **{SCALE_IN: "whenever"}),
            hpa=10,
            hpa_held=BOTH_LEAST,
            held="holds",
        ),
        hour(20, annotate(WEB, **{SCALE_IN: WINDOWS[SCALE_IN]}), hpa=1, held=""),
    ),
    *(
        line(
            f"one that is lost is not taken twice when all was left meanwhile: {why}",
            hour(9, deploy(WINDOWS | CLAIM_LEAST), autoscale(minReplicas=2)),
            hour(10, least(4), hpa_before=TAKEN_LEAST),
            hour(11, act, hpa=4, hpa_held="before", held="holds"),
            looked(11, noted(WEB, why)),
            hour(12, back, hpa=4, hpa_before=TAKEN_LEAST),
            forced=1,
        )
        for why, act, back in (
            (
                "InvalidAnnotation",
                annotate(WEB, **{SCALE_IN: "whenever"}),
                annotate(WEB, **{SCALE_IN: WINDOWS[SCALE_IN]}),
            ),
            (
                "SeveralAutoscalers",
                autoscale(identity=OTHER_SCALING, minReplicas=4),
                delete(OTHER_SCALING),
            ),
        )
    ),
    line(
        "one that comes and goes does not let the object's own be taken twice",
        claimed(),
        hour(10, scale(WEB, 4)),
        hour(11, autoscale(), hpa=10, held="before holds", before=TAKEN),
        hour(12, delete(SCALING), web=4, before=TAKEN),
        hour(18, autoscale(), hpa=1, held="", hpa_held=""),
        forced=1,
    ),
    line(
        "two that target one object are both left",
        hour(
            9,
            *(deploy(), autoscale(), autoscale(identity=OTHER_SCALING)),
            hpa=1,
            web=1,
            events="SeveralAutoscalers",
        ),
    ),
    line(
        "a number that it does not allow is told",
        hour(
            9,
            *(deploy(WINDOWS | {OUT_REPLICAS: "50"}), autoscale()),
            hpa=1,
            conditions="Ready Stalled",
        ),
        is_refused=True,
    ),
    line(
        "it is given back once the object is gone",
        hour(9, deploy(), autoscale()),
        hour(10, delete(WEB), hpa_held=""),
    ),
)

# An autoscaler is held after a claim, and there is no resource any more that claims it.
CLAIMED_LEAST = hour(9, deploy(WINDOWS | CLAIM_LEAST), autoscale(minReplicas=2), hpa=10)


def replace_all(people: People) -> None:
    """Replace the Deployment by one without annotations, as `kubectl replace` does."""
    people.edit(WEB, {"metadata": {"annotations": None}}, "kubectl-replace")


def make_anew(people: People) -> None:
    people.delete(WEB)
    deploy({})(people)


ENDS: dict[str, Act] = {
    "the object is deleted": delete(WEB),
    "the object is replaced": replace_all,
    "the object is made anew": make_anew,
    "it is given to another object": autoscale(OTHER_WEB),
    "it is given to an object of another kind": autoscale(
        target("argoproj.io/v1alpha1", "Rollout", "web")
    ),
}
OF_NOBODY = (
    *(
        line(
            f"the former number is applied and held until somebody takes it: {how}, {restarted=}",
            CLAIMED_LEAST,
            hour(10, end, restarted=restarted, hpa=2, hpa_held=BOTH_LEAST),
            hour(11, hpa=2, hpa_held=BOTH_LEAST),
            hour(19, hpa=2, hpa_held=BOTH_LEAST),
            hour(20, take_least(2), hpa=2, hpa_held=""),
            forced=1,
        )
        for how, end in ENDS.items()
        for restarted in (False, True)
    ),
    line(
        "another object that asks for windows goes on with the former number",
        CLAIMED_LEAST,
        hour(
            10,
            *(deploy(identity=OTHER_WEB), autoscale(OTHER_WEB)),
            hpa=10,
            web=10,
            held=BOTH,
        ),
        hour(18, hpa=2, hpa_held=BOTH_LEAST, web=1, held=""),
        forced=1,
    ),
    line(
        "somebody else takes it at the same time",
        CLAIMED_LEAST,
        hour(10, delete(WEB), least(4), hpa=4, hpa_held=""),
        forced=1,
    ),
    line(
        "an object that is made anew goes on and keeps the former number",
        CLAIMED_LEAST,
        hour(10, delete(WEB)),
        hour(11, deploy(WINDOWS | CLAIM_LEAST), hpa=10, held="holds"),
        hour(18, hpa=2, hpa_held=BOTH_LEAST),
        forced=1,
    ),
    line(
        "for an object that is being deleted, no window begins",
        hour(9, deploy(WINDOWS | CLAIM_LEAST), finalize, delete(WEB), web=1),
        writes=0,
    ),
    line(
        "the autoscaler of one that is being deleted gets the former number once",
        hour(
            9,
            *(deploy(WINDOWS | CLAIM_LEAST), autoscale(minReplicas=2), finalize),
            hpa=10,
        ),
        hour(10, delete(WEB), hpa=2, hpa_held=BOTH_LEAST),
        hour(11, hpa=2, hpa_held=BOTH_LEAST),
        forced=1,
    ),
)
TIMELINES = (*FREE, *CONTESTED, *SCALED_DOWN, *CLAIMED, *MALFORMED, *AUTOSCALED, *OF_NOBODY)


# --- the tests ------------------------------------------------------------------------------------


class Scene(World):
    """A world with the scaler, at midnight."""

    def __init__(self, controller: Controller[Any] = CONTROLLER[0], beside: Scene | None = None):
        super().__init__(controller=controller)
        if beside is not None:
            self.server = beside.server
            self.cluster, self.clock = MemoryCluster(self.server), ModelClock(self.server)
            self.restart()
        else:
            self.server.now = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())

    @property
    def forced(self) -> int:
        return sum(sent.force for sent in self.cluster.writes)

    async def play(self, *steps: Step) -> None:
        await play(self, steps)


@pytest.mark.parametrize("timeline", [pytest.param(one, id=one.name) for one in TIMELINES])
async def test_timeline(timeline: Timeline):
    scene = Scene()
    await scene.play(*timeline.steps)

    assert scene.forced == timeline.forced
    assert timeline.writes in (None, len(scene.writes))
    assert timeline.is_refused or await is_settled(scene), (
        "the operator rests, and a new one has nothing to do"
    )


class TestAnnotations:
    async def test_a_refused_one_brings_no_compose_that_fails_forward(self):
        """Nothing is declared then, so the write is not sent again, and nothing waits for it."""
        bug: list[Exception] = []

        def failing(resource: Any, observed: Any) -> Desired:
            for error in bug:
                raise error
            return CONTROLLER[0].compose(resource, observed)

        scene = Scene(dataclasses.replace(CONTROLLER[0], compose=failing))
        await scene.play(hour(7, deploy()))
        refused = refuse(scene, Forbidden("may not", code=403))
        await scene.play(hour(8))
        assert refused
        bug.append(LookupError())
        scene.life.look()
        waits: list[float] = []
        for _ in range(15):
            scene.server.now += int(max([1.0, *waits[-1:]])) + 1
            await scene.work()
            waits.append(scene.life.next_due)

        assert waits[-1] > 100


class TestClaims:
    async def test_a_namespace_that_does_not_allow_them_keeps_its_fields(self):
        scene = Scene()
        scene.claiming["default"] = False
        await scene.play(
            hour(9, deploy(WINDOWS | CLAIM, replicas=3), web=3, held=""),
            looked(9, noted(WEB, "ClaimRefused")),
        )

        scene.claiming["default"] = True
        scene.life.look()
        await scene.play(hour(10, web=10))

    async def test_what_is_contested_is_measured(self):
        scene = Scene()
        await scene.play(hour(9, deploy(replicas=3)))

        told = {"controller": "scaler", "manager": "helm"}
        assert scene.life.measured("hedgerow_contested_fields", **told) == 1


class TestCrashes:
    @pytest.mark.parametrize("when", ["before", "after"])
    @pytest.mark.parametrize(
        ("kind", "number"),
        [*(("web", n) for n in range(2)), *(("hpa", n) for n in range(3))],
    )
    async def test_none_at_any_request_loses_a_former_number(self, kind, number, when):
        acts = (deploy(WINDOWS | CLAIM_LEAST), autoscale(minReplicas=3))
        scene = Scene()
        scene.during(number, crash, when=when)
        with pytest.raises(Crash):
            await scene.play(
                hour(9, *(acts if kind == "hpa" else [deploy(WINDOWS | CLAIM, replicas=3)]))
            )
        await scene.play(hour(10, restarted=True, **{kind: 10}))
        scene.during(0, crash, when=when)
        with pytest.raises(Crash):
            await scene.play(hour(18))
        await scene.play(hour(19, restarted=True, **{kind: 3}))

        assert (
            BEFORE
            in (scene.get(HPA if kind == "hpa" else "Deployment", "web") or {})["metadata"][
                "annotations"
            ]
        )


class TestBothKinds:
    """Two controllers of one name and one field manager, side by side."""

    async def test_each_leaves_the_autoscaler_of_the_other_alone(self):
        first = Scene(CONTROLLER[0])
        second = Scene(CONTROLLER[1], beside=first)
        for act in (deploy(identity=SET), deploy({}), autoscale(SET)):
            act(WorldPeople(first))
        for _ in range(2):
            await second.play(hour(9))
            await first.play(hour(9))

        assert first.writes == []
        await second.play(hour(9, hpa=10, set_held="holds"), hour(18, hpa=1))

    async def test_an_autoscaler_that_is_given_to_the_other_kind_keeps_its_former_number(self):
        first = Scene(CONTROLLER[0])
        second = Scene(CONTROLLER[1], beside=first)
        await first.play(
            hour(
                9,
                *(deploy(WINDOWS | CLAIM_LEAST), deploy({}, SET), autoscale(minReplicas=2)),
                hpa=10,
            ),
            hour(10, autoscale(SET)),
        )
        for _ in range(2):
            await first.play(hour(10))
            await second.play(hour(10))

        await first.play(hour(10, hpa=2, hpa_held=BOTH_LEAST, held=BOTH))

    async def test_a_stateful_set_is_scaled(self):
        await Scene(CONTROLLER[1]).play(hour(9, deploy(identity=SET), set=10), hour(18, set=1))


class TestForeign:
    async def test_objects_without_annotations_are_not_cached(self):
        scene = Scene()
        for number in range(50):
            identity = {**WEB, "metadata": {"name": f"web{number}"}}
            deploy({}, identity)(WorldPeople(scene))
        await scene.play(hour(9, deploy()))

        cached = {"controller": "scaler", "resource": "deployments.apps"}
        assert scene.life.measured("hedgerow_cache_objects", **cached) == 1
