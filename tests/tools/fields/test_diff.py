"""Difference: what two looks at an object do not have in common, and who holds it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from hedgerow.fields.redaction import HIDDEN
from hedgerow_tools.fields.diff import difference, moved_items
from support.objects.judged import OURS, item, live, want

Object = dict[str, Any]
TREE = {"f:spec": {"f:a": {}}}


def look(*entries: tuple[str, Object], **spec: Any) -> Object:
    return live(want(spec=spec), *entries)


def told(before: Object | None, after: Object | None) -> list[tuple[Any, ...]]:
    return [
        (line.kind, line.path, line.old, line.new, [h.manager for h in line.holders])
        for line in difference(before, after, OURS)
    ]


class TestLines:
    def test_equal_looks_differ_in_nothing(self):
        assert told(look((OURS, TREE), a=1), look((OURS, TREE), a=1)) == []

    def test_a_change_tells_who_held_the_field(self):
        before, after = look(("other", TREE), a=1), look((OURS, TREE), a=2)

        assert told(before, after) == [("changed", ".spec.a", 1, 2, ["other"])]
        [line] = difference(before, after, OURS)
        assert [holder.manager for holder in line.after] == [OURS]
        assert line.is_change

    def test_what_comes_and_goes(self):
        assert told(look(a=1), look(b=1)) == [
            ("added", ".spec.b", UNSET, 1, []), ("removed", ".spec.a", 1, UNSET, []),
        ]  # fmt: skip

    def test_types_are_told_apart(self):
        assert [row[0] for row in told(look(a=1), look(a="1"))] == ["changed"]

    @pytest.mark.parametrize(
        ("before", "after", "kind"),
        [((OURS, "other"), ("other",), "released"), (("other",), (OURS, "other"), "shared")],
    )
    def test_a_field_that_we_give_up_or_come_to_hold_too(self, before, after, kind):
        looks = [look(*((who, TREE) for who in some), a=1) for some in (before, after)]
        [line] = difference(*looks, OURS)

        assert (line.kind, line.is_change) == (kind, False)

    def test_a_new_object_is_all_added_and_a_deleted_one_all_removed(self):
        assert told(None, look((OURS, TREE), a=1)) == [("added", ".spec.a", UNSET, 1, [])]
        assert told(look((OURS, TREE), a=1), None) == [("removed", ".spec.a", 1, UNSET, [OURS])]

    def test_status_and_bookkeeping_do_not_count(self):
        before, after = look(a=1), {**look(a=1), "status": {"ready": True}}
        meta = {"resourceVersion": "9", "generation": 9, "uid": "z", "creationTimestamp": "t"}
        after["metadata"] = {**after["metadata"], **meta}

        assert told(before, after) == []


class TestLists:
    HELD = {"f:spec": {"f:items": {'k:{"name":"a"}': item("name", "v")}}}

    def test_an_item_that_nobody_held_is_known_by_the_keys_of_later(self):
        before = look(items=[{"name": "a", "v": 1}])
        after = look((OURS, self.HELD), items=[{"name": "a", "v": 2}])

        assert [row[:4] for row in told(before, after)] == [
            ("shared", '.spec.items[name="a"].name', "a", "a"),
            ("changed", '.spec.items[name="a"].v', 1, 2),
        ]

    def test_the_lent_keys_hold_nothing(self):
        before = look(items=[{"name": "a", "v": 1}])
        after = look((OURS, self.HELD), items=[{"name": "a", "v": 1}])

        assert {row[0]: row[4] for row in told(before, after)} == {"shared": []}


class TestOrder:
    """Order is part of every list: of a keyed one as the server keeps it, of an atomic one too."""

    @staticmethod
    def keyed(*names: str) -> Object:
        items = {f'k:{{"name":"{name}"}}': item("name") for name in "abcd"}
        entry = (OURS, {"f:spec": {"f:items": items}})
        return look(entry, items=[{"name": name} for name in names])

    def test_items_that_change_places_are_one_move_of_the_list(self):
        before, after = self.keyed("a", "b"), self.keyed("b", "a")
        [line] = difference(before, after, OURS)

        assert (line.kind, line.path) == ("moved", ".spec.items")
        assert line.old == ['[name="a"]', '[name="b"]']
        assert line.new == ['[name="b"]', '[name="a"]']
        assert [holder.manager for holder in line.holders] == [OURS]
        assert [holder.manager for holder in line.after] == [OURS]
        assert line.is_change

    def test_what_comes_and_goes_between_them_moves_nothing(self):
        few, many = self.keyed("a", "b"), self.keyed("a", "c", "b")

        assert [row[0] for row in told(few, many)] == ["added"]
        assert [row[0] for row in told(many, few)] == ["removed"]

    def test_of_those_that_are_in_both_the_order_counts(self):
        found = told(self.keyed("a", "b", "c"), self.keyed("d", "b", "a"))

        assert [row[0] for row in found] == ["added", "removed", "moved"]
        assert found[2][2:4] == (['[name="a"]', '[name="b"]'], ['[name="b"]', '[name="a"]'])

    def test_a_set_has_an_order_too(self):
        held = (OURS, {"f:spec": {"f:tags": {'v:"a"': {}, 'v:"b"': {}}}})
        before, after = look(held, tags=["a", "b"]), look(held, tags=["b", "a"])

        assert [row[:4] for row in told(before, after)] == [
            ("moved", ".spec.tags", ['[="a"]', '[="b"]'], ['[="b"]', '[="a"]'])
        ]

    @pytest.mark.parametrize(
        ("old", "new", "kind"),
        [
            (["x", "y", "x"], ["x", "x", "y"], "moved"),
            ([{"a": 1, "b": 2}, {"a": 3}], [{"a": 3}, {"b": 2, "a": 1}], "moved"),
            ([1, 2], ["2", "1"], "changed"),
            (["x", "y"], ["y", "z"], "changed"),
            (["x", "y"], ["y", "x", "x"], "changed"),
        ],
    )
    def test_an_atomic_list_with_the_same_values_has_moved_ones(self, old, new, kind):
        held = (OURS, {"f:spec": {"f:list": {}}})

        assert told(look(held, list=old), look(held, list=new)) == [
            (kind, ".spec.list", old, new, [OURS])
        ]

    def test_a_list_in_a_list_has_its_own_order(self):
        env = {'k:{"name":"x"}': item("name"), 'k:{"name":"y"}': item("name")}
        inner = {'k:{"name":"a"}': {**item("name"), "f:env": env}}
        held = (OURS, {"f:spec": {"f:items": inner}})
        looks = [
            look(held, items=[{"name": "a", "env": [{"name": name} for name in names]}])
            for names in ("xy", "yx")
        ]

        assert [row[:2] for row in told(*looks)] == [("moved", '.spec.items[name="a"].env')]

    @pytest.mark.parametrize(
        ("old", "new", "moved"),
        [
            ("abcd", "abcd", []),
            ("abcd", "dabc", ["d"]),
            ("abcd", "bcda", ["a"]),
            ("abcde", "acdbe", ["b"]),
            ("aab", "baa", ["b"]),
        ],
    )
    def test_the_fewest_items_move(self, old, new, moved):
        assert [new[index] for index in moved_items(old, new)] == moved


class TestSecrets:
    def secret(self, value: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "x", "annotations": {"copy": value}, "labels": {"a": value}},
            "data": {"key": value},
        }

    def test_a_changed_value_is_told_and_never_shown(self):
        assert [(row[1], row[2], row[3]) for row in told(self.secret("a"), self.secret("b"))] == [
            (".metadata.annotations.copy", HIDDEN, HIDDEN),
            (".metadata.labels.a", "a", "b"),
            (".data.key", HIDDEN, HIDDEN),
        ]

    def test_a_new_one_shows_nothing_either(self):
        lines = difference(None, self.secret("a"), OURS)

        assert [line.new for line in lines if line.path.startswith(".data")] == [HIDDEN]
        assert [line.old for line in lines] == [UNSET] * 3

    def test_a_kind_of_that_name_in_another_group_may_hold_secrets_as_well(self):
        mine = {**self.secret("a"), "apiVersion": "x.example/v1"}

        assert [line.new for line in difference(None, mine, OURS)] == [HIDDEN, "a", HIDDEN]
