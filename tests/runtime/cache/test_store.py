"""The store, fed by hand and by generated histories."""

from __future__ import annotations

import pytest

from hedgerow.runtime.cache.store import AT_ONCE, RestoredError, Store, key_of, version_of
from runtime.things import Object, owners, replaced, thing


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


class TestEvents:
    def test_an_added_object_is_there_and_told(self):
        store, new = Store(), thing()

        assert store.put(new) == (None, new)
        assert store.get(A) is new
        assert (len(store), store.keys()) == (1, (A,))

    def test_a_modified_object_comes_with_what_it_was(self):
        old, new = thing(version=1), thing(version=2)

        assert stored(old).put(new) == (old, new)

    @pytest.mark.parametrize("version", [1, 2])
    def test_an_event_that_is_not_newer_than_the_cache_is_old_news(self, version):
        cached = thing(version=2)
        store = stored(cached)

        assert store.put(thing(version=version)) is None
        assert store.get(A) is cached

    def test_versions_compare_as_numbers(self):
        store = stored(thing(version=9))

        assert store.put(thing(version=10)) is not None

    def test_a_deleted_object_is_gone_and_told(self):
        old = thing(version=1)
        store = stored(old)

        assert store.remove(thing(version=2)) == (old, None)
        assert (store.get(A), len(store)) == (None, 0)

    def test_a_deletion_of_what_is_not_there_is_no_news(self):
        assert Store().remove(thing()) is None

    def test_a_deletion_does_not_touch_what_was_made_anew_since(self):
        store = stored(thing(version=1))
        store.absorb(thing(version=5, uid="new"))

        assert store.remove(thing(version=2)) is None
        assert store.get(A) == thing(version=5, uid="new")


class TestAnswers:
    def test_an_answer_is_cached_before_the_watch_tells_of_it(self):
        store = stored(thing(version=1))
        store.absorb(thing(version=2, owner="x"))

        assert store.by("owner", "x") == [thing(version=2, owner="x")]

    def test_the_watch_telling_of_our_own_write_is_no_news(self):
        store = Store()
        store.absorb(thing(version=2))

        assert store.put(thing(version=2)) is None

    def test_an_answer_that_comes_after_the_watchs_deletion_is_ignored(self):
        store = stored(thing(version=1))
        store.remove(thing(version=3))
        store.absorb(thing(version=2))

        assert store.get(A) is None

    def test_an_answer_that_comes_after_a_bookmark_past_it_is_ignored(self):
        store = Store()
        store.bookmark("3")
        store.absorb(thing(version=2))

        assert store.get(A) is None

    def test_an_answer_older_than_what_is_cached_is_ignored(self):
        store = stored(thing(version=1))
        store.absorb(thing(version=9, owner="late"))
        store.absorb(thing(version=8))

        assert store.by("owner", "late")

    def test_another_write_of_ours_does_not_make_an_answer_old_news(self):
        store = Store()
        store.absorb(thing("b", version=9))
        store.absorb(thing("a", version=8))

        assert store.keys() == (("ns", "b"), A)

    def test_a_bookmark_that_is_no_number_or_goes_back_changes_nothing(self):
        store = Store()
        store.bookmark("7")
        store.bookmark("")
        store.bookmark("3")

        assert store.version == 7

    def test_an_adopted_object_is_cached_whatever_the_watch_has_told(self):
        store = Store()
        store.bookmark("9")
        store.put_read(thing(version=2))

        assert store.get(A) == thing(version=2)

    def test_forgetting_drops_exactly_the_object_of_that_uid(self):
        store = stored(thing(uid="u"))
        store.forget_object(A, "other")
        assert store.get(A)
        store.forget_object(A, "u")
        assert store.get(A) is None
        store.forget_object(A, "u")


