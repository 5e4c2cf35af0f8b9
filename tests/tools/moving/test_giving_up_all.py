from __future__ import annotations

import pytest

from hedgerow.objects import CONTROLLER_LABEL
from hedgerow_tools.fields.giving_up import (
    co_owning_apply,
    count,
    endpoints,
    is_mark,
    losses,
    nothing,
)
from support.objects.judged import item, live, want

OURS = "hedgerow-two-bluegreen"
SPEC = {"f:spec": {"f:replicas": {}, "f:paused": {}}}
PORTS = {"f:spec": {"f:ports": {'k:{"port":80}': {".": {}, "f:port": {}, "f:name": {}}}}}


def test_it_is_held_through_each_endpoint_that_was_applied_to():
    obj = live(
        want(), (OURS, SPEC), (f"{OURS}/Apply/status", {}), (f"{OURS}/Update/scale", {}), ("x", {})
    )

    assert endpoints(obj, OURS) == ("", "status")
    assert endpoints(obj, "nobody") == ()
    assert count(obj, OURS, "") == 2
    assert count(obj, "nobody", "") == 0


def test_to_declare_nothing_is_to_name_exactly_what_was_looked_at():
    obj = live(want(spec={"replicas": 1}), (OURS, SPEC))

    assert nothing(obj) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"},
    }


class TestLosses:
    def test_what_keeps_its_value_is_none(self):
        before = live(want(spec={"replicas": 1, "paused": True}), (OURS, SPEC))
        after = live(want(spec={"replicas": 1}), ("other", {}))

        assert [change.path for change in losses(before, after)] == [".spec.paused"]

    def test_what_others_held_in_an_item_that_goes_is_one_too(self):
        inside = {"f:spec": {"f:ports": {'k:{"port":80}': {"f:nodePort": {}}}}}
        port = {"port": 80, "name": "http", "nodePort": 30000}
        before = live(want("Service", "v1", spec={"ports": [port]}), (OURS, PORTS), ("x", inside))
        after = live(want("Service", "v1", spec={}))

        paths = [change.path for change in losses(before, after)]
        assert ".spec.ports[port=80].nodePort" in paths

    def test_a_secrets_values_are_not_told(self):
        tree = {"f:data": {"f:key": {}}}
        before = live(want("Secret", "v1", data={"key": "c2VjcmV0"}), (OURS, tree))

        (change,) = losses(before, live(want("Secret", "v1")))
        assert "c2VjcmV0" not in repr(change)


@pytest.mark.parametrize(
    ("field_path", "mark"),
    [
        (("f:metadata", "f:finalizers", 'v:"hedgerow.dev/x"'), True),
        (("f:metadata", "f:labels", f"f:{CONTROLLER_LABEL}"), True),
        (("f:metadata", "f:annotations", "f:batch.tutorial.kubebuilder.io/scheduled-at"), False),
        (("f:metadata", "f:ownerReferences", 'k:{"uid":"u"}'), False),
        (("f:metadata", "f:labels", "f:app"), False),
        (("f:spec", "f:replicas"), False),
    ],
)
def test_a_mark_is_of_use_to_nobody_but_the_operator_that_put_it_there(field_path, mark):
    assert is_mark(field_path) is mark


class TestBequest:
    def test_it_is_what_nobody_else_holds_and_is_there(self):
        label = {"f:metadata": {"f:labels": {".": {}, f"f:{CONTROLLER_LABEL}": {}, "f:app": {}}}}
        declared = want(spec={"replicas": 1})
        declared["metadata"] = {
            **declared["metadata"],
            "labels": {CONTROLLER_LABEL: "x", "app": "a"},
        }
        obj = live(declared, (OURS, SPEC | label), ("x", {"f:spec": {"f:paused": {}}}))

        assert co_owning_apply(obj, OURS, "") == (
            ("f:spec", "f:replicas"),
            ("f:metadata", "f:labels", "f:app"),
        )

    @pytest.mark.parametrize("names", [("port", "name"), ("port",)])
    def test_keys_of_items_are_among_it(self, names):
        obj = live(
            want("Service", "v1", spec={"ports": [{"port": 80, "name": "a"}]}),
            (OURS, {"f:spec": {"f:ports": {'k:{"port":80}': item(*names)}}}),
        )

        places = co_owning_apply(obj, OURS, "")
        assert [field_path[-1] for field_path in places] == [f"f:{name}" for name in names]

    def test_of_a_status_it_is_by_the_statuss_entry(self):
        obj = live(
            want(status={"routeTo": "Blue"}),
            (f"{OURS}/Apply/status", {"f:status": {"f:routeTo": {}}}),
        )

        assert co_owning_apply(obj, OURS, "status") == (("f:status", "f:routeTo"),)
        assert co_owning_apply(obj, OURS, "") == ()
