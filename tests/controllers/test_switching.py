"""Switching: a BlueGreen from one colour to the other, with everything that it may wait for."""

from __future__ import annotations

import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.stories import (
    BAKE,
    BLUE,
    EVENTS,
    GREEN,
    HOLD,
    IMMEDIATELY,
    OVERLAP,
    STAYS,
    V3,
    V9,
    Event,
    delete_jobs,
    down,
    due,
    fails,
    first,
    late,
    later,
    lose_jobs,
    lose_service,
    of_job,
    old,
    once,
    passes,
    play,
    promote,
    spec,
    story,
    then,
)
from controllers.switching import CHECKED, COLOURS, SwitchWorld, pods, set_image
from hedgerow.contract import Apply, Create
from hedgerow.controllers.bluegreen.controller import CONTROLLER
from hedgerow.controllers.bluegreen.switch import BOTH, TRANSITIONS, Situation, decide
from hedgerow_schemas.builtin import EndpointSlice
from hedgerow_schemas.job import Job
from support.objects.parts import Part

Object = dict[str, Any]
GUIDE = Path(__file__).parents[2] / "docs/guides/blue-green.md"
ALL = CHECKED | OVERLAP | {"bakeSeconds": 60}
TWO_CHECKS = CHECKED | {
    "checks": [*CHECKED["checks"], {"name": "job", "job": {"spec": {"template": {"spec": {}}}}}]
}
OTHER_CHECK = [{**CHECKED["checks"][0], "job": {"metadata": {"labels": {"a": "b"}}}}]


def one_passes(world: SwitchWorld) -> None:
    job = next(iter(world.jobs.values()))
    job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}


def secret_words(world: SwitchWorld) -> None:
    """Have a pod of the check print something."""
    [name] = world.jobs
    labels = {"app.demo.kakao.com/checks": "demo", "batch.kubernetes.io/job-name": name}
    ended = {"state": {"terminated": {"message": "what may be secret"}}}
    status = {"phase": "Failed", "containerStatuses": [ended]}
    world.extra.append(
        {"metadata": {"name": "p", "namespace": "ns", "labels": labels}, "status": status}
    )


def one_pod_more(world: SwitchWorld) -> None:
    world.extra.append(world.ready_pod("Green", "pod-new"))


def select_another(world: SwitchWorld) -> None:
    world.services["demo"] = {"spec": {"selector": {"a": "b"}}}


DEADLINE = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "m"}

