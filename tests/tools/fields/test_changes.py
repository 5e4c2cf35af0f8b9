"""Which fields an update changed, and who did it as far as managed fields tell."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hedgerow_tools.fields.changes import changes

Object = dict[str, Any]


def entry(who: str, *paths: str, time: str = "t1", **more: str) -> Object:
    """Return a managed fields entry; the paths have dots, and `k` keys as they are."""
    tree: Object = {}
    for path in paths:
        here = tree
        for name in path.split("."):
            here = here.setdefault(name if ":" in name else f"f:{name}", {})
    manager, _, operation = who.partition("/")
    named = {"manager": manager, "operation": operation or "Update", "apiVersion": "v1"}
    return {**named, "time": time, "fieldsV1": tree, **more}


def pod(*entries: Object, meta: Object | None = None, **fields: Any) -> Object:
    found = {"name": "web", "namespace": "ns", "resourceVersion": "1", "generation": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**found, **(meta or {}), "managedFields": list(entries)},
        **fields,
    }


def told(before: Object, after: Object, **more: bool) -> list[str]:
    """Return each change in one line: kind, path, what is recorded, managers."""
    return [
        " ".join((one.kind, one.path, one.record, *(holder.manager for holder in one.managers)))
        for one in changes(before, after, **more)
    ]


class TestValues:
    def test_a_changed_value_is_by_the_holder_whose_entry_has_a_new_time(self):
        before = pod(entry("kubelet", "status.phase"), status={"phase": "Pending"})
        after = pod(entry("kubelet", "status.phase", time="t2"), status={"phase": "Running"})

        assert told(before, after) == ["changed .status.phase wrote kubelet"]

    def test_a_field_that_changed_hands_is_by_the_one_who_has_it_now(self):
        before = pod(entry("a/Apply", "spec.x"), spec={"x": 1})
        after = pod(entry("a/Apply"), entry("b", "spec.x"), spec={"x": 2})

        assert told(before, after) == ["changed .spec.x wrote b"]

    def test_a_second_write_within_a_second_is_by_the_one_who_holds_it(self):
        before = pod(entry("a", "spec.x"), spec={"x": 1})
        after = pod(entry("a", "spec.x"), spec={"x": 2})

        assert told(before, after) == ["changed .spec.x wrote a"]

    def test_of_several_holders_without_a_new_time_one_wrote(self):
        both = entry("a", "spec.x"), entry("b/Apply", "spec.x")

        found = told(pod(*both, spec={"x": 1}), pod(*both, spec={"x": 2}))

        assert found == ["changed .spec.x holds a b"]

    def test_a_new_item_of_a_list_is_one_field_and_so_is_one_that_is_gone(self):
        key = 'status.conditions.k:{"type":"Ready"}'
        held = entry("kubelet", f"{key}.type", f"{key}.status", "status.phase")
        ready = {"type": "Ready", "status": "True"}
        without = pod(entry("kubelet", "status.phase", time="t0"), status={"phase": "Running"})
        having = pod(held, status={"phase": "Running", "conditions": [ready]})

        item = '.status.conditions[type="Ready"]'
        assert told(without, having) == [f"added {item} wrote kubelet"]
        assert told(having, without) == [f"removed {item} wrote kubelet"]

    def test_what_nobody_holds_is_by_nobody(self):
        before = pod(entry("a", "spec.x"), spec={"x": 1})
        after = pod(entry("a", "spec.x"), spec={"x": 1, "nodeName": "n"})

        assert told(before, after) == ["added .spec.nodeName nobody"]

    def test_the_mark_of_a_deletion_is_told_and_what_each_write_counts_is_not(self):
        mark = {"deletionTimestamp": "t", "resourceVersion": "2", "generation": 2}

        assert told(pod(), pod(meta=mark)) == ["added .metadata.deletionTimestamp nobody"]

    def test_values_of_different_types_differ(self):
        assert told(pod(spec={"x": 1}), pod(spec={"x": True})) == ["changed .spec.x nobody"]

    def test_items_of_a_list_are_told_by_their_keys(self):
        key = 'spec.containers.k:{"name":"c"}'
        held = entry("a", f"{key}.image", f"{key}.name")
        later = {**held, "time": "t2"}
        c = {"name": "c", "image": "x:1"}

        found = told(
            pod(held, spec={"containers": [{"name": "b"}, c]}),
            pod(later, spec={"containers": [{**c, "image": "x:2"}, {"name": "b"}]}),
        )

        assert found == [
            'changed .spec.containers[name="c"].image wrote a', "moved .spec.containers wrote a",
        ]  # fmt: skip

    def test_an_atomic_list_is_one_field(self):
        held = entry("kubelet", "status.containerStatuses")

        found = told(
            pod(held, status={"containerStatuses": [{"name": "a", "ready": False}]}),
            pod({**held, "time": "t2"}, status={"containerStatuses": [{"name": "a"}]}),
        )

        assert found == ["changed .status.containerStatuses wrote kubelet"]

    @pytest.mark.parametrize("empty", [{}, []])
    def test_what_fills_an_empty_map_or_list_does_not_remove_it(self, empty):
        held = entry("a", "spec.x.y")

        full = pod(held, spec={"x": {"y": 1}})
        hollow = pod(spec={"x": empty})

        assert told(hollow, full) == ["added .spec.x.y wrote a"]
        assert told(full, hollow) == ["removed .spec.x.y held a"]


class TestOrder:
    ITEMS = ('k:{"name":"a"}', 'k:{"name":"b"}')

    def containers(self, *names: str, time: str = "t1") -> Object:
        held = {key: {".": {}, "f:name": {}} for key in self.ITEMS}
        made = pod(
            entry("helm/Apply", time=time), spec={"containers": [{"name": n} for n in names]}
        )
        made["metadata"]["managedFields"][0]["fieldsV1"] = {"f:spec": {"f:containers": held}}
        return made

    def test_containers_that_change_places_are_one_change_of_their_list(self):
        assert told(self.containers("a", "b"), self.containers("b", "a", time="t2")) == [
            "moved .spec.containers wrote helm"
        ]

    def test_who_only_reorders_may_be_recorded_nowhere(self):
        assert told(self.containers("a", "b"), self.containers("b", "a")) == [
            "moved .spec.containers nobody"
        ]

    def test_so_do_the_values_of_an_atomic_list(self):
        before, after = (pod(entry("a", "spec.args"), spec={"args": list(x)}) for x in ("xy", "yx"))

        assert told(before, after) == ["moved .spec.args wrote a"]


class TestRemovals:
    def test_within_the_second_of_the_last_write_it_is_who_wrote_something_else(self):
        before = pod(entry("a", "spec.x", "spec.y"), spec={"x": 1, "y": 1})
        after = pod(entry("a", "spec.x"), spec={"x": 2})

        assert told(before, after) == ["changed .spec.x wrote a", "removed .spec.y wrote a"]

    def test_whoever_lets_go_of_another_field_has_not_removed_it(self):
        before = pod(entry("a", "spec.x"), entry("b", "spec.y"), spec={"x": 1, "y": 1})

        found = told(before, pod(entry("a"), spec={"x": 1}))

        assert found == ["removed .spec.y held b", "released .spec.x wrote a"]

    def test_an_apply_that_leaves_a_field_out_removed_it(self):
        before = pod(entry("a/Apply", "spec.x", "spec.y"), spec={"x": 1, "y": 1})
        after = pod(entry("a/Apply", "spec.y", time="t2"), spec={"y": 1})

        assert told(before, after) == ["removed .spec.x wrote a"]

    def test_the_only_one_who_wrote_removed_it(self):
        before = pod(entry("a", "spec.x"), entry("b", "spec.y"), spec={"x": 1, "y": 1})
        after = pod(entry("b", "spec.y", time="t2"), spec={"y": 2})

        assert told(before, after) == ["changed .spec.y wrote b", "removed .spec.x wrote b"]

    def test_after_a_gap_it_may_have_been_somebody_else(self):
        before = pod(entry("a", "spec.x"), entry("b", "spec.y"), spec={"x": 1, "y": 1})
        after = pod(entry("b", "spec.y", time="t2"), spec={"y": 2})

        assert told(before, after, one_write=False)[1] == "removed .spec.x held a"

    def test_several_entries_of_one_write_name_nobody(self):
        """The server makes two at the first apply of an object without managed fields."""
        after = pod(entry("before-first-apply", "spec.y"), entry("b/Apply"), spec={"y": 1})

        assert told(pod(spec={"x": 1, "y": 1}), after)[0] == "removed .spec.x nobody"

    def test_an_update_that_only_removes_is_recorded_nowhere(self):
        before = pod(entry("a/Apply", "spec.x"), spec={"x": 1, "y": 1})

        assert told(before, pod(spec={})) == ["removed .spec.x held a", "removed .spec.y nobody"]


class TestHands:
    def test_a_field_that_another_holds_too_is_taken(self):
        before = pod(entry("a", "spec.x"), spec={"x": 1})
        after = pod(entry("a", "spec.x"), entry("b/Apply", "spec.x"), spec={"x": 1})

        assert told(before, after) == ["taken .spec.x wrote b"]
        assert told(after, before) == ["released .spec.x wrote b"]

    def test_a_new_time_alone_is_no_change(self):
        before = pod(entry("a", "spec.x"), spec={"x": 1})

        assert told(before, pod(entry("a", "spec.x", time="t2"), spec={"x": 1})) == []

    def test_the_same_name_by_another_operation_is_another_holder(self):
        before = pod(entry("a", "spec.x"), spec={"x": 1})
        after = pod(entry("a/Apply", "spec.x"), spec={"x": 1})

        assert told(before, after) == ["taken .spec.x wrote a", "released .spec.x wrote a"]


def test_a_state_is_not_altered_by_the_comparison():
    states = [pod(entry("a", "spec.x"), spec={"x": x, "y": {"z": [x]}}) for x in (1, 2)]
    kept = copy.deepcopy(states)
    changes(*states)

    assert states == kept
