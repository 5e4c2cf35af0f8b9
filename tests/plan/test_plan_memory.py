"""What planning remembers: vanished fields, refusals; what it prunes; that it raises nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from hedgerow.contract import Apply, Desired, Keep
from hedgerow.objects import ObjectRef
from hedgerow.plan.children import RESTORE_ONCE_IN, plan_resource
from hedgerow.plan.conflict_messages import MOST_LISTED
from hedgerow.plan.input import has_no_holder
from hedgerow.plan.writes import declare
from hedgerow.plan.yield_and_claim import field_policy_of
from hedgerow_schemas.builtin import Deployment, Service
from plan.made import in_one_turn, live, removed, taken
from plan.one_child import (
    DATA,
    ID,
    NOW,
    OWNER,
    OWNS,
    WANT,
    ConfigMap,
    nobodys,
    only_write,
    plan_input,
    planned,
    settled_past,
)

Object = dict[str, Any]
FULL = tuple(nobodys(f".{number}") for number in range(MOST_LISTED))
SOMEBODYS = nobodys().model_copy(update={"manager": "unknown", "operation": "Update"})


class TestVanished:
    """A field of ours that nobody holds any more."""

    def test_it_is_restored_and_told(self):
        made = planned(plan_input(removed(WANT, "data", "a"), history=settled_past()))

        write = only_write(made)
        assert write.body["data"] == DATA
        assert [leaf.path for leaf in write.restores] == [".data.a"]
        assert made.contested == ()

    def test_gone_again_within_ten_minutes_it_is_reported_and_left_alone(self):
        history = replace(settled_past(), restored={".data.a": NOW})
        then = NOW + RESTORE_ONCE_IN - timedelta(seconds=1)

        made = planned(plan_input(removed(WANT, "data", "a"), history=history, now=then))

        assert made.writes == ()
        (field,) = made.contested
        assert (field.path, field.manager, field.operation) == (".data.a", None, None)

    def test_gone_again_after_ten_minutes_it_is_restored_again(self):
        history = replace(settled_past(), restored={".data.a": NOW})

        made = planned(
            plan_input(removed(WANT, "data", "a"), history=history, now=NOW + RESTORE_ONCE_IN)
        )

        assert [leaf.path for leaf in only_write(made).restores] == [".data.a"]

    def test_what_was_restored_under_a_clock_that_was_ahead_is_restored_again(self):
        ahead = NOW + timedelta(days=365)
        history = replace(settled_past(), restored={".data.a": ahead})

        made = planned(plan_input(removed(WANT, "data", "a"), history=history, now=NOW))

        assert [leaf.path for leaf in only_write(made).restores] == [".data.a"]

    def test_what_the_status_reports_as_gone_stays_left_alone_after_a_restart(self):
        made = planned(plan_input(removed(WANT, "data", "a"), reported=(nobodys(),)))

        assert (made.writes, made.contested) == ((), (nobodys(),))

    @pytest.mark.parametrize(
        ("history", "fields", "spec_changed", "left"),
        [
            pytest.param(settled_past(), FULL, False, True, id="it may be one"),
            pytest.param(None, FULL, False, True, id="after a restart"),
            pytest.param(settled_past(), FULL, True, False, id="the spec changed"),
            pytest.param(settled_past(), (*FULL[1:], SOMEBODYS), False, False, id="it would be in"),
            pytest.param(settled_past(), (SOMEBODYS,), False, True, id="its path is too long"),
        ],
    )
    def test_what_the_status_has_no_room_to_report_is_left_alone_until_the_spec_changes(
        self, history, fields, spec_changed, left
    ):
        given = plan_input(removed(WANT, "data", "a"), history=history, reported=fields)
        full = given.before.model_copy(update={"contested_count": MOST_LISTED + 1})

        made = planned(replace(given, before=full, spec_changed=spec_changed))

        assert [field.path for field in made.contested] == [".data.a"] * left
        assert bool(made.writes) is not left

    def test_what_is_left_alone_does_not_keep_the_rest_from_being_written(self):
        other = Apply(ConfigMap, "settings", {"data": {"a": "1", "b": "3"}})

        made = planned(plan_input(removed(WANT, "data", "a"), reported=(nobodys(),)), other)

        assert only_write(made).body["data"] == {"b": "3"}
        assert made.contested == (nobodys(),)

    def test_one_field_left_alone_another_is_still_restored(self):
        child = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "3"}})
        want = declare(child, OWNER, "bluegreen")
        settled = planned(plan_input(live(want), content_version=1), child).judged[ID]
        gone = removed(want, "data", "a")
        del gone["data"]["b"]
        del gone["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]["f:b"]

        made = planned(plan_input(gone, history=replace(settled, restored={".data.a": NOW})), child)

        assert [leaf.path for leaf in only_write(made).restores] == [".data.b"]
        assert [field.path for field in made.contested] == [".data.a"]

    def test_an_unknown_field_that_is_back_is_reported_no_more(self):
        made = planned(plan_input(live(WANT), reported=(nobodys(),)))

        assert (made.writes, made.contested) == ((), ())

    def test_a_field_never_seen_settled_is_simply_written(self):
        write = only_write(planned(plan_input(removed(WANT, "data", "a"))))

        assert (write.restores, write.body["data"]) == ((), DATA)

    def test_a_field_just_added_to_the_declaration_is_no_restoration(self):
        more = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "3"}})

        write = only_write(planned(plan_input(live(WANT), history=settled_past()), more))

        assert write.restores == ()

    def test_a_field_manager_that_is_named_unknown_is_somebody(self):
        made = planned(plan_input(removed(WANT, "data", "a"), reported=(SOMEBODYS,)))

        assert (has_no_holder(SOMEBODYS), has_no_holder(nobodys())) == (False, True)
        assert only_write(made).body["data"] == DATA


class TestPair:
    """What a write is about: a refusal holds for this pair of intent and content."""

    MORE = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "3"}})

    def pair(self, version: int = 1, child: Apply = MORE, **how: Any) -> tuple[str, str]:
        write = only_write(planned(plan_input(live(WANT), content_version=version, **how), child))
        return write.intent_digest, write.content

    def test_to_an_object_that_changed_it_is_another(self):
        assert self.pair(1) == self.pair(1) != self.pair(2)

    def test_of_another_declaration_it_is_another(self):
        other = Apply(ConfigMap, "settings", {"data": {**DATA, "c": "4"}})

        assert self.pair(child=other) != self.pair()

    def test_under_another_field_policy_it_is_another(self):
        policy = field_policy_of({"hedgerow.dev/yield": "ConfigMap/settings: data.z"})

        assert self.pair(field_policy=policy) != self.pair()

    def test_a_deletion_is_of_a_uid_in_any_version(self):
        (deletion,) = planned(
            plan_input(live(WANT), old=live(WANT, uid="u", version="42"))
        ).deletions

        assert (deletion.intent_digest, deletion.content) == ("u", "u")


class TestPruning:
    def test_what_is_owned_and_not_named_is_deleted_with_uid_and_version(self):
        made = planned(plan_input(live(WANT), old=live(WANT, uid="old-uid", version="42")))

        (deletion,) = made.deletions
        assert deletion.ref == ObjectRef(ConfigMap.api, "ns", "old", "old-uid")
        assert deletion.version == "42"

    def test_what_is_kept_is_neither_applied_nor_deleted(self):
        made = planned(plan_input(taken(WANT, ("data", "a"), "9")), Keep(ConfigMap, "settings"))

        assert (made.writes, made.deletions, made.contested) == ((), (), ())

    def test_what_is_going_already_is_not_deleted_again(self):
        going = live(WANT, deletionTimestamp="2026-01-01T00:00:00Z")

        assert planned(plan_input(live(WANT), old=going)).deletions == ()

    def test_a_kind_that_the_controller_does_not_own_is_never_deleted(self):
        made = in_one_turn(plan_resource(plan_input(old=live(WANT)), Desired(), (Deployment,)))

        assert made.deletions == ()

    def test_nothing_desired_deletes_all_that_is_owned(self):
        made = in_one_turn(plan_resource(plan_input(live(WANT), old=live(WANT)), Desired(), OWNS))

        assert [deletion.ref.name for deletion in made.deletions] == ["old", "settings"]

    def test_the_same_name_under_another_kind_is_not_the_same_child(self):
        other = Apply(Service, "settings", {"spec": {"ports": []}})

        made = planned(plan_input(live(WANT)), other)

        assert [d.ref.api.kind for d in made.deletions] == ["ConfigMap"]
        assert only_write(made).create


META = {"name": "settings", "uid": "child-uid"}
ODD = {"manager": "x", "fieldsV1": {"k:{": {}, "v:": {}, "q": {}, "f:data": {}}}
HOSTILE = {
    "nothing but an identity": {"metadata": META},
    "nulls": {"metadata": META, "data": None},
    "another type": {"metadata": META, "data": "text"},
    "a list for a map": {"metadata": META, "data": ["a"]},
    "odd managed fields": {"metadata": {**META, "managedFields": [{}]}},
    "odd elements": {"metadata": {**META, "managedFields": [ODD]}},
}


@pytest.mark.parametrize("obj", HOSTILE.values(), ids=HOSTILE)
def test_planning_holds_for_whatever_a_cache_may_show(obj):
    made = planned(plan_input(obj))

    assert only_write(made).ref.uid == "child-uid"