PLAIN = (
    story("the status says nothing of a switch", {},
        then(GREEN, went="Blue Green", fields={"routeTo", "conditions", "contested"})),
    story("a preview has the colour that is not routed, and goes once nobody wants it",
        {"preview": True},
        then(preview="Green"),
        then(GREEN, preview="Blue"),
        then(spec(preview=None), services=["demo"])),
)  # fmt: skip
GATE = (
    first("nothing is routed before its check has passed", CHECKED,
        then(services=["demo-preview"], phase="Checking", ready="False/Checking"),
        then(passes, on="Blue", phase="Routed", jobs=[], checked=Part("all checks of ")),
        then(verdicts={"smoke": "Passed of what is routed"})),
    first("a gate without checks lets nothing through", CHECKED | {"checks": []},
        then(on="")),
    first("a Service of neither colour is left until a check has passed", CHECKED,
        then(),
        then(select_another, selector={"a": "b"}),
        then(passes, on="Blue")),
    story("a switch waits for the check of the other colour, and says first that it has passed",
        CHECKED,
        then(GREEN, on="Blue", phase="Checking", steps=["check smoke", "select Green"]),
        once(passes, told=["CheckPassed"], why=f"Green: all checks have passed{STAYS}"),
        once(on="Green"),
        then(checked=Part("all checks of "), verdicts={"smoke": "Passed of what is routed"})),
    story("a failed check leaves the Service, keeps its Job and its log, and says why", CHECKED,
        then(GREEN),
        once(of_job(status={"conditions": [DEADLINE]}), warnings=["CheckFailed"]),
        then(on="Blue", phase="CheckFailed", jobs=[2],
             why="Green: check smoke has failed (Job demo-check-… has failed:"
                 f" DeadlineExceeded, m){STAYS}"),
        then(lose_jobs, phase="Checking", jobs=[3]),
        then(passes, on="Green")),
    story("a passed check counts without its Job", CHECKED | HOLD,
        then(GREEN),
        then(passes, phase="Held"),
        then(lose_jobs, phase="Held", jobs=[])),
    *(
        story(f"a verdict does not count for another template, by {who}", CHECKED | HOLD,
            then(GREEN),
            then(passes, phase="Held", jobs=[2]),
            then(changes, phase="Checking", on="Blue", jobs=[3]))
        for who, changes in (
            ("the author", spec(greenSpec=V3)),
            ("somebody else", lambda world: world.change("Green", set_image("v9"))),
        )
    ),
    story("another check of the same template is run", CHECKED | HOLD,
        then(GREEN),
        then(passes, phase="Held"),
        then(spec(checks=OTHER_CHECK), phase="Checking", jobs=[3])),
    story("what serves is not changed in place", CHECKED,
        then(spec(blueSpec=V9), blue="v1", ready="False/TemplateNotChecked"),
        then(why=Part("Put it into greenSpec and route to Green")),
        then(spec(blueSpec=SwitchWorld().spec["blueSpec"]), ready="True/Serving")),
    story("it can be changed once it serves no more, which hides no step of the switch", CHECKED,
        then(spec(blueSpec=V9, routeTo="Green"), ready="False/Checking"),
        then(passes, on="Green", blue="v9")),
    story("a deleted Service comes back as it was", CHECKED, then(lose_service, on="Blue")),
    story("the way back needs no check", CHECKED,
        then(GREEN),
        then(passes, on="Green"),
        then(BLUE, on="Blue", jobs=[],
             fields={"routeTo", "conditions", "contested", "phase", "routed"})),
    story("several checks must all pass", TWO_CHECKS,
        then(GREEN),
        then(one_passes, phase="Checking", steps=["check job", "select Green"]),
        then(passes, on="Green")),
    story("no check begins before the preview has shown the template alone for a while", CHECKED,
        then(old("Green"), GREEN, phase="Checking", jobs=[]),
        once(old()),
        once(wait=3, jobs=[]),
        once(later(2), jobs=[]),
        once(old("Green"), ready_since=None),
        then(old(), jobs=[2])),
    story("the time of the preview does not shorten an overlap", CHECKED | OVERLAP,
        then(GREEN),
        then(later(60), passes, on="Both", phase="Overlapping", wait=20)),
    story("of a failed check its condition is told and nothing that its pods said", CHECKED,
        then(GREEN),
        then(secret_words, fails,
             checked="smoke: Job demo-check-… has failed: no reason is given")),
    story("a Job that is being deleted counts for nothing", CHECKED,
        then(GREEN),
        then(passes, delete_jobs, on="Blue", why=Part("Job demo-check-… is being deleted"))),
    story("a recorded verdict outlives its Job", CHECKED | HOLD,
        then(GREEN),
        then(passes, phase="Held"),
        then(delete_jobs, promote, on="Green")),
)  # fmt: skip
# With Immediate, `checks` stay in the spec and none is run.
EMERGENCY = (
    *(
        story(f"it routes past checks that have not passed, {name}", CHECKED,
            then(GREEN),
            then(*acts),
            then(down("Green"), spec(promotion="Immediate"), on="Green", jobs=[],
                 checked="promotion Immediate runs no check"))
        for name, acts in (("running", ()), ("failed", (fails,)))
    ),
    story("afterwards checks count again and the way back is open", CHECKED,
        then(GREEN),
        then(spec(promotion="Immediate")),
        then(spec(promotion="WhenChecked"), on="Green", phase="Routed", jobs=[]),
        then(spec(greenSpec=V3), green="v2"),
        then(BLUE, on="Blue", jobs=[])),
    first("a first colour is routed without them", IMMEDIATELY, then(on="Blue", jobs=[])),
    story("it changes what serves in place", CHECKED,
        then(spec(blueSpec=V9, promotion="Immediate"), blue="v9")),
)  # fmt: skip
HELD = (
    story("it waits for the promotion of this very template, and the way back is not held", HOLD,
        then(GREEN, phase="Held", on="Blue"),
        then(spec(promoted="other"), on="Blue"),
        then(promote, on="Green"),
        then(BLUE, on="Blue")),
    *(
        story(f"a rollback while held stays where it is, {name}", HOLD,
            then(GREEN),
            then(*acts, BLUE, phase="Routed", went="Blue"))
        for name, acts in (("alone", ()), ("after a promotion", (promote,)))
    ),
)  # fmt: skip
OVERLAPS = (
    story("both serve until the new one is among the endpoints for long enough", OVERLAP,
        then(late("Green"), GREEN, on="Both", phase="Overlapping", wait=None),
        then(late(), on="Both", after=0),
        then(due, went="Blue Both Green", after=20)),
    story("it begins when the new colour is available", OVERLAP,
        then(down("Green"), GREEN, phase="WaitingForAvailability", on="Blue")),
    story("a reversal in the middle goes back", OVERLAP,
        then(GREEN),
        then(BLUE, went="Blue Both Blue")),
    story("a new colour that fails in the middle is left", OVERLAP,
        then(GREEN, on="Both"),
        then(down("Green"), on="Blue")),
    story("without overlap in the middle it ends at once", OVERLAP,
        then(GREEN, on="Both"),
        then(spec(switch="Cut", overlapSeconds=None), on="Green")),
    story("in the middle either colour makes it available", OVERLAP,
        then(GREEN),
        once(down("Blue"), available="Green is available"),
        once(down(*COLOURS), available=Part("Blue: 0 of 1"))),
    story("more pods in the middle do not begin it anew", OVERLAP,
        then(GREEN),
        then(later(5), one_pod_more, wait=15)),
)  # fmt: skip
BAKES = (
    story("a colour that fails is routed back from once, which one Event tells", BAKE,
        then(GREEN, phase="Baking", ready="True/Baking", told=["Switched"]),
        then(down("Green"), phase="Baking", wait=10),
        then(due, phase="RolledBack", went="Blue Green Blue", rejected="Green",
             told=["Switched", "RolledBack"], warnings=["RolledBack"]),
        then(down(), went="Blue Green Blue", told=[]),
        then(spec(greenSpec=V3), on="Green")),
    story("a short failure is none", BAKE,
        then(GREEN),
        then(down("Green")),
        then(down()),
        then(due, phase="Routed", on="Green")),
    story("with both colours broken the traffic stays", BAKE,
        then(GREEN),
        then(down(*COLOURS)),
        then(due, on="Green", ready="False/Unavailable")),
    story("the way back may close before it is gone", BAKE,
        then(GREEN),
        then(down("Green")),
        once(due, phase="RollingBack", on="Green"),
        then(down(*COLOURS), phase="Baking", on="Green", rejected=None)),
    story("who goes back is not watched", BAKE, then(GREEN), then(BLUE, phase="Routed")),
)  # fmt: skip


