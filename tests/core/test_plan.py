"""What is planned for one resource's children, on live objects made by hand."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.made import MANAGER, entry, live, removed, taken
from hedgerow.core import ownership
from hedgerow.core.conditions import Problem
from hedgerow.core.contract import Apply, Child, Desired, Keep
from hedgerow.core.declaration import declare, normal_form, with_normal_form
from hedgerow.core.meta import Installation, ObjectRef, controller_reference
from hedgerow.core.plan import RESTORE_ONCE_IN, ChildId, Past, Plan, Scene, Write, is_unknown, plan
from hedgerow_schemas.base import ApiResource, ContestedField, View
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, Service

Object = dict[str, Any]

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = ObjectRef(BlueGreen.api, "ns", "demo", "owner-uid")


class ConfigMap(View):
    api = ApiResource("v1", "ConfigMap", "configmaps")
    __slots__ = ()


OWNS = (ConfigMap, Deployment, Service)
ID: ChildId = ("ConfigMap", "settings")
DATA = {"a": "1", "b": "2"}
CHILD = Apply(ConfigMap, "settings", {"data": DATA})
WANT = declare(CHILD, OWNER, "bluegreen")


def scene(
    there: Object | None = None,
    *,
    past: Past | None = None,
    homonym: Object | None = None,
    reported: tuple[ContestedField, ...] = (),
    now: datetime = NOW,
    **others: Object,
) -> Scene:
    objects = {ID: there} if there else {}
    objects |= {("ConfigMap", name): obj for name, obj in others.items()}
    return Scene(
        OWNER,
        "bluegreen",
        Installation(),
        now,
        objects,
        homonyms={ID: homonym} if homonym else {},
        past={ID: past} if past else {},
        reported=reported,
    )


def planned(made: Scene, *children: Child) -> Plan:
    return plan(made, Desired(children=children or (CHILD,)), OWNS)


def only_write(made: Plan) -> Write:
    (write,) = made.writes
    return write


def settled_past(want: Object = WANT, seen: Object | None = None) -> Past:
    """What a pass remembers that found the child settled."""
    return planned(scene(seen or live(want))).past[ID]


def unknown(path: str = ".data.a") -> ContestedField:
    return ContestedField(object="ConfigMap/settings", path=path, manager="unknown", since=NOW)


class TestMissing:
    def test_a_child_that_is_not_there_is_applied_create_only(self):
        write = only_write(planned(scene()))

        assert write.create
        assert write.id == ID
        assert write.body == {**WANT, "metadata": {**WANT["metadata"], "resourceVersion": "1"}}

    def test_a_refused_create_is_not_sent_again(self):
        write = only_write(planned(scene()))
        problem = Problem("Rejected", "no")

        again = planned(scene(past=Past(refused=(write.mark, problem))))

        assert (again.writes, again.problems) == ((), (problem,))

    def test_a_refused_create_is_tried_again_with_another_declaration(self):
        write = only_write(planned(scene()))
        past = Past(refused=(write.mark, Problem("Rejected", "no")))

        again = planned(scene(past=past), Apply(ConfigMap, "settings", {"data": {"a": "3"}}))

        assert only_write(again).create


def former(**change: Any) -> Object:
    """An object of the child's name that an earlier resource of our name controls."""
    owner = controller_reference(replace(OWNER, uid="former-uid")) | change
    made = live(WANT)
    made["metadata"]["ownerReferences"] = [owner]
    return made


class TestNames:
    def test_what_an_earlier_resource_of_our_name_left_is_waited_for(self):
        made = planned(scene(homonym=former()))

        assert made.writes == ()
        assert [(p.reason, p.stalled) for p in made.problems] == [("WaitingForDeletion", False)]

    @pytest.mark.parametrize(
        "homonym",
        [former(name="other"), former(kind="Other"), former(controller=False)],
        ids=["another resource's", "another kind's", "nobody's"],
    )
    def test_somebody_elses_object_is_never_written(self, homonym):
        made = planned(scene(homonym=homonym))

        assert (made.writes, made.deletions) == ((), ())
        assert [(p.reason, p.stalled) for p in made.problems] == [("NameTaken", True)]
        assert made.past[ID].taken

    def test_somebody_elses_object_that_is_going_is_waited_for(self):
        going = former(name="other")
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        made = planned(scene(homonym=going))

        assert [p.reason for p in made.problems] == ["WaitingForDeletion"]
        assert made.writes == ()

    def test_a_name_found_taken_stays_so_until_it_is_looked_at_again(self):
        made = planned(scene(past=Past(taken=True)))

        assert (made.writes, made.past[ID].taken) == ((), True)
        assert [p.reason for p in made.problems] == ["NameTaken"]

    def test_other_children_go_on(self):
        other = Apply(ConfigMap, "other", {"data": {"x": "y"}})

        made = planned(scene(homonym=former(name="other")), CHILD, other)

        assert only_write(made).id == ("ConfigMap", "other")


