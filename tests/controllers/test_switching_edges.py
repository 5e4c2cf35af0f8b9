"""BlueGreen: a switch beside people who edit, clocks that are wrong, and colours that go away."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controllers.stories import (
    BAKE,
    BLUE,
    GREEN,
    HOLD,
    OVERLAP,
    STAYS,
    V3,
    Act,
    all_comes,
    down,
    due,
    later,
    of_status,
    once,
    passes,
    play,
    promote,
    scale,
    spec,
    story,
    then,
)
from controllers.switching import CHECKED, START, SwitchWorld
from controllers.told import kept
from hedgerow.controllers.bluegreen.scene import contested_in
from hedgerow_schemas.bluegreen import BlueGreen
from support.objects.parts import Part

WATCHED = BAKE | {"bakeSeconds": 600, "bakeUnavailableSeconds": 30}
AVAILABLE = {"promotion": "WhenAvailable"}
HOUR = timedelta(hours=1)
SOON = (START + HOUR).isoformat()
"""An hour after what these stories take."""
IMAGE = '.spec.template.spec.containers[name="c"].image'


def contest(world: SwitchWorld) -> None:
    """Have the status say that somebody holds a part of Green's template."""
    leaf = {"object": "Deployment/demogreen-deployment", "path": IMAGE, "manager": "helm"}
    world.status["contested"] = [leaf]


def ahead(by: timedelta) -> Act:
    """Have the operator's clock ahead of the API server's."""
    return lambda world: setattr(world, "ahead", by)


def lose_green(world: SwitchWorld) -> None:
    del world.deployments["Green"]


def refuse_service(world: SwitchWorld) -> None:
    """Have all written but the Service: the status knows of no switch to it."""
    status = world.compose().status
    assert status
    world.status = status.wire()


ROLLED_BACK = (
    then(GREEN),
    then(down("Green")),
    then(due),
    then(down(), phase="RolledBack", why=Part(STAYS)),
)
STORIES = (
    story("a template that somebody else holds a part of is not checked", CHECKED,
        then(GREEN),
        once(passes, contest, on="Blue", why=Part(f"somebody else holds {IMAGE} of its")),
        then(of_status("contested", is_=None), on="Green")),
    story("a clock that was ahead does not prolong an overlap", OVERLAP,
        then(GREEN),
        then(of_status("switch", "readySince", is_=SOON)),
        then(due, on="Green")),
    story("a clock that was ahead does not prolong a bake", WATCHED,
        then(GREEN),
        then(of_status("routed", "since", is_=SOON), wait=600),
        then(due, phase="Routed")),
    story("a clock that was ahead does not prolong the patience of a bake", WATCHED,
        then(GREEN),
        then(down("Green")),
        then(of_status("unavailableSince", is_=SOON), wait=30),
        then(due, phase="RolledBack")),
    story("a colour whose Deployment was deleted is not tried again", WATCHED,
        *ROLLED_BACK,
        then(lose_green, phase="RolledBack", went="Blue Green Blue")),
    story("there is no way back to a colour without pods", WATCHED,
        then(GREEN),
        then(scale(Blue=0), down("Green")),
        then(due, on="Green")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "count", "told"),
    [
        ([], None, ""),
        ([("demoblue", IMAGE)], 1, ""),
        ([("demogreen", ".spec.replicas")], 1, ""),
        ([("demogreen", IMAGE)], 9, f"{IMAGE} of its Deployment"),
        # Any of those for which the status has no room may be of the template.
        ([("demoblue", IMAGE)], 3, "fields that this status does not list"),
        ([], 1, "fields that this status does not list"),
    ],
)
def test_what_is_contested_of_a_template_keeps_it_from_being_checked(listed, count, told):
    fields = [
        {"object": f"Deployment/{name}-deployment", "path": path, "manager": "helm"}
        for name, path in listed
    ]
    status = {"contested": fields, "contestedCount": count}
    bg = BlueGreen.model_validate(
        {"metadata": {"name": "demo"}, "spec": {"routeTo": "Green"}, "status": status}
    )

    assert contested_in(bg, "Green") == told