class TestStories:
    @pytest.mark.parametrize("one", [*PLAIN, *GATE, *EMERGENCY, *HELD, *OVERLAPS, *BAKES], ids=str)
    def test_each_step_shows(self, one):
        play(one)


FLAGS = [one.name for one in fields(Situation) if one.type == "bool"]
SITUATION: dict[str, tuple[Any, ...]] = {
    "selected": ("Blue", "Green", BOTH, None),
    "former": ("Blue", "Green", None),
    "chosen": ("Blue", "Green"),
    "checks": ("Running", "Passed", "Failed"),
    **dict.fromkeys(FLAGS, (False, True)),
}


class TestTable:
    def test_each_row_decides_something(self):
        """A row that no situation reaches would be a rule that does not hold."""
        chance = random.Random(7)  # noqa: S311 - the same situations each time
        reached = set[int]()
        for _ in range(20_000):
            seen = Situation(**{name: chance.choice(of) for name, of in SITUATION.items()})
            reached.add(next(n for n, row in enumerate(TRANSITIONS) if row.when(seen)))

        assert reached == set(range(len(TRANSITIONS)))

    def test_the_guide_has_the_table(self):
        rows = [f"| `{row.phase}` | {row.condition} | {row.target} |" for row in TRANSITIONS]
        lines = GUIDE.read_text().splitlines()
        start = lines.index("| Phase | Where | The Service selects |")

        assert lines[start + 2 : start + 2 + len(rows) + 1] == [*rows, ""]

    @given(st.builds(Situation, **{name: st.sampled_from(of) for name, of in SITUATION.items()}))
    def test_nothing_unproven_is_selected_anew(self, seen):
        step = decide(seen)
        new = {step.select} if step.select != BOTH else {"Blue", "Green"}
        before = {seen.selected} if seen.selected != BOTH else {"Blue", "Green"}
        if seen.chosen in new - before and seen.former != seen.chosen:
            assert seen.served or not seen.gated or seen.checks == "Passed"
            assert not seen.rejected