class TestGoing:
    def test_nothing_is_written_to_a_child_that_is_being_deleted(self):
        going = taken(WANT, ("data", "a"), "9")
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        made = planned(scene(going))

        assert (made.writes, made.deletions, made.contested) == ((), (), ())
        assert [(p.reason, p.stalled) for p in made.problems] == [("WaitingForDeletion", False)]


class TestSettled:
    def test_a_settled_child_gets_no_request(self):
        made = planned(scene(live(WANT)))

        assert (made.writes, made.contested, made.problems) == ((), (), ())

    def test_what_was_settled_is_not_walked_again_while_nothing_changed(self, monkeypatch):
        seen = live(WANT)
        past = settled_past(seen=seen)

        def walked(*_: Any, **__: Any) -> Any:
            raise AssertionError("walked again")

        monkeypatch.setattr("hedgerow.core.plan.judge", walked)
        newer = copy.deepcopy(seen)
        newer["metadata"]["resourceVersion"] = "8"
        newer["status"] = {"replicas": 3}
        status_entry = entry({"apiVersion": "v1", "status": {}}, "kcm", "Update")
        newer["metadata"]["managedFields"].append({**status_entry, "subresource": "status"})

        assert planned(scene(newer, past=past)).writes == ()
        assert planned(scene(seen, past=past)).writes == ()

    def test_a_change_of_the_child_is_seen_in_spite_of_the_memory(self):
        past = settled_past()

        assert planned(scene(taken(WANT, ("data", "a"), "9"), past=past)).contested
        assert planned(scene(removed(WANT, "data", "a"), past=past)).writes

    def test_a_change_of_the_declaration_is_seen_in_spite_of_the_memory(self):
        other = Apply(ConfigMap, "settings", {"data": {"a": "3", "b": "2"}})

        made = planned(scene(live(WANT), past=settled_past()), other)

        assert only_write(made).body["data"] == {"a": "3", "b": "2"}

    def test_the_memory_of_a_contested_field_still_reports_it(self):
        seen = taken(WANT, ("data", "a"), "9")
        first = planned(scene(seen))
        again = planned(scene(seen, past=first.past[ID], reported=first.contested))

        assert again.contested == first.contested
        assert [field.path for field in again.contested] == [".data.a"]

    def test_a_declaration_spelled_otherwise_is_settled_by_its_mark(self):
        answer = live(WANT)
        answer["data"] = {"a": "one", "b": "2"}
        mark = normal_form(WANT, ownership.judge(WANT, answer, MANAGER))
        marked = live(with_normal_form(WANT, mark))
        marked["data"] = {"a": "one", "b": "2"}

        assert planned(scene(answer)).writes
        assert planned(scene(marked)).writes == ()

    def test_leftovers_of_an_older_declaration_are_given_up(self):
        less = Apply(ConfigMap, "settings", {"data": {"a": "1"}})

        assert only_write(planned(scene(live(WANT)), less)).body["data"] == {"a": "1"}

    def test_a_child_whose_managed_fields_were_wiped_is_not_settled(self):
        wiped = live(WANT)
        wiped["metadata"]["managedFields"] = []

        assert planned(scene(wiped)).writes


class TestPresent:
    def test_every_write_to_what_is_there_carries_its_uid_and_no_version(self):
        write = only_write(
            planned(scene(live(declare(Apply(ConfigMap, "settings", {}), OWNER, "x"))))
        )

        assert not write.create
        assert write.ref.uid == "child-uid"
        assert write.body["metadata"]["uid"] == "child-uid"
        assert "resourceVersion" not in write.body["metadata"]

    def test_a_field_somebody_changed_is_left_out_and_the_rest_is_written(self):
        other = Apply(ConfigMap, "settings", {"data": {"a": "1", "b": "3"}})

        made = planned(scene(taken(WANT, ("data", "a"), "9")), other)

        assert only_write(made).body["data"] == {"b": "3"}
        (field,) = made.contested
        assert field == ContestedField(
            object="ConfigMap/settings",
            path=".data.a",
            manager="kubectl-edit",
            operation="Update",
            since=datetime(2026, 1, 1, 10, tzinfo=UTC),
        )

    def test_a_field_somebody_changed_is_not_written_to_when_the_rest_is_settled(self):
        made = planned(scene(taken(WANT, ("data", "a"), "9")))

        assert made.writes == ()
        assert [field.path for field in made.contested] == [".data.a"]

    def test_a_field_whose_holder_agrees_is_shared(self):
        made = planned(scene(taken(WANT, ("data", "a"), "1")))

        assert made.contested == ()
        assert only_write(made).body["data"] == DATA

    def test_a_holders_subresource_and_unknown_time_are_told(self):
        seen = taken(WANT, ("data", "a"), "9", "hpa", subresource="scale", time="")

        (field,) = planned(scene(seen)).contested

        assert (field.manager, field.subresource, field.since) == ("hpa", "scale", NOW)

    def test_since_is_kept_from_the_earlier_report(self):
        old = ContestedField(
            object="ConfigMap/settings",
            path=".data.a",
            manager="kubectl-edit",
            operation="Update",
            since=NOW - timedelta(days=1),
        )
        seen = taken(WANT, ("data", "a"), "9")

        assert planned(scene(seen, reported=(old,))).contested == (old,)

    def test_another_holder_is_another_report(self):
        old = ContestedField(
            object="ConfigMap/settings", path=".data.a", manager="somebody", since=NOW
        )

        (field,) = planned(scene(taken(WANT, ("data", "a"), "9"), reported=(old,))).contested

        assert field.manager == "kubectl-edit"

    def test_writes_come_in_the_order_of_the_declarations(self):
        children = [Apply(ConfigMap, name, {"data": {"x": name}}) for name in ("c", "a", "b")]

        assert [write.ref.name for write in planned(scene(), *children).writes] == ["c", "a", "b"]


