from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from hedgerow.fields.sets import is_key, members
from hedgerow_schemas.base import ApiResource
from hedgerow_tools.fields.relabelling import (
    HolderName,
    Relabelling,
    Takeover,
    ValuesNeeded,
    changed,
    moves,
    refusal,
    repair,
    restoration,
    takeover,
)
from hedgerow_tools.fields.sorting import sorting
from hedgerow_tools.fields.transfers import MoveRefused
from hedgerow_tools.moving import adoption
from model.programs import APPLIERS, UPDATERS, opened, programs
from model.subjects import SUBJECTS

Object = dict[str, Any]
SERVED = {"apps/v1", "apps/v2"}
API = ApiResource("apps/v1", "Deployment", "deployments")
CSA, BEFORE = "kubectl-client-side-apply", "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
COPY = {"f:metadata": {"f:annotations": {f"f:{LAST_APPLIED}": {}}}}


def spec(*names: str) -> Object:
    return {"f:spec": {f"f:{name}": {} for name in names}}


def entry(who: str, tree: Object, version: str = "apps/v1", **more: str) -> Object:
    """Return an entry of `manager`, `manager/Update`, `manager/Update/subresource`."""
    manager, operation, subresource = [*who.split("/"), "", ""][:3]
    named = {"manager": manager, "operation": operation or "Apply", "apiVersion": version}
    below = {"subresource": subresource} if subresource else {}
    return {**named, "time": "t", "fieldsType": "FieldsV1", "fieldsV1": tree, **below, **more}


def live(*entries: Object) -> Object:
    meta = {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "1"}
    return {"apiVersion": "apps/v1", "metadata": {**meta, "managedFields": list(entries)}}


def written(obj: Object, change: Relabelling | None, **how: bool) -> list[Object]:
    """Return the entries after the write, which must be one that can be sent."""
    assert change is not None
    assert adoption.request(API, obj, change.edits, **how).content
    entries = obj["metadata"]["managedFields"]
    return [one for n, old in enumerate(entries) for one in change.edits.get(n, (old,))]


def asked(*managers: str, to: str = "helm", **more: Any) -> Takeover:
    return Takeover(frozenset(HolderName(manager, **more) for manager in managers), to)


class TestWhoseEntries:
    @pytest.mark.parametrize(
        ("request_", "who", "tree", "is_taken"),
        [
            (asked("a"), "a", spec("x"), True),
            (asked("a"), "a/Update", spec("x"), True),
            (asked("a"), "a/Update/scale", spec("x"), True),
            (asked("a"), "a/Update/status", spec("x"), False),
            (asked("a", subresource="status"), "a/Update/status", spec("x"), True),
            (asked("a", subresource="status"), "a/Update", spec("x"), False),
            (asked("a", subresource=""), "a/Update/scale", spec("x"), False),
            (asked("a", operation="Apply"), "a/Update", spec("x"), False),
            (asked("a"), "b", spec("x"), False),
            (asked("helm"), "helm", spec("x"), False),
            (asked("helm"), "helm/Update", spec("x"), True),
            (asked("helm", to="argocd"), "helm", spec("x"), True),
            (asked("Helm"), "helm/Update", spec("x"), True),
            (asked("helm"), "Helm/Update", spec("x"), True),
            (asked("Helm", to="argocd"), "helm", spec("x"), False),
            (asked("a"), "Helm/Update", spec("x"), False),
            (asked(CSA), f"{BEFORE}/Update", spec("x"), False),
            (asked(CSA), f"{BEFORE}/Update", COPY, True),
            (asked(BEFORE), f"{BEFORE}/Update", spec("x"), True),
            (asked(BEFORE), f"{CSA}/Update", spec("x"), False),
            (asked(CSA), "kubectl/Update", COPY, True),
            (asked(CSA), "kubectl/Update", spec("x"), False),
            (asked(CSA), "kubectl-last-applied", COPY, False),
            (asked("a"), f"{BEFORE}/Update", spec("x"), False),
        ],
    )
    def test_one_is_taken_under_each_of_its_names_and_no_other_is(
        self, request_, who, tree, is_taken
    ):
        found = takeover(live(entry(who, tree), entry("z", spec("z"))), request_, SERVED)

        assert (found is not None) == is_taken


