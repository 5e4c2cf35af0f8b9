"""Admission: what the operator in the cluster answers an API server that asks before it stores."""

import pytest

from e2e.node.images import PYTHON
from e2e.pods import container, user
from hedgerow_testing.api import Api, Object, Reply
from support.cluster.cronjobs import GROUP, VERSION

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360), pytest.mark.usefixtures("deployment")]

WEBHOOK = "cronjob.hedgerow.dev"
SCHEDULE = 'spec.schedule: Invalid value: "61 * * * *": '


class TestRefusing:
    def test_every_error_of_an_object_is_in_one_answer(self, api: Api, namespace: str):
        """Fact: an API server reaches the webhook by its Service."""
        refused = create(api, invalid(namespace))

        assert refused.status == 422
        denied = f'admission webhook "{WEBHOOK}" denied the request: CronJob.{GROUP} "bad" is'
        assert refused.body["message"].startswith(f"{denied} invalid: [{SCHEDULE}")
        assert [cause["field"] for cause in refused.causes] == ["spec.schedule", "spec.timeZone"]
        assert api.get(invalid(namespace)).status == 404


def invalid(namespace: str) -> Object:
    """Return a CronJob with two errors."""
    pods = user(container(PYTHON, command=("true",)))
    spec = {
        "schedule": "61 * * * *",
        "timeZone": "Mars/Olympus",
        "jobTemplate": {"spec": {"template": {"spec": pods}}},
    }
    metadata = {"name": "bad", "namespace": namespace}
    return {"apiVersion": VERSION, "kind": "CronJob", "metadata": metadata, "spec": spec}


def create(api: Api, body: Object) -> Reply:
    path = f"/apis/{VERSION}/namespaces/{body['metadata']['namespace']}/cronjobs"
    return api.raw("POST", path, json=body)
