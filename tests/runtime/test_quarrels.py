"""A quarrel with another program ends, in whatever words it is fought; a rollout is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from hedgerow.contract import Apply, Controller, Desired
from hedgerow.controllers.bluegreen import controller as bluegreen
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow_schemas.base import Resource
from hedgerow_schemas.builtin import Deployment
from hedgerow_testing.memory.cluster import MemoryCluster
from runtime.scenes import BLUE, MOST_REPEATS, settled
from runtime.world import World, pods

Object = dict[str, Any]
NAME = "demoblue-deployment"

pytestmark = pytest.mark.anyio


def limited(cpu: str, image: str = "example/echo:1") -> Object:
    limits = {"limits": {"cpu": cpu}}
    return {"containers": [{"name": "blue", "image": image, "resources": limits}]}


def claim(world: World, path: str) -> None:
    annotations = {"metadata": {"annotations": {CLAIM: f"Deployment/*: {path}"}}}
    world.edit("BlueGreen", "demo", annotations, "user-annotate")


def forced(world: World) -> int:
    return sum(sent.force for sent in world.cluster.writes)


async def fight(world: World, *moves: Object, rounds: int = 3 * MOST_REPEATS) -> None:
    """Let helm take what is ours, time and again, each time with the next of these pods."""
    target = world.target("Deployment", NAME)
    for number in range(rounds):
        spec = {"template": {"spec": moves[number % len(moves)]}}
        world.server.apply({**target, "spec": spec}, "helm", force=True)
        world.deliver()
        await world.work()
        world.server.now += 1


@pytest.mark.parametrize(
    ("declared", "claimed", "moves"),
    [
        (limited("1000m"), "**", [limited("1", "theirs:9"), limited("1000m", "theirs:9")]),
        # What is contested and not claimed is left out: one quarrel, and two bodies by turns.
        (
            pods("blue", terminationGracePeriodSeconds=7),
            "spec.template.spec.containers[*].image",
            [pods("blue", "theirs:9", terminationGracePeriodSeconds=grace) for grace in (9, 7)],
        ),
    ],
    ids=["in another spelling", "beside what comes and goes"],
)
async def test_what_is_claimed_again_and_again_is_given_up(declared, claimed, moves):
    world = await settled(blueSpec=declared)
    claim(world, claimed)

    await fight(world, *moves)

    assert forced(world) <= MOST_REPEATS
    assert world.condition("Ready") == "False/NotSettling"


def other(server_of: World, image: str) -> World:
    """Another program that claims the same, which declares another image.

    It is a controller of another name: to another installation of the same one all would be left.
    """

    def compose(resource: Any, observed: Any) -> Desired:
        desired = bluegreen.CONTROLLER.compose(resource, observed)
        return replace(desired, children=tuple(map(drawn, desired.children)))

    def drawn(child: Any) -> Any:
        if not isinstance(child, Apply) or child.kind is not Deployment:
            return child
        fields = {**child.fields, "spec": {**child.fields["spec"]}}
        (container,) = fields["spec"]["template"]["spec"]["containers"]
        spec = {"containers": [{**container, "image": image}]}
        fields["spec"]["template"] = {**fields["spec"]["template"], "spec": spec}
        return replace(child, fields=fields)

    fleet = replace(bluegreen.CONTROLLER, name="fleet", compose=compose)
    world = World(controller=cast("Controller[Resource]", fleet))
    world.server = server_of.server
    world.cluster = MemoryCluster(world.server)
    world.clock = server_of.clock
    world.restart()
    return world


class TestTwoClaimants:
    async def test_a_claim_against_a_claim_ends(self):
        one = await settled()
        claim(one, "**")
        two = other(one, "theirs:9")

        for _ in range(3 * MOST_REPEATS):
            for world in (one, two):
                world.deliver()
                await world.work()
            one.server.now += 1

        assert 0 < forced(one) <= MOST_REPEATS * 2
        assert 0 < forced(two) <= MOST_REPEATS * 2
        assert len(one.writes) + len(two.writes) < 75


class TestRollouts:
    @pytest.mark.parametrize("images", [2 * MOST_REPEATS, 2], ids=["on", "back and forth"])
    async def test_a_declaration_that_goes_on_or_back_and_forth_is_no_quarrel(self, images):
        world = await settled()

        for number in range(2 * MOST_REPEATS):
            world.apply(blueSpec=pods("blue", f"mine:{number % images}"))
            world.deliver()
            await world.work()

        assert world.condition("Stalled") == ""
        assert world.writes.count(f"apply {BLUE}") >= 2 * MOST_REPEATS

    async def test_nor_is_a_status_that_goes_with_its_children(self):
        world = await settled()
        said = set[str]()

        for number in range(2 * MOST_REPEATS):
            world.make_ready("blue", available=number % 2)
            world.deliver()
            await world.work()
            said.add(world.condition("Ready"))
            world.server.now += 10

        assert world.condition("Ready") in said
        assert len(said) == 2
        world.make_ready("blue", available=1)
        world.deliver()
        await world.work()
        assert world.condition("Ready").startswith("True")