class TestWithoutManagedFields:
    @pytest.mark.parametrize(
        ("request_", "annotations", "is_taken"),
        [
            (asked(BEFORE), {}, True),
            (asked(CSA), {}, False),
            (asked(CSA), {LAST_APPLIED: "{}"}, True),
            (asked("Helm"), {LAST_APPLIED: "{}"}, False),
        ],
    )
    def test_what_was_before_is_taken_if_it_is_named_or_was_applied(
        self, request_, annotations, is_taken
    ):
        obj = {"metadata": {"name": "x", "annotations": annotations}}

        assert request_.takes_first(obj) is is_taken
        obj["metadata"]["managedFields"] = [entry("z", spec("z"))]
        assert not request_.takes_first(obj)


class TestTakeover:
    def test_a_sole_entry_gets_another_label_in_its_place(self):
        obj = live(entry("z", spec("z")), entry("a/Update/scale", spec("x")))

        found = takeover(obj, asked("a"), SERVED)

        assert written(obj, found) == [entry("z", spec("z")), entry("helm", spec("x"))]
        assert found is not None
        assert [(holder.manager, count) for holder, count in found.sources] == [("a", 1)]
        assert (found.before, found.after) == (
            (entry("a/Update/scale", spec("x")),), (entry("helm", spec("x")),)
        )  # fmt: skip

    def test_the_new_managers_entry_gets_what_all_of_them_hold(self):
        obj = live(
            entry("a/Update", spec("x", "y")),
            entry("helm", spec("w", "x")),
            entry("b", {"f:spec": {"f:w": {"f:v": {}}}}),
            entry("helm/Update/status", spec("s")),
        )

        found = takeover(obj, asked("a", "b"), SERVED)

        tree = {"f:spec": {"f:w": {".": {}, "f:v": {}}, "f:x": {}, "f:y": {}}}
        assert written(obj, found) == [
            entry("helm", tree), entry("helm/Update/status", spec("s"))
        ]  # fmt: skip
        assert found is not None
        assert [count for _, count in found.sources] == [2, 1]

    def test_a_status_becomes_an_apply_of_the_status(self):
        obj = live(entry("a/Update/status", spec("s")), entry("a/Update", spec("x")))

        found = takeover(obj, asked("a", subresource="status"), SERVED)

        assert written(obj, found) == [
            entry("helm/Apply/status", spec("s")), entry("a/Update", spec("x"))
        ]  # fmt: skip

    def test_several_versions_are_joined_where_the_object_has_all_places(self):
        obj = live(entry("a/Update", spec("x"), "apps/v2"), entry("helm", spec("y")))

        with pytest.raises(ValuesNeeded, match=r"in several versions, apps/v1, apps/v2$"):
            takeover(obj, asked("a"), SERVED)
        found = takeover({**obj, "spec": {"x": 1}}, asked("a"), SERVED)
        assert written(obj, found) == [entry("helm", spec("y", "x"))]
        found = takeover({**obj, "apiVersion": "apps/v2", "spec": {"y": 1}}, asked("a"), SERVED)
        assert written(obj, found) == [entry("helm", spec("y", "x"), "apps/v2")]
        with pytest.raises(MoveRefused, match=r"apps/v1, apps/v2, and \.spec\.x is not in apps/v1"):
            takeover({**obj, "spec": {"y": 1}}, asked("a"), SERVED)

    def test_unserved_versions_are_to_be_repaired_first(self):
        obj = live(entry("a/Update", spec("x")), entry("z", spec("y"), "apps/v0"))

        with pytest.raises(MoveRefused, match=r"recorded in apps/v0.*adopt --repair"):
            takeover(obj, asked("a"), SERVED)
        assert refusal(live(entry("a", spec("x"))), SERVED) == ""
        assert takeover(obj, asked("nobody"), SERVED) is None
        assert takeover({"metadata": {"managedFields": None}}, asked("a"), SERVED) is None


