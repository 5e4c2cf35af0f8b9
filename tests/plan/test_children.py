"""What is planned for one resource's children, on live objects made by hand."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hedgerow.contract import Apply, Create
from hedgerow.fields import ownership
from hedgerow.objects import controller_reference
from hedgerow.plan.conditions import LONGEST_MESSAGE
from hedgerow.plan.ledger import EntryState, LedgerEntry
from hedgerow.plan.remedies import LONGEST_COMMAND
from hedgerow.plan.writes import admitted_digest, declare
from hedgerow_schemas.base import AdmittedChild, ContestedField, Status
from plan.made import MANAGER, live, removed, taken
from plan.one_child import (
    CHILD,
    DATA,
    ID,
    NOW,
    OWNER,
    WANT,
    ConfigMap,
    only_write,
    plan_input,
    planned,
    settled_past,
)

Object = dict[str, Any]


class TestMissing:
    def test_a_child_that_is_not_there_is_applied_create_only(self):
        write = only_write(planned(plan_input()))

        assert write.create
        assert write.id == ID
        assert write.body == {**WANT, "metadata": {**WANT["metadata"], "resourceVersion": "1"}}

    def test_what_a_create_intends_is_its_declaration(self):
        intents = [
            only_write(planned(plan_input(), *child)).intent_digest
            for child in ((), (), (Apply(ConfigMap, "settings", {"data": {"a": "3"}}),))
        ]

        assert intents[0] == intents[1] != intents[2]


def former(**change: Any) -> Object:
    """An object of the child's name that an earlier resource of our name controls."""
    owner = controller_reference(replace(OWNER, uid="former-uid")) | change
    made = live(WANT)
    made["metadata"]["ownerReferences"] = [owner]
    return made


class TestNames:
    @pytest.mark.parametrize("version", ["app.demo.kakao.com/v1", "app.demo.kakao.com/v2"])
    def test_what_an_earlier_resource_of_our_name_left_is_waited_for(self, version):
        made = planned(plan_input(name_conflict=former(apiVersion=version)))

        assert made.writes == ()
        assert [(p.reason, p.stalled) for p in made.problems] == [("WaitingForDeletion", False)]

    @pytest.mark.parametrize(
        "name_conflict",
        [
            former(name="other"),
            former(kind="Other"),
            former(apiVersion="example.com/v1"),
            former(controller=False),
        ],
        ids=["another resource's", "another kind's", "another group's", "nobody's"],
    )
    def test_somebody_elses_object_is_never_written(self, name_conflict):
        made = planned(plan_input(name_conflict=name_conflict))

        assert (made.writes, made.deletions) == ((), ())
        assert [(p.reason, p.stalled) for p in made.problems] == [("NameTaken", True)]
        assert made.judged[ID].state is EntryState.TAKEN

    @pytest.mark.parametrize(
        ("change", "offered"),
        [
            ({}, True),
            ({"labels": {}}, False),
            ({"labels": {"hedgerow.dev/controller": "memcached"}}, False),
            ({"labels": {"hedgerow.dev/controller": "east.bluegreen"}}, False),
            ({"ownerReferences": [{"kind": "Any", "name": "a", "uid": "u"}]}, False),
            (
                {"ownerReferences": [{"kind": "Any", "name": "a", "uid": "u", "controller": True}]},
                False,
            ),
        ],
        ids=["left", "no label", "another's", "another instance's", "an owner", "a controller"],
    )
    def test_what_was_left_without_owner_may_be_owned_again(self, change, offered):
        left = former()
        del left["metadata"]["ownerReferences"]
        left["metadata"] |= change

        [problem] = planned(plan_input(name_conflict=left)).problems

        assert problem.reason == "NameTaken"
        assert ("`kubectl patch ConfigMap/settings --type=merge -p " in problem.message) is offered
        assert "delete or rename one of the two" in problem.message

    def test_of_what_is_created_once_nothing_is_offered(self):
        """With an owner it would still not be what we created, and so count for nothing."""
        left = former()
        del left["metadata"]["ownerReferences"]
        once = Create(ConfigMap, "settings", {})

        [problem] = planned(plan_input(name_conflict=left), once).problems

        assert problem.reason == "NameTaken"
        assert "kubectl" not in problem.message

    def test_of_many_so_many_are_named_as_a_message_has_room_for(self):
        children = [Apply(ConfigMap, f"c{n}-{'x' * 50}", {}) for n in range(40)]
        left = former()
        del left["metadata"]["ownerReferences"]
        conflicts = {("ConfigMap", one.name): left for one in children}
        made = planned(replace(plan_input(), namesake=conflicts.get), *children)
        [first, *others] = [one.message for one in made.problems]
        [command] = re.findall("`(kubectl [^`]*)`", first)

        assert len(first) < LONGEST_MESSAGE
        assert len(command) <= LONGEST_COMMAND
        assert f"makes these {len(shlex.split(command)) - 7} children again" in first
        assert len(others) == 39
        assert not any("kubectl" in one for one in others)

    def test_somebody_elses_object_that_is_going_is_waited_for(self):
        going = former(name="other")
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        made = planned(plan_input(name_conflict=going))

        assert [p.reason for p in made.problems] == ["WaitingForDeletion"]
        assert made.writes == ()

    def test_a_name_found_taken_stays_so_until_it_is_looked_at_again(self):
        made = planned(plan_input(history=LedgerEntry(EntryState.TAKEN)))

        assert (made.writes, made.judged[ID].state is EntryState.TAKEN) == ((), True)
        assert [p.reason for p in made.problems] == ["NameTaken"]

    def test_other_children_go_on(self):
        other = Apply(ConfigMap, "other", {"data": {"x": "y"}})

        made = planned(plan_input(name_conflict=former(name="other")), CHILD, other)

        assert only_write(made).id == ("ConfigMap", "other")


