"""SimulatedCluster: it meets an apply's own conditions as a server does, and comes to an end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from hedgerow.contract import Apply, Controller, Desired, Notice
from hedgerow.kube.errors import AlreadyExists, Stale
from hedgerow.objects import metadata
from hedgerow.plan.conditions import ready
from hedgerow_schemas.bluegreen import BlueGreenStatus
from hedgerow_schemas.builtin import Service
from hedgerow_tools.planning.resource_forecasts import ResourceForecaster
from hedgerow_tools.planning.simulated_cluster import SimulatedCluster
from runtime.scenes import settled
from runtime.world import CONTROLLER, NS, World
from support.server.connected import connected
from tools.planning.asked import asked

pytestmark = pytest.mark.anyio

Object = dict[str, Any]
MANAGER = "hedgerow-bluegreen"


def service(name: str = "demo", **meta: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NS, **meta},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    }


async def dry_run_cluster(world: World | None = None) -> SimulatedCluster:
    return SimulatedCluster(connected(asked((world or await settled()).server)))


class TestConditions:
    async def test_what_is_there_is_not_created(self):
        made = await dry_run_cluster()
        with pytest.raises(AlreadyExists):
            await made.apply(Service.api, service(resourceVersion="1"), manager=MANAGER)

    async def test_what_is_another_one_is_not_changed(self):
        made = await dry_run_cluster()
        with pytest.raises(Stale):
            await made.apply(Service.api, service(uid="other"), manager=MANAGER)

    async def test_what_is_gone_is_not_changed(self):
        made = await dry_run_cluster()
        with pytest.raises(Stale):
            await made.apply(Service.api, service("new", uid="x"), manager=MANAGER)


class TestFedBack:
    async def test_what_was_made_can_be_read_and_changed(self):
        made = await dry_run_cluster()
        new = service("new", resourceVersion="1")
        first = await made.apply(Service.api, new, manager=MANAGER)
        uid = metadata(first.object)["uid"]
        second = await made.apply(Service.api, service("new", uid=uid), manager=MANAGER)

        assert (first.created, second.created) == (True, False)
        assert metadata(second.object)["uid"] == uid
        assert await made.read_object(Service.api, "new", NS) == second.object

    async def test_what_was_deleted_is_gone_and_can_be_made_anew(self):
        made = await dry_run_cluster()
        live = await made.read_object(Service.api, "demo", NS)
        assert live is not None
        uid = metadata(live)["uid"]

        assert await made.delete(Service.api, "demo", NS, uid="other") is False
        assert await made.delete(Service.api, "demo", NS, uid=uid) is True
        assert await made.delete(Service.api, "demo", NS, uid=uid) is False
        assert await made.read_object(Service.api, "demo", NS) is None
        again = await made.apply(Service.api, service(resourceVersion="1"), manager=MANAGER)
        [objects] = made.objects.values()
        assert again.created
        assert objects.merged == "it would be created again after its deletion"


class TestEnd:
    async def test_a_controller_that_is_not_pure_is_given_up(self):
        count = itertools.count(1)

        def restless(bg: Any, _observed: Any) -> Desired:
            name = f"{bg.metadata.name}-{next(count)}"
            return Desired(children=(Apply(Service, name, SPEC),))

        await must_be_given_up(restless)

    async def test_nor_does_one_that_changes_its_mind_at_every_look(self):
        count, colours = itertools.count(), itertools.cycle("ab")

        def restless(_bg: Any, _observed: Any) -> Desired:
            again = BlueGreenStatus(conditions=(ready(False, f"R{next(count)}"),))
            return Desired(status=again, events=(Notice("Again", next(colours)),))

        await must_be_given_up(restless)

    async def test_one_that_never_rests_is_given_up_too(self):
        """It is pure, but each pass undoes what the one before declared."""

        def restless(bg: Any, observed: Any) -> Desired:
            last = max([int(one.name[5:]) for one in observed.all(Service) if one.name[5:]] or [0])
            return Desired(children=(Apply(Service, f"{bg.metadata.name}-{last + 1}", SPEC),))

        await must_be_given_up(restless)


async def must_be_given_up(compose: Callable[[Any, Any], Desired]) -> None:
    """Plan what a controller with this function would do without end."""
    world = await settled()
    names = {Service: ("{}-*",)}
    controller = Controller(
        "bluegreen", CONTROLLER.resource, compose, (Service,), child_names=names
    )
    cluster = connected(asked(world.server))
    found = await ResourceForecaster(cluster, world.clock).of_name(controller, "demo", NS)

    assert found is not None
    assert found.unchecked == (ENDLESS,)


ENDLESS = "the plan does not settle: the operator would write again and again, without end"
SPEC: Object = {"spec": service()["spec"]}
