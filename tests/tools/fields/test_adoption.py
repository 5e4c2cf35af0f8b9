from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from hedgerow.fields.sets import leaves
from hedgerow_tools.fields.adoption import Adoption, AdoptRequest, NewManager, adopt
from hedgerow_tools.moving.transfers import MoveRefused, changes, holdings
from model.programs import APPLIERS, UPDATERS, Apply, ModelWorld, opened, programs
from model.subjects import SUBJECTS
from support.objects.judged import OURS, item, live, want

Object = dict[str, Any]
LEAF: Object = {}
C = 'k:{"name":"c"}'
IMAGE, TTY = '.spec.containers[name="c"].image', '.spec.containers[name="c"].tty'
BODY = {
    "spec": {
        "replicas": 5,
        "paused": True,
        "containers": [{"name": "c", "image": "i", "tty": True}],
        "selector": {"a": "b"},
    },
    "status": {"nodes": ["n"], "size": 1},
}
THEIRS: Object = {
    "f:spec": {
        "f:replicas": LEAF,
        "f:paused": LEAF,
        "f:containers": {C: item("name", "image", "tty")},
    }
}
MINE: Object = {"f:spec": {"f:replicas": LEAF, "f:selector": LEAF}}
CONTROLLER = NewManager(OURS, frozenset({IMAGE}))


def child(*entries: tuple[str, Object]) -> Object:
    given = entries or (("old/Update", THEIRS), (OURS, MINE))
    return live(want(**BODY), *given)


def fates(found: Adoption) -> dict[str, str]:
    return {move.path: " ".join((move.fate, *move.to)) for move in found.moves}


class TestController:
    def test_it_takes_what_it_contests_shares_what_it_has_and_leaves_the_rest(self):
        found = adopt(child(), AdoptRequest("old"), CONTROLLER)

        assert fates(found) == {
            ".spec.replicas": f"shared {OURS}",
            ".spec.paused": "unowned",
            '.spec.containers[name="c"].name': f"taken {OURS}",
            IMAGE: f"taken {OURS}",
            TTY: "unowned",
        }
        assert found.edits == {0: None}
        assert [move.value for move in found.moves] == [5, True, "c", "i", True]

    def test_it_declares_anew_what_it_had_and_what_it_takes_and_no_more(self):
        body = adopt(child(), AdoptRequest("old"), CONTROLLER).applies[""]

        assert body["spec"] == {
            "replicas": 5,
            "containers": [{"name": "c", "image": "i"}],
            "selector": {"a": "b"},
        }
        assert (body["metadata"]["uid"], body["metadata"]["resourceVersion"]) == ("u", "7")

    def test_what_is_within_a_contested_field_is_taken_with_it(self):
        target = NewManager(OURS, frozenset({".spec.containers"}))

        found = fates(adopt(child(), AdoptRequest("old"), target))

        assert found[IMAGE] == found[TTY] == f"taken {OURS}"

    def test_what_others_hold_too_stays_with_them(self):
        obj = child(("old/Update", THEIRS), (OURS, MINE), ("x", {"f:spec": {"f:paused": LEAF}}))

        assert fates(adopt(obj, AdoptRequest("old"), CONTROLLER))[".spec.paused"] == "kept x"

    def test_what_is_not_there_or_held_by_others_in_parts_is_not_taken(self):
        tree = {"f:spec": {"f:gone": LEAF, "f:selector": LEAF}}
        other = {"f:spec": {"f:selector": {"f:a": LEAF}}}
        obj = child(("old", tree), ("x", other))

        found = adopt(obj, AdoptRequest("old"), NewManager("team"))

        assert fates(found) == {".spec.gone": "unowned", ".spec.selector": "unowned"}
        assert found.applies == {}

    def test_where_all_is_shared_nothing_is_applied(self):
        found = adopt(child(("old", MINE), (OURS, MINE)), AdoptRequest("old"), CONTROLLER)

        assert found.applies == {}
        assert found.edits == {0: None}

    def test_what_it_knows_nothing_of_is_refused(self):
        for field in ((), ("spec.paused",)):
            with pytest.raises(MoveRefused, match="let the operator look at it first"):
                adopt(child(), AdoptRequest("old", fields=field or ("spec.paused",)), CONTROLLER)