class TestStories:
    @pytest.mark.parametrize("one", STORIES, ids=str)
    def test_each_step_shows(self, one):
        play(one)

    def test_what_leaves_an_overlap_is_not_changed_while_it_is_selected(self):
        """Not even if the Service was refused."""
        world = play(story("", CHECKED | OVERLAP, then(GREEN), then(passes, on="Both")))
        BLUE(world)
        refuse_service(world)
        spec(greenSpec=V3)(world)

        assert "demogreen-deployment" in kept(world.compose())
        assert world.settle().history == [("Blue",), ("Blue", "Green"), ("Blue",)]


FEWER = "6 available now, 1 there"
SIX = then(scale(Blue=6))
HELD = "Green waits for `hedgerow promote demo -n ns`"
TOLD = "the Service selects Green now, Blue before"
COUNTED = (
    story("without patience those count that are available now", HOLD,
        SIX,
        then(GREEN, down("Green"), why=Part("6 available now, 0 there"))),
    *(
        story(f"of {green} nothing is said", HOLD,
            SIX,
            then(GREEN, scale(Green=green), why=f"{HELD}{STAYS}"),
            then(promote, notes=[TOLD]))
        for green in (6, 7)
    ),
    story("a colour that was left is not counted", WATCHED,
        *ROLLED_BACK,
        then(why="Green was not available after it was routed, and is not tried again with this"
                 f" template{STAYS}")),
)  # fmt: skip


class TestFewerPods:
    """From six pods to one: replicas are the user's, so that it is told and not held up."""

    @pytest.mark.parametrize(
        "spec",
        [{}, AVAILABLE, WATCHED, OVERLAP, CHECKED],
        ids=["Immediate", "WhenAvailable", "bake", "Overlap", "WhenChecked"],
    )
    def test_the_event_of_the_switch_says_so(self, spec):
        world = play(story("", spec, SIX, then(GREEN, all_comes, on="Green")))
        notes = [event.note for event in world.told if event.reason == "Switched"]

        assert notes == [f"{TOLD} (Blue to Green: {FEWER})"]

    @pytest.mark.parametrize(
        ("spec", "phase", "broken"),
        [
            (HOLD, "Held", ()),
            (HOLD | AVAILABLE, "Held", ()),
            (OVERLAP, "Overlapping", ()),
            (CHECKED, "Checking", ()),
            (AVAILABLE, "", ("Green",)),
        ],
        ids=["hold", "hold, WhenAvailable", "Overlap", "WhenChecked", "WhenAvailable"],
    )
    def test_a_switch_that_waits_says_so(self, spec, phase, broken):
        world = play(story("", spec, SIX, then(GREEN, down(*broken), phase=phase)))

        assert world.selected[0] == "Blue"
        assert world.why().endswith(FEWER)

    @pytest.mark.parametrize("one", COUNTED, ids=str)
    def test_only_those_are_counted_that_may_lack(self, one):
        play(one)


class TestClocks:
    """A clock that goes wrong while something lasts, and right again before the next pass."""

    LASTING = {
        "overlap": (OVERLAP, then(GREEN)),
        "bake": (WATCHED, then(GREEN)),
        "unavailable": (WATCHED, then(GREEN), then(down("Green"))),
    }

    @pytest.mark.parametrize(
        "wrong", [-HOUR, timedelta(seconds=-150), timedelta(seconds=150), HOUR]
    )
    @pytest.mark.parametrize("what", LASTING)
    def test_what_lasts_is_measured_by_the_servers(self, what, wrong):
        assert self.ends(what, wrong) == self.ends(what, timedelta())

    def ends(self, what: str, wrong: timedelta) -> list[object]:
        seen: list[object] = []
        spec, *steps = self.LASTING[what]
        off = (then(ahead(wrong)), then(later(5)), then(lambda world: seen.append(world.phase)))
        world = play(story("", spec, *steps, *off, then(ahead(timedelta())), then(due)))
        return [*seen, world.now, world.phase, world.history]
