"""BlueGreen: what was routed stays known, whatever of Service and status is gone."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.stories import (
    EVENTS,
    GREEN,
    HOLD,
    OVERLAP,
    Act,
    Event,
    Then,
    all_comes,
    clear,
    down,
    first,
    give_back,
    lose_service,
    passes,
    play,
    promote,
    spec,
    story,
    then,
)
from controllers.switching import CHECKED, COLOURS, SwitchWorld
from support.objects.parts import Part

if TYPE_CHECKING:
    from hedgerow.contract import Apply, Create, Desired

AVAILABLE = {"promotion": "WhenAvailable"}
BAKE = AVAILABLE | {"bakeSeconds": 60}
PATIENT = {
    "WhenAvailable": AVAILABLE,
    "WhenChecked": CHECKED,
    "WhenAvailable, held": AVAILABLE | HOLD,
    "WhenChecked, held": CHECKED | HOLD,
    "Overlap": OVERLAP,
    "Overlap, held": OVERLAP | HOLD,
    "bake": BAKE,
    "all": CHECKED | OVERLAP | HOLD | {"bakeSeconds": 60},
}
"""Each promotion under which nothing is routed that is not available."""
take = SwitchWorld.take


def all_at_once(world: SwitchWorld) -> None:
    clear(world)
    lose_service(world)


LOSSES: dict[str, tuple[str, tuple[Act, ...]]] = {
    "the Service is deleted": ("Blue", (lose_service,)),
    "the Service is deleted twice": ("Blue", (lose_service, lose_service)),
    "the selector is another": ("", (take,)),
    "it was another, and is given back": ("Blue", (take, give_back)),
    "it was another, and the Service is deleted": ("Blue", (take, lose_service)),
    "the status is cleared": ("Blue", (clear,)),
    "the status is cleared, and the selector another": ("", (clear, take)),
    "the selector is another, and the status cleared": ("", (take, clear)),
    "neither is known, and the selector is given back": ("", (take, clear, give_back)),
    "neither is known, and the Service is deleted": ("", (take, clear, lose_service)),
    "all is lost at once": ("", (all_at_once,)),
}
"""What becomes of Service and status, one after the other, and what is selected then."""


class TestGreenIsDown:
    """Blue was routed and serves; then Green is chosen, which has no pod that is available."""

    @pytest.mark.parametrize(
        ("promotion", "loss"),
        [
            # What is asked of Green is the promotion's, which no loss touches.
            (promotion, loss)
            for promotion, loss in product(PATIENT, LOSSES)
            if promotion in ("WhenAvailable", "all") or loss == "all is lost at once"
        ],
    )
    def test_the_traffic_stays_and_never_goes_to_it(self, promotion, loss):
        on, acts = LOSSES[loss]
        seen = then(on=on, ever={"Blue"}, ready="False/WaitingForAvailability")
        mended = then(down(), give_back, all_comes, on="Green")
        play(story(loss, PATIENT[promotion], *self.lost(*acts), seen, mended))

    @pytest.mark.parametrize("loss", LOSSES)
    def test_immediate_asks_for_nothing(self, loss):
        _, acts = LOSSES[loss]
        play(story(loss, {}, *self.lost(*acts), then(give_back, on="Green")))

    def lost(self, first: Act, *acts: Act) -> tuple[Then, ...]:
        return then(down("Green"), GREEN, first), *map(then, acts)

    @pytest.mark.parametrize("later", [AVAILABLE, OVERLAP, BAKE], ids=["plain", "overlap", "bake"])
    def test_a_spec_that_waits_only_since_then_knows_it_too(self, later):
        waits = then(spec(**later, routeTo="Green"), down("Green"))
        play(story("", {}, then(take), waits, then(lose_service, on="Blue")))


def take_over(world: SwitchWorld) -> None:
    """Have a Service there before, for pods of somebody else."""
    world.take({"app": "shop"})
    world.is_held = False


class TestTakenOver:
    """The Service was there before, and becomes the BlueGreen's."""

    @pytest.mark.parametrize("promotion", PATIENT)
    def test_it_moves_when_the_colour_may_have_the_traffic(self, promotion):
        wanted = PATIENT[promotion]
        before = {"selector": {"app": "shop"}, "why": Part("; the Service stays as it is")}
        steps = [then(down("Blue"), take_over, **before), then(down()), then(passes)]
        if wanted.get("hold"):
            steps += [then(on="", phase="Held"), then(promote)]
        play(first(promotion, wanted, *steps, then(on="Blue", went="Blue")))

    @pytest.mark.parametrize("one", [
        first("immediate takes the traffic at once", {}, then(take_over, on="Blue")),
        first("a hold is one for immediate as well", HOLD, then(take_over, on="", phase="Held")),
    ], ids=str)  # fmt: skip
    def test_what_has_no_patience(self, one):
        play(one)


class TestNothingIsRouted:
    """There is neither a Service nor a status, so there is nothing to take the traffic from."""

    @pytest.mark.parametrize("spec", [AVAILABLE, OVERLAP, BAKE], ids=["plain", "overlap", "bake"])
    def test_the_first_colour_has_its_service_before_its_pods(self, spec):
        play(first("", spec, then(down(*COLOURS), on="Blue")))

    @pytest.mark.parametrize("spec", PATIENT.values(), ids=PATIENT)
    def test_the_first_colour_is_not_held(self, spec):
        play(first("", spec, then(), then(passes, on="Blue")))

    def test_a_colour_that_waits_while_the_other_could_serve_has_no_service(self):
        acts = (GREEN, down("Green"), all_at_once)
        world = play(story("", AVAILABLE, then(*acts, on="", services=[])))

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


LOSING: dict[str, Event[SwitchWorld]] = {
    **EVENTS,
    "take": lambda world, _colour, _number: world.take(),
    "give back": lambda world, _colour, _number: give_back(world),
    "clear": lambda world, _colour, _number: clear(world),
}
WEIGHTED = (*LOSING, *("pass",) * 8, *("choose", "down", "take"))


class TestInterleavings:
    """Whatever is lost in whatever order, and wherever a pass is cut off."""

    @given(data=st.data())
    def test_no_colour_without_a_pod_gets_the_traffic(self, data):
        world = Traffic(**data.draw(st.sampled_from(list(PATIENT.values()))))
        for _ in range(data.draw(st.integers(3, 40))):
            act = LOSING[data.draw(st.sampled_from(WEIGHTED))]
            act(world, data.draw(st.sampled_from(COLOURS)), data.draw(st.integers(0, 5)))
