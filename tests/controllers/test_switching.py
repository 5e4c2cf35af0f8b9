"""Switching: a BlueGreen from one colour to the other, with everything that it may wait for."""

from __future__ import annotations

import random
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.switching import CHECKED, COLOURS, START, SwitchWorld, pods
from hedgerow.contract import Apply, Create
from hedgerow.controllers.bluegreen.controller import CONTROLLER
from hedgerow.controllers.bluegreen.scene import SETTLING
from hedgerow.controllers.bluegreen.switch import BOTH, TRANSITIONS, Situation, decide
from hedgerow_schemas.builtin import EndpointSlice
from hedgerow_schemas.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable

GUIDE = Path(__file__).parents[2] / "docs/guides/blue-green.md"
OVERLAP = {"switch": "Overlap", "overlapSeconds": 20}
BAKE = {"promotion": "WhenAvailable", "bakeSeconds": 60, "bakeUnavailableSeconds": 10}
ALL = CHECKED | OVERLAP | {"bakeSeconds": 60}


def started(**spec: Any) -> SwitchWorld:
    """A BlueGreen that serves Blue, its checks passed if it has any."""
    world = SwitchWorld(**spec).settle()
    world.finish().settle()
    assert world.selected == ("Blue",)
    return world


def switching(**spec: Any) -> SwitchWorld:
    world = started(**spec)
    world.spec["routeTo"] = "Green"
    return world.settle()


class TestTable:
    def test_each_row_decides_something(self):
        """A row that no situation reaches would be a rule that does not hold."""
        chance = random.Random(7)  # noqa: S311 - the same situations each time
        flags = [one.name for one in fields(Situation) if one.type == "bool"]
        reached = set[int]()
        for _ in range(20_000):
            seen = Situation(
                selected=chance.choice(["Blue", "Green", BOTH, None]),
                former=chance.choice(["Blue", "Green", None]),
                chosen=chance.choice(["Blue", "Green"]),
                checks=chance.choice(["Running", "Passed", "Failed"]),
                **{flag: chance.random() < 0.5 for flag in flags},
            )
            reached.add(next(n for n, row in enumerate(TRANSITIONS) if row.when(seen)))

        assert reached == set(range(len(TRANSITIONS)))

    def test_the_guide_has_the_table(self):
        rows = [f"| `{row.phase}` | {row.condition} | {row.target} |" for row in TRANSITIONS]
        lines = GUIDE.read_text().splitlines()
        start = lines.index("| Phase | Where | The Service selects |")

        assert lines[start + 2 : start + 2 + len(rows) + 1] == [*rows, ""]

    @given(
        seen=st.builds(
            Situation,
            selected=st.sampled_from(["Blue", "Green", BOTH, None]),
            former=st.sampled_from(["Blue", "Green", None]),
            chosen=st.sampled_from(["Blue", "Green"]),
            checks=st.sampled_from(["Running", "Passed", "Failed"]),
            **dict.fromkeys(
                (
                    "has_spec",
                    "available",
                    "waits",
                    "gated",
                    "held",
                    "served",
                    "overlap",
                    "overlapped",
                    "baking",
                    "lost",
                    "rejected",
                    "way_back",
                    "in_use",
                    "other_up",
                ),
                st.booleans(),
            ),
        )
    )
    def test_nothing_unproven_is_selected_anew(self, seen):
        step = decide(seen)
        new = {step.select} if step.select != BOTH else {"Blue", "Green"}
        old = {seen.selected} if seen.selected != BOTH else {"Blue", "Green"}
        if seen.chosen in new - old and seen.former != seen.chosen:
            assert seen.served or not seen.gated or seen.checks == "Passed"
            assert not seen.rejected


class TestPlain:
    def test_the_status_says_nothing_of_a_switch(self):
        world = switching()

        assert world.history == [("Blue",), ("Green",)]
        assert set(world.status) == {"routeTo", "conditions", "contested"}

    def test_a_preview_has_the_colour_that_is_not_routed(self):
        world = started(preview=True)
        before = world.selects("demo-preview")
        world.spec["routeTo"] = "Green"
        world.settle()

        assert (before, world.selects("demo-preview")) == (("Green",), ("Blue",))

    def test_without_it_the_preview_is_gone(self):
        world = started(preview=True)
        del world.spec["preview"]
        world.settle()

        assert set(world.services) == {"demo"}


