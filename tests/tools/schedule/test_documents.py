"""The CronJobs of a file: which there are, and what is wrong with them, field by field."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hedgerow.manifest import objects_in
from hedgerow_tools.schedule.documents import Document, of_object
from support.objects import generated

OURS = "batch.tutorial.kubebuilder.io/v1"


def cronjob(**changes: Any) -> dict[str, Any]:
    spec = {"schedule": "* * * * *", "jobTemplate": {}, **changes.pop("spec", {})}
    return {
        "apiVersion": OURS,
        "kind": "CronJob",
        "metadata": {"name": "demo"},
        "spec": spec,
        **changes,
    }


def read(text: str) -> tuple[Document, ...]:
    return tuple(map(of_object, objects_in("f", text)))


def problems(obj: Any) -> tuple[str, ...]:
    [document] = read(yaml.safe_dump(obj))
    assert document.resource is None
    return document.problems


class TestReading:
    @pytest.mark.parametrize("text", ["", "---\n", "# nothing\n---\n---\n"])
    def test_an_empty_file_has_no_documents(self, text):
        assert read(text) == ()

    def test_json_is_read_like_yaml(self):
        text = f'{{"apiVersion": "{OURS}", "kind": "CronJob", "metadata": {{"name": "a"}},'
        [document] = read(text + '\n "spec": {"schedule": "@daily", "jobTemplate": {}}}')

        assert document.resource is not None
        assert document.resource.spec.schedule == "@daily"

    def test_several_documents_and_the_items_of_a_list_are_one_after_the_other(self):
        text = yaml.safe_dump_all(
            [
                cronjob(metadata={"name": "a"}),
                {"apiVersion": "v1", "kind": "List", "items": [cronjob(), {"kind": "Job"}]},
            ]
        )

        assert [document.title for document in read(text)] == [
            "CronJob/a",
            "CronJob/demo",
            "Job/? of None",
        ]

    def test_kubernetes_own_are_read_and_told_apart(self):
        [ours] = read(yaml.safe_dump(cronjob()))
        [theirs] = read(yaml.safe_dump(cronjob(apiVersion="batch/v1")))

        assert (ours.foreign, theirs.foreign) == (False, True)
        assert theirs.resource is not None

    def test_of_what_may_have_windows_it_is_told_how_to_see_them(self):
        named = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}}
        [found] = read(yaml.safe_dump(named))

        assert "`schedule explain deployment/web`" in found.skipped

    @pytest.mark.parametrize(
        ("obj", "title"),
        [
            ({"kind": "Deployment", "apiVersion": "apps/v1"}, "Deployment/? of apps/v1"),
            (cronjob(apiVersion="batch/v1beta1"), "CronJob/demo of batch/v1beta1"),
            ({"kind": ["odd"], "apiVersion": {}, "metadata": 5}, "['odd']/? of {}"),
        ],
    )
    def test_other_kinds_are_named(self, obj, title):
        [document] = read(yaml.safe_dump(obj))

        assert (document.title, document.resource, document.problems) == (title, None, ())
        assert document.skipped

    def test_a_cronjob_of_another_version_is_told_which_there_are(self):
        [other] = read(yaml.safe_dump(cronjob(apiVersion="batch/v1beta1")))
        [service] = read(yaml.safe_dump({"kind": "Service", "apiVersion": "v1"}))

        assert other.skipped == (
            f"its apiVersion has to be {OURS}, or batch/v1 for one of Kubernetes itself"
        )
        assert service.skipped == "it is no CronJob"

    def test_what_a_cluster_gives_is_read_with_its_times(self):
        text = (
            f"apiVersion: {OURS}\nkind: CronJob\n"
            "metadata: {name: a, creationTimestamp: 2026-03-01T00:00:00Z, managedFields: []}\n"
            "spec: {schedule: '@hourly', jobTemplate: {metadata: {creationTimestamp: null}}}\n"
            "status: {lastScheduleTime: '2026-03-01T01:00:00Z', active: [{name: a-1772326800}]}\n"
        )
        [document] = read(text)

        assert document.resource is not None
        assert str(document.resource.metadata.creation_timestamp) == "2026-03-01 00:00:00+00:00"
        assert str(document.resource.status.last_schedule_time) == "2026-03-01 01:00:00+00:00"

    @pytest.mark.parametrize(
        "field",
        ["suspend", "startingDeadlineSeconds", "timeZone", "concurrencyPolicy", "activeLimit"],
    )
    def test_a_field_that_is_null_is_left_out_as_the_server_does(self, field):
        [document] = read(yaml.safe_dump(cronjob(spec={field: None})))

        assert document.problems == ()
        assert document.resource == of_object(cronjob()).resource

    def test_what_a_generator_prints_is_read(self):
        [document] = read(yaml.safe_dump(generated.cronjob("default", suspend=None)))

        assert (document.problems, document.resource is not None) == ((), True)

    def test_a_status_that_cannot_be_read_is_none(self):
        [document] = read(yaml.safe_dump(cronjob(status={"active": 5})))

        assert document.resource is not None
        assert document.resource.status.active is None


class TestProblems:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            ({"schedule": 5}, '.spec.schedule: must be a string: quote it, as in schedule: "*/5'),
            ({"schedule": "* * * *"}, ".spec.schedule: schedule '* * * *': it takes 5 fields"),
            ({"suspend": "yes"}, ".spec.suspend: must be true or false"),
            ({"startingDeadlineSeconds": "9"}, ".spec.startingDeadlineSeconds: must be an integer"),
            ({"startingDeadlineSeconds": -1}, ".spec.startingDeadlineSeconds: must be at least 0"),
            ({"concurrencyPolicy": "Never"}, ".spec.concurrencyPolicy: must be 'Allow', 'Forb"),
            ({"jobTemplate": 5}, ".spec.jobTemplate: must be a map"),
            ({"jobTemplate": None}, ".spec.jobTemplate: must be set"),
            ({"timeZone": "Mars/Base"}, ".spec.timeZone: time zone 'Mars/Base': the IANA"),
            ({"schedule": "TZ=UTC @daily", "timeZone": "Asia/Tokyo"}, ".spec.timeZone: "),
            ({"startingDeadlineSecond": 5}, ".spec.startingDeadlineSecond: there is no such field"),
            ({1: 2}, ".spec.1: there is no such field"),
        ],
    )
    def test_each_names_its_field(self, spec, expected):
        [problem] = problems(cronjob(spec=spec))

        assert problem.startswith(expected)

    def test_a_bad_schedule_and_a_bad_zone_are_two(self):
        found = problems(cronjob(spec={"schedule": "61 * * * *", "timeZone": "Mars"}))

        assert [problem.partition(":")[0] for problem in found] == [
            ".spec.schedule",
            ".spec.timeZone",
        ]

    def test_there_is_one_for_every_field(self):
        found = problems(cronjob(spec={"schedule": 5, "suspend": 5, "jobTemplate": 5}))

        assert len(found) == 3

    @pytest.mark.parametrize("name", ["", "x" * 53, "Demo", "a_b", "\x1b[31m"])
    def test_a_name_is_one_that_the_server_takes(self, name):
        [problem] = problems(cronjob(metadata={"name": name}))

        assert problem == ".metadata.name: it must be a DNS subdomain of at most 52 characters"

    @pytest.mark.parametrize(
        ("changes", "path"),
        [
            (
                {"metadata": {"name": "a", "creationTimestamp": "2026-03-01T00:00:00"}},
                ".metadata.creationTimestamp",
            ),
            ({"status": {"lastScheduleTime": "2026-03-01T00:00:00"}}, ".status.lastScheduleTime"),
            (
                {"status": {"lastSuccessfulTime": "2026-03-01T00:00:00"}},
                ".status.lastSuccessfulTime",
            ),
        ],
    )
    def test_a_time_has_a_zone(self, changes, path):
        assert problems(cronjob(**changes)) == (f"{path}: the time has no zone",)

    def test_items_of_lists_have_numbers(self):
        owners = [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": 5}]
        [problem] = problems(cronjob(metadata={"name": "a", "ownerReferences": owners}))

        assert problem.startswith(".metadata.ownerReferences[0].uid: ")
