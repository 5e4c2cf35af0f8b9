"""Admission: what the operator in the cluster answers an API server that asks before it stores."""

from typing import Any

import pytest
from pydantic_core import from_json

from e2e.node.images import PYTHON
from e2e.node.node import Node
from e2e.pods import container, user
from hedgerow.testing.api import Api, Object, Reply
from support.cluster.cronjobs import GROUP, VERSION

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360), pytest.mark.usefixtures("deployment")]

WEBHOOK = "cronjob.hedgerow.dev"
SCHEDULE = 'spec.schedule: Invalid value: "61 * * * *": '
MUTATED = "mutation.webhook.admission.k8s.io/"


class TestRefusing:
    def test_every_error_of_an_object_is_in_one_answer(self, api: Api, namespace: str):
        refused = create(api, invalid(namespace))

        assert refused.status == 422
        denied = f'admission webhook "{WEBHOOK}" denied the request: CronJob.{GROUP} "bad" is'
        assert refused.body["message"].startswith(f"{denied} invalid: [{SCHEDULE}")
        assert [cause["field"] for cause in refused.causes] == ["spec.schedule", "spec.timeZone"]
        assert api.get(invalid(namespace)).status == 404


class TestDefaulting:
    def test_the_webhook_is_asked_though_the_definition_leaves_it_nothing_to_add(
        self, node: Node, api: Api, namespace: str
    ):
        mark = node.audit.mark()
        create(api, cronjob(namespace, "good"), dryRun="All").must()
        [created] = node.audit.since(mark, verbs={"create"}, resource="cronjobs")
        notes = created["annotations"]

        told = [from_json(note) for name, note in notes.items() if name.startswith(MUTATED)]
        assert told == [{"configuration": "hedgerow", "webhook": WEBHOOK, "mutated": False}]


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
