"""Packing: what nobody asks for is kept as bytes, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from hedgerow.objects import digest, metadata
from hedgerow.plan.oversized import Family
from hedgerow.runtime.cache.budget import DECODED, LARGE_FROM, OVERHEAD, Budget, Weigher
from hedgerow.runtime.cache.packing import Packing
from hedgerow.runtime.cache.store import RestoredError, Store
from runtime.things import contents, owners, replaced, thing
from runtime.world import World

MIB = 1024 * 1024
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
OBJECTS = st.dictionaries(
    st.text(),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,  # depth and every kind of value; many of them only take long to draw
    ),
    max_size=4,
)


def family_of(obj: dict[str, Any]) -> Family:
    return Family("c", "ns", metadata(obj)["labels"]["owner"] or metadata(obj)["name"])


def packing_store(*, decoded: int = 1) -> tuple[Store, Budget]:
    """Make a store that keeps one object decoded, or so many bytes of them."""
    budget = Budget()
    budget.most_decoded = decoded
    return Store({"owner": owners}, Weigher(budget, family_of, manager="m")), budget


class TestPacking:
    @given(st.lists(OBJECTS, min_size=1, max_size=6))
    def test_what_was_packed_comes_out_as_it_was(self, objects):
        packing = Packing()
        packed = [packing.pack(obj) for obj in objects]

        assert [packing.unpack(one) for one in packed] == objects

    def test_the_second_of_a_kind_takes_a_fraction(self):
        packing = Packing()
        spec = {"spec": {f"field{n}": digest(n) for n in range(100)}}
        packing.pack({**thing("a"), **spec})
        second = {**thing("b"), **spec}

        assert len(packing.pack(second)) < len(to_json(second)) / 20


NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "absorb", "adopt", "remove", "forget", "get", "by", "replace"]),
        NAMES,
        st.integers(1, 6),
        st.sampled_from(["", "x", "y"]),
    ),
    max_size=30,
)


def outcome(store: Store, step: tuple[str, str, int, str]) -> Any:
    verb, name, version, owner = step
    obj = thing(name, version, owner=owner)
    match verb:
        case "get":
            return store.get(("ns", name))
        case "by":
            return store.by("owner", owner)
        case "forget":
            return store.forget(("ns", name), "u")
        case "replace":
            try:
                return replaced(store, [obj], str(version))
            except RestoredError:
                return "restored"
        case _:
            return getattr(store, verb)(obj)


class TestStore:
    @given(STEPS)
    def test_a_store_that_packs_does_what_one_does_that_does_not(self, steps):
        plain, (packing, _) = Store({"owner": owners}), packing_store()
        for step in steps:
            assert outcome(packing, step) == outcome(plain, step)
            assert packing.keys() == plain.keys()
            for key in plain.keys():  # noqa: SIM118 - a store is no map
                assert packing.content_version(key) == plain.content_version(key)
        assert contents(packing) == contents(plain)

    def test_what_nobody_asks_for_is_packed_and_weighs_less(self):
        store, budget = packing_store()
        alone = {**thing("a"), "text": "x" * 10_000}
        store.put(alone)
        assert budget.weight > 10_000

        store.put(thing("b", 2))

        assert budget.weight < 3 * OVERHEAD
        assert store.get(("ns", "a")) == alone
        assert budget.weight > 10_000

    def test_what_is_asked_for_again_and_again_is_decoded_once(self):
        store, _ = packing_store(decoded=MIB)
        for number in range(3):
            store.put(thing(f"n{number}"))

        first = store.get(("ns", "n0"))
        assert all(store.get(("ns", "n0")) is first for _ in range(3))

    def test_what_was_asked_for_last_stays_decoded(self):
        store, budget = packing_store(decoded=MIB)
        for number in range(20):
            store.put({**thing(f"n{number}"), "text": f"{number}" * 1000})
        first = store.get(("ns", "n0"))
        budget.most_decoded = budget.weight // 10
        store.put(thing("last"))

        assert store.get(("ns", "n0")) is first

    def test_of_a_list_that_has_no_room_the_first_ones_stay_decoded_until_they_are_asked_for(self):
        store, budget = packing_store()
        names = [f"n{number:02}" for number in range(20)]
        store.meet({**thing(names[0]), "text": "x" * 1000})
        budget.most_decoded = 10 * budget.weight

        for name in names[1:]:
            store.meet({**thing(name), "text": "x" * 1000})

        def decoded() -> list[str]:
            return [name for name in names if store.peek(("ns", name)) is store.peek(("ns", name))]

        assert decoded() == names[:10]
        for name in names[:10]:
            store.get(("ns", name))
        store.get(("ns", names[10]))
        assert decoded() == names[1:11]

    def test_what_is_written_while_a_list_has_no_room_stays_decoded(self):
        store, budget = packing_store()
        for number in range(5):
            store.meet({**thing(f"n{number}"), "text": "x" * 1000})
        budget.most_decoded = budget.weight // 3

        store.absorb({**thing("n1", 9), "text": "x" * 1000})

        assert store.peek(("ns", "n1")) is store.peek(("ns", "n1"))

    def test_over_the_budget_all_is_packed_before_anything_is_left_out(self):
        budget = Budget(400_000)
        store = Store({"owner": owners}, Weigher(budget, family_of, manager="m"))
        for number in range(100):
            store.put({**thing(f"n{number}"), "text": "x" * 10_000})

        assert budget.weight <= budget.most
        assert sum(budget.reduced.values()) == 0

    def test_one_that_is_only_peeked_at_stays_packed(self):
        store, budget = packing_store()
        store.put({**thing("a"), "text": "x" * 10_000})
        store.put(thing("b", 2))
        before = budget.weight

        assert (store.peek(("ns", "a")) or {})["text"] == "x" * 10_000
        assert store.peek(("ns", "none")) is None
        assert budget.weight == before

    def test_a_family_that_is_large_is_never_packed(self):
        store, budget = packing_store()
        for number in range(40):
            store.put({**thing(f"n{number}", owner="x"), "text": "x" * 10_000})
        heavy = budget.weight

        assert budget.of(Family("c", "ns", "x")) > LARGE_FROM
        assert heavy > LARGE_FROM / 2

    def test_a_family_that_was_large_is_packed_once_it_is_asked_for(self):
        store, budget = packing_store()
        for number in range(20):
            store.put({**thing(f"n{number}", owner="x"), "text": "x" * 40_000})
        for number in range(15):
            store.put({**thing(f"n{number}", 2, owner=f"y{number}")})
        assert budget.weight > 5 * 40_000

        store.by("owner", "x")
        store.put(thing("last"))

        assert budget.weight < 40_000 + 21 * 2 * OVERHEAD

    def test_what_every_pass_asks_for_is_never_packed(self):
        budget = Budget()
        budget.most_decoded = 1
        store = Store({}, Weigher(budget, family_of, manager="m", packable=False))
        for number in range(10):
            store.put({**thing(f"n{number}"), "text": "x" * 10_000})

        first = store.all()
        assert all(one is again for one, again in zip(first, store.all(), strict=True))
        assert budget.weight > 100_000

    def test_all_together_take_no_more_than_there_is_for_them(self):
        store, budget = packing_store(decoded=DECODED)
        for number in range(1000):
            store.put({**thing(f"n{number}"), "text": "x" * 100_000})

        assert budget.weight < DECODED + 1000 * 2 * OVERHEAD


@pytest.mark.anyio
class TestPasses:
    async def test_an_operator_whose_every_object_is_packed_makes_the_same_writes(self):
        def packing() -> Budget:
            budget = Budget()
            budget.most_decoded = 1
            return budget

        made: list[Any] = []
        for budget in (None, packing):
            world = World(budget=budget)
            world.apply()
            await world.settle()
            world.apply(routeTo="Green")
            await world.settle()
            world.restart()
            await world.settle()
            made.append((world.writes, world.status(), world.the("Service", "demo")))

        assert made[0] == made[1]
