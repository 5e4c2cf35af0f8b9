"""BlueGreen: a switch beside people who edit, clocks that are wrong, and colours that go away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from controllers.switching import CHECKED, COLOURS, SwitchWorld, kept, pods

OVERLAP = {"switch": "Overlap", "overlapSeconds": 20}
BAKE = {"promotion": "WhenAvailable", "bakeSeconds": 600, "bakeUnavailableSeconds": 30}
HOUR = timedelta(hours=1)


def switching(**spec: Any) -> SwitchWorld:
    """Return a world on Blue, whose author has just chosen Green."""
    world = SwitchWorld(**spec).settle()
    world.finish().settle()
    world.spec["routeTo"] = "Green"
    return world.settle()


def rolled_back() -> SwitchWorld:
    world = switching(**BAKE)
    world.down = {"Green"}
    world.settle().wait()
    world.down = set()
    return world.settle()


class Scaled(SwitchWorld):
    """Somebody scales the colours, and pods come at once where they are not down."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        self.replicas = dict.fromkeys(COLOURS, 1)

    def _deployment(self, colour: str) -> dict[str, Any]:
        found, wanted = super()._deployment(colour), self.replicas[colour]
        found["spec"]["replicas"] = wanted
        found["status"] |= dict.fromkeys(("replicas", "updatedReplicas"), wanted)
        found["status"]["availableReplicas"] = 0 if colour in self.down else wanted
        return found


