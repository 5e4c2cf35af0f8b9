"""Door: what is too large is not let in, and said to be; all else goes on."""

from __future__ import annotations

import dataclasses
from base64 import b85encode
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, ClassVar

import pytest

from hedgerow.contract import Apply, Desired, Key, Observed, Relation, Select
from hedgerow.plan.too_large import MOST_BYTES, MOST_VALUES, excess_of
from hedgerow.runtime.cache.door import AT_ONCE, Door, Shelf
from hedgerow.runtime.cache.store import Store, key_of
from hedgerow.runtime.meters import Meters
from hedgerow_schemas.builtin import ConfigMap
from runtime.clockwork import MINUTE, started
from runtime.things import MANY, thing
from runtime.world import CONTROLLER, World

pytestmark = pytest.mark.anyio

KIB = 1024
BLUE = "demoblue-deployment"
SMALL, TOO_MANY = 3, MOST_VALUES + 1
NAMES = ("one", "two", "three", "four")
CHANCE = Random(1)  # noqa: S311 - the same texts each time


def spec(number: int = SMALL, **container: Any) -> dict[str, Any]:
    """Return a spec with so many short strings."""
    blue = {"name": "blue", "image": "example/echo:1", "args": ["x"] * number, **container}
    return {"blueSpec": {"containers": [blue]}, "greenSpec": None}


def ready(world: World, name: str = "demo") -> str:
    return world.condition("Ready", name)


def stalled(world: World, name: str = "demo") -> str:
    """Return what the condition Stalled says; empty while there is none."""
    found = [c for c in world.status(name).get("conditions", []) if c["type"] == "Stalled"]
    return found[0]["message"] if found else ""


def declared(world: World) -> int:
    (container,) = world.the("Deployment", BLUE)["spec"]["template"]["spec"]["containers"]
    return len(container["args"])


def measured(door: Door, name: str, **labels: str) -> float | None:
    meters = Meters()
    meters.guards(door)
    return meters.registry.get_sample_value(f"hedgerow_cache_{name}", labels)


async def settled(**how: Any) -> World:
    world = World(door=Door, **how)
    world.apply(**spec(SMALL))
    await world.settle()
    return world


