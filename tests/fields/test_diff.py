"""Difference: what two looks at an object do not have in common, and who holds it."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow.fields.diff import difference
from hedgerow.fields.redaction import HIDDEN
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
            ("added", ".spec.b", None, 1, []), ("removed", ".spec.a", 1, None, []),
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
        assert told(None, look((OURS, TREE), a=1)) == [("added", ".spec.a", None, 1, [])]
        assert told(look((OURS, TREE), a=1), None) == [("removed", ".spec.a", 1, None, [OURS])]

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

        assert [line.new for line in lines if line.field_path[0] == "f:data"] == [HIDDEN]
        assert [line.old for line in lines] == [None] * 3

    def test_a_kind_of_that_name_in_another_group_may_hold_secrets_as_well(self):
        mine = {**self.secret("a"), "apiVersion": "x.example/v1"}

        assert [line.new for line in difference(None, mine, OURS)] == [HIDDEN, "a", HIDDEN]
