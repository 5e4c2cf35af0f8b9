"""Two installations of hedgerow on one resource: whoever has it first goes on having it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hedgerow.contract import Apply, Desired, Observed
from hedgerow.objects import CONTROLLER_LABEL
from hedgerow.testing.memory.cluster import MemoryCluster
from hedgerow_schemas.builtin import Deployment
from runtime.scenes import BLUE, settled
from runtime.world import CONTROLLER, World

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

MORE = {"minReadySeconds": 3}
CHILDREN = (
    ("Service", "demo"),
    ("Deployment", "demoblue-deployment"),
    ("Deployment", "demogreen-deployment"),
)


def beside(world: World, instance: str = "two", **differing: Any) -> World:
    """Return another operator on the same cluster, just started."""
    other = World(instance=instance, **differing)
    other.server, other.clock = world.server, world.clock
    other.cluster = MemoryCluster(world.server)
    other.restart()
    return other


def everything(world: World) -> list[Object]:
    return [world.the(kind, name) for kind, name in (("BlueGreen", "demo"), *CHILDREN)]


def left_alone(world: World) -> list[str]:
    return [e["why"] for e in world.logs.entries if e["event"] == "resources are left alone"]


def wipe_status(world: World) -> None:
    """Take the status away, and with it what tells who reports on the resource."""
    live = world.the("BlueGreen")
    world.server.update({**live, "status": {}}, "kubectl-replace", "status")


class TestTheSecond:
    async def test_it_leaves_all_as_it_is_and_writes_nothing(self):
        one = await settled()
        before = everything(one)
        two = beside(one)

        await two.settle()
        await one.settle()

        assert two.writes == []
        assert everything(one) == before
        assert one.condition("Contested") == ""

    async def test_it_says_so_once_for_all_resources_of_an_installation(self):
        one = await settled()
        one.apply("other")
        await one.settle()
        two = beside(one)

        await two.settle()
        one.apply(routeTo="Green")
        await two.settle()

        (told,) = left_alone(two)
        assert "is managed by another hedgerow, the instance without a name" in told
        assert "hedgerow release --instance '' --all" in told

    async def test_a_child_that_is_not_there_is_left_to_the_first(self):
        one = await settled()
        two = beside(one)
        one.delete("Service", "demo")

        await two.settle()

        assert two.writes == []
        await one.settle()
        assert one.the("Service")["metadata"]["labels"][CONTROLLER_LABEL] == "bluegreen"

    async def test_a_resource_of_its_own_is_left_alone_by_the_first(self):
        one = await settled()
        two = beside(one)
        one.delete("BlueGreen", "demo")
        one.deliver()
        two.apply("theirs")
        await two.settle()
        before = two.the("BlueGreen", "theirs")
        written = len(one.writes)

        await one.settle()

        assert one.writes[written:] == []
        assert two.the("BlueGreen", "theirs") == before
        assert two.status("theirs")["routeTo"] == "Blue"

    async def test_without_a_status_the_label_of_a_child_tells_and_it_writes_nothing(self):
        one = await settled()
        wipe_status(one)
        before = everything(one)
        two = beside(one)

        await two.settle()

        assert everything(one) == before
        assert two.writes == [f"apply {BLUE}"]  # create-only, and refused
        assert left_alone(two)

    async def test_the_first_takes_no_harm_of_a_status_that_was_lost_meanwhile(self):
        one = await settled()
        two = beside(one)
        wipe_status(one)
        await two.settle()

        await one.settle()

        assert one.status()["routeTo"] == "Blue"
        assert one.condition("Contested") == one.condition("Stalled") == ""

    async def test_what_the_first_has_given_up_is_taken_up_within_half_a_minute(self):
        one = await settled()
        wipe_status(one)
        two = beside(one)
        await two.settle()
        for kind, name in CHILDREN:
            live = one.the(kind, name)
            del live["metadata"]["labels"][CONTROLLER_LABEL]
            one.server.update(live, "somebody")
        two.server.now += 31

        await two.settle()

        assert two.status()["routeTo"] == "Blue"
        for kind, name in CHILDREN:
            assert two.the(kind, name)["metadata"]["labels"][CONTROLLER_LABEL] == "two.bluegreen"
        assert {sent.manager for sent in two.cluster.writes} == {"hedgerow-two-bluegreen"}


class TestOfTwoThatBeginAtOnce:
    @pytest.mark.parametrize("number", range(6))
    async def test_one_has_the_resource_and_all_of_its_children(self, number):
        one = World()
        two = beside(one)
        one.apply()
        one.deliver()
        two.deliver()
        one.during(number, two.work)

        await one.work()
        await two.settle()
        await one.settle()

        labels = {one.the(*child)["metadata"]["labels"][CONTROLLER_LABEL] for child in CHILDREN}
        holders = {
            entry["manager"]
            for obj in everything(one)
            for entry in obj["metadata"]["managedFields"]
            if entry["manager"] != "user"
        }
        (label,) = labels
        assert holders == {
            "hedgerow-bluegreen" if label == "bluegreen" else "hedgerow-two-bluegreen"
        }
        assert one.condition("Contested") == one.condition("Stalled") == ""


class TestOfAResourceThatBothHaveAPartOf:
    """As an older hedgerow left it, or as somebody made it by hand."""

    async def test_a_child_of_the_other_is_left_alone_and_told_with_the_remedy(self):
        one = await settled()
        live = one.the("Deployment", "demoblue-deployment")
        one.delete("Deployment", "demoblue-deployment")
        one.deliver()
        meta = {k: live["metadata"][k] for k in ("name", "namespace", "ownerReferences")}
        theirs = {
            **one.target("Deployment", "demoblue-deployment"),
            "metadata": {**meta, "labels": {CONTROLLER_LABEL: "two.bluegreen"}},
            "spec": live["spec"],
        }
        made = one.server.apply(theirs, "hedgerow-two-bluegreen")[0]

        await one.settle()

        assert one.the("Deployment", "demoblue-deployment") == made
        assert one.condition("Stalled") == "True/ManagedElsewhere"
        message = next(c["message"] for c in one.status()["conditions"] if c["type"] == "Stalled")
        assert "instance 'two'" in message
        assert "hedgerow release --instance two --all" in message
        assert one.selected() == "Blue"

    async def test_it_is_ours_again_once_the_other_has_given_it_up(self):
        one = await settled()
        live = one.the("Deployment", "demoblue-deployment")
        live["metadata"]["labels"][CONTROLLER_LABEL] = "two.bluegreen"
        one.server.apply(
            {
                **one.target("Deployment", "demoblue-deployment"),
                "metadata": {
                    "name": "demoblue-deployment",
                    "namespace": "default",
                    "labels": {CONTROLLER_LABEL: "two.bluegreen"},
                },
            },
            "hedgerow-two-bluegreen",
            force=True,
        )
        await one.settle()
        assert one.condition("Stalled") == "True/ManagedElsewhere"
        written = one.writes.count(f"apply {BLUE}")

        one.server.apply(one.target("Deployment", "demoblue-deployment"), "hedgerow-two-bluegreen")
        one.server.now += 31
        await one.settle()

        assert one.condition("Stalled") == ""
        assert one.writes.count(f"apply {BLUE}") > written
        labels = one.the("Deployment", "demoblue-deployment")["metadata"]["labels"]
        assert labels[CONTROLLER_LABEL] == "bluegreen"

    async def test_a_label_that_somebody_set_by_hand_takes_no_child_away(self):
        one = await settled()
        label = {"metadata": {"labels": {CONTROLLER_LABEL: "two.bluegreen"}}}
        one.edit("Deployment", "demoblue-deployment", label, by="kubectl-label")

        await one.settle()

        assert [manager for *_, manager in one.contested()] == ["kubectl-label"]
        assert one.condition("Stalled") == ""


def waiting(resource: Any, observed: Observed) -> Desired:
    """Compose as a version does that declares one field more."""
    desired = CONTROLLER.compose(resource, observed)
    children = tuple(
        replace(child, fields={**child.fields, "spec": {**child.fields["spec"], **MORE}})
        if isinstance(child, Apply) and child.kind is Deployment
        else child
        for child in desired.children
    )
    return replace(desired, children=children)


class TestTwoOfOneInstallationWithoutElection:
    async def test_of_different_versions_they_report_the_field_and_leave_the_children_alone(self):
        one = await settled()
        two = beside(one, "", controller=replace(CONTROLLER, compose=waiting))

        async def go_on(rounds: int) -> list[str]:
            before = len(one.writes), len(two.writes)
            for _ in range(rounds):
                for operator in (two, one):
                    operator.deliver()
                    await operator.work()
                one.server.now += 1
            return [*one.writes[before[0] :], *two.writes[before[1] :]]

        first = await go_on(30)
        later = await go_on(300)

        assert one.condition("Contested") == "True/FieldConflict"
        assert {path for _, path, *_ in one.contested()} == {".spec.minReadySeconds"}
        assert 0 < first.count(f"apply {BLUE}") <= 4
        assert [write for write in later if "BlueGreen" not in write] == []