C, D = 'k:{"name":"c"}', 'k:{"name":"d"}'
KEY = {".": {}, "f:name": {}}


def items(**more: Object) -> Object:
    """Return a tree of list items with their keys: `c=("image",)`."""
    found = {"c": C, "d": D}
    return {
        "f:spec": {"f:list": {found[n]: KEY | {f"f:{f}": {} for f in fs} for n, fs in more.items()}}
    }


def sorted_by(**names: str) -> Any:
    """Return where a field goes, by its last name; others stay."""
    return lambda place: names.get(place[-1].removeprefix("f:"), "kept").replace("_", " ")


class TestSorted:
    """Some fields of an entry move, and others are let go or stay."""

    @pytest.mark.parametrize(
        ("tree", "where", "moved", "kept"),
        [
            (spec("x", "y"), {"x": "moved"}, spec("x"), spec("y")),
            (spec("x", "y"), {"x": "moved", "y": "let_go"}, spec("x"), {}),
            (spec("x", "y"), {"y": "let_go"}, {}, spec("x")),
            (items(c=["a"]), {"a": "moved"}, items(c=["a"]), {}),
            (items(c=["a"]), {"a": "let_go", "name": "let_go"}, {}, {}),
            (items(c=["a"]), {"a": "let_go", "name": "moved"}, items(c=[]), {}),
            (items(c=["a"]), {"a": "let_go"}, {}, items(c=[])),
            (items(c=["a", "b"]), {"a": "moved"}, items(c=["a"]), items(c=["b"])),
            (items(c=["a"], d=["b"]), {"a": "moved"}, items(c=["a"]), items(d=["b"])),
            (items(c=[]), {"a": "moved"}, None, None),
            (items(c=[]), {"name": "moved"}, items(c=[]), {}),
            ({"f:m": {".": {}, "f:x": {}}}, {"x": "moved"}, {"f:m": {".": {}, "f:x": {}}}, {}),
            ({"f:m": {".": {}}, **spec("x")}, {"m": "moved"}, {"f:m": {".": {}}}, spec("x")),
        ],
    )
    def test_an_item_goes_with_its_keys_and_a_map_with_what_is_in_it(
        self, tree, where, moved, kept
    ):
        obj = live(entry("a/Update", tree), entry("z", spec("z")))

        found = takeover(obj, asked("a"), SERVED, sorted_by(**where))

        if moved is None:
            assert found is None
            return
        new = [("helm", moved), ("a/Update", kept)]
        parts = [entry(who, part) for who, part in new if part]
        assert written(obj, found) == [*parts, entry("z", spec("z"))]

    def test_what_moves_joins_the_new_managers_entry_and_is_told(self):
        obj = live(
            entry("helm", spec("w")), entry("a/Update", spec("x", "y", "z", "u")),
            entry("z", spec("z")),
        )  # fmt: skip
        obj = {**obj, "kind": "Deployment", "spec": {"x": 1, "y": 2}}

        found = takeover(obj, asked("a"), SERVED, sorted_by(x="moved", y="let_go", z="let_go"))

        assert written(obj, found) == [
            entry("helm", spec("w", "x")), entry("a/Update", spec("u")), entry("z", spec("z"))
        ]  # fmt: skip
        assert found is not None
        assert [(holder.manager, count) for holder, count in found.sources] == [("a", 3)]
        told = {move.path: (move.fate, move.to) for move in moves(obj, found)}
        assert told == {
            ".spec.x": ("taken", ("helm",)),
            ".spec.y": ("unowned", ()),
            ".spec.z": ("kept", ("z",)),
        }


