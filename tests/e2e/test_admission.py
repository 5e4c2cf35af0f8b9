"""Admission: what the operator in the cluster answers an API server that asks before it stores."""

import copy
import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic_core import from_json

from e2e.node.images import PYTHON
from e2e.node.node import Node
from e2e.pods import container, user
from hedgerow.testing.api import Api, Object, Reply
from hedgerow.testing.waiting import eventually
from support.cluster.cronjobs import GROUP, VERSION

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360), pytest.mark.usefixtures("deployment")]

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"cronjobs.{GROUP}"},
}
WEBHOOK = "cronjob.hedgerow.dev"
DEFAULTS = {
    "concurrencyPolicy": "Allow",
    "suspend": False,
    "successfulJobsHistoryLimit": 3,
    "failedJobsHistoryLimit": 1,
}
ZONE = 'spec.timeZone: Invalid value: "Mars/Olympus": '
SCHEDULE = 'spec.schedule: Invalid value: "61 * * * *": '
SOON = 60.0


class TestRefusing:
    def test_every_error_of_an_object_is_in_one_answer(self, api: Api, namespace: str):
        refused = create(api, invalid(namespace))

        assert refused.status == 422
        denied = f'admission webhook "{WEBHOOK}" denied the request: CronJob.{GROUP} "bad" is'
        assert refused.body["message"].startswith(f"{denied} invalid: [{SCHEDULE}")
        assert [cause["field"] for cause in refused.causes] == ["spec.schedule", "spec.timeZone"]
        assert api.get(invalid(namespace)).status == 404

    @pytest.mark.parametrize("verb", ["create", "apply", "apply --server-side"])
    def test_kubectl_prints_each_of_them(self, node: Node, namespace: str, verb: str):
        with pytest.raises(AssertionError) as refused:
            node.kubectl(*verb.split(), "-f", "-", given=json.dumps(invalid(namespace)))

        told = str(refused.value)
        assert SCHEDULE in told
        assert ZONE in told

    def test_a_valid_object_is_not_made_invalid(self, node: Node, api: Api, namespace: str):
        good = cronjob(namespace, "good")
        node.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(good))
        changed = {"spec": {"schedule": "61 * * * *"}}

        refused = api.merge(good, changed, "user")
        assert [cause["field"] for cause in refused.causes] == ["spec.schedule"]
        assert api.get(good).must()["spec"]["schedule"] == good["spec"]["schedule"]


class TestDefaulting:
    def test_what_is_left_out_is_added_where_the_definition_does_not(
        self, node: Node, api: Api, namespace: str
    ):
        bare = cronjob(namespace, "bare")
        with undefaulted(api):
            eventually(lambda: patch_of_dry_run(node, api, bare), SOON, "a patch by the webhook")
            mark = node.audit.mark()
            made = create(api, bare).must()
            patch = patched(node, mark)

        assert {field: made["spec"].get(field) for field in DEFAULTS} == DEFAULTS
        added = {step["path"].rpartition("/")[2]: step["value"] for step in patch}
        assert added == DEFAULTS
        assert {step["op"] for step in patch} == {"add"}


def cronjob(namespace: str, name: str, **more: Any) -> Object:
    """Return a CronJob that never starts anything."""
    pods = user(container(PYTHON, command=("true",)))
    spec = {"schedule": "0 0 30 2 *", "jobTemplate": {"spec": {"template": {"spec": pods}}}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": VERSION, "kind": "CronJob", "metadata": metadata, "spec": spec | more}


def invalid(namespace: str) -> Object:
    return cronjob(namespace, "bad", schedule="61 * * * *", timeZone="Mars/Olympus")


def create(api: Api, body: Object, **params: str) -> Reply:
    path = f"/apis/{VERSION}/namespaces/{body['metadata']['namespace']}/cronjobs"
    return api.raw("POST", path, params=params, json=body)


@contextmanager
def undefaulted(api: Api) -> Generator[None]:
    """Take the defaults out of the definition's schema: what it gives no webhook has to."""
    before = api.get(CRD).must()
    without = copy.deepcopy(before)
    spec = without["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for field in DEFAULTS:
        del spec["properties"][field]["default"]
    replace_versions(api, without)
    try:
        yield
    finally:
        replace_versions(api, before)


def replace_versions(api: Api, crd: Object) -> None:
    """Give the definition the versions of this one, whatever was noted in it meanwhile."""
    patch = {"spec": {"versions": crd["spec"]["versions"]}}
    api.merge(CRD, patch, "test").must()


def patch_of_dry_run(node: Node, api: Api, body: Object) -> list[Object]:
    """Return what the mutating webhook adds to an object that is not stored."""
    mark = node.audit.mark()
    create(api, body, dryRun="All").must()
    return patched(node, mark)


def patched(node: Node, mark: int) -> list[Object]:
    """Return the patch of our mutating webhook to the CronJob created since, by the audit log."""
    created = node.audit.since(mark, verbs={"create"}, resource="cronjobs")
    notes: dict[str, str] = created[-1].get("annotations", {})
    told = (from_json(n) for name, n in notes.items() if name.startswith("patch.webhook."))
    ours = [note for note in told if note["webhook"] == WEBHOOK]
    assert all(note["configuration"] == "hedgerow" for note in ours)
    return ours[0]["patch"] if ours else []
