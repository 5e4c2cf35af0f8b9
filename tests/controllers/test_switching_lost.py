"""BlueGreen: what was routed stays known, whatever of Service and status is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.switching import CHECKED, COLOURS, SwitchWorld

if TYPE_CHECKING:
    from collections.abc import Callable

    from hedgerow.contract import Apply, Create, Desired

AVAILABLE = {"promotion": "WhenAvailable"}
OVERLAP = {"switch": "Overlap", "overlapSeconds": 20}
BAKE = AVAILABLE | {"bakeSeconds": 60}
PATIENT = {
    "WhenAvailable": AVAILABLE,
    "WhenChecked": CHECKED,
    "WhenAvailable, held": AVAILABLE | {"hold": True},
    "WhenChecked, held": CHECKED | {"hold": True},
    "Overlap": OVERLAP,
    "Overlap, held": OVERLAP | {"hold": True},
    "bake": BAKE,
    "all": CHECKED | OVERLAP | {"hold": True, "bakeSeconds": 60},
}
"""Each promotion under which nothing is routed that is not available."""


@dataclass(frozen=True)
class Loss:
    """What becomes of Service and status, and what the Service selects then."""

    name: str
    happens: Callable[[SwitchWorld], object]
    selected: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def delete(world: SwitchWorld) -> None:
    world.services.pop("demo", None)
    world.is_held = False


def give_back(world: SwitchWorld) -> None:
    """The other manager gives up the selector, as `hedgerow adopt` moves it."""
    world.is_held = False


def clear(world: SwitchWorld) -> None:
    """The status is gone, as in a backup that has none."""
    world.status = {}


def then(*acts: Callable[[SwitchWorld], object]) -> Callable[[SwitchWorld], None]:
    """Return these acts after each other, with the operator at work in between."""

    def happens(world: SwitchWorld) -> None:
        for act in acts:
            act(world)
            world.settle()

    return happens


def all_at_once(world: SwitchWorld) -> None:
    clear(world)
    delete(world)


BLUE = ("Blue",)
LOSSES = (
    Loss("the Service is deleted", then(delete), BLUE),
    Loss("the Service is deleted twice", then(delete, delete), BLUE),
    Loss("the selector is another", then(SwitchWorld.take), ()),
    Loss("it was another, and is given back", then(SwitchWorld.take, give_back), BLUE),
    Loss("it was another, and the Service is deleted", then(SwitchWorld.take, delete), BLUE),
    Loss("the status is cleared", then(clear), BLUE),
    Loss("the status is cleared, and the selector another", then(clear, SwitchWorld.take), ()),
    Loss("the selector is another, and the status cleared", then(SwitchWorld.take, clear), ()),
    Loss("neither is known, and the selector is given back",
         then(SwitchWorld.take, clear, give_back), ()),
    Loss("neither is known, and the Service is deleted",
         then(SwitchWorld.take, clear, delete), ()),
    Loss("all is lost at once", then(all_at_once), ()),
)  # fmt: skip


def serving_blue(**spec: Any) -> SwitchWorld:
    world = SwitchWorld(**spec).settle()
    return world.finish().settle()


def moved(world: SwitchWorld) -> SwitchWorld:
    """All is well again, and whatever the switch waits for comes."""
    world.down = set()
    world.is_held = False
    for _ in range(4):
        world.settle().finish()
        world.spec["promoted"] = world.status.get("switch", {}).get("template")
        world.pass_time(60)
    return world


class TestGreenIsDown:
    """Blue was routed and serves; then Green is chosen, which has no pod that is available."""

    @pytest.mark.parametrize("loss", LOSSES, ids=str)
    @pytest.mark.parametrize("spec", PATIENT.values(), ids=PATIENT)
    def test_the_traffic_stays_and_never_goes_to_it(self, spec, loss):
        world = serving_blue(**spec)
        world.down = {"Green"}
        world.spec["routeTo"] = "Green"
        loss.happens(world)

        assert not any("Green" in selected for selected in world.history)
        assert world.selected == loss.selected
        assert (world.ready(), world.ready(reason=True)) == ("False", "WaitingForAvailability")
        assert moved(world).selected == ("Green",)

    @pytest.mark.parametrize("loss", LOSSES, ids=str)
    def test_immediate_asks_for_nothing(self, loss):
        world = serving_blue()
        world.down = {"Green"}
        world.spec["routeTo"] = "Green"
        loss.happens(world)
        world.is_held = False

        assert world.settle().selected == ("Green",)

    @pytest.mark.parametrize("late", [AVAILABLE, OVERLAP, BAKE], ids=["plain", "overlap", "bake"])
    def test_a_spec_that_waits_only_since_then_knows_it_too(self, late):
        world = serving_blue()
        world.take()
        world.settle()
        world.spec |= {**late, "routeTo": "Green"}
        world.down = {"Green"}
        world.settle()
        delete(world)

        assert world.settle().selected == BLUE


class TestTakenOver:
    """The Service was there before, for pods of somebody else, and becomes the BlueGreen's."""

    @pytest.mark.parametrize("spec", PATIENT.values(), ids=PATIENT)
    def test_it_moves_when_the_colour_may_have_the_traffic(self, spec):
        world = SwitchWorld(**spec)
        world.down = {"Blue"}
        world.take({"app": "shop"})
        world.is_held = False
        world.settle()
        before = world.services["demo"]["spec"]["selector"], world.why()
        world.down = set()
        world.settle().finish().settle()
        at_last = world.selected
        if spec.get("hold"):
            assert (world.selected, world.phase) == ((), "Held")
            world.spec["promoted"] = world.status["switch"]["template"]
            at_last = world.settle().selected

        assert before[0] == {"app": "shop"}
        assert before[1].endswith("the Service stays as it is")
        assert (at_last, world.history) == (BLUE, [BLUE])

    def test_immediate_takes_the_traffic_at_once(self):
        world = SwitchWorld()
        world.take({"app": "shop"})
        world.is_held = False

        assert world.settle().selected == BLUE

    def test_a_hold_is_one_for_immediate_as_well(self):
        world = SwitchWorld(hold=True)
        world.take({"app": "shop"})
        world.is_held = False

        assert (world.settle().selected, world.phase) == ((), "Held")


