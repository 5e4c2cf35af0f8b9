"""Carrying out one planned write or deletion."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from hedgerow.contract import Apply, Desired
from hedgerow.kube import errors
from hedgerow.objects import Installation, ObjectRef
from hedgerow.plan.input import PlanInput
from hedgerow.plan.plan import plan
from hedgerow.plan.writes import Deletion, Write
from hedgerow.runtime.applier import Applier
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment
from runtime.world import World, pods

pytestmark = pytest.mark.anyio

Object = dict[str, Any]

OWNER = ObjectRef(BlueGreen.api, "default", "demo", "owner-uid")
REF = ObjectRef(Deployment.api, "default", "web")


def planned(world: World, cpu: str = "1", image: str = "example/echo:1") -> Write | None:
    """The write that brings a Deployment about, or None when it is there as declared."""
    labels = {"app": "web"}
    spec = pods("c", image)
    spec["containers"][0]["resources"] = {"limits": {"cpu": cpu}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    child = Apply(
        Deployment, "web", {"spec": {"selector": {"matchLabels": labels}, "template": template}}
    )
    live = world.get("Deployment", "web")
    there = {("Deployment", "web"): live} if live else {}
    plan_input = PlanInput(OWNER, "bluegreen", Installation(), world.clock.now(), there)
    writes = plan(plan_input, Desired((child,)), (Deployment,)).writes
    return writes[0] if writes else None


@pytest.fixture
def applier(world) -> Applier:
    return Applier(cast("Any", world.cluster), "hedgerow-bluegreen")


async def carry_out(applier: Applier, world: World, **how: str) -> str:
    write = planned(world, **how)
    assert write is not None
    return (await applier.apply(write, world.get("Deployment", "web"))).action


class TestApplying:
    async def test_what_was_not_there_is_created(self, world, applier):
        assert await carry_out(applier, world) == "created"
        assert planned(world) is None

    async def test_what_was_there_otherwise_is_configured(self, world, applier):
        await carry_out(applier, world)

        assert await carry_out(applier, world, image="example/echo:2") == "configured"

    async def test_what_was_there_so_already_is_unchanged(self, world, applier):
        write = planned(world)
        await applier.apply(write, None)
        live = world.the("Deployment", "web")
        meta = {k: v for k, v in write.body["metadata"].items() if k != "resourceVersion"}
        again = Write(REF, {**write.body, "metadata": meta}, "mark", create=False)

        assert (await applier.apply(again, live)).action == "unchanged"

    async def test_what_the_server_changes_is_told_and_nothing_more_is_written(
        self, world, applier
    ):
        write, apply = planned(world), world.server.apply

        def admitted(body: Object, manager: str, **how: Any) -> Any:
            body = copy.deepcopy(body)
            body["spec"]["template"]["spec"]["containers"][0]["image"] = "mirror/echo:1"
            return apply(body, manager, **how)

        world.server.apply = admitted
        applied = await applier.apply(write, None)

        assert (applied.action, applied.settled) == ("created", False)
        assert applied.respelling
        assert len(world.cluster.writes) == 1

    async def test_what_it_is_known_to_add_is_no_change(self, world, applier):
        write = planned(world)
        reference = {"fieldRef": {"fieldPath": "metadata.name"}}
        spec = write.body["spec"]["template"]["spec"]
        spec["containers"][0]["env"] = [{"name": "POD", "valueFrom": reference}]

        applied = await applier.apply(write, None)

        [env] = applied.obj["spec"]["template"]["spec"]["containers"][0]["env"]
        assert env["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
        assert (applied.respelling, applied.settled) == ("", True)

    async def test_a_quantity_in_another_spelling_needs_no_mark(self, world, applier):
        await carry_out(applier, world, cpu="1000m")

        assert len(world.cluster.writes) == 1
        assert planned(world, cpu="1000m") is None

    async def test_a_status_is_applied_to_its_subresource(self, world, applier):
        world.apply()
        live = world.the("BlueGreen")
        ref = ObjectRef(BlueGreen.api, "default", "demo", live["metadata"]["uid"])
        body = {"metadata": {"name": "demo", "namespace": "default", "uid": ref.uid}}

        version = live["metadata"]["resourceVersion"]
        answer = await applier.apply_status(ref, {**body, "status": {"routeTo": "Blue"}}, version)

        assert answer["status"] == {"routeTo": "Blue"}
        (sent,) = world.cluster.writes
        assert (sent.subresource, sent.force) == ("status", False)

    async def test_a_status_never_reaches_a_resource_that_was_made_anew(self, world, applier):
        world.apply()
        old = world.the("BlueGreen")
        ref = ObjectRef(BlueGreen.api, "default", "demo", old["metadata"]["uid"])
        world.delete("BlueGreen")
        world.apply()
        body = {"metadata": {"name": "demo", "namespace": "default", "uid": ref.uid}}

        with pytest.raises(errors.Stale):
            await applier.apply_status(
                ref, {**body, "status": {"routeTo": "Blue"}}, old["metadata"]["resourceVersion"]
            )

        assert "status" not in world.the("BlueGreen")


class TestDeleting:
    async def test_exactly_the_object_that_was_observed_goes(self, world, applier):
        await carry_out(applier, world)
        meta = world.the("Deployment", "web")["metadata"]
        ref = ObjectRef(Deployment.api, "default", "web", meta["uid"])

        with pytest.raises(errors.Stale):
            await applier.delete(Deletion(ref, "1"))
        assert await applier.delete(Deletion(ref, meta["resourceVersion"]))
        assert not await applier.delete(Deletion(ref, meta["resourceVersion"]))

    async def test_another_object_of_the_name_stays(self, world, applier):
        await carry_out(applier, world)

        assert not await applier.delete(
            Deletion(ObjectRef(Deployment.api, "default", "web", "other"), "")
        )
        assert await applier.read(REF) == world.the("Deployment", "web")
