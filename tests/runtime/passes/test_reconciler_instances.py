"""Two installations of hedgerow on one resource: neither undoes what the other one does.

Nobody should run them so. Each then reports the fields that the other one holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from hedgerow.contract import Apply, Desired, Observed
from hedgerow.objects import CONTROLLER_LABEL
from hedgerow_schemas.builtin import Deployment
from hedgerow_testing.memory.cluster import MemoryCluster
from runtime.clockwork import MINUTE, Clockwork
from runtime.scenes import BLUE, settled
from runtime.world import CONTROLLER, World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

MORE = {"minReadySeconds": 3}
CHILDREN = (
    ("Service", "demo"),
    ("Deployment", "demoblue-deployment"),
    ("Deployment", "demogreen-deployment"),
)
TWO = "hedgerow-two-bluegreen"
LABEL = f".metadata.labels.{CONTROLLER_LABEL}"
MOST_WRITES = 24
"""What a change may cost both together, Events left out."""
AGREED = 90
"""Seconds after which nothing is written any more."""


W = TypeVar("W", bound=World)


def beside(world: W, instance: str = "two", **differing: Any) -> W:
    """Return another operator on the same cluster, just started."""
    other = type(world)(instance=instance, **differing)
    other.server, other.clock = world.server, world.clock
    other.cluster = MemoryCluster(world.server)
    other.restart()
    return other


async def go_on(one: World, two: World, seconds: int) -> list[str]:
    """Have both work in turn each second; return what they write, Events left out."""
    before = len(one.writes), len(two.writes)
    for _ in range(seconds):
        for operator in (two, one):
            operator.deliver()
            await operator.work()
        one.server.now += 1
    made = [*one.writes[before[0] :], *two.writes[before[1] :]]
    return [write for write in made if " Event " not in write]


def holders(world: World, kind: str, name: str) -> set[str]:
    return {entry["manager"] for entry in world.the(kind, name)["metadata"]["managedFields"]}


CHANGES: dict[str, Callable[[World], object]] = {
    "it is flipped": lambda one: one.apply(routeTo="Green"),
    "another image": lambda one: one.apply(blueSpec=pods("blue", "example/echo:2")),
    "a colour less": lambda one: one.apply(greenSpec=None),
    "a child is deleted": lambda one: one.delete("Service", "demo"),
    "a field is edited": lambda one: one.edit(
        "Service", "demo", {"spec": {"selector": {"app.kubernetes.io/phase": "Green"}}}
    ),
    "a label is taken": lambda one: one.edit(
        "Service", "demo", {"metadata": {"labels": {CONTROLLER_LABEL: None}}}
    ),
    "the status is taken": lambda one: one.server.update(
        {**one.the("BlueGreen"), "status": {}}, "kubectl-replace", "status"
    ),
    "it is made anew": lambda one: (one.delete("BlueGreen"), one.apply()),
}


class TestTwoOnOneResource:
    async def both(self) -> tuple[World, World]:
        one = await settled()
        two = beside(one)
        assert len(await go_on(one, two, AGREED)) <= MOST_WRITES
        return one, two

    async def test_each_field_of_the_other_is_reported_with_its_holder(self):
        one, _ = await self.both()

        assert one.condition("Contested") == "True/FieldConflict"
        theirs = {(f"{kind}/{name}", LABEL, "hedgerow-bluegreen") for kind, name in CHILDREN}
        assert theirs <= set(one.contested())
        for child in CHILDREN:
            assert one.the(*child)["metadata"]["labels"][CONTROLLER_LABEL] == "bluegreen"
            assert {"hedgerow-bluegreen", TWO} <= holders(one, *child)

    async def test_then_nothing_is_written_nor_after_a_restart_of_either(self):
        one, two = await self.both()

        assert await go_on(one, two, 300) == []
        for again in (two, one):
            again.restart()
            assert await go_on(one, two, AGREED) == []

    @pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
    async def test_a_change_is_carried_out_with_few_writes_and_then_none(self, change):
        one, two = await self.both()
        change(one)

        assert 0 < len(await go_on(one, two, AGREED)) <= MOST_WRITES
        assert await go_on(one, two, 300) == []
        spec = one.the("BlueGreen")["spec"]
        if change is not CHANGES["a field is edited"]:
            assert one.selected() == spec["routeTo"]
        blue = one.the("Deployment", "demoblue-deployment")["spec"]["template"]["spec"]
        assert blue["containers"][0]["image"] == spec["blueSpec"]["containers"][0]["image"]
        green = one.get("Deployment", "demogreen-deployment")
        assert (green is not None) == ("greenSpec" in spec)

    @pytest.mark.parametrize("number", range(6))
    async def test_both_may_find_a_new_one_at_the_same_time(self, number):
        one = World()
        two = beside(one)
        one.apply()
        one.deliver()
        two.deliver()
        one.during(number, two.work)

        assert len(await go_on(one, two, AGREED)) <= 2 * MOST_WRITES
        assert await go_on(one, two, AGREED) == []
        assert one.selected() == "Blue"
        assert one.condition("Stalled") == ""

    async def test_once_one_has_stopped_and_was_released_the_other_has_it_alone(self):
        one, _ = await self.both()
        for child in CHILDREN:
            one.server.apply(one.target(*child), TWO)
        one.server.apply(one.target("BlueGreen", "demo"), TWO, subresource="status")
        one.apply(routeTo="Green")
        await one.settle()

        assert one.condition("Contested") == one.condition("Stalled") == ""
        assert one.selected() == one.status()["routeTo"] == "Green"
        assert TWO not in set().union(*(holders(one, *child) for child in CHILDREN))

    async def test_a_label_that_somebody_set_by_hand_takes_no_child_away(self):
        one = await settled()
        label = {"metadata": {"labels": {CONTROLLER_LABEL: "two.bluegreen"}}}
        one.edit("Deployment", "demoblue-deployment", label, by="kubectl-label")

        await one.settle()

        assert [manager for *_, manager in one.contested()] == ["kubectl-label"]
        assert one.condition("Stalled") == ""


class TestTwoOnOneCronJob:
    @pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
    async def test_no_start_is_made_twice_and_none_beside_a_job_that_runs_unless_allowed(
        self, policy
    ):
        one = Clockwork()
        two = beside(one)
        one.apply(concurrencyPolicy=policy)
        most = 0
        for _ in range(5 * MINUTE + 10):
            await go_on(one, two, 1)
            running = [j for j in one.server.list("batch", "Job").items if not j.get("status")]
            most = max(most, len(running))

        assert len(one.made) == len(set(one.made))
        assert len(one.made) == (1 if policy == "Forbid" else 5)
        assert most == (5 if policy == "Allow" else 1)


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

        first = await go_on(one, two, 30)
        later = await go_on(one, two, 300)

        assert one.condition("Contested") == "True/FieldConflict"
        assert {path for _, path, *_ in one.contested()} == {".spec.minReadySeconds"}
        assert 0 < first.count(f"apply {BLUE}") <= 4
        assert [write for write in later if "BlueGreen" not in write] == []
