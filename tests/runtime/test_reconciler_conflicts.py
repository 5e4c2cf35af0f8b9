"""Fields that others hold: shown, never overwritten; and fields that vanish."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.scenes import (
    CREATION,
    DISK,
    IMAGE,
    settled,
    take_image,
    writes_of,
)
from runtime.world import DEMO, World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio


class TestConflicts:
    async def test_a_taken_field_is_reported_and_never_written(self):
        world = await settled()

        written = await writes_of(world, lambda: take_image(world))

        assert written[-1] == CREATION[3]
        assert all("Event" in write for write in written[:-1])
        assert world.contested() == [("Deployment/demoblue-deployment", IMAGE, "helm")]
        assert world.condition("Contested") == "True/FieldConflict"
        assert world.condition("Ready") == "False/FieldConflict"
        assert world.events() == ["FieldConflict"]

    async def test_another_field_of_the_same_object_still_follows(self):
        world = await settled()
        take_image(world)
        await world.settle()

        world.apply(blueSpec=pods("blue", "mine:2", terminationGracePeriodSeconds=7))
        await world.settle()

        spec = world.the("Deployment", "demoblue-deployment")["spec"]["template"]["spec"]
        assert spec["terminationGracePeriodSeconds"] == 7
        assert spec["containers"][0]["image"] == "theirs:9"

    async def test_what_is_contested_no_longer_is_taken_off(self):
        world = await settled()
        take_image(world)
        await world.settle()

        world.apply(blueSpec=pods("blue", "theirs:9"))
        await world.settle()

        assert (world.contested(), world.condition("Contested")) == ([], "")

    async def test_a_conflict_that_nobody_saw_coming_is_looked_up_and_not_repeated(self):
        # The watch is behind: the write is refused, and a look at the object tells who holds what.
        world = await settled()
        take_image(world)
        world.apply(blueSpec=pods("blue", "mine:2"))
        world.deliver(kind="BlueGreen")
        before = len(world.writes)
        await world.work()

        written = [write for write in world.writes[before:] if "Event" not in write]
        assert written == [CREATION[0], CREATION[3]]
        assert world.condition("Ready") == "False/FieldConflict"
        world.life.look(DEMO)
        await world.work()
        assert len(world.writes[before:]) == len(written) + 1

        await world.settle()
        assert world.contested() == [("Deployment/demoblue-deployment", IMAGE, "helm")]

    async def test_scaling_is_honoured_and_not_reported(self):
        world = await settled()
        target = world.target("Deployment", "demoblue-deployment")

        world.server.scale(target, 5, "kubectl-scale")
        await world.settle()

        assert world.the("Deployment", "demoblue-deployment")["spec"]["replicas"] == 5
        assert world.contested() == []

    async def test_a_patient_flip_does_not_move_on_a_template_that_was_refused(self):
        world = await settled(promotion="WhenAvailable")
        world.make_ready("blue")
        world.make_ready("green")
        await world.settle()
        take_image_of_green = {
            "spec": {"template": {"spec": {"containers": [{"name": "green", "image": "x"}]}}}
        }
        target = world.target("Deployment", "demogreen-deployment")
        world.server.apply({**target, **take_image_of_green}, "helm", force=True)
        world.apply(promotion="WhenAvailable", routeTo="Green", greenSpec=pods("green", "mine:2"))
        world.deliver(kind="BlueGreen")

        await world.work()

        assert world.selected() == "Blue"


class TestItems:
    """A list item of ours that is declared no more, and in which somebody holds a field."""

    TWO = [{"name": "blue", "image": "a"}, {"name": "side", "image": "b"}]

    async def test_it_is_not_removed_with_what_another_holds_in_it(self):
        world = await settled(blueSpec={"containers": self.TWO})
        name = "demoblue-deployment"
        live = world.the("Deployment", name)
        live["spec"]["template"]["spec"]["containers"][1]["image"] = "theirs:9"
        world.server.update(live, "kubectl-set")
        await world.settle()

        world.apply(blueSpec={"containers": self.TWO[:1]})
        await world.settle()

        containers = world.the("Deployment", name)["spec"]["template"]["spec"]["containers"]
        assert {c["name"]: c["image"] for c in containers} == {"blue": "a", "side": "theirs:9"}
        path = '.spec.template.spec.containers[name="side"]'
        assert world.contested() == [(f"Deployment/{name}", path, "kubectl-set")]
        assert await writes_of(world, world.restart) == []

    async def test_it_goes_when_nobody_holds_a_part_of_it(self):
        world = await settled(blueSpec={"containers": self.TWO})

        world.apply(blueSpec={"containers": self.TWO[:1]})
        await world.settle()

        live = world.the("Deployment", "demoblue-deployment")
        assert [c["name"] for c in live["spec"]["template"]["spec"]["containers"]] == ["blue"]
        assert world.contested() == []


class TestGivingUp:
    @pytest.mark.parametrize(
        ("change", "is_versioned"),
        [(pods("blue"), True), (pods("blue", "mine:2", terminationGracePeriodSeconds=7), False)],
        ids=["a field is given up", "a field is changed"],
    )
    async def test_only_what_gives_a_field_up_is_for_the_version_that_was_looked_at(
        self, change, is_versioned
    ):
        world = await settled(blueSpec=pods("blue", terminationGracePeriodSeconds=7))
        before = len(world.cluster.writes)

        world.apply(blueSpec=change)
        await world.settle()

        (write, *_) = world.cluster.writes[before:]
        assert ("resourceVersion" in write.body["metadata"]) == is_versioned


class TestVanishedFields:
    SPEC = pods("blue", nodeSelector=DISK)

    async def gone(self) -> World:
        world = await settled(blueSpec=self.SPEC)
        self.remove(world)
        await world.settle()
        return world

    @staticmethod
    def remove(world: World) -> None:
        spec = {"template": {"spec": {"nodeSelector": None}}}
        world.edit("Deployment", "demoblue-deployment", {"spec": spec})

    @staticmethod
    def disk(world: World) -> object:
        spec = world.the("Deployment", "demoblue-deployment")["spec"]["template"]["spec"]
        return spec.get("nodeSelector")

    async def test_it_is_put_back_and_told(self):
        world = await self.gone()

        assert (self.disk(world), world.contested()) == (DISK, [])
        assert world.events() == ["FieldRestored"]

    async def test_gone_again_it_is_reported_and_left_alone(self):
        world = await self.gone()
        self.remove(world)
        await world.settle()

        assert self.disk(world) is None
        (leaf,) = world.contested()
        assert leaf == (
            "Deployment/demoblue-deployment",
            ".spec.template.spec.nodeSelector",
            None,
        )
        assert sorted(world.events()) == ["FieldConflict", "FieldRestored"]
        assert await writes_of(world, world.restart) == []
        assert self.disk(world) is None

    @pytest.mark.parametrize("restarted", [True, False])
    async def test_a_new_declaration_is_a_new_attempt(self, restarted):
        world = await self.gone()
        self.remove(world)
        await world.settle()
        if restarted:
            world.restart()

        world.apply(blueSpec=self.SPEC, routeTo="Green")
        await world.settle()

        assert (self.disk(world), world.contested()) == (DISK, [])

    async def test_a_label_of_our_own_is_put_back_once_as_well(self):
        world = await settled()
        gone = {"metadata": {"labels": {"hedgerow.dev/controller": None}}}

        def labels() -> Object:
            return world.the("Deployment", "demoblue-deployment")["metadata"].get("labels", {})

        world.edit("Deployment", "demoblue-deployment", gone)
        await world.settle()
        assert labels() == {"hedgerow.dev/controller": "bluegreen"}
        assert world.events() == ["FieldRestored"]

        world.edit("Deployment", "demoblue-deployment", gone)
        await world.settle()
        assert labels() == {}
        assert [path for _, path, _ in world.contested()] == [".metadata.labels"]
        assert await writes_of(world, world.restart) == []
