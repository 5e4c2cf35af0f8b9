"""Packing: what nobody asks for is kept as bytes, and nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from hedgerow.objects import digest
from hedgerow.runtime.cache.door import OVERHEAD, Door, Shelf
from hedgerow.runtime.cache.packing import Packing
from hedgerow.runtime.cache.store import RestoredError, Store
from runtime.things import contents, owners, replaced, thing
from runtime.world import World

MIB = 1024 * 1024


def packing_store(*, decoded: int = 1, stay: bool = False) -> tuple[Store, Door]:
    """Make a store that keeps one object decoded, or so many bytes of them."""
    door = Door(decoded=decoded)
    return Store({"owner": owners}, Shelf(door, stay=stay)), door


def test_the_second_of_a_kind_takes_a_fraction():
    packing = Packing()
    spec = {"spec": {f"field{n}": digest(n) for n in range(100)}}
    packing.pack({**thing("a"), **spec})
    second = {**thing("b"), **spec}

    assert len(packing.pack(second)) < len(to_json(second)) / 20


NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "absorb", "put_read", "remove", "forget", "get", "by", "replace"]),
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
            return store.forget_object(("ns", name), "u")
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

    def test_what_nobody_asks_for_is_packed_and_takes_less(self):
        store, door = packing_store()
        alone = {**thing("a"), "text": "x" * 10_000}
        store.put(alone)
        assert door.taken > 10_000

        store.put(thing("b", 2))

        assert door.taken < 3 * OVERHEAD
        assert store.get(("ns", "a")) == alone

    def test_all_that_is_taken_is_counted_and_let_go(self):
        store, door = packing_store(decoded=5_000)
        for number in range(100):
            store.put({**thing(f"n{number % 10}", number + 1), "text": "x" * number * 10})
            store.get(("ns", f"n{number % 7}"))
        assert 10 * OVERHEAD < door.taken < 10 * (OVERHEAD + 1_200)

        for key in store.keys():  # noqa: SIM118 - a store is no map
            store.forget_object(key, "u")
        assert door.taken == 0

    def test_what_is_asked_for_again_and_again_is_decoded_once(self):
        store, _ = packing_store(decoded=MIB)
        for number in range(3):
            store.put(thing(f"n{number}"))

        first = store.get(("ns", "n0"))
        assert all(store.get(("ns", "n0")) is first for _ in range(3))

    def test_what_was_asked_for_last_stays_decoded(self):
        store, _ = packing_store(decoded=5_000)
        for number in range(20):
            store.put({**thing(f"n{number}"), "text": f"{number}" * 500})
        first = store.get(("ns", "n0"))
        store.put(thing("last"))

        assert store.get(("ns", "n0")) is first

    def test_one_that_is_only_peeked_at_stays_packed(self):
        store, _ = packing_store()
        store.put({**thing("a"), "text": "x" * 10_000})
        store.put(thing("b", 2))

        first = store.peek(("ns", "a"))
        assert (first or {})["text"] == "x" * 10_000
        assert store.peek(("ns", "a")) is not first
        assert store.peek(("ns", "none")) is None

    def test_what_every_pass_asks_for_is_never_packed(self):
        store, _ = packing_store(stay=True)
        for number in range(10):
            store.put({**thing(f"n{number}"), "text": "x" * 10_000})

        first = store.all()
        assert all(one is again for one, again in zip(first, store.all(), strict=True))


@pytest.mark.anyio
class TestPasses:
    async def test_an_operator_whose_every_object_is_packed_makes_the_same_writes(self):
        made: list[Any] = []
        for door in (None, lambda: Door(decoded=1)):
            world = World(door=door)
            world.apply()
            await world.settle()
            world.apply(routeTo="Green")
            await world.settle()
            world.restart()
            await world.settle()
            made.append((world.writes, world.status(), world.the("Service", "demo")))

        assert made[0] == made[1]
