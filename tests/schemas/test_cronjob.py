from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest
from pydantic import ValidationError

from hedgerow_schemas import crd
from hedgerow_schemas.cronjob import (
    LONGEST_NAME,
    CronJob,
    CronJobSpec,
    CronJobStatus,
    JobReference,
)
from hedgerow_schemas.job import Job

Object = dict[str, Any]

TEMPLATE: Object = {
    "metadata": {"labels": {"a": "b"}, "annotations": {}},
    "spec": {"template": {"spec": {"containers": [{"name": "c", "command": None}]}}},
}


def spec(**more: Any) -> CronJobSpec:
    return CronJobSpec.model_validate({"schedule": "@daily", "jobTemplate": TEMPLATE, **more})


@pytest.fixture(scope="module")
def root() -> Object:
    """The schema as the server gets it."""
    document = json.loads((files("hedgerow_schemas") / "openapi.json").read_text("utf-8"))
    definition = crd.render(CronJob, document, describe=False)
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


class TestSpec:
    def test_defaults_are_those_of_the_original_webhook(self):
        given = spec()

        assert (given.concurrency_policy, given.suspend) == ("Allow", False)
        assert (given.successful_jobs_history_limit, given.failed_jobs_history_limit) == (3, 1)

    def test_all_else_is_left_out_unless_given(self):
        given = spec()

        assert (given.time_zone, given.starting_deadline_seconds) == (None, None)

    @pytest.mark.parametrize(
        "bad",
        [
            {"concurrencyPolicy": "Queue"},
            {"concurrencyPolicy": "allow"},
            {"startingDeadlineSeconds": -1},
            {"successfulJobsHistoryLimit": -1},
            {"failedJobsHistoryLimit": -1},
            {"failedJobsHistoryLimit": 2**31},
            {"activeLimit": 0},
            {"activeLimit": 2**31},
            {"schedule": None},
            {"schedule": "*" * 1025},
            {"timeZone": ""},
            {"jobTemplate": None},
        ],
        ids=str,
    )
    def test_what_the_schema_refuses_the_model_refuses_too(self, bad):
        with pytest.raises(ValidationError):
            spec(**bad)

    @pytest.mark.parametrize(
        "edge",
        [
            {"schedule": ""},
            {"startingDeadlineSeconds": 0},
            {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 2**31 - 1},
        ],
        ids=str,
    )
    def test_edges_are_taken(self, edge):
        assert spec(**edge).wire().items() >= edge.items()

    def test_a_template_passes_through_unaltered(self):
        assert spec().job_template == TEMPLATE
        assert spec().model_dump(by_alias=True)["jobTemplate"] == TEMPLATE

    def test_names_on_the_wire_are_those_of_the_original(self):
        full = spec(
            timeZone="Asia/Seoul",
            startingDeadlineSeconds=60,
            concurrencyPolicy="Forbid",
            suspend=True,
            activeLimit=3,
            successfulJobsHistoryLimit=2,
            failedJobsHistoryLimit=2,
        )

        assert full.wire().keys() == {
            "schedule",
            "timeZone",
            "startingDeadlineSeconds",
            "concurrencyPolicy",
            "suspend",
            "activeLimit",
            "jobTemplate",
            "successfulJobsHistoryLimit",
            "failedJobsHistoryLimit",
        }


class TestStatus:
    def test_an_empty_one_says_nothing(self):
        assert CronJobStatus().wire() == {"conditions": [], "contested": []}

    def test_times_are_written_in_whole_seconds_of_utc(self):
        status = CronJobStatus(
            last_schedule_time=datetime(2026, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC)
        )

        assert status.wire()["lastScheduleTime"] == "2026-01-01T12:00:00Z"

    def test_a_reference_tells_all_but_what_changes(self):
        meta = {"name": "j", "namespace": "ns", "uid": "u", "resourceVersion": "7"}

        assert JobReference.of(Job({"metadata": meta})).wire() == {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "namespace": "ns",
            "name": "j",
            "uid": "u",
        }

    def test_references_that_the_original_wrote_are_read(self):
        old = {"kind": "Job", "name": "j", "resourceVersion": "7"}
        status = CronJobStatus.model_validate({"active": [old]})

        assert status.active == (JobReference(kind="Job", name="j"),)


class TestDefinition:
    def test_the_longest_name_leaves_room_for_the_jobs(self):
        assert len(f"{'n' * LONGEST_NAME}-{9_999_999_999}") == 63

    def test_a_longer_name_is_refused_on_creation(self, root):
        (rule,) = root["x-kubernetes-validations"]

        assert rule["optionalOldSelf"] is True
        assert rule["rule"] == "oldSelf.hasValue() || (self.metadata.name.size() <= 52)"
        assert rule["message"] == "the name must be no more than 52 characters"
        assert rule["fieldPath"] == ".metadata.name"

    def test_a_zone_that_is_given_twice_is_refused(self, root):
        (rule,) = root["properties"]["spec"]["x-kubernetes-validations"]

        assert rule["rule"] == "!has(self.timeZone) || !self.schedule.contains('TZ=')"
        assert "given twice" in rule["message"]
        assert rule["fieldPath"] == ".timeZone"

    def test_minima_and_defaults_reach_the_server(self, root):
        fields = root["properties"]["spec"]["properties"]

        assert root["properties"]["spec"]["required"] == ["schedule", "jobTemplate"]
        assert fields["startingDeadlineSeconds"] | {"description": ""} == {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "",
        }
        for name, default in (("successfulJobsHistoryLimit", 3), ("failedJobsHistoryLimit", 1)):
            assert (fields[name]["minimum"], fields[name]["default"]) == (0, default)
            assert fields[name]["format"] == "int32"
        assert fields["concurrencyPolicy"]["enum"] == ["Allow", "Forbid", "Replace"]
        assert fields["concurrencyPolicy"]["default"] == "Allow"
        assert fields["suspend"]["default"] is False
        assert "default" not in fields["timeZone"]

    def test_active_jobs_are_one_atomic_list_as_the_original_has_it(self, root):
        active = root["properties"]["status"]["properties"]["active"]

        assert active["x-kubernetes-list-type"] == "atomic"

    def test_columns_say_what_the_original_did_not(self):
        columns = [column.name for column in CronJob.definition.columns if not column.priority]

        assert columns == ["Schedule", "Suspend", "Active", "Last Schedule", "Next", "Ready", "Age"]
