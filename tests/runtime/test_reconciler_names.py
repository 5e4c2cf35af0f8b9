"""Names that others have, and children that no watch shows."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from math import inf
from typing import Any

import pytest

from hedgerow.contract import Apply, Desired, Observed
from hedgerow.objects import CONTROLLER_LABEL
from hedgerow.runtime import large
from hedgerow.runtime.large import LARGE
from hedgerow.testing.memory.cluster import Sent
from hedgerow_schemas.builtin import ConfigMap
from runtime.scenes import (
    BLUE,
    IMAGE,
    occupy,
    settled,
    take_image,
    take_label,
    take_service_name,
)
from runtime.world import CONTROLLER, DEMO, World, pods

Object = dict[str, Any]

pytestmark = pytest.mark.anyio

BLUE_NAME = "demoblue-deployment"


async def unwatched() -> World:
    """Return a settled world in which somebody took the label of the blue Deployment."""
    world = await settled()
    take_label(world)
    await world.settle()
    return world


def cached(world: World) -> float:
    """Return how many Deployments are cached."""
    of_deployments = {"controller": "bluegreen", "resource": "deployments.apps"}
    return world.life.measured("hedgerow_cache_objects", **of_deployments)


class TestUnwatchedChildren:
    """A child whose label somebody took: no watch tells of it, and yet it is ours."""

    async def test_it_is_managed_all_the_same(self):
        world = await unwatched()

        world.apply(blueSpec=pods("blue", "mine:2"))
        await world.settle()

        (container,) = world.the("Deployment", "demoblue-deployment")["spec"]["template"]["spec"][
            "containers"
        ]
        assert container["image"] == "mine:2"
        assert [manager for _, _, manager in world.contested()] == ["kubectl-edit"]

    async def test_it_is_not_cached_and_read_once_in_each_pass(self):
        world = await unwatched()
        assert cached(world) == 1
        before = len(world.cluster.sent)
        world.life.look(DEMO)
        await world.work()

        assert [str(sent) for sent in world.cluster.sent[before:]] == [f"read {BLUE}"]

    async def test_nor_is_a_request_made_while_nothing_changes(self):
        world = await unwatched()
        before = len(world.cluster.sent)
        await world.settle()

        assert world.life.next_due == inf
        assert world.cluster.sent[before:] == []

    async def test_what_others_take_of_it_is_found_by_the_next_pass(self):
        world = await unwatched()
        take_image(world)

        world.life.look(DEMO)
        await world.settle()

        assert IMAGE in [path for _, path, _ in world.contested()]

    async def test_so_is_its_deletion(self):
        world = await unwatched()
        world.delete("Deployment", BLUE_NAME)

        world.life.look(DEMO)
        await world.settle()

        assert world.get("Deployment", BLUE_NAME) is not None
        assert world.contested() == []

    async def test_whoever_gives_the_label_up_gets_it_back_at_once(self):
        world = await unwatched()
        world.edit("Deployment", BLUE_NAME, {"metadata": {"labels": {CONTROLLER_LABEL: None}}})

        world.life.look(DEMO)
        await world.settle()

        labels = world.the("Deployment", BLUE_NAME)["metadata"]["labels"]
        assert labels[CONTROLLER_LABEL] == "bluegreen"
        assert world.contested() == []
        assert cached(world) == 2

    async def test_busy_neighbours_do_not_hide_our_own_answers(self):
        # The watch of its kind is past our write before the answer to that is here.
        world = await unwatched()
        world.apply("neighbour")
        await world.settle()
        world.apply(blueSpec=pods("blue", "mine:2"))
        world.deliver(kind="BlueGreen")

        async def busy(sent: Sent) -> None:
            if str(sent) == f"apply {BLUE}":
                world.make_ready("blue", "neighbour")
                world.deliver(kind="Deployment")

        world.cluster.after = busy
        before = len(world.writes)
        await world.work()

        assert world.writes[before:].count(f"apply {BLUE}") == 1
        assert world.condition("Stalled") == ""

    async def test_a_resource_made_anew_does_not_wait_for_what_is_gone(self):
        world = await unwatched()
        world.delete("BlueGreen")
        world.deliver()
        world.apply()
        world.deliver()
        await world.work()
        assert world.condition("Ready") == "False/WaitingForDeletion"
        for name in ("demoblue-deployment", "demogreen-deployment"):
            world.delete("Deployment", name)
        world.delete("Service")

        world.server.now += 31
        await world.settle()

        assert world.condition("Ready") == "False/Unavailable"
        assert world.the("Deployment", "demoblue-deployment")["metadata"]["labels"]


class TestNames:
    async def test_a_child_told_of_while_its_owner_is_looked_at_is_no_former_ones(
        self, monkeypatch
    ):
        world = await settled()
        reconciler, key, looks = world.insides._reconciler, ("default", "demo"), 0
        store = world.insides.cache.child_store("Service", "default")
        service = store.get(key)
        assert service
        store.forget(key, service["metadata"]["uid"])

        async def late(work: Any) -> Any:
            nonlocal looks
            looks += 1
            store.adopt(service)  # as a watch does while a thread works
            return work()

        monkeypatch.setattr(large.PASSES, "run", late)
        planner, state = reconciler.context.planner, reconciler.states[key]
        found = await planner.observe(key, state, limits=LARGE)

        assert found
        assert (found.plan.problems, found.plan.writes, looks) == ((), (), 2)

    async def test_what_is_going_and_nobodys_is_looked_at_until_the_name_is_free(self):
        world = await settled()
        patch = {"metadata": {"ownerReferences": None, "finalizers": ["example.com/hold"]}}
        world.edit("Service", "demo", patch)
        world.delete("Service")
        world.deliver()
        await world.work()
        assert world.condition("Ready") == "False/WaitingForDeletion"

        world.edit("Service", "demo", {"metadata": {"finalizers": None}})
        world.deliver()
        world.server.now += 31
        await world.work()

        assert world.selected() == "Blue"

    @pytest.mark.parametrize(
        "spec",
        [
            {},
            {"ports": [{"name": "http", "port": 80}], "selector": {"app": "same"}},
            {"ports": [{"name": "other", "port": 80}], "selector": {"app": "other"}},
        ],
        ids=["another port", "the same port", "the same port under another name"],
    )
    async def test_somebody_elses_object_is_never_written_and_the_rest_goes_on(self, world, spec):
        theirs = occupy(world, **spec)
        world.apply()

        await world.settle()

        assert world.the("Service") == theirs
        assert world.condition("Stalled") == "True/NameTaken"
        (message,) = (c["message"] for c in world.status()["conditions"] if c["type"] == "Stalled")
        assert message == (
            "Service/demo exists and is not controlled by BlueGreen/demo; it is left alone: delete"
            " or rename one of the two"
        )
        assert world.the("Deployment", "demoblue-deployment")
        assert sum("Service" in write for write in world.writes) == 1

    async def test_a_deployment_of_somebody_else_is_not_said_to_be_missing(self, world):
        name = "demoblue-deployment"
        labels = {"app": "theirs"}
        template = {"metadata": {"labels": labels}, "spec": pods("theirs")}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        theirs = {**world.target("Deployment", name), "spec": spec}
        world.server.create(theirs, "kubectl-create")
        world.apply()

        await world.settle()

        assert world.condition("Stalled") == "True/NameTaken"
        messages = {c["type"]: c["message"] for c in world.status()["conditions"]}
        assert "exist" not in messages["Available"]
        assert "exists and is not controlled by BlueGreen/demo" in messages["Ready"]
        assert "/apis/" not in " ".join(messages.values())

    async def test_a_pass_in_between_does_not_put_off_the_next_look_at_a_taken_name(self, world):
        occupy(world)
        world.apply()
        world.deliver()
        await world.work()
        world.delete("Service", "demo")

        world.server.now += 28
        world.apply(blueSpec=pods("blue", "x:2"))
        world.deliver()
        await world.work()
        world.server.now += 3
        await world.work()

        assert world.selected() == "Blue"
        assert world.condition("Stalled") == ""

    async def test_a_name_that_is_free_again_before_we_look_is_taken_at_the_next_attempt(
        self, world
    ):
        occupy(world)
        world.apply()
        world.deliver()
        world.during(2, lambda: world.delete("Service"))  # after the create was refused
        await world.work()
        assert world.condition("Stalled") == ""

        await world.settle()

        assert world.selected() == "Blue"

    async def test_the_name_may_be_lost_while_we_run(self):
        world = await settled()
        take_service_name(world)
        world.apply(ports=[{"name": "x", "port": 9}])
        world.deliver(kind="BlueGreen")  # the Service's watch lags
        before = len(world.writes)
        await world.work()
        assert world.writes[before:].count("apply Service default/demo") == 1
        assert world.condition("Stalled") == "True/NameTaken"

        await world.settle()

        assert world.condition("Stalled") == "True/NameTaken"
        assert [port["port"] for port in world.the("Service")["spec"]["ports"]] == [1]

    async def test_a_child_of_ours_that_no_watch_shows_is_adopted(self, world):
        # The original operator's child: our resource's uid controls it, but it has no label.
        resource = world.apply()
        meta = resource["metadata"]
        owner = {
            "apiVersion": resource["apiVersion"],
            "kind": "BlueGreen",
            "name": "demo",
            "uid": meta["uid"],
            "controller": True,
        }
        target = world.target("Service", "demo")
        target["metadata"]["ownerReferences"] = [owner]
        spec = {"ports": [{"name": "old", "port": 1, "protocol": "TCP"}], "selector": {"a": "b"}}
        world.server.create({**target, "spec": spec}, "original")
        world.restart()

        await world.settle()

        service = world.the("Service")
        assert service["metadata"]["labels"]["hedgerow.dev/controller"] == "bluegreen"
        assert service["spec"]["selector"] == {"a": "b"}
        assert ("Service/demo", ".spec.selector", "original") in world.contested()

    async def test_an_unlabelled_child_of_another_resource_is_left_alone_by_both(self, world):
        other = world.apply("other")
        await world.settle()
        reference = {
            "apiVersion": other["apiVersion"],
            "kind": "BlueGreen",
            "name": "other",
            "uid": other["metadata"]["uid"],
            "controller": True,
        }
        target = world.target("Service", "demo")
        target["metadata"]["ownerReferences"] = [reference]
        theirs = world.server.create({**target, "spec": {"ports": [{"port": 1}]}}, "somebody")
        world.apply()
        await world.settle()

        assert world.the("Service", "demo") == theirs
        assert world.condition("Stalled") == "True/NameTaken"


LEFT = [
    ("Deployment", BLUE_NAME),
    ("Deployment", "demogreen-deployment"),
    ("Service", "demo"),
]


class TestSharedNames:
    """Two resources declare a child of one name; the first one has it."""

    async def test_what_changes_of_it_is_seen_although_the_other_one_has_read_it_first(self):
        def compose(bg: Any, _: Observed) -> Desired:
            return Desired((Apply(ConfigMap, "shared", {"data": {"of": bg.metadata.name}}),))

        names = {ConfigMap: ("*",)}
        world = World(
            controller=dataclasses.replace(
                CONTROLLER, compose=compose, owns=(ConfigMap,), relates=(), child_names=names
            )
        )
        for name in ("demo", "other"):
            world.apply(name)
            world.deliver()
            await world.work()
        assert world.condition("Ready", "other") == "False/NameTaken"

        world.server.now += 31
        world.edit("ConfigMap", "shared", {"data": {"of": "nobody"}})
        await world.work()  # the name is read, before the watch tells of any change
        world.deliver()
        await world.work()

        assert world.contested() == [("ConfigMap/shared", ".data.of", "kubectl-edit")]


class TestLeftChildren:
    """Children without owner, as after a restore, or after a deletion with --cascade=orphan."""

    async def left(self, world: World, *names: tuple[str, str]) -> None:
        for kind, name in names:
            world.edit(kind, name, {"metadata": {"ownerReferences": None}})
        for kind, name in LEFT:
            if (kind, name) not in names:
                world.delete(kind, name)
        world.delete("BlueGreen")
        world.deliver()
        world.apply()
        await world.settle()

    def patched(self, world: World) -> list[tuple[str, str]]:
        """Carry the command of `Stalled` out, and return what it names."""
        [message] = [c["message"] for c in world.status()["conditions"] if c["type"] == "Stalled"]
        [command] = re.findall("`(kubectl [^`]*)`", message)
        program, verb, *names, kind, option, patch, where, namespace = shlex.split(command)
        assert (program, verb, kind, option) == ("kubectl", "patch", "--type=merge", "-p")
        assert (where, namespace) == ("-n", "default")
        found = [tuple(one.split("/")) for one in names]
        for group_kind, name in found:
            world.edit(group_kind.removesuffix(".apps"), name, json.loads(patch))
        return found

    @pytest.mark.parametrize("names", [LEFT, LEFT[:1], LEFT[2:]], ids=["all", "one", "a Service"])
    async def test_the_command_that_is_told_makes_them_children_again(self, names):
        world = await settled()
        uids = {name: world.the(*name)["metadata"]["uid"] for name in names}
        await self.left(world, *names)
        assert world.condition("Stalled") == "True/NameTaken"
        before = len(world.writes)

        told = self.patched(world)
        await world.settle()

        groups = {"Deployment": "Deployment.apps", "Service": "Service"}
        assert told == [(groups[kind], name) for kind, name in names]
        assert (world.condition("Stalled"), world.contested()) == ("", [])
        assert {name: world.the(*name)["metadata"]["uid"] for name in names} == uids
        assert not [write for write in world.writes[before:] if write.startswith("delete")]

    async def test_each_is_named_and_the_command_stands_once(self):
        world = await settled()
        await self.left(world, *LEFT)

        [message] = [c["message"] for c in world.status()["conditions"] if c["type"] == "Ready"]
        for kind, name in LEFT:
            assert f"{kind}/{name} exists and is not controlled by BlueGreen/demo" in message
        assert message.count("kubectl patch") == 1
        assert "these 3 children" in message

    async def test_of_a_restored_status_the_command_is_not_taken(self):
        """Its message differs in the uid alone: that of a resource that is no more."""
        world = await settled()
        await self.left(world, *LEFT)
        status = world.status()
        world.delete("BlueGreen")
        world.deliver()
        uid = world.apply()["metadata"]["uid"]
        world.server.apply(
            {**world.target("BlueGreen", "demo"), "status": status},
            "hedgerow-bluegreen",
            subresource="status",
        )
        world.restart()
        await world.settle()

        [message] = [c["message"] for c in world.status()["conditions"] if c["type"] == "Stalled"]
        assert uid in message