class TestNamed:
    def test_who_is_named_takes_all_that_he_has_not(self):
        obj = child(("old/Update", THEIRS), ("team", {"f:spec": {"f:paused": LEAF}}))

        found = adopt(obj, AdoptRequest("old"), NewManager("team"))

        assert set(fates(found).values()) == {"taken team", "shared team"}
        assert found.applies[""]["spec"] == {
            "replicas": 5, "paused": True, "containers": BODY["spec"]["containers"]
        }  # fmt: skip
        assert found.edits == {0: None}

    def test_what_he_shares_is_his_though_it_is_all_there_is(self):
        obj = child(("old/Update", MINE), ("team", MINE))

        assert adopt(obj, AdoptRequest("old"), NewManager("team")).applies == {}

    def test_the_only_records_are_never_removed(self):
        obj = child(("old/Update", THEIRS), (OURS, {}))
        shared = child(("old/Update", MINE), ("old", MINE))

        with pytest.raises(MoveRefused):
            adopt(obj, AdoptRequest("old"), NewManager(OURS, frozenset({".spec.never"})))
        assert adopt(shared, AdoptRequest("old"), NewManager("team")).applies
        with pytest.raises(MoveRefused, match="drops the managed fields"):
            adopt(child(("old", {"f:gone": LEAF})), AdoptRequest("old"), NewManager("team"))

    def test_his_own_apply_is_not_moved_to_himself_but_his_updates_are(self):
        obj = child((f"{OURS}/Update", THEIRS), (OURS, MINE))

        assert adopt(obj, AdoptRequest(OURS), NewManager(OURS)).edits == {0: None}
        with pytest.raises(MoveRefused, match="already is the manager that gets the fields"):
            adopt(child((OURS, MINE)), AdoptRequest(OURS), NewManager(OURS))


class TestFields:
    def test_one_goes_and_the_entry_keeps_the_rest(self):
        found = adopt(
            child(),
            AdoptRequest("old", fields=("spec.containers[*].image",)),
            CONTROLLER,
        )

        assert list(fates(found)) == [IMAGE]
        left = set(leaves(found.edits[0]))
        assert left == set(leaves(THEIRS)) - {("f:spec", "f:containers", C, "f:image")}

    def test_keys_of_items_stay_and_an_entry_of_keys_alone_goes(self):
        tree = {"f:spec": {"f:containers": {C: item("name", "image")}}}

        found = adopt(
            child(("old", tree), (OURS, MINE)), AdoptRequest("old", fields=("**",)), CONTROLLER
        )

        assert list(fates(found)) == [IMAGE]
        assert found.edits == {0: None}

    def test_what_is_called_so_by_none_is_refused(self):
        with pytest.raises(MoveRefused, match=r"called spec\.never, status"):
            adopt(child(), AdoptRequest("old", fields=("spec.never", "status")), CONTROLLER)

    def test_what_is_no_path_is_refused(self):
        with pytest.raises(MoveRefused, match="no path"):
            adopt(child(), AdoptRequest("old", fields=("a..b",)), CONTROLLER)


