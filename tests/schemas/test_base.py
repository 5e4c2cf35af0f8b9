from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from hedgerow_schemas.base import ApiResource, Condition, ObjectMeta, Status, View

LIVE = {
    "metadata": {"name": "demo", "namespace": "shop", "uid": "u1", "labels": {"app": "demo"}},
    "spec": {"replicas": 3, "paused": True, "items": [1], "list": "no list"},
}


class TestApiResource:
    def test_a_group_version_falls_into_group_and_version(self):
        api = ApiResource("apps/v1", "Deployment", "deployments")

        assert (api.group, api.version) == ("apps", "v1")

    def test_the_core_group_is_empty(self):
        api = ApiResource("v1", "Pod", "pods")

        assert (api.group, api.version) == ("", "v1")


class TestModel:
    def test_the_wire_form_is_camel_case_without_nulls(self):
        condition = Condition(type="Ready", status="True", reason="Up", observed_generation=2)

        assert condition.wire() == {
            "type": "Ready",
            "status": "True",
            "reason": "Up",
            "message": "",
            "observedGeneration": 2,
        }

    def test_unknown_fields_are_dropped(self):
        assert ObjectMeta.model_validate({"name": "demo", "managedFields": []}).name == "demo"

    def test_a_model_is_never_changed(self):
        with pytest.raises(ValidationError, match="frozen"):
            Status().observed_generation = 1  # type: ignore[misc]

    def test_a_time_holds_whole_seconds(self):
        instant = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
        condition = Condition(type="A", status="True", reason="B", last_transition_time=instant)

        assert condition.wire()["lastTransitionTime"] == "2026-01-02T03:04:05Z"


class TestView:
    def test_identity_is_read_from_metadata(self):
        view = View(LIVE)

        assert (view.name, view.namespace, view.uid) == ("demo", "shop", "u1")
        assert view.labels == {"app": "demo"}

    def test_what_is_there_is_given(self):
        view = View(LIVE)

        assert view.number("spec", "replicas") == 3
        assert view.items("spec", "items") == (1,)
        assert view.at() == LIVE

    @pytest.mark.parametrize(
        ("read", "empty"),
        [
            (lambda view: view.at("spec", "replicas", "deeper"), None),
            (lambda view: view.at("status", "phase"), None),
            (lambda view: view.text("spec", "replicas"), ""),
            (lambda view: view.number("spec", "list"), 0),
            (lambda view: view.number("spec", "paused"), 0),
            (lambda view: view.mapping("spec", "list"), {}),
            (lambda view: view.items("spec", "list"), ()),
        ],
        ids=["below a scalar", "absent", "text", "number", "bool", "mapping", "items"],
    )
    def test_what_is_absent_or_ill_typed_reads_as_empty(self, read, empty):
        assert read(View(LIVE)) == empty