class TestGoing:
    def test_nothing_is_written_to_a_child_that_is_being_deleted(self):
        going = taken(WANT, ("data", "a"), "9")
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

        made = planned(plan_input(going))

        assert (made.writes, made.deletions, made.contested) == ((), (), ())
        assert [(p.reason, p.stalled) for p in made.problems] == [("WaitingForDeletion", False)]


class TestSettled:
    def test_a_settled_child_gets_no_request(self):
        made = planned(plan_input(live(WANT)))

        assert (made.writes, made.contested, made.problems) == ((), (), ())

    def test_what_was_settled_is_not_walked_again_while_nothing_changed(self, monkeypatch):
        seen = live(WANT)
        history = settled_past(seen=seen)

        def walked(*_: Any, **__: Any) -> Any:
            raise AssertionError("walked again")

        monkeypatch.setattr("hedgerow.plan.children.judge_admitted", walked)

        assert planned(plan_input(seen, history=history, content_version=1)).writes == ()

    @pytest.mark.parametrize("version", [0, 2])
    def test_it_is_walked_again_if_it_has_changed_or_nobody_knows(self, version):
        history, lost = settled_past(), removed(WANT, "data", "a")

        assert planned(plan_input(lost, history=history, content_version=version)).writes

    def test_a_change_of_the_child_is_seen_in_spite_of_the_memory(self):
        history = settled_past()

        assert planned(plan_input(taken(WANT, ("data", "a"), "9"), history=history)).contested
        assert planned(plan_input(removed(WANT, "data", "a"), history=history)).writes

    def test_a_change_of_the_declaration_is_seen_in_spite_of_the_memory(self):
        other = Apply(ConfigMap, "settings", {"data": {"a": "3", "b": "2"}})

        made = planned(plan_input(live(WANT), history=settled_past()), other)

        assert only_write(made).body["data"] == {"a": "3", "b": "2"}

    def test_the_memory_of_a_contested_field_still_reports_it(self):
        seen = taken(WANT, ("data", "a"), "9")
        first = planned(plan_input(seen))
        again = planned(plan_input(seen, history=first.judged[ID], reported=first.contested))

        assert again.contested == first.contested
        assert [field.path for field in again.contested] == [".data.a"]

    def test_a_declaration_spelled_otherwise_is_settled_by_what_is_remembered_of_it(self):
        answer = live(WANT)
        answer["data"] = {"a": "one", "b": "2"}
        mark = admitted_digest(WANT, ownership.judge(WANT, answer, MANAGER))

        assert planned(plan_input(answer)).writes
        assert planned(plan_input(answer, history=LedgerEntry(admitted=mark))).writes == ()

    @pytest.mark.parametrize(("stored", "settled"), [("one", True), ("two", False)])
    def test_after_a_restart_it_is_settled_by_what_the_status_says_of_it(self, stored, settled):
        answer = live(WANT)
        answer["data"] = {"a": "one", "b": "2"}
        mark = admitted_digest(WANT, ownership.judge(WANT, answer, MANAGER))
        child = AdmittedChild(object="ConfigMap/settings", digest=mark)
        known = replace(plan_input(answer), before=Status(admitted=(child,)))
        answer["data"]["a"] = stored

        made = planned(known)

        assert (made.writes == ()) is settled
        assert made.judged[ID].admitted == (mark if settled else "")

    def test_leftovers_of_an_older_declaration_are_given_up(self):
        less = Apply(ConfigMap, "settings", {"data": {"a": "1"}})

        assert only_write(planned(plan_input(live(WANT)), less)).body["data"] == {"a": "1"}

    def test_a_child_whose_managed_fields_were_wiped_is_not_settled(self):
        wiped = live(WANT)
        wiped["metadata"]["managedFields"] = []

        assert planned(plan_input(wiped)).writes