class TestChecks:
    def test_the_labels_by_which_services_select_are_taken_off_its_pods(self):
        labels = {"app.kubernetes.io/name": "demo", "app.kubernetes.io/phase": "Green"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
        check = {"name": "one", "job": {"spec": {"template": template}}}
        world = SwitchWorld(**CHECKED | {"checks": [check]}).settle()
        [job] = world.jobs.values()

        assert "app.kubernetes.io/name" not in job["spec"]["template"]["metadata"]["labels"]

    def test_a_recorded_verdict_outlives_a_job_that_is_being_deleted(self):
        world = switching(**CHECKED, hold=True)
        world.finish().settle()
        assert world.phase == "Held"
        for job in world.jobs.values():
            job["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
        world.spec["promoted"] = world.status["switch"]["template"]

        assert world.settle().selected == ("Green",)

    def test_the_status_says_that_all_have_passed_before_the_service_moves(self):
        world = switching(**CHECKED).finish()
        world.do_pass()

        assert (world.selected, world.why()) == (
            ("Blue",),
            "Green: all checks have passed; the Service stays on Blue",
        )
        assert world.settle().selected == ("Green",)
        assert {c["type"]: c["status"] for c in world.status["conditions"]}["Checked"] == "True"

    def test_a_template_that_somebody_else_holds_a_part_of_is_not_checked(self):
        world = switching(**CHECKED)
        path = '.spec.template.spec.containers[name="c"].image'
        leaf = {"object": "Deployment/demogreen-deployment", "path": path, "manager": "helm"}
        world.finish()
        world.status["contested"] = [leaf]
        world.do_pass()
        assert world.selected == ("Blue",)
        assert path in world.why()

        del world.status["contested"]
        assert world.settle().selected == ("Green",)


class TestOverlap:
    def test_what_leaves_it_is_not_changed_while_it_is_selected(self):
        """Not even if the Service was refused, so that the status knows of no switch to it."""
        world = switching(**CHECKED, **OVERLAP)
        world.finish().settle()
        assert world.selected == COLOURS
        world.spec["routeTo"] = "Blue"
        status = world.compose().status
        assert status
        world.status = status.wire()
        world.spec["greenSpec"] = pods("v3")

        assert "demogreen-deployment" in kept(world.compose())
        assert world.settle().history == [("Blue",), COLOURS, ("Blue",)]

    def test_a_clock_that_was_ahead_does_not_prolong_it(self):
        world = switching(**OVERLAP)
        world.status["switch"]["readySince"] = (world.now + HOUR).isoformat()
        world.settle().wait()

        assert world.selected == ("Green",)


class TestBake:
    def test_a_colour_whose_deployment_was_deleted_is_not_tried_again(self):
        world = rolled_back()
        del world.deployments["Green"]

        assert world.settle().phase == "RolledBack"
        assert world.history == [("Blue",), ("Green",), ("Blue",)]

    def test_there_is_no_way_back_to_a_colour_without_pods(self):
        world = Scaled(**BAKE).settle()
        world.spec["routeTo"] = "Green"
        world.settle()
        world.replicas["Blue"] = 0
        world.down = {"Green"}
        world.settle().wait()

        assert world.selected == ("Green",)

    @pytest.mark.parametrize("field", ["routed", "unavailableSince"])
    def test_a_clock_that_was_ahead_does_not_prolong_it(self, field):
        world = switching(**BAKE)
        later = (world.now + HOUR).isoformat()
        if field == "routed":
            world.status["routed"]["since"] = later
        else:
            world.down = {"Green"}
            world.settle()
            world.status["unavailableSince"] = later
        began = world.now
        world.settle().wait()

        assert world.now - began <= timedelta(seconds=BAKE["bakeSeconds"])
        assert world.phase == ("Routed" if field == "routed" else "RolledBack")


class TestFewerPods:
    """From six pods to one: replicas are the user's, so that it is told and not held up."""

    def six(self, **spec: Any) -> Scaled:
        world = Scaled(**spec).settle()
        world.finish().settle()
        world.replicas["Blue"] = 6
        world.settle()
        world.spec["routeTo"] = "Green"
        return world

    @pytest.mark.parametrize(
        "spec",
        [{}, {"promotion": "WhenAvailable"}, BAKE, OVERLAP, CHECKED],
        ids=["Immediate", "WhenAvailable", "bake", "Overlap", "WhenChecked"],
    )
    def test_the_event_of_the_switch_says_so(self, spec):
        world = self.six(**spec)
        told: list[str] = []
        for _ in range(12):
            desired = world.finish().do_pass()
            told += [event.note for event in desired.events if event.reason == "Switched"]
            world.now += desired.requeue_after or timedelta()

        assert world.selected == ("Green",)
        assert told == [
            "the Service selects Green now, Blue before (Blue to Green: 6 available now, 1 there)"
        ]

    @pytest.mark.parametrize(
        ("spec", "phase", "down"),
        [
            ({"hold": True}, "Held", False),
            ({"hold": True, "promotion": "WhenAvailable"}, "Held", False),
            (OVERLAP, "Overlapping", False),
            (CHECKED, "Checking", False),
            ({"promotion": "WhenAvailable"}, "", True),
        ],
        ids=["hold", "hold, WhenAvailable", "Overlap", "WhenChecked", "WhenAvailable"],
    )
    def test_a_switch_that_waits_says_so(self, spec, phase, down):
        world = self.six(**spec)
        world.down = {"Green"} if down else set()
        world.settle()

        assert (world.phase, world.selects("demo")[0]) == (phase, "Blue")
        assert world.why().endswith("6 available now, 1 there")

    def test_without_patience_those_count_that_are_available_now(self):
        world = self.six(hold=True)
        world.down = {"Green"}

        assert world.settle().why().endswith("6 available now, 0 there")

    @pytest.mark.parametrize("green", [6, 7])
    def test_of_as_many_or_more_nothing_is_said(self, green):
        world = self.six(hold=True)
        world.replicas["Green"] = green
        world.settle()
        held = world.why()
        world.spec["promoted"] = world.status["switch"]["template"]
        world.do_pass()
        [told] = world.do_pass().events

        assert held.endswith("the Service stays on Blue")
        assert told.note == "the Service selects Green now, Blue before"

    def test_a_colour_that_was_left_is_not_counted(self):
        world = rolled_back()

        assert world.why().endswith("the Service stays on Blue")


class TestClocks:
    """A clock that goes wrong while something lasts, and right again before the next pass."""

    LASTING = {"overlap": OVERLAP, "bake": BAKE, "unavailable": BAKE}

    @pytest.mark.parametrize(
        "wrong", [-HOUR, timedelta(seconds=-150), timedelta(seconds=150), HOUR]
    )
    @pytest.mark.parametrize("what", LASTING)
    def test_what_lasts_is_measured_by_the_servers(self, what, wrong):
        ends = []
        for ahead in (timedelta(), wrong):
            world = switching(**self.LASTING[what])
            if what == "unavailable":
                world.down = {"Green"}
                world.settle()
            began, world.ahead = world.now, ahead
            world.settle()
            world.pass_time(5)
            world.settle()
            before, world.ahead = world.phase, timedelta()
            world.settle().wait()
            ends.append((before, world.now - began, world.phase, world.history))

        assert ends[0] == ends[1]