class TestVanished:
    """A field of ours that nobody holds any more."""

    def test_it_is_restored_and_told(self):
        made = planned(scene(removed(WANT, "data", "a"), past=settled_past()))

        write = only_write(made)
        assert write.body["data"] == DATA
        assert [leaf.path for leaf in write.restores] == [".data.a"]
        assert made.contested == ()

    def test_gone_again_within_ten_minutes_it_is_reported_and_left_alone(self):
        past = replace(settled_past(), restored={".data.a": NOW})
        then = NOW + RESTORE_ONCE_IN - timedelta(seconds=1)

        made = planned(scene(removed(WANT, "data", "a"), past=past, now=then))

        assert made.writes == ()
        (field,) = made.contested
        assert (field.path, field.manager, field.operation) == (".data.a", "unknown", None)

    def test_gone_again_after_ten_minutes_it_is_restored_again(self):
        past = replace(settled_past(), restored={".data.a": NOW})

        made = planned(scene(removed(WANT, "data", "a"), past=past, now=NOW + RESTORE_ONCE_IN))

        assert [leaf.path for leaf in only_write(made).restores] == [".data.a"]

    def test_what_the_status_reports_as_gone_stays_left_alone_after_a_restart(self):
        made = planned(scene(removed(WANT, "data", "a"), reported=(unknown(),)))

        assert (made.writes, made.contested) == ((), (unknown(),))

    def test_what_is_left_alone_does_not_keep_the_rest_from_being_written(self):
        other = Apply(ConfigMap, "settings", {"data": {"a": "1", "b": "3"}})

        made = planned(scene(removed(WANT, "data", "a"), reported=(unknown(),)), other)

        assert only_write(made).body["data"] == {"b": "3"}
        assert made.contested == (unknown(),)

    def test_one_field_left_alone_another_is_still_restored(self):
        child = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "3"}})
        want = declare(child, OWNER, "bluegreen")
        settled = planned(scene(live(want)), child).past[ID]
        gone = removed(want, "data", "a")
        del gone["data"]["b"]
        del gone["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]["f:b"]

        made = planned(scene(gone, past=replace(settled, restored={".data.a": NOW})), child)

        assert [leaf.path for leaf in only_write(made).restores] == [".data.b"]
        assert [field.path for field in made.contested] == [".data.a"]

    def test_an_unknown_field_that_is_back_is_reported_no_more(self):
        made = planned(scene(live(WANT), reported=(unknown(),)))

        assert (made.writes, made.contested) == ((), ())

    def test_a_field_never_seen_settled_is_simply_written(self):
        write = only_write(planned(scene(removed(WANT, "data", "a"))))

        assert (write.restores, write.body["data"]) == ((), DATA)

    def test_a_field_just_added_to_the_declaration_is_no_restoration(self):
        more = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "3"}})

        write = only_write(planned(scene(live(WANT), past=settled_past()), more))

        assert write.restores == ()

    def test_a_field_manager_that_is_named_unknown_is_somebody(self):
        theirs = unknown().model_copy(update={"operation": "Update"})

        made = planned(scene(removed(WANT, "data", "a"), reported=(theirs,)))

        assert (is_unknown(theirs), is_unknown(unknown())) == (False, True)
        assert only_write(made).body["data"] == DATA