class TestGate:
    def test_nothing_is_routed_before_its_check_has_passed(self):
        world = SwitchWorld(**CHECKED).settle()
        assert (world.services.keys(), world.phase) == ({"demo-preview"}, "Checking")
        assert world.ready(reason=True) == "Checking"

        world.finish().settle()
        assert (world.selected, world.phase, world.jobs) == (("Blue",), "Routed", {})
        [check] = world.status["checks"]
        assert (check["verdict"], check["template"]) == (
            "Passed",
            world.status["routed"]["template"],
        )
        assert world.why("Checked").startswith("all checks of ")

    def test_a_switch_waits_for_the_check_of_the_other_colour(self):
        world = switching(**CHECKED)
        assert (world.selected, world.phase) == (("Blue",), "Checking")
        assert world.status["switch"]["steps"] == ["check smoke", "select Green"]

        desired = world.finish().do_pass()
        assert [event.reason for event in desired.events] == ["CheckPassed"]
        assert world.settle().selected == ("Green",)

    def test_a_failed_check_leaves_the_service_and_says_why(self):
        world = switching(**CHECKED)
        [job] = world.jobs.values()
        job["status"] = {
            "conditions": [
                {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "m"}
            ]
        }
        desired = world.do_pass()

        assert [(e.reason, e.type) for e in desired.events] == [("CheckFailed", "Warning")]
        assert (world.selected, world.phase) == (("Blue",), "CheckFailed")
        assert "DeadlineExceeded" in world.why()
        assert "the Service stays on Blue" in world.why()
        assert list(world.settle().jobs)  # its log can be read

    def test_a_failed_check_is_run_again_once_its_job_is_deleted(self):
        world = switching(**CHECKED)
        world.finish("Failed").settle()
        world.jobs.clear()

        assert world.settle().phase == "Checking"
        assert world.finish().settle().selected == ("Green",)

    def test_a_passed_check_counts_without_its_job(self):
        world = switching(**CHECKED, hold=True)
        world.finish().settle()
        world.jobs.clear()

        assert (world.settle().phase, world.jobs) == ("Held", {})

    @pytest.mark.parametrize("by", ["the author", "somebody else"])
    def test_a_verdict_does_not_count_for_another_template(self, by):
        world = switching(**CHECKED, hold=True)
        world.finish().settle()
        [first] = world.jobs
        if by == "the author":
            world.spec["greenSpec"] = pods("v3")
        else:
            world.change("Green", set_image("v9"))
        world.settle()

        assert (world.phase, world.selected) == ("Checking", ("Blue",))
        assert first not in world.jobs

    def test_another_check_of_the_same_template_is_run(self):
        world = switching(**CHECKED, hold=True)
        world.finish().settle()
        world.spec["checks"][0]["job"]["metadata"] = {"labels": {"a": "b"}}

        assert world.settle().phase == "Checking"

    def test_what_serves_is_not_changed_in_place(self):
        world = started(**CHECKED)
        world.spec["blueSpec"] = pods("v9")
        world.settle()

        assert "v9" not in world.template("Blue")
        assert world.ready(reason=True) == "TemplateNotChecked"
        assert "route to Green" in world.why()
        world.spec["blueSpec"] = pods("v1")
        assert world.settle().ready() == "True"

    def test_it_can_be_changed_once_it_serves_no_more(self):
        world = started(**CHECKED)
        world.spec |= {"blueSpec": pods("v9"), "routeTo": "Green"}
        world.settle().finish().settle()

        assert world.selected == ("Green",)
        assert "v9" in world.template("Blue")

    def test_a_deleted_service_comes_back_as_it_was(self):
        world = started(**CHECKED)
        del world.services["demo"]

        assert world.settle().selected == ("Blue",)

    def test_the_way_back_needs_no_check(self):
        world = switching(**CHECKED)
        world.finish().settle()
        world.spec["routeTo"] = "Blue"

        assert (world.settle().selected, world.jobs) == (("Blue",), {})
        assert "previous" not in world.status

    def test_several_checks_must_all_pass(self):
        more = [*CHECKED["checks"], {"name": "job", "job": {"spec": {"template": {"spec": {}}}}}]
        world = switching(**CHECKED | {"checks": more})
        names = sorted(world.jobs)
        world.jobs[names[0]]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        assert world.settle().phase == "Checking"
        assert len(world.status["switch"]["steps"]) == 2

        assert world.finish().settle().selected == ("Green",)

    def test_no_check_begins_before_the_preview_has_shown_the_template_alone_for_a_while(self):
        world = started(**CHECKED)
        world.spec["routeTo"] = "Green"
        world.old.add("Green")
        world.settle()
        assert (world.phase, world.jobs) == ("Checking", {})

        world.old.clear()
        while "readySince" not in world.status["switch"]:
            world.do_pass()
        assert world.compose().requeue_after == SETTLING
        world.pass_time(2)
        world.do_pass()
        assert not world.jobs
        world.old.add("Green")
        world.do_pass()
        assert "readySince" not in world.status["switch"]

        world.old.clear()
        assert len(world.settle().jobs) == 1

    def test_the_time_of_the_preview_does_not_shorten_an_overlap(self):
        world = switching(**CHECKED | OVERLAP)
        world.pass_time(60)
        world.finish().settle()

        assert (world.selected, world.phase) == (("Blue", "Green"), "Overlapping")
        assert world.compose().requeue_after == timedelta(seconds=20)

    def test_of_a_failed_check_its_condition_is_told_and_nothing_that_its_pods_said(self):
        world = switching(**CHECKED)
        [name] = world.jobs
        labels = {"app.demo.kakao.com/checks": "demo", "batch.kubernetes.io/job-name": name}
        ended = {"state": {"terminated": {"message": "what may be secret"}}}
        status = {"phase": "Failed", "containerStatuses": [ended]}
        metadata = {"name": "p", "namespace": "ns", "labels": labels}
        world.extra.append({"metadata": metadata, "status": status})
        world.finish("Failed").settle()

        assert world.why("Checked") == f"smoke: Job {name} has failed: no reason is given"

    def test_a_job_that_is_being_deleted_counts_for_nothing(self):
        world = switching(**CHECKED)
        [job] = world.finish().jobs.values()
        job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        assert world.settle().selected == ("Blue",)
        assert "is being deleted" in world.why()