class TestOneObject:
    async def test_one_that_is_too_large_is_stalled_alone_with_its_size_and_the_bound(self):
        world = await settled()
        world.apply(**spec(TOO_MANY))
        world.apply("other")
        await world.settle()
        world.apply("other", routeTo="Green")
        await world.settle()

        assert world.condition("Stalled") == "True/TooLarge"
        assert ready(world) == "False/TooLarge"
        assert stalled(world).startswith("BlueGreen/demo is too large: it has 5,0")
        assert " JSON values, and 5,000 is the most. Make it smaller" in stalled(world)
        assert declared(world) == SMALL
        assert world.status()["routeTo"] == "Blue"
        assert world.selected("other") == "Green"
        assert world.door is not None
        assert measured(world.door, "stubs", bound="values") == 1
        assert measured(world.door, "stubs", bound="sum") == 0

    async def test_what_has_a_megabyte_of_text_is_let_in(self):
        world = await settled()
        world.apply(**spec(args=["a,{" * (MOST_BYTES // 6)]))
        await world.settle()

        assert ready(world) != "False/TooLarge"

    async def test_one_of_too_many_bytes_says_them(self):
        world = await settled()
        world.apply(**spec(args=["a" * MOST_BYTES]))
        await world.settle()

        assert "it has 2.0 MiB of JSON, and 2.0 MiB is the most" in stalled(world)

    @pytest.mark.parametrize("anew", [False, True], ids=["at once", "after a restart"])
    async def test_made_smaller_it_is_managed_at_once(self, anew):
        world = await settled()
        world.apply(**spec(TOO_MANY))
        await world.settle()
        if anew:
            world.restart()
            await world.settle()
            assert world.condition("Stalled") == "True/TooLarge"
        world.apply(**spec(SMALL + 1))
        await world.settle()

        assert world.condition("Stalled") == ""
        assert declared(world) == SMALL + 1
        assert world.door is not None
        assert not any(world.door.stubs.values())

    async def test_it_is_asked_for_by_no_clock(self):
        world = await settled()
        world.apply(**spec(TOO_MANY))
        await world.settle()

        assert world.life.next_due == float("inf")

    async def test_it_is_logged_once(self):
        world = await settled()
        for more in range(2):
            world.apply(**spec(TOO_MANY + more))
            await world.settle()

        told = [entry for entry in world.logs.entries if entry["event"] == "object is too large"]
        assert [entry["object"] for entry in told] == ["default/demo"]

    async def test_deleted_it_takes_nothing_any_more(self):
        world = await settled()
        world.apply(**spec(TOO_MANY))
        await world.settle()
        for kind, name in (("BlueGreen", "demo"), ("Deployment", BLUE), ("Service", "demo")):
            world.delete(kind, name)
        world.deliver()

        assert world.door is not None
        assert (world.door.taken, sum(world.door.stubs.values())) == (0, 0)

    async def test_no_start_is_made_twice_while_only_a_stub_of_it_is_known(self):
        world = await started()
        await world.live_through(3 * MINUTE)
        world.deliver()
        last, made = world.last, world.made
        assert made
        world.edit("CronJob", "demo", MANY)
        world.restart()
        await world.live_through(3 * MINUTE)
        world.deliver()
        assert (world.condition("Stalled"), world.last) == ("True/TooLarge", last)

        world.edit("CronJob", "demo", {"metadata": {"annotations": None}})
        world.deliver()
        await world.live_through(1)
        assert len(set(world.made)) == len(world.made)
        assert world.last > last


class TestChild:
    async def test_one_that_is_too_large_is_named_and_left_until_somebody_mends_it(self):
        world = await settled()
        world.edit("Deployment", BLUE, MANY)
        world.apply(**spec(SMALL + 1))
        await world.settle()

        assert stalled(world).startswith(f"Deployment/{BLUE} is too large: it has ")
        assert "Make it smaller, or delete it: what is declared of it is made anew" in stalled(
            world
        )
        assert declared(world) == SMALL

        world.edit("Deployment", BLUE, {"metadata": {"annotations": None}})
        await world.settle()
        assert (stalled(world), declared(world)) == ("", SMALL + 1)

    async def test_deleted_it_is_made_anew(self):
        world = await settled()
        world.edit("Deployment", BLUE, MANY)
        await world.settle()
        assert stalled(world)

        world.delete("Deployment", BLUE)
        await world.settle()
        assert (stalled(world), declared(world)) == ("", SMALL)

    async def test_so_is_one_that_has_lost_our_label_too(self):
        world = await settled()
        world.edit("Deployment", BLUE, {"metadata": {"labels": {"hedgerow.dev/controller": None}}})
        world.edit("Deployment", BLUE, MANY)
        world.restart()
        world.apply(**spec(SMALL + 1))
        await world.settle()

        assert stalled(world).startswith(f"Deployment/{BLUE} is too large: it has ")
        assert declared(world) == SMALL

    async def test_it_is_read_by_no_pass(self):
        world = await settled()
        world.edit("Deployment", BLUE, MANY)
        await world.settle()
        before = len(world.cluster.sent)
        world.apply(**spec(SMALL + 1))
        await world.settle()

        assert [sent for sent in world.cluster.sent[before:] if sent.verb == "read"] == []


class TestRelated:
    """Compose never takes a stub for the object."""

    NAMES: ClassVar[dict[Any, tuple[str, ...]]] = {ConfigMap: ("*",)}

    def compose(self, _bg: Any, observed: Observed) -> Desired:
        found = [view.raw.get("data", {}) for view in observed.related]
        children = [Apply(ConfigMap, f"copy-{len(found)}", {"data": data}) for data in found]
        return Desired(tuple(children))

    @pytest.mark.parametrize("of", [None, lambda view: [(view.namespace, "demo")]])
    async def test_what_it_concerns_waits_for_an_object_that_is_too_large(self, of):
        relation = Relation(ConfigMap, select=Select(labels="shown"), of=of)
        controller = dataclasses.replace(
            CONTROLLER,
            compose=self.compose,
            owns=(ConfigMap,),
            relates=(relation,),
            child_names=self.NAMES,
        )
        world = World(controller=controller, door=Door)
        labels = {"labels": {"shown": "yes"}}
        target = world.target("ConfigMap", "read")
        body = {**target, "metadata": {**target["metadata"], **labels}, "data": {"a": "b"}}
        world.server.create(body, "somebody")
        world.apply()
        await world.settle()
        assert world.the("ConfigMap", "copy-1")["data"] == {"a": "b"}

        world.edit("ConfigMap", "read", MANY)
        await world.settle()
        assert stalled(world).startswith("ConfigMap/read is too large: it has ")
        assert world.the("ConfigMap", "copy-1")["data"] == {"a": "b"}

        world.edit("ConfigMap", "read", {"metadata": {"annotations": None}})
        await world.settle()
        assert stalled(world) == ""


def sized(most: int) -> Callable[[], Door]:
    return lambda: Door(most)


def drawn(size: int) -> str:
    """Return so many KiB of text that hardly get fewer when they are packed."""
    return b85encode(CHANCE.randbytes(size * KIB * 4 // 5)).decode()


def text(size: int) -> dict[str, Any]:
    return spec(args=[drawn(size)])


class TestSum:
    """Each of some resources of a namespace takes 40 KiB, its Deployment as much."""

    async def crowded(self) -> World:
        world = World(door=sized(250 * KIB))
        for name in NAMES:
            world.apply(name, **text(40))
        world.apply("small", namespace="other", **spec(SMALL))
        await world.settle()
        return world

    def out(self, world: World) -> list[str]:
        return [name for name in NAMES if ready(world, name) == "False/TooLarge"]

    def taken(self, world: World) -> int:
        assert world.door is not None
        return world.door.taken

    async def test_the_largest_of_who_takes_the_most_are_left_out_and_all_else_is_managed(self):
        world = await self.crowded()
        (first, *_) = self.out(world)

        assert set(self.out(world)) != set(NAMES)
        assert f"{first} is left out: it has 0.0 MiB of JSON" in stalled(world, first) or (
            "is left out: it has" in stalled(world, first)
        )
        assert world.get("Deployment", "smallblue-deployment", "other") is not None
        assert self.taken(world) <= 250 * KIB
        told = [e for e in world.logs.entries if e["event"] == "objects are left out of the caches"]
        assert told[0]["namespace"] == "default"
        assert world.failures == []

    async def test_they_ask_for_room_every_minute(self):
        world = await self.crowded()
        await world.work()

        assert 30 <= world.life.next_due <= 90

    async def test_once_there_is_room_they_are_taken_in_again(self):
        world = await self.crowded()
        out = self.out(world)
        for name in set(NAMES) - set(out):
            world.apply(name, **spec(SMALL))
        await world.settle()

        assert [world.condition("Stalled", name) for name in out] == [""] * len(out)
        assert world.door is not None
        assert world.door.stubs["sum"] == 0

    async def test_one_that_changes_while_there_is_no_room_stays_out_until_it_is_small(self):
        world = await self.crowded()
        first = self.out(world)[0]
        world.apply(first, **text(60))
        await world.settle()

        assert ready(world, first) == "False/TooLarge"
        assert self.taken(world) <= 250 * KIB

        world.apply(first, **spec(SMALL))
        world.delete("Deployment", f"{first}blue-deployment")
        await world.settle()
        assert world.condition("Stalled", first) == ""

    async def test_they_push_nobody_else_out_by_saying_so(self):
        world = await self.crowded()
        out, before = self.out(world), world.writes
        world.server.now += 3600
        await world.work()

        assert (self.out(world), world.writes) == (out, before)

    async def test_a_restart_comes_to_as_much(self):
        world = await self.crowded()
        world.restart()
        await world.settle()

        assert self.taken(world) <= 250 * KIB
        assert 1 <= len(self.out(world)) < len(NAMES)


class Counted(Key):
    """A key that counts how often it is compared."""

    __slots__ = ()
    steps: ClassVar[list[None]] = []

    __hash__ = Key.__hash__

    def __eq__(self, other: object) -> bool:
        self.steps.append(None)
        return super().__eq__(other)


class Crowd:
    """A store beyond its budget. What has the same name up to a hyphen is of one resource."""

    def __init__(self, most: int) -> None:
        self.door, self.left_out, self.asked = Door(most), list[Key](), list[Key]()
        shelf = Shelf(self.door, self.concerned, manager="hedgerow-bluegreen", give_way=True)
        shelf.on_left_out = lambda stub: self.left_out.append(key_of(stub))
        self.store, self.versions = Store(shelf=shelf), count(1)

    def concerned(self, obj: dict[str, Any]) -> tuple[Key, ...]:
        namespace, name = key_of(obj)
        self.asked.append(Key(namespace, name))
        return (Counted(namespace, name.split("-")[0]),)

    def put(self, name: str, namespace: str = "crowded", **fields: Any) -> None:
        body = thing(name, next(self.versions))
        body["metadata"] |= {"namespace": namespace, **fields.pop("metadata", {})}
        self.store.put({"apiVersion": "v1", "kind": "ConfigMap", **body, **fields})

    def is_whole(self, name: str, namespace: str = "crowded") -> bool:
        found = self.store.get(Key(namespace, name))
        return found is not None and excess_of(found) is None


class TestRoom:
    """A stub is only made where it makes room, and others do not pay for it."""

    def test_what_takes_as_little_when_it_is_packed_is_not_left_out(self):
        crowd = Crowd(100 * KIB)
        for number in range(60):
            crowd.put(f"n{number}", text="x" * 9 * KIB)

        assert crowd.door.taken > crowd.door.most
        assert crowd.left_out == []

    def test_nor_what_a_stub_would_keep_and_it_is_tried_once(self):
        crowd = Crowd(100 * KIB)
        ours = {"manager": "hedgerow-bluegreen", "operation": "Apply", "subresource": "status"}
        owned = {**ours, "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:text": {}}}}
        for number in range(20):
            status = {"text": drawn(9)}
            crowd.put(f"n{number}", metadata={"managedFields": [owned]}, status=status)
        assert crowd.door.taken > crowd.door.most
        assert crowd.left_out == []

        before = len(crowd.asked)
        crowd.put("small")
        assert crowd.asked[before:] == []

    def test_a_namespace_that_takes_less_stays_whole(self):
        crowd = Crowd(100 * KIB)
        crowd.put("other", "quiet", text=drawn(20))
        for number in range(60):
            crowd.put(f"n{number}", text="x" * 9 * KIB)
        crowd.put("large", text=drawn(9))

        assert crowd.door.taken > crowd.door.most
        assert crowd.is_whole("other", "quiet")
        assert crowd.left_out == [("crowded", "large")]

    def test_what_is_of_the_same_resource_goes_before_a_larger_one(self):
        crowd = Crowd(160 * KIB)
        for name, size in (("a-1", 20), ("b-1", 50), ("b-2", 40), ("a-2", 60)):
            crowd.put(name, text=drawn(size))
        assert crowd.left_out == []

        crowd.put("other", "quiet", text=drawn(90))
        assert [name for _, name in crowd.left_out[:2]] == ["a-2", "a-1"]

    def test_one_that_was_left_out_and_is_small_now_is_taken_in_without_room(self):
        crowd = Crowd(100 * KIB)
        for number in range(12):
            crowd.put(f"n{number}", text=drawn(9))
        _, first = crowd.left_out[0]
        crowd.put(first, text="x")

        assert not crowd.door.has_room(KIB)
        assert crowd.is_whole(first)

    def test_large_ones_make_room_as_they_come(self):
        crowd = Crowd(1024 * KIB)
        for number in range(16):
            crowd.put(f"n{number}", text=drawn(300))

        for number in range(3):
            crowd.put(f"small{number}")

        assert len(crowd.left_out) > 10
        assert crowd.door.taken <= crowd.door.most

    def test_no_more_are_left_out_for_one_than_the_loop_bears(self):
        crowd = Crowd(600 * KIB)
        for number in range(64):
            crowd.put(f"n{number}", text=drawn(8))
        most, sizes = 0, (500, 1, 1, 1, 1)
        for number, size in enumerate(sizes):
            before = len(crowd.left_out)
            crowd.put(f"n{number}", "other", text=drawn(size))
            most = max(most, len(crowd.left_out) - before)

        assert 0 < (most - 1) * 8 * KIB < AT_ONCE

    def test_the_largest_is_found_without_a_look_at_all(self):
        crowd, most = Crowd(1024 * KIB), 0
        for number in range(400):
            before = len(Counted.steps) + len(crowd.asked) + len(crowd.left_out)
            crowd.put(f"n{number}", text=drawn(4))
            now = len(Counted.steps) + len(crowd.asked) + len(crowd.left_out)
            most = max(most, now - before)

        assert len(crowd.left_out) > 100
        assert most < 40


class TestOver:
    def test_what_cannot_be_left_out_is_complained_of_now_and_then(self, world):
        door = Door(20_000)
        store = Store(shelf=Shelf(door))
        for number in range(100):
            store.put(thing(f"n{number}", version=number + 1))

        told = [
            e for e in world.logs.entries if e["event"] == "caches are over the budget of memory"
        ]
        assert 0 < len(told) < 50
        assert door.taken > door.most


async def test_the_metrics_tell_what_is_taken_and_what_may_be():
    world = await settled()

    assert world.door is not None
    assert measured(world.door, "bytes") == world.door.taken
    assert measured(world.door, "budget_bytes") == KIB**3