class TestRefused:
    """A write that the server would not take is not sent again until something changes."""

    MORE = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "3"}})
    PROBLEM = Problem("Rejected", "no")

    def refused(self, seen: Object) -> Past:
        write = only_write(planned(scene(seen), self.MORE))
        return Past(refused=(write.mark, self.PROBLEM))

    def test_the_same_write_is_not_sent_again_and_still_told(self):
        past = self.refused(live(WANT))

        made = planned(scene(live(WANT), past=past), self.MORE)

        assert (made.writes, made.problems, made.past[ID]) == ((), (self.PROBLEM,), past)

    def test_a_change_of_the_childs_status_alone_is_no_reason_to_send_it(self):
        past = self.refused(live(WANT))
        moved = live(WANT, version="9")
        moved["status"] = {"x": 1}
        written = entry({"apiVersion": "v1", "status": {}}, "kcm", "Update", subresource="status")
        moved["metadata"]["managedFields"].append(written)

        assert planned(scene(moved, past=past), self.MORE).writes == ()

    def test_a_change_of_the_child_itself_is(self):
        past = self.refused(live(WANT))
        moved = live(WANT, annotations={"somebody": "was here"})

        assert planned(scene(moved, past=past), self.MORE).writes

    def test_another_object_of_that_name_is(self):
        past = self.refused(live(WANT))

        assert planned(scene(live(WANT, uid="new"), past=past), self.MORE).writes

    def test_another_declaration_is(self):
        past = self.refused(live(WANT))
        other = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "4"}})

        assert planned(scene(live(WANT), past=past), other).writes

    @pytest.mark.parametrize("remembered", [True, False], ids=["settled before", "not seen before"])
    def test_a_declaration_taken_back_is_refused_no_more(self, remembered):
        past = self.refused(live(WANT))
        if remembered:
            past = replace(past, settled=settled_past().settled)

        made = planned(scene(live(WANT), past=past), CHILD)

        assert (made.problems, made.past[ID].refused) == ((), None)

    def test_contested_fields_are_told_besides(self):
        seen = taken(WANT, ("data", "a"), "9")
        past = self.refused(seen)

        made = planned(scene(seen, past=past), self.MORE)

        assert (made.writes, [f.path for f in made.contested]) == ((), [".data.a"])


class TestPruning:
    def test_what_is_owned_and_not_named_is_deleted_with_uid_and_version(self):
        made = planned(scene(live(WANT), old=live(WANT, uid="old-uid", version="42")))

        (deletion,) = made.deletions
        assert deletion.ref == ObjectRef(ConfigMap.api, "ns", "old", "old-uid")
        assert deletion.version == "42"

    def test_what_is_kept_is_neither_applied_nor_deleted(self):
        made = planned(scene(taken(WANT, ("data", "a"), "9")), Keep(ConfigMap, "settings"))

        assert (made.writes, made.deletions, made.contested) == ((), (), ())

    def test_what_is_going_already_is_not_deleted_again(self):
        going = live(WANT, deletionTimestamp="2026-01-01T00:00:00Z")

        assert planned(scene(live(WANT), old=going)).deletions == ()

    def test_a_kind_that_the_controller_does_not_own_is_never_deleted(self):
        made = plan(scene(old=live(WANT)), Desired(), (Deployment,))

        assert made.deletions == ()

    def test_nothing_desired_deletes_all_that_is_owned(self):
        made = plan(scene(live(WANT), old=live(WANT)), Desired(), OWNS)

        assert [deletion.ref.name for deletion in made.deletions] == ["old", "settings"]

    def test_the_same_name_under_another_kind_is_not_the_same_child(self):
        other = Apply(Service, "settings", {"spec": {"ports": []}})

        made = planned(scene(live(WANT)), other)

        assert [d.ref.api.kind for d in made.deletions] == ["ConfigMap"]
        assert only_write(made).create


@dataclass(frozen=True)
class Hostile:
    reason: str
    obj: Mapping[str, Any]


META = {"name": "settings", "uid": "child-uid"}


class TestHostileObjects:
    """Planning holds for whatever a cache may show; it raises nothing."""

    @pytest.mark.parametrize(
        "case",
        [
            Hostile("nothing but an identity", {"metadata": META}),
            Hostile("nulls", {"metadata": META, "data": None}),
            Hostile("another type", {"metadata": META, "data": "text"}),
            Hostile("a list for a map", {"metadata": META, "data": ["a"]}),
            Hostile("odd managed fields", {"metadata": {**META, "managedFields": [{}]}}),
            Hostile(
                "odd elements",
                {
                    "metadata": {
                        **META,
                        "managedFields": [
                            {
                                "manager": "x",
                                "fieldsV1": {"k:{": {}, "v:": {}, "q": {}, "f:data": {}},
                            }
                        ],
                    }
                },
            ),
        ],
        ids=lambda case: case.reason,
    )
    def test_it_is_planned_for_like_any_other(self, case):
        made = planned(scene(dict(case.obj)))

        assert only_write(made).ref.uid == "child-uid"