class TestEmergency:
    """With Immediate, `checks` stay in the spec and none is run."""

    @pytest.mark.parametrize("outcome", ["Failed", "Running"])
    def test_it_routes_past_checks_that_do_not_pass(self, outcome):
        world = switching(**CHECKED)
        if outcome == "Failed":
            world.finish("Failed").settle()
        world.down = {"Green"}
        world.spec["promotion"] = "Immediate"
        world.settle()

        assert (world.selected, world.jobs) == (("Green",), {})
        assert world.why("Checked") == "promotion Immediate runs no check"

    def test_afterwards_checks_count_again_and_the_way_back_is_open(self):
        world = switching(**CHECKED)
        world.spec["promotion"] = "Immediate"
        world.settle()
        world.spec["promotion"] = "WhenChecked"
        assert (world.settle().selected, world.phase, world.jobs) == (("Green",), "Routed", {})

        world.spec["greenSpec"] = pods("v3")
        assert "v3" not in world.settle().template("Green")
        world.spec["routeTo"] = "Blue"
        assert (world.settle().selected, world.jobs) == (("Blue",), {})

    def test_a_first_colour_is_routed_without_them(self):
        world = SwitchWorld(**CHECKED | {"promotion": "Immediate"}).settle()

        assert (world.selected, world.ready()) == (("Blue",), "True")

    def test_it_changes_what_serves_in_place(self):
        world = started(**CHECKED)
        world.spec |= {"blueSpec": pods("v9"), "promotion": "Immediate"}

        assert "v9" in world.settle().template("Blue")