class TestNothingIsRouted:
    """There is neither a Service nor a status, so there is nothing to take the traffic from."""

    @pytest.mark.parametrize("spec", [AVAILABLE, OVERLAP, BAKE], ids=["plain", "overlap", "bake"])
    def test_the_first_colour_has_its_service_before_its_pods(self, spec):
        world = SwitchWorld(**spec)
        world.down = set(COLOURS)

        assert world.settle().selected == BLUE

    @pytest.mark.parametrize("spec", PATIENT.values(), ids=PATIENT)
    def test_the_first_colour_is_not_held(self, spec):
        world = SwitchWorld(**spec).settle()

        assert world.finish().settle().selected == BLUE

    def test_a_colour_that_waits_while_the_other_could_serve_has_no_service(self):
        world = serving_blue(**AVAILABLE)
        world.spec["routeTo"] = "Green"
        world.down = {"Green"}
        all_at_once(world)

        assert (world.settle().selected, "demo" in world.services) == ((), False)
        assert world.why().endswith("nothing is routed yet")


class Traffic(SwitchWorld):
    """A world in which no colour without a pod gets the traffic, unless it had it last.

    While there is no Service and no colour has a pod, there is no traffic either.
    """

    had: tuple[str, ...] = ()
    """The colours that the Service selected last, whatever it selects in between."""
    up: frozenset[str] = frozenset()
    """The colours that had a pod when the pass looked."""

    def compose(self) -> Desired:
        self.up = frozenset(self.deployments) - self.down
        return super().compose()

    def _write(self, child: Apply | Create) -> None:
        before, is_there = self.selected, "demo" in self.services
        super()._write(child)
        new = {*self.selected} - {*before, *self.had} - self.up
        assert not new or not (is_there or self.up), f"{new} has no pod"
        self.had = self.selected or self.had


ACTIONS: dict[str, Callable[[Traffic, str, int], object]] = {
    "pass": lambda world, _colour, _number: world.do_pass(),
    "pass, cut off": lambda world, _colour, number: world.do_pass(cut=number),
    "choose": lambda world, colour, _number: world.spec.update(routeTo=colour),
    "checks pass": lambda world, _colour, _number: world.finish(),
    "later": lambda world, _colour, number: world.pass_time(number * 7.3),
    "down": lambda world, colour, _number: world.down.add(colour),
    "up": lambda world, colour, _number: world.down.discard(colour),
    "lose service": lambda world, _colour, _number: delete(world),
    "take": lambda world, _colour, _number: world.take(),
    "give back": lambda world, _colour, _number: give_back(world),
    "clear": lambda world, _colour, _number: clear(world),
}
WEIGHTED = (*ACTIONS, *("pass",) * 8, *("choose", "down", "take"))


class TestInterleavings:
    """Whatever is lost in whatever order, and wherever a pass is cut off."""

    @settings(max_examples=150)
    @given(data=st.data())
    def test_no_colour_without_a_pod_gets_the_traffic(self, data):
        world = Traffic(**data.draw(st.sampled_from(list(PATIENT.values()))))
        for _ in range(data.draw(st.integers(3, 40))):
            act = ACTIONS[data.draw(st.sampled_from(WEIGHTED))]
            act(world, data.draw(st.sampled_from(COLOURS)), data.draw(st.integers(0, 5)))