class TestSortingByFilters:
    PLACES: ClassVar = {
        "image": ("f:spec", "f:list", C, "f:image"),
        "tty": ("f:spec", "f:list", C, "f:tty"),
        "item": ("f:spec", "f:list", C),
    }

    @pytest.mark.parametrize(
        ("fields", "declared", "found"),
        [
            (["spec.list[*].image"], None, "moved kept kept"),
            (['spec.list[name="c"].**'], None, "moved moved kept"),
            ([], {'.spec.list[name="c"].image'}, "moved let go let go"),
            ([], {'.spec.list[name="c"]'}, "moved moved moved"),
            ([], {".spec"}, "moved moved moved"),
            (["spec.list[*].tty"], {".spec.list"}, "kept moved kept"),
        ],
    )
    def test_a_field_goes_where_the_filters_say(self, fields, declared, found):
        where = sorting(fields, declared)

        assert where is not None
        assert " ".join(map(where, self.PLACES.values())) == found

    def test_without_filters_all_moves(self):
        assert sorting([], None) is None
        with pytest.raises(MoveRefused, match="no path"):
            sorting(["a..b"], None)


class TestRepair:
    def test_nothing_is_done_where_all_are_served(self):
        assert repair(live(entry("a", spec("x")), entry("b", {})), "apps/v1", SERVED) is None

    def test_entries_get_the_served_version_and_keep_their_holders(self):
        obj = live(
            entry("a", spec("x"), "apps/v0"),
            entry("b/Update", spec("y"), "old/v1"),
            entry("c", spec("z"), "apps/v2"),
        )

        found = repair(obj, "apps/v1", SERVED)

        assert written(obj, found) == [
            entry("a", spec("x")), entry("b/Update", spec("y")), entry("c", spec("z"), "apps/v2")
        ]  # fmt: skip
        assert found is not None
        assert [(holder.manager, count) for holder, count in found.sources] == [("a", 1), ("b", 1)]

    def test_one_that_would_be_told_from_no_other_is_joined_with_that(self):
        obj = live(
            entry("a/Update", spec("x"), "apps/v0"),
            entry("a/Update", spec("y")),
            entry("a/Update/scale", spec("z"), "apps/v0"),
            entry("a/Update", spec("w"), "apps/v2"),
        )

        found = repair(obj, "apps/v1", SERVED)

        assert written(obj, found) == [
            entry("a/Update", spec("x", "y")),
            entry("a/Update/scale", spec("z")),
            entry("a/Update", spec("w"), "apps/v2"),
        ]


class TestRestoration:
    BEFORE = (entry("a/Update", spec("x")), entry("helm", spec("y")))
    AFTER = (entry("helm", spec("x", "y")),)

    def test_the_entries_are_as_before_beside_those_of_others(self):
        obj = live(entry("z", spec("z")), *self.AFTER)

        found = restoration(obj, self.BEFORE, self.AFTER)

        assert written(obj, found) == [entry("z", spec("z")), *self.BEFORE]
        assert found is not None
        assert (found.before, found.after) == (self.AFTER, self.BEFORE)
        assert [holder.manager for holder, _ in found.sources] == ["helm"]

    def test_nothing_is_done_where_they_are_so_in_whichever_order(self):
        obj = live(*reversed(self.BEFORE))

        assert restoration(obj, self.BEFORE, self.AFTER) is None

    @pytest.mark.parametrize(
        "now",
        [
            [entry("helm", spec("x"))],
            [entry("helm", spec("x", "y"), time="later")],
            [entry("helm", spec("x", "y")), entry("a/Update", spec("w"))],
            [],
        ],
    )
    def test_it_is_refused_where_one_of_the_managers_has_written(self, now):
        with pytest.raises(MoveRefused, match=r"has written it since \(a, helm\)"):
            restoration(live(*now, entry("z", spec("z"))), self.BEFORE, self.AFTER)

    def test_managers_that_hold_nothing_any_more_get_their_entries_back(self):
        obj = live(entry("z", spec("z")))

        found = restoration(obj, self.BEFORE, ())

        assert written(obj, found, restoring=True) == [entry("z", spec("z")), *self.BEFORE]
        with pytest.raises(MoveRefused, match="has written it since"):
            restoration(live(), self.BEFORE, ())

    def test_what_the_server_made_of_it_is_told_if_it_is_something_else(self):
        obj = live(*self.BEFORE)
        change = takeover(obj, asked("a"), SERVED)
        assert change is not None
        less = entry("helm", spec("x"))

        assert changed(live(entry("helm", spec("y", "x")), entry("z", {})), change) is None
        assert changed(live(less, entry("z", {})), change) == (less,)


