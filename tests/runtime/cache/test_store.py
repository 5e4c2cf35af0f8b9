"""The store, fed by hand and by generated histories."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.runtime.cache.store import RestoredError, Store, key_of, version_of
from runtime.things import Object, contents, owners, replaced, thing


def stored(*objects: Object) -> Store:
    store = Store({"owner": owners})
    for obj in objects:
        store.put(obj)
    return store


A = ("ns", "a")


class TestKeys:
    def test_a_cluster_scoped_object_has_an_empty_namespace(self):
        assert key_of({"metadata": {"name": "x"}}) == ("", "x")

    @pytest.mark.parametrize("version", ["", "abc", "-1", "1.5"])
    def test_what_is_no_version_reads_as_zero(self, version):
        assert version_of({"metadata": {"resourceVersion": version}}) == 0

    def test_an_object_without_metadata_has_version_zero(self):
        assert version_of({}) == 0


A1, A2, OWNED = thing(version=1), thing(version=2), thing(version=6, owner="x")
OTHER = thing("other", 1)
Step = tuple[Any, ...]
STORIES: dict[str, tuple[Step, ...]] = {
    "versions compare as numbers": (
        ("put", thing(version=9)),
        ("put", thing(version=10), (thing(version=9), thing(version=10))),
    ),
    "a deletion does not touch what was made anew since": (
        ("put", A1), ("absorb", thing(version=5, uid="new")), ("remove", A2, None),
        ("left", thing(version=5, uid="new")),
    ),
    "an answer is cached before the watch tells of it": (
        ("put", A1), ("absorb", OWNED), ("by", "x", [OWNED]),
    ),
    "the watch telling of our own write is no news": (("absorb", A2), ("put", A2, None)),
    "an answer that comes after the watch's deletion is ignored": (
        ("put", A1), ("remove", thing(version=3)), ("absorb", A2), ("left",),
    ),
    "so is one that comes after a bookmark past it": (
        ("bookmark", "3"), ("absorb", A2), ("left",),
    ),
    "so is one that is older than what is cached": (
        ("put", A1), ("absorb", OWNED), ("absorb", thing(version=5)), ("left", OWNED),
    ),
    "another write of ours does not make an answer old news": (
        ("absorb", thing("b", 9)), ("absorb", thing(version=8)),
        ("left", thing("b", 9), thing(version=8)),
    ),
    "a bookmark that is no number or goes back changes nothing": (
        ("bookmark", "7"), ("bookmark", ""), ("bookmark", "3"), ("version", 7),
    ),
    "an adopted object is cached whatever the watch has told": (
        ("bookmark", "9"), ("put_read", A2), ("left", A2),
    ),
    "forgetting drops exactly the object of that uid": (
        ("put", A1), ("forget", "other"), ("left", A1), ("forget", "u"), ("left",),
        ("forget", "u"),
    ),
    "what was met on the way is named alone in the end": (
        ("put", OTHER), ("put", A1), ("meet", thing(version=4), (A1, thing(version=4))),
        ("version", 1), ("list", "5", [], [(OTHER, None)], {A}), ("left", thing(version=4)),
        ("version", 5),
    ),
    "a list tells what is new, changed and gone": (
        ("put", OTHER), ("put", thing("old", 2)), ("put", thing("gone", 3)),
        (
            "list", "5", [OTHER, thing("old", 5), thing("new", 4)],
            [
                (thing("old", 2), thing("old", 5)), (None, thing("new", 4)),
                (thing("gone", 3), None),
            ],
        ),
        ("left", OTHER, thing("old", 5), thing("new", 4)),
    ),
    "what we made after a list was taken stays": (
        ("absorb", OWNED), ("list", "5", [], []), ("left", OWNED),
    ),
    "what we changed after it was taken stays as we changed it": (
        ("put", A1), ("absorb", OWNED), ("list", "5", [A1], []), ("left", OWNED),
    ),
    "a list makes answers up to its version old news": (
        ("list", "5", [], []), ("absorb", thing(version=5)), ("left",),
    ),
    "of a list that was broken off nothing is believed": (
        ("put", thing(version=8)), ("meet", thing(version=3)),
        ("list", "12", [], [(thing(version=8), None)]),
    ),
    "an answer of our own outlives a list that was under way": (
        ("put", A1), ("absorb", OWNED), ("meet", A1), ("list", "5", [], [], {A}), ("left", OWNED),
    ),
    "a list without a version still replaces": (("put", A1), ("list", "", [], [(A1, None)])),
    "objects are given in the order of their keys": (
        ("put", thing("b", 1, owner="x")), ("put", thing("a", 2, owner="x")),
        ("put", thing("c", 3)),
        ("by", "x", [thing("a", 2, owner="x"), thing("b", 1, owner="x")]),
    ),
}  # fmt: skip
"""What a store is told, and what it tells of it; `left` is all there is then, `by` of an owner."""


def tell(store: Store, verb: str, what: Any = "", *told: Any) -> None:
    """Play a step; fail where the store tells something else."""
    match verb:
        case "by":
            found = store.by("owner", what)
        case "version":
            assert store.version == what
            return
        case "forget":
            found = store.forget_object(A, what)
        case "list":
            items, changes, *met = told
            told = (changes,)
            parts = store.replacing(items, what, *met)
            found = [change for part in parts for change in part]
        case _:
            found = getattr(store, verb)(what)
    assert not told or found == told[0]


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_story(story: tuple[Step, ...]):
    store = Store({"owner": owners})
    for verb, *told in story:
        if verb == "left":
            assert contents(store) == {key_of(obj): obj for obj in told}
            assert (len(store), set(store.keys())) == (len(told), set(map(key_of, told)))
        else:
            tell(store, verb, *told)


class TestRestored:
    """A list that is older than what is known is one of a store that was restored."""

    @pytest.mark.parametrize(
        ("items", "version"),
        [([thing("same", 2)], "5"), ([thing("newer", 3)], "8")],
        ids=["than the watch has come", "in one form"],
    )
    def test_it_is_not_believed(self, items, version):
        with pytest.raises(RestoredError):
            replaced(stored(thing("same", 2), thing("newer", 8)), items, version)

    def test_nor_is_one_whose_objects_were_taken_in_as_they_came(self):
        older, store = thing("newer", 3), stored(thing("newer", 8))

        assert store.meet(older) is None
        with pytest.raises(RestoredError):
            list(store.replacing((), "12", {key_of(older)}))


def test_nothing_is_kept_of_what_is_gone():
    store = stored(thing(version=1, owner="x"))
    store.remove(thing(version=2))

    assert store._indices.keys == {"owner": {}}


class TestParts:
    @pytest.mark.parametrize(("letters", "most"), [(0, 200), (300 * 1024, 1)])
    def test_a_long_list_is_stored_and_forgotten_in_parts_by_the_bytes_of_its_objects(
        self, letters, most
    ):
        store = Store()
        items = [thing(f"t{n}", version=5, owner="x" * letters) for n in range(201)]

        stored = [len(part) for part in store.replacing(items, "9")]
        assert (sum(stored), len(store), store.version) == (201, 201, 9)
        forgotten = [len(part) for part in store.replacing((), "10")]

        assert sum(forgotten) == 201
        assert 1 <= max(*stored, *forgotten) <= most

    def test_an_answer_to_our_own_write_is_kept_that_comes_in_between(self):
        store = stored(thing(version=1))
        parts = store.replacing([thing(version=5), thing("b", version=5)], "9")
        next(parts)
        ours = thing(version=7)
        store.absorb(ours)
        list(parts)

        assert store.get(A) is ours

    def test_what_we_forget_in_between_is_not_told_twice(self):
        store = stored(thing(version=1))
        parts = store.replacing([thing("b", version=5)], "9")
        next(parts)
        store.forget_object(A, thing()["metadata"]["uid"])

        assert [change for part in parts for change in part] == []


class TestContentVersions:
    """Numbers that change with an object, but not with its status alone."""

    def test_an_object_that_is_not_there_has_none(self):
        assert Store().content_version(A) == 0

    def test_a_new_object_has_one(self):
        assert stored(thing()).content_version(A) > 0

    def test_a_change_of_the_status_alone_keeps_it(self):
        store = stored(thing(version=1))
        before = store.content_version(A)

        store.put({**thing(version=2), "status": {"replicas": 1}})

        assert store.content_version(A) == before

    def test_any_other_change_makes_a_new_one(self):
        store = stored(thing(version=1))
        before = store.content_version(A)

        store.put({**thing(version=2), "spec": {"replicas": 1}})

        assert store.content_version(A) > before

    def test_an_object_made_anew_never_has_an_old_one(self):
        store = stored(thing(version=1))
        before = store.content_version(A)
        store.remove(thing(version=2))

        assert store.content_version(A) == 0
        store.put(thing(version=3))
        assert store.content_version(A) > before