class TestLists:
    def test_what_was_met_on_the_way_is_named_alone_in_the_end(self):
        gone, old = thing("gone", 1), thing("a", 1)
        store = stored(gone, old)

        assert store.meet(thing("a", 4)) == (old, thing("a", 4))
        assert store.version == 1
        assert list(store.replacing((), "5", {A})) == [[(gone, None)]]
        assert store.keys() == (A,)
        assert store.version == 5

    def test_a_list_tells_what_is_new_changed_and_gone(self):
        same, old, gone = thing("same", 1), thing("old", 2), thing("gone", 3)
        new, changed = thing("new", 4), thing("old", 5)
        store = stored(same, old, gone)

        changes = replaced(store, [same, changed, new], "5")

        assert changes == [(old, changed), (None, new), (gone, None)]
        assert set(store.keys()) == {("ns", "same"), ("ns", "old"), ("ns", "new")}

    def test_what_we_made_after_the_list_was_taken_stays(self):
        store = Store()
        store.absorb(thing(version=6))

        assert replaced(store, [], "5") == []
        assert store.get(A)

    def test_what_we_changed_after_the_list_was_taken_stays_as_we_changed_it(self):
        store = stored(thing(version=1))
        store.absorb(thing(version=6, owner="x"))

        assert replaced(store, [thing(version=1)], "5") == []
        assert store.by("owner", "x")

    def test_a_list_makes_answers_up_to_its_version_old_news(self):
        store = Store()
        replaced(store, [], "5")
        store.absorb(thing(version=5))

        assert store.get(A) is None

    def test_an_object_made_anew_between_two_lists_is_one_difference(self):
        old, new = thing(version=1, uid="one"), thing(version=4, uid="two")

        assert replaced(stored(old), [new], "5") == [(old, new)]

    def test_a_list_that_is_older_than_the_watch_has_come_is_of_a_restored_store(self):
        store = stored(thing("same", 2), thing("newer", 8))

        with pytest.raises(RestoredError):
            replaced(store, [thing("same", 2)], "5")

    def test_so_is_one_with_an_older_form_than_it_has_to_have(self):
        store = stored(thing("newer", 8))

        with pytest.raises(RestoredError):
            replaced(store, [thing("newer", 3)], "12")

    def test_and_one_whose_objects_were_taken_in_as_they_came(self):
        older, store = thing("newer", 3), stored(thing("newer", 8))

        assert store.meet(older) is None
        with pytest.raises(RestoredError):
            list(store.replacing((), "12", {key_of(older)}))

    def test_of_a_list_that_was_broken_off_nothing_is_believed(self):
        newer, older = thing("one", 8), thing("one", 3)
        store = stored(newer)
        store.meet(older)

        assert list(store.replacing((), "12", frozenset())) == [[(newer, None)]]

    def test_an_answer_of_our_own_outlives_a_list_that_was_under_way(self):
        store = stored(thing(version=1))
        store.absorb(thing(version=6))
        store.meet(thing(version=1))
        list(store.replacing((), "5", {A}))

        assert version_of(store.get(A)) == 6

    def test_one_that_was_taken_before_our_own_write_is_not(self):
        store = stored(thing(version=1))
        store.absorb(thing(version=6))
        replaced(store, [thing(version=1)], "5")

        assert version_of(store.get(A)) == 6

    def test_a_list_without_a_version_still_replaces(self):
        store = stored(thing(version=1))

        assert replaced(store, [], "") == [(thing(version=1), None)]


class TestIndices:
    def test_objects_are_given_in_the_order_of_their_keys(self):
        store = stored(thing("b", 1, owner="x"), thing("a", 2, owner="x"), thing("c", 3))

        assert [key_of(obj)[1] for obj in store.by("owner", "x")] == ["a", "b"]

    def test_an_object_that_moves_is_found_only_where_it_is_now(self):
        store = stored(thing(version=1, owner="x"))
        store.put(thing(version=2, owner="y"))

        assert (store.by("owner", "x"), len(store.by("owner", "y"))) == ([], 1)

    def test_nothing_is_kept_of_what_is_gone(self):
        store = stored(thing(version=1, owner="x"))
        store.remove(thing(version=2))

        assert store._indices.keys == {"owner": {}}


class TestParts:
    def test_a_long_list_is_taken_in_part_by_part(self):
        store = Store()
        items = [thing(f"t{n}", version=5) for n in range(AT_ONCE + 1)]
        sizes = [len(part) for part in store.replacing(items, "9")]

        assert sizes[:2] == [AT_ONCE, 1]
        assert (len(store), store.version) == (AT_ONCE + 1, 9)

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