class TestAnyHistory:
    @pytest.mark.parametrize("kind", sorted(SUBJECTS))
    @settings(max_examples=settings().max_examples // 2)
    @given(data=st.data())
    def test_nothing_is_lost_or_gained_unasked_and_all_of_it_can_be_undone(self, kind, data):
        world, target = opened(kind)
        for request in data.draw(programs(SUBJECTS[kind])):
            request.run(world, target)
        obj = world.server.get(target)
        assume(obj is not None)
        everybody = sorted({*APPLIERS, *UPDATERS})
        managers = data.draw(st.frozensets(st.sampled_from(everybody), min_size=1))
        must_move(obj, asked(*managers, to=data.draw(st.sampled_from(["team", *everybody]))))
        ways = st.sampled_from(["moved", "moved", "kept", "let go"])
        must_move_in_part(obj, {one: data.draw(ways) for one in sorted(held(entries_of(obj)))})


def must_move(obj: Object, request: Takeover) -> None:
    """All of what these managers hold is held by the new one, and nothing else is changed."""
    entries = entries_of(obj)
    served = {one["apiVersion"] for one in entries}

    found = takeover(obj, request, served)

    if found is None:
        event("nothing to adopt")
        return
    now = written(obj, found)
    assert held(now) == held(entries)
    assert {move.fate for move in moves(obj, found)} <= {"taken", "kept"}
    left = [one for one in now if one["manager"] in request.managers - {request.to}]
    assert all(one.get("subresource") == "status" for one in left)
    after = {**obj, "metadata": {**obj["metadata"], "managedFields": now}}
    must_be_undone(after, found, entries)
    assert takeover(after, request, served) is None


def must_move_in_part(obj: Object, where: dict[tuple[str, ...], str]) -> None:
    """Each place of everybody's goes where it is to go."""
    entries = entries_of(obj)
    request = asked(*APPLIERS, *UPDATERS, to="team")
    served = {one["apiVersion"] for one in entries}
    found = takeover(obj, request, served, where.__getitem__)
    if found is None or not any(one["fieldsV1"] for one in now_of(obj, found)):
        event("nothing is left")
        return

    now = written(obj, found)

    lost = held(entries) - held(now)
    assert all(where[place] == "let go" for place in lost if not is_along(place, lost))
    team = held([one for one in now if one["manager"] == "team"])
    told = {m.field_path: m for m in moves(obj, found)}
    assert all(
        place in team for place, m in told.items() if where[place] == "moved" and not is_key(place)
    )
    after = {**obj, "metadata": {**obj["metadata"], "managedFields": now}}
    must_be_undone(after, found, entries, restoring=True)


def must_be_undone(after: Object, change: Relabelling, entries: list[Object], **how: bool) -> None:
    again = written(after, restoration(after, change.before, change.after), **how)
    assert sorted(again, key=str) == sorted(entries, key=str)


def entries_of(obj: Object) -> list[Object]:
    return obj["metadata"].get("managedFields") or []


def is_along(place: tuple[str, ...], lost: set[tuple[str, ...]]) -> bool:
    """Return whether a place only goes along with others: a key, or what others are in."""
    return is_key(place) or any(one[: len(place)] == place != one for one in lost)


def now_of(obj: Object, change: Relabelling) -> list[Object]:
    entries = obj["metadata"]["managedFields"]
    return [one for n, old in enumerate(entries) for one in change.edits.get(n, (old,))]


def held(entries: list[Object]) -> set[tuple[str, ...]]:
    return {place for one in entries for place in members(one["fieldsV1"])}
