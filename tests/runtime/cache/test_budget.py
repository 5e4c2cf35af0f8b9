"""Budget: what is too large is left out and said to be, and comes back; all else goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hedgerow.objects import annotation, digest, metadata
from hedgerow.plan.oversized import Family, oversize_of
from hedgerow.runtime.cache import budget
from hedgerow.runtime.cache.budget import (
    RESERVE,
    UNLIMITED,
    Budget,
    Kept,
    Weigher,
    most_for_caches,
)
from hedgerow.runtime.cache.store import Store
from hedgerow.runtime.metrics import Meters
from runtime.scenes import IMAGE, take_image
from runtime.things import thing
from runtime.world import World

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024
BLUE = "demoblue-deployment"
LARGE, MUCH, SMALL = 1000, 650, 3
NAMES = ("one", "two", "three", "four")


def spec(size: int) -> dict[str, Any]:
    env = [{"name": f"A{n}", "value": "x"} for n in range(size)]
    container = {"name": "blue", "image": "example/echo:1", "env": env}
    return {"blueSpec": {"containers": [container]}, "greenSpec": None}


def bounded(most: int = 1024 * MIB, bound: int | None = None) -> Callable[[], Budget]:
    """Make budgets whose bound of one object is another than usual."""

    def make() -> Budget:
        budget = Budget(most)
        budget.bound = bound or budget.bound
        return budget

    return make


def ready(world: World, name: str = "demo") -> str:
    return world.condition("Ready", name)


def budget_of(world: World) -> Budget:
    assert world.budget is not None
    return world.budget


async def large() -> World:
    """Return a world with one resource that is too large."""
    world = World(budget=bounded(bound=200_000))
    world.apply(**spec(LARGE))
    await world.settle()
    return world


class TestLimit:
    def test_of_the_process_limit_the_caches_take_what_nothing_else_needs(self):
        assert most_for_caches(512 * MIB) == 512 * MIB - RESERVE == 192 * MIB
        assert Budget(192 * MIB).bound == 8 * MIB

    def test_of_a_small_limit_they_take_a_quarter(self):
        assert most_for_caches(128 * MIB) == 32 * MIB

    def test_without_a_limit_there_is_one_all_the_same(self):
        assert most_for_caches(None) == UNLIMITED


class Odd(type):
    """The class of objects with an annotation, as if no strict decoder could read these."""

    def __instancecheck__(cls, obj: Any) -> bool:
        return annotation(obj, "odd") == "yes"


class TestUndecodable:
    """What is left of an object whose JSON no strict decoder reads is no ground for a write."""

    @pytest.fixture(autouse=True)
    def oddity(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "Salvaged", Odd("Salvaged", (), {}))

    def spoil(self, world: World, kind: str, name: str, odd: str = "yes") -> None:
        world.edit(kind, name, {"metadata": {"annotations": {"odd": odd}}})

    @pytest.mark.parametrize(("kind", "name"), [("BlueGreen", "demo"), ("Deployment", BLUE)])
    async def test_its_resource_is_stalled_alone_until_it_can_be_read(self, kind, name):
        world = World(budget=bounded())
        world.apply()
        world.apply("other")
        await world.settle()
        self.spoil(world, kind, name)
        world.apply("other", routeTo="Green")
        await world.settle()

        assert world.condition("Stalled") == "True/Undecodable"
        assert world.condition("Stalled", "other") == ""
        assert world.selected("other") == "Green"
        assert budget_of(world).reduced["undecodable"] == 1
        told = [entry for entry in world.logs.entries if entry["event"].endswith("be decoded")]
        assert [entry["object"] for entry in told] == [f"default/{name}"]

        self.spoil(world, kind, name, "no")
        await world.settle()
        assert world.condition("Stalled") == ""
        assert budget_of(world).reduced["undecodable"] == 0

    async def test_an_undecodable_child_is_not_read_again_by_each_pass(self):
        world = World(budget=bounded())
        world.apply()
        await world.settle()
        self.spoil(world, "Deployment", BLUE)
        await world.settle()
        before = len(world.cluster.sent)
        world.apply(routeTo="Green")
        await world.settle()

        assert [sent for sent in world.cluster.sent[before:] if sent.verb == "read"] == []


class TestOneObject:
    async def test_one_that_is_too_large_is_stalled_alone_with_its_size_and_the_bound(self):
        world = World(budget=bounded(bound=200_000))
        world.apply(**spec(SMALL))
        await world.settle()
        before = world.the("Deployment", BLUE)

        world.apply(**spec(LARGE))
        world.apply("other")
        await world.settle()
        world.apply("other", routeTo="Green")
        await world.settle()

        assert world.condition("Stalled") == "True/TooLarge"
        assert ready(world) == "False/TooLarge"
        (message,) = (c["message"] for c in world.status()["conditions"] if c["type"] == "Stalled")
        assert message.startswith("BlueGreen/demo is too large: it takes about 1.")
        assert "0.2 MiB is the most for one object" in message
        assert world.the("Deployment", BLUE)["spec"] == before["spec"]
        assert world.status()["routeTo"] == "Blue"
        assert world.selected("other") == "Green"
        assert budget_of(world).reduced == {"object": 1, "sum": 0, "undecodable": 0}

    @pytest.mark.parametrize("anew", [False, True], ids=["at once", "after a restart"])
    async def test_made_smaller_it_is_managed_at_once(self, anew):
        world = await large()
        if anew:
            world.restart()
            await world.settle()
            assert world.condition("Stalled") == "True/TooLarge"
        world.apply(**spec(SMALL))
        await world.settle()

        assert world.condition("Stalled") == ""
        (container,) = world.the("Deployment", BLUE)["spec"]["template"]["spec"]["containers"]
        assert len(container["env"]) == SMALL
        assert budget_of(world).reduced == {"object": 0, "sum": 0, "undecodable": 0}

    async def annotated(self, size: int) -> World:
        """A settled resource, whose Deployment then gets a note of that size from somebody."""
        world = World(budget=bounded(12 * MIB, bound=200_000))
        world.apply(**spec(SMALL))
        await world.settle()
        notes = {"metadata": {"annotations": {"note": "x" * size}}}
        world.edit("Deployment", BLUE, notes)
        world.apply(**spec(SMALL + 1))
        await world.settle()
        return world

    def declared(self, world: World) -> int:
        (container,) = world.the("Deployment", BLUE)["spec"]["template"]["spec"]["containers"]
        return len(container["env"])

    async def test_a_child_that_is_too_large_is_read_for_the_pass_that_looks_at_it(self):
        world = await self.annotated(300_000)

        assert self.declared(world) == SMALL + 1
        assert world.condition("Stalled") == ""
        assert budget_of(world).reduced == {"object": 1, "sum": 0, "undecodable": 0}
        assert budget_of(world).weight < 200_000
        before = world.writes
        await world.settle()
        assert world.writes == before

    async def test_what_others_change_in_a_part_that_is_not_cached_is_seen(self):
        world = await self.annotated(300_000)
        store, key = world.insides.cache.child_store("Deployment", "default"), ("default", BLUE)
        before = store.content_version(key)
        world.edit("Deployment", BLUE, {"metadata": {"labels": {"app": "theirs"}}})
        await world.settle()
        assert oversize_of(store.get(key) or {}) is not None
        assert store.content_version(key) != before  # although the generation is the same

        take_image(world)
        await world.settle()
        assert world.contested() == [(f"Deployment/{BLUE}", IMAGE, "helm")]

    async def test_the_resource_names_a_child_that_is_too_large_even_for_that(self):
        world = await self.annotated(3_000_000)

        assert world.condition("Stalled") == "True/TooLarge"
        (message,) = (c["message"] for c in world.status()["conditions"] if c["type"] == "Stalled")
        assert message.startswith(f"Deployment/{BLUE} is too large")
        assert self.declared(world) == SMALL

        world.edit("Deployment", BLUE, {"metadata": {"annotations": {"note": None}}})
        await world.settle()

        assert self.declared(world) == SMALL + 1
        assert world.condition("Stalled") == ""

    async def test_a_child_that_was_made_from_a_larger_resource_is_made_smaller(self):
        bounds = iter((3 * MIB, 200_000))

        def shrinking() -> Budget:
            return bounded(24 * MIB, bound=next(bounds))()

        world = World(budget=shrinking)
        world.apply(**spec(LARGE))
        await world.settle()
        assert self.declared(world) == LARGE
        world.restart()
        await world.settle()
        assert world.condition("Stalled") == "True/TooLarge"

        world.apply(**spec(SMALL))
        await world.settle()

        assert self.declared(world) == SMALL
        assert world.condition("Stalled") == ""
        assert budget_of(world).reduced == {"object": 0, "sum": 0, "undecodable": 0}

    async def test_it_is_logged_once(self):
        world = await large()
        world.apply(**spec(LARGE + 1))
        await world.settle()

        told = [entry for entry in world.logs.entries if entry["event"] == "object is too large"]
        assert [entry["object"] for entry in told] == ["default/demo"]

    async def test_deleted_it_weighs_nothing_any_more(self):
        world = await large()
        world.delete("BlueGreen")
        await world.settle()

        assert (budget_of(world).weight, budget_of(world).reduced["object"]) == (0, 0)
        assert budget_of(world).of(Family("bluegreen", "default", "demo")) == 0


class TestSum:
    async def crowded(self) -> World:
        """Four resources of a namespace that together are too many, and a smaller one of another.

        Each takes some 1 MB, its Deployment as much.
        """
        world = World(budget=bounded(6 * MIB, bound=3 * MIB))
        for name in NAMES:
            world.apply(name, **spec(MUCH))
        world.apply("small", namespace="other", **spec(SMALL))
        await world.settle()
        return world

    async def test_the_heaviest_are_left_out_and_all_else_is_managed(self):
        world = await self.crowded()

        found = {name: ready(world, name) for name in NAMES}
        assert "False/TooLarge" in found.values()
        assert set(found.values()) != {"False/TooLarge"}
        assert world.get("Deployment", "smallblue-deployment", "other") is not None
        assert budget_of(world).weight <= 6 * MIB
        assert budget_of(world).reduced["sum"] > 0
        assert world.failures == []

    @pytest.mark.untraced
    async def test_a_restart_comes_to_as_much(self):
        world = await self.crowded()
        world.restart()
        await world.settle()

        assert budget_of(world).weight <= 6 * MIB
        found = [ready(world, name) for name in NAMES]
        assert 1 <= found.count("False/TooLarge") < len(NAMES)

    async def test_once_there_is_room_it_is_taken_in_again(self):
        world = await self.crowded()
        out = [n for n in NAMES if ready(world, n) == "False/TooLarge"]
        for name in set(NAMES) - set(out):
            world.apply(name, **spec(SMALL))
        await world.settle()

        assert [world.condition("Stalled", name) for name in out] == [""] * len(out)
        assert budget_of(world).reduced["sum"] == 0

    @pytest.mark.untraced
    async def test_one_that_changes_while_there_is_no_room_stays_out_until_it_is_small(self):
        world = await self.crowded()
        out = [n for n in NAMES if ready(world, n) == "False/TooLarge"]
        world.apply(out[0], **spec(MUCH + 50))
        await world.settle()

        assert ready(world, out[0]) == "False/TooLarge"
        assert budget_of(world).weight <= 6 * MIB

        world.apply(out[0], **spec(SMALL))
        await world.settle()
        assert world.condition("Stalled", out[0]) == ""


class TestOver:
    def store(self, budget: Budget) -> Store:
        def family(obj: dict[str, Any]) -> Family:
            return Family("c", metadata(obj)["namespace"], metadata(obj)["name"])

        return Store(weigher=Weigher(budget, family, manager="m", reducible=False))

    def test_what_cannot_be_reduced_is_complained_of_now_and_then(self, world):
        budget = Budget(20_000)
        store = self.store(budget)
        for number in range(100):
            store.put(thing(f"n{number}", version=number + 1))

        told = [
            e for e in world.logs.entries if e["event"] == "caches are over the budget of memory"
        ]
        assert 0 < len(told) < 50
        assert budget.weight > budget.most

    def test_who_is_left_out_is_told_where_anybody_hears(self):
        budget, heard = Budget(100_000), list[Any]()
        budget.on_room["c"] = heard.append
        family = Family("c", "ns", "a")
        store = Store(weigher=Weigher(budget, lambda _: family, manager="m"))
        big = thing(version=1)
        big["spec"] = {"text": "x" * 1500}
        budget.bound = 200_000
        for number in range(30):
            # Packed, it takes half of that.
            text = "".join(digest(number, part) for part in range(800))
            store.put({**big, "metadata": {**big["metadata"], "name": f"n{number}"}, "d": text})

        assert heard
        assert set(heard) == {("ns", "a")}
        assert budget.weight <= budget.most

    def test_a_store_that_weighs_nothing_reduces_nothing(self):
        store = Store()
        store.put(thing())
        budget = Budget(1)
        budget.put(
            (store._shelf, ("ns", "a")), Kept(Family("c", "ns", "a"), 9000, 9000, 9000, True), None
        )
        budget.settle()

        assert oversize_of(store.get(("ns", "a")) or {}) is None


class TestMetrics:
    async def test_they_tell_weight_budget_and_what_is_left_out(self):
        world = await large()
        meters = Meters()
        meters.weighs(budget_of(world))

        def value(name: str, **labels: str) -> float | None:
            return meters.registry.get_sample_value(f"hedgerow_cache_{name}", labels)

        assert value("weight_bytes") == budget_of(world).weight
        assert value("budget_bytes") == 1024 * MIB
        assert value("reduced_objects", bound="object") == 1
        assert value("reduced_objects", bound="sum") == 0