class TestPresent:
    def test_every_write_to_what_is_there_carries_its_uid_and_no_version(self):
        write = only_write(
            planned(plan_input(live(declare(Apply(ConfigMap, "settings", {}), OWNER, "x"))))
        )

        assert not write.create
        assert write.ref.uid == "child-uid"
        assert write.body["metadata"]["uid"] == "child-uid"
        assert "resourceVersion" not in write.body["metadata"]

    def test_a_field_somebody_changed_is_left_out_and_the_rest_is_written(self):
        other = Apply(ConfigMap, "settings", {"data": {"a": "1", "b": "3"}})

        made = planned(plan_input(taken(WANT, ("data", "a"), "9")), other)

        assert only_write(made).body["data"] == {"b": "3"}
        (field,) = made.contested
        assert field == ContestedField(
            object="ConfigMap/settings",
            path=".data.a",
            reason="OtherValue",
            declared='"1"',
            live='"9"',
            manager="kubectl-edit",
            operation="Update",
            since=datetime(2026, 1, 1, 10, tzinfo=UTC),
        )

    def test_a_field_somebody_changed_is_not_written_to_when_the_rest_is_settled(self):
        made = planned(plan_input(taken(WANT, ("data", "a"), "9")))

        assert made.writes == ()
        assert [field.path for field in made.contested] == [".data.a"]

    def test_a_field_whose_holder_agrees_is_shared(self):
        made = planned(plan_input(taken(WANT, ("data", "a"), "1")))

        assert made.contested == ()
        assert only_write(made).body["data"] == DATA

    def test_a_holders_subresource_and_unknown_time_are_told(self):
        seen = taken(WANT, ("data", "a"), "9", "hpa", subresource="scale", time="")

        (field,) = planned(plan_input(seen)).contested

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

        (field,) = planned(plan_input(seen, reported=(old,))).contested

        assert (field.since, field.declared, field.live) == (old.since, '"1"', '"9"')

    def test_another_holder_is_another_report(self):
        old = ContestedField(
            object="ConfigMap/settings", path=".data.a", manager="somebody", since=NOW
        )

        (field,) = planned(plan_input(taken(WANT, ("data", "a"), "9"), reported=(old,))).contested

        assert field.manager == "kubectl-edit"

    def test_writes_come_in_the_order_of_the_declarations(self):
        children = [Apply(ConfigMap, name, {"data": {"x": name}}) for name in ("c", "a", "b")]

        assert [write.ref.name for write in planned(plan_input(), *children).writes] == [
            "c",
            "a",
            "b",
        ]