class TestEntries:
    STATUS = {"f:status": {"f:nodes": LEAF, "f:size": LEAF}}
    SCALE = {"f:spec": {"f:replicas": LEAF}}

    @pytest.fixture
    def several(self) -> Object:
        return child(
            ("old", {"f:spec": {"f:paused": LEAF}}),
            ("old/Update/scale", self.SCALE),
            ("old/Update/status", self.STATUS),
            (OURS, {"f:spec": {"f:selector": LEAF}}),
        )

    @pytest.mark.parametrize(
        ("operation", "subresource", "indices"),
        [
            (None, None, {0, 1, 2}),
            ("Update", None, {1, 2}),
            ("Apply", None, {0}),
            (None, "scale", {1}),
            ("Update", "status", {2}),
            (None, "", {0}),
        ],
    )
    def test_all_of_one_name_are_meant_or_those_that_are_chosen(
        self, several, operation, subresource, indices
    ):
        found = adopt(several, AdoptRequest("old", operation, subresource), NewManager("team"))

        assert set(found.edits) == indices

    def test_what_was_scaled_is_applied_to_the_object_and_status_to_the_status(self, several):
        applies = adopt(several, AdoptRequest("old"), NewManager("team")).applies

        assert applies[""]["spec"] == {"replicas": 5, "paused": True}
        assert "status" not in applies[""]
        assert applies["status"]["status"] == BODY["status"]
        assert "spec" not in applies["status"]

    def test_a_status_is_not_held_by_who_applied_the_object(self):
        obj = child(("old/Update/status", self.STATUS), ("team", self.STATUS))

        found = adopt(obj, AdoptRequest("old"), NewManager("team"))

        assert set(fates(found).values()) == {"taken team"}

    def test_of_its_resource_a_controller_takes_the_status_alone(self, several):
        target = NewManager(OURS, only="status")

        found = adopt(several, AdoptRequest("old"), target)

        assert target.is_controller
        assert not NewManager(OURS).is_controller
        assert set(found.edits) == {2}
        assert set(fates(found)) == {".status.nodes", ".status.size"}
        with pytest.raises(MoveRefused, match="nothing of Deployment/x but its status"):
            adopt(several, AdoptRequest("old", "Apply"), target)

    def test_none_in_that_way_is_told_with_the_ways_there_are(self, several):
        with pytest.raises(MoveRefused, match="it has Apply, Update scale, Update status"):
            adopt(several, AdoptRequest("old", "Apply", "status"), NewManager("team"))

    def test_an_unknown_manager_is_told_with_those_there_are(self, several):
        with pytest.raises(
            MoveRefused, match=r"nobody holds nothing of Deployment/x; others: old$"
        ):
            adopt(several, AdoptRequest("nobody"), NewManager(OURS))
        with pytest.raises(MoveRefused, match="others: nobody"):
            adopt(child((OURS, MINE)), AdoptRequest("x"), NewManager(OURS))

    def test_one_written_in_another_version_is_to_be_read_in_it(self):
        obj = child()
        obj["metadata"]["managedFields"][0]["apiVersion"] = "apps/v1beta1"

        with pytest.raises(MoveRefused, match="wrote it as apps/v1beta1"):
            adopt(obj, AdoptRequest("old"), CONTROLLER)


class TestNoValueChanges:
    @pytest.mark.parametrize("kind", sorted(SUBJECTS))
    @settings(max_examples=settings().max_examples // 2)
    @given(data=st.data())
    def test_after_any_history_what_is_taken_has_its_value_and_its_new_holder(self, kind, data):
        world, target = opened(kind)
        for request in data.draw(programs(SUBJECTS[kind])):
            request.run(world, target)
        wish = AdoptRequest(data.draw(st.sampled_from(sorted({*APPLIERS, *UPDATERS}))))
        before = world.server.get(target)
        assume(before is not None)
        try:
            adopt(before, wish, NewManager("team"))
        except MoveRefused:
            event("nothing to adopt")
            return
        moved(world, before, wish)

    def test_a_map_of_empty_lists_keeps_its_value_though_nobody_can_hold_it(self):
        world, target = opened("BlueGreen")
        Apply(SUBJECTS["BlueGreen"].first, "one").run(world, target)
        for colour in ({"containers": []}, {}):
            body = {"spec": {"routeTo": "Blue", "greenSpec": colour}}
            Apply(body, "two").run(world, target)

        now = moved(world, world.server.get(target), AdoptRequest("two"))

        assert now["spec"]["greenSpec"] == {"containers": []}
        assert not any(
            field_path[:2] == ("f:spec", "f:greenSpec") for field_path in held_by(now, "team")
        )


def held_by(live: Object, manager: str) -> list[tuple[str, ...]]:
    found = holdings(live).items()
    return [
        field_path for field_path, holders in found if manager in {one.manager for one in holders}
    ]


def moved(world: ModelWorld, before: Object, wish: AdoptRequest) -> Object:
    """Have the team hold what is wished too; no value may change, and all that can be is held."""
    found, now = adopt(before, wish, NewManager("team")), before
    for endpoint in found.applies:
        body = adopt(now, wish, NewManager("team")).applies[endpoint]
        now = world.server.apply(body, "team", subresource=endpoint)[0]
    assert changes(before, now, [move.field_path for move in found.moves]) == ()
    again = adopt(now, wish, NewManager("team"))
    assert set(again.edits.values()) == {None}
    held = set(held_by(now, "team"))
    for move in again.moves:
        assert (move.fate == "shared") == (move.field_path in held)
        assert move.fate != "taken" or is_bare(move.value)
    return now


def is_bare(value: Any) -> bool:
    """Return whether nothing in a value can be held: the server books an empty list on nobody."""
    return value == [] or (isinstance(value, dict) and all(map(is_bare, value.values())))