class TestJob:
    def manifest(self, **check: Any) -> dict[str, Any]:
        world = switching(**CHECKED | {"checks": [{"name": "one", **check}]})
        [job] = world.jobs.values()
        return job

    def test_no_service_selects_its_pods(self):
        job = self.manifest(job={"spec": {"template": {}}})
        labels = job["spec"]["template"]["metadata"]["labels"]

        assert set(labels) == {"app.kubernetes.io/managed-by", "app.demo.kakao.com/checks"}

    def test_a_job_is_as_its_author_wrote_it(self):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
        spec = {"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 1, "template": template}
        job = self.manifest(job={"metadata": {"labels": {"c": "d"}}, "spec": spec})

        assert job["metadata"]["labels"] == {"c": "d"}
        assert job["spec"]["activeDeadlineSeconds"] == 5
        assert "ttlSecondsAfterFinished" not in job["spec"]
        assert job["spec"]["template"]["metadata"]["labels"]["a"] == "b"


class TestHold:
    def test_it_waits_for_the_promotion_of_this_very_template(self):
        world = switching(hold=True)
        assert (world.phase, world.selected) == ("Held", ("Blue",))
        template = world.status["switch"]["template"]
        world.spec["promoted"] = "other"
        assert world.settle().selected == ("Blue",)

        world.spec["promoted"] = template
        assert world.settle().selected == ("Green",)

    @pytest.mark.parametrize("promoted", [False, True], ids=["rollback", "promotion and rollback"])
    def test_a_rollback_while_held_stays_where_it_is(self, promoted):
        world = switching(hold=True)
        if promoted:
            world.spec["promoted"] = world.status["switch"]["template"]
        world.spec["routeTo"] = "Blue"

        assert (world.settle().phase, world.history) == ("Routed", [("Blue",)])

    def test_the_way_back_is_not_held(self):
        world = switching(hold=True)
        world.spec["promoted"] = world.status["switch"]["template"]
        world.settle()
        world.spec["routeTo"] = "Blue"

        assert world.settle().selected == ("Blue",)


class TestOverlap:
    def test_both_serve_until_the_new_one_is_among_the_endpoints_for_long_enough(self):
        world = started(**OVERLAP)
        world.late = {"Green"}
        world.spec["routeTo"] = "Green"
        world.settle()
        assert (world.selected, world.phase) == (COLOURS, "Overlapping")
        assert world.compose().requeue_after is None

        world.late = set()
        world.settle()
        assert world.selected == COLOURS
        world.wait()
        assert world.history == [("Blue",), COLOURS, ("Green",)]
        assert (world.now - START).total_seconds() == 20

    def test_it_begins_when_the_new_colour_is_available(self):
        world = started(**OVERLAP)
        world.down = {"Green"}
        world.spec["routeTo"] = "Green"

        assert (world.settle().phase, world.selected) == ("WaitingForAvailability", ("Blue",))

    def test_a_reversal_in_the_middle_goes_back(self):
        world = switching(**OVERLAP)
        world.spec["routeTo"] = "Blue"

        assert world.settle().history == [("Blue",), COLOURS, ("Blue",)]

    def test_a_new_colour_that_fails_in_the_middle_is_left(self):
        world = switching(**OVERLAP)
        world.down = {"Green"}

        assert world.settle().selected == ("Blue",)

    def test_without_overlap_in_the_middle_it_ends_at_once(self):
        world = switching(**OVERLAP)
        world.spec |= {"switch": "Cut", "overlapSeconds": None}

        assert world.settle().selected == ("Green",)

    def test_in_the_middle_either_colour_makes_it_available(self):
        world = switching(**OVERLAP)
        world.down = {"Blue"}
        world.do_pass()
        one = world.why("Available")
        world.down = {"Blue", "Green"}
        world.do_pass()

        assert one == "Green is available"
        assert world.why("Available").startswith("Blue: 0 of 1")

    def test_more_pods_in_the_middle_do_not_begin_it_anew(self):
        world = switching(**OVERLAP)
        began = world.status["switch"]["readySince"]
        world.extra.append(
            {
                "metadata": {
                    "name": "pod-new",
                    "namespace": "ns",
                    "labels": world.deployments["Green"]["spec"]["selector"]["matchLabels"],
                },
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
        )

        assert world.settle().status["switch"]["readySince"] == began


class TestBake:
    def test_a_colour_that_fails_is_routed_back_from_once(self):
        world = switching(**BAKE)
        assert (world.phase, world.ready(reason=True)) == ("Baking", "Baking")
        world.down = {"Green"}
        world.settle()
        assert world.phase == "Baking"

        world.wait()
        assert (world.phase, world.selected) == ("RolledBack", ("Blue",))
        assert world.status["rejected"]["phase"] == "Green"
        world.down = set()
        assert world.settle().history == [("Blue",), ("Green",), ("Blue",)]

        world.spec["greenSpec"] = pods("v3")
        assert world.settle().selected == ("Green",)

    def test_it_is_told_by_one_event(self):
        world = switching(**BAKE)
        world.down = {"Green"}
        world.settle()
        world.now += world.compose().requeue_after
        found = [event.reason for _ in range(5) for event in world.do_pass().events]

        assert found == ["Switched", "RolledBack"]

    def test_a_short_failure_is_none(self):
        world = switching(**BAKE)
        world.down = {"Green"}
        world.settle()
        world.down = set()
        world.settle()
        world.wait()

        assert (world.phase, world.selected) == ("Routed", ("Green",))

    def test_with_both_colours_broken_the_traffic_stays(self):
        world = switching(**BAKE)
        world.down = {"Green", "Blue"}
        world.settle().wait()

        assert world.selected == ("Green",)
        assert world.ready() == "False"

    def test_the_way_back_may_close_before_it_is_gone(self):
        world = switching(**BAKE)
        world.down = {"Green"}
        world.settle()
        world.now += world.compose().requeue_after
        world.do_pass()
        assert (world.phase, world.selected) == ("RollingBack", ("Green",))
        world.down = {"Green", "Blue"}
        world.settle()

        assert (world.phase, world.selected) == ("Baking", ("Green",))
        assert "rejected" not in world.status

    def test_who_goes_back_is_not_watched(self):
        world = switching(**BAKE)
        world.spec["routeTo"] = "Blue"

        assert world.settle().phase == "Routed"


RESTARTED = ", 'annotations': {'restartedAt': 'now'}"


def restart(template: dict[str, Any], _fields: object) -> None:
    template["metadata"]["annotations"] = {"restartedAt": "now"}


def restart_alone(changes: list[object]) -> bool:
    """Return whether nobody has changed what we declare."""
    return not changes or changes == [restart] * len(changes)


def set_image(image: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """Return what `kubectl set image` does to a template, and to our managed fields of it."""

    def change(template: dict[str, Any], fields: dict[str, Any]) -> None:
        template["spec"]["containers"][0]["image"] = image
        fields["f:spec"]["f:containers"]['k:{"name":"c"}'].pop("f:image", None)

    return change


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

    def promote(self) -> None:
        self.spec["promoted"] = self.status.get("switch", {}).get("template")

    def lose_job(self) -> None:
        if self.jobs:
            self.jobs.pop(min(self.jobs))


ACTIONS: dict[str, Callable[[Judged, str, int], object]] = {
    "pass": lambda world, _colour, _number: world.do_pass(),
    "pass, cut off": lambda world, _colour, number: world.do_pass(cut=number),
    "choose": lambda world, colour, _number: world.spec.update(routeTo=colour),
    "edit spec": lambda world, colour, number: world.edit_spec(colour, number),
    "edit live": lambda world, colour, _number: world.edit_live(colour),
    "restart": lambda world, colour, _number: world.restart(colour),
    "checks pass": lambda world, _colour, _number: world.finish(),
    "checks fail": lambda world, _colour, _number: world.finish("Failed"),
    "lose job": lambda world, _colour, _number: world.lose_job(),
    "later": lambda world, _colour, number: world.pass_time(number * 7.3),
    "down": lambda world, colour, _number: world.down.add(colour),
    "up": lambda world, colour, _number: world.down.discard(colour),
    "late": lambda world, colour, _number: world.late.add(colour),
    "shown": lambda world, colour, _number: world.late.discard(colour),
    "hold": lambda world, _colour, _number: world.spec.update(hold=True),
    "promote": lambda world, _colour, _number: world.promote(),
    "overlap": lambda world, _colour, _number: world.spec.update(switch="Overlap"),
    "cut": lambda world, _colour, _number: world.spec.update(switch="Cut"),
    "lose service": lambda world, _colour, _number: world.services.pop("demo", None),
}


WEIGHTED = (*ACTIONS, *("pass",) * 8, *("checks pass",) * 3)


class TestInterleavings:
    """Whatever happens in whatever order, and wherever a pass is cut off."""

    @settings(max_examples=150)
    @given(data=st.data())
    def test_nothing_unchecked_is_routed_and_one_colour_is_in_the_end(self, data):
        world = Judged(**data.draw(st.sampled_from([CHECKED, CHECKED | OVERLAP, ALL])))
        for _ in range(data.draw(st.integers(3, 40))):
            act = ACTIONS[data.draw(st.sampled_from(WEIGHTED))]
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

    def test_a_gate_without_checks_lets_nothing_through(self):
        assert not SwitchWorld(**CHECKED | {"checks": []}).settle().selected

    @pytest.mark.parametrize(
        "spec", [{}, CHECKED, CHECKED | {"promotion": "Immediate"}, OVERLAP, BAKE, ALL]
    )
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


def test_a_service_of_neither_colour_is_left_until_a_check_has_passed():
    world = SwitchWorld(**CHECKED).settle()
    world.services["demo"] = {"spec": {"selector": {"a": "b"}}}
    world.settle()

    assert world.services["demo"]["spec"]["selector"] == {"a": "b"}
    assert world.finish().settle().selected == ("Blue",)