class TestJob:
    @pytest.mark.parametrize(
        ("job", "made"),
        [
            ({"spec": {"template": {}}}, {}),
            (
                {"spec": {"template": {"metadata": {"labels": {
                    "app.kubernetes.io/name": "demo", "app.kubernetes.io/phase": "Green"}}}}},
                {"app.kubernetes.io/phase": "Green"},
            ),
            ({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}, {"a": "b"}),
        ],
        ids=["no labels", "those of the Services", "others"],
    )  # fmt: skip
    def test_no_service_selects_its_pods(self, job, made):
        world = play(first("", CHECKED | {"checks": [{"name": "one", "job": job}]}, then()))
        [there] = world.jobs.values()

        assert there["spec"]["template"]["metadata"]["labels"] == made | {
            "app.kubernetes.io/managed-by": "app.demo.kakao.com",
            "app.demo.kakao.com/checks": "demo",
        }

    def test_a_job_is_as_its_author_wrote_it(self):
        spec = {"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 1, "template": {}}
        job = {"metadata": {"labels": {"c": "d"}}, "spec": spec}
        world = play(first("", CHECKED | {"checks": [{"name": "one", "job": job}]}, then()))
        [there] = world.jobs.values()

        assert there["metadata"]["labels"] == {"c": "d"}
        assert there["spec"]["activeDeadlineSeconds"] == 5
        assert "ttlSecondsAfterFinished" not in there["spec"]


RESTARTED = ", 'annotations': {'restartedAt': 'now'}"


def restart(template: Object, _fields: object) -> None:
    template["metadata"]["annotations"] = {"restartedAt": "now"}


def restart_alone(changes: list[object]) -> bool:
    """Return whether nobody has changed what we declare."""
    return not changes or changes == [restart] * len(changes)


class Judged(SwitchWorld):
    """A world that knows which templates have passed a check, and judges every write."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.proven: dict[str, set[str]] = {colour: set() for colour in COLOURS}
        self.tried: dict[str, tuple[str, str]] = {}
        self.edits = 0

    def _write(self, child: Apply | Create) -> None:
        if child.kind is Job and child.name not in self.jobs:
            [colour] = self.selects("demo-preview")
            self.tried[child.name] = (colour, self.template(colour))
        super()._write(child)
        self.check()

    def check(self) -> None:
        for colour in self.selected:
            assert not self.template(colour) or self.template(colour) in self.proven[colour]

    def finish(self, outcome: str = "Complete") -> SwitchWorld:
        for name, job in self.jobs.items():
            colour, template = self.tried[name]
            unchanged = self.template(colour) == template
            if outcome == "Complete" and "status" not in job and unchanged:
                self.proven[colour].add(template)
        return super().finish(outcome)

    def edit_spec(self, colour: str, number: int) -> None:
        self.spec[f"{colour.lower()}Spec"] = pods(f"v{number}")

    def edit_live(self, colour: str) -> None:
        """Somebody else changes the live template: of what serves, that is nobody's promise.

        What does not serve they change once: after that the field is contested, and no check runs.
        """
        live = self.deployments.get(colour)
        if live and (colour in self.selected or restart_alone(live["others"])):
            self.edits += 1
            self.change(colour, set_image(f"{self.edits}"))
            if colour in self.selected:
                self.proven[colour].add(self.template(colour))

    def template(self, colour: str) -> str:
        """What a colour's pods are made of without what a restart adds."""
        return super().template(colour).replace(RESTARTED, "")

    def restart(self, colour: str) -> None:
        if colour in self.deployments:
            self.change(colour, restart)

    def lose_job(self) -> None:
        if self.jobs:
            self.jobs.pop(min(self.jobs))


JUDGED: dict[str, Event[Judged]] = {
    **EVENTS,
    "edit spec": lambda world, colour, number: world.edit_spec(colour, number),
    "edit live": lambda world, colour, _number: world.edit_live(colour),
    "restart": lambda world, colour, _number: world.restart(colour),
    "checks fail": lambda world, _colour, _number: world.finish("Failed"),
    "lose job": lambda world, _colour, _number: world.lose_job(),
    "late": lambda world, colour, _number: world.late.add(colour),
    "shown": lambda world, colour, _number: world.late.discard(colour),
    "hold": lambda world, _colour, _number: world.spec.update(hold=True),
    "promote": lambda world, _colour, _number: promote(world),
    "overlap": lambda world, _colour, _number: world.spec.update(switch="Overlap"),
    "cut": lambda world, _colour, _number: world.spec.update(switch="Cut"),
}
WEIGHTED = (*JUDGED, *("pass",) * 8, *("checks pass",) * 3)


class TestInterleavings:
    """Whatever happens in whatever order, and wherever a pass is cut off."""

    @given(data=st.data())
    def test_nothing_unchecked_is_routed_and_one_colour_is_in_the_end(self, data):
        world = Judged(**data.draw(st.sampled_from([CHECKED, CHECKED | OVERLAP, ALL])))
        for _ in range(data.draw(st.integers(3, 40))):
            act = JUDGED[data.draw(st.sampled_from(WEIGHTED))]
            act(world, data.draw(st.sampled_from(COLOURS)), data.draw(st.integers(0, 5)))
        world.down, world.late = set(), set()
        world.spec |= {"hold": False}
        world.jobs.clear()  # those that failed are run again
        for _ in range(6):
            world.settle()
            world.finish()
            wait = world.compose().requeue_after
            world.pass_time(wait.total_seconds() if wait else 1)
            world.check()

        assert len(world.selected) == 1


class TestContradictions:
    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            (CHECKED | {"checks": []}, "spec.checks"),
            (CHECKED | {"promotion": "WhenAvailable"}, "spec.promotion"),
            (BAKE | {"promotion": "Immediate"}, "spec.bakeSeconds"),
            (BAKE | {"switch": "Overlap", "overlapSeconds": 61}, "spec.overlapSeconds"),
            (BAKE | {"blueSpec": None}, "spec.blueSpec"),
        ],
    )  # fmt: skip
    def test_each_is_an_error_of_its_field_and_stalls(self, spec, field):
        world = SwitchWorld(**spec)
        assert [error.field for error in CONTROLLER.validate(world.resource)] == [field]

        world.do_pass()
        assert "Stalled" in {condition["type"] for condition in world.status["conditions"]}

    @pytest.mark.parametrize("spec", [{}, CHECKED, IMMEDIATELY, OVERLAP, BAKE, ALL])
    def test_what_is_used_here_contradicts_nothing(self, spec):
        assert list(CONTROLLER.validate(SwitchWorld(**spec).resource)) == []


@pytest.mark.parametrize(
    ("service", "keys"),
    [
        ("demo", {("ns", "demo")}),
        ("demo-preview", {("ns", "demo-preview"), ("ns", "demo")}),
        ("", set()),
    ],
)
def test_endpoints_concern_the_bluegreen_of_their_service(service, keys):
    _, relation = CONTROLLER.relates
    meta = {"name": "x", "namespace": "ns", "labels": {"kubernetes.io/service-name": service}}

    assert set(relation.of(EndpointSlice({"metadata": meta}))) == keys
