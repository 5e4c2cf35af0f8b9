"""Serving key: one that somebody may have read, replaced by the commands of the guide."""

import shlex

import pytest

from e2e.deployment import Deployment
from e2e.node.images import PYTHON, ROOT
from e2e.node.node import Node
from e2e.pods import container, user
from e2e.scraping import trusted
from e2e.serving import shown, stored
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.cluster.cronjobs import VERSION
from support.code.documents import commands, guide, section

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(360)]

SOON = 90.0
_, *TOLD = commands(section("### Replace the serving key", guide("in-cluster"))).split("\n\n")
"""All but the first block, which is for a key that nobody has read."""


def test_nobody_trusts_it_any_more(node: Node, api: Api, deployment: Deployment, namespace: str):
    """Fact: the garbage collector ends the pods, and the API server calls the webhooks."""
    deployment.leader()
    former = stored(api)
    bundle = trusted(api)
    assert former is not None

    for block in TOLD:
        for line in block.splitlines():
            node.kubectl(*typed(line))
    deployment.ready()

    now = trusted(api)
    made = eventually(lambda: stored(api), SOON, "another Secret")
    assert made.public_key() != former.public_key()
    assert not certificates(bundle) & certificates(now)
    eventually(
        lambda: (
            {shown(pod["status"]["podIP"]) for pod in deployment.pods()} == {made.serial_number}
        ),
        SOON,
        "one certificate",
    )
    refused = eventually(lambda: judged(api, namespace), SOON, "the webhooks")
    assert "61 * * * *" in refused


def typed(line: str) -> list[str]:
    """Return the words of a line after `kubectl`; folders are those of this checkout.

    They are applied by the field manager that has applied them here, which is kubectl's.
    """
    kubectl, *given = shlex.split(line)
    assert kubectl == "kubectl"
    words = [word for word in given if not word.startswith("--field-manager=")]
    return [str(ROOT / word) if word.startswith("manifests/") else word for word in words]


def certificates(bundle: str) -> set[str]:
    """Return the certificates of a bundle in PEM, each as text."""
    end = "-----END CERTIFICATE-----"
    return {one.strip() for one in bundle.split(end) if one.strip()}


def invalid(namespace: str) -> Object:
    """Return a CronJob with an error."""
    pods = user(container(PYTHON, command=("true",)))
    spec = {
        "schedule": "61 * * * *",
        "jobTemplate": {"spec": {"template": {"spec": pods}}},
    }
    metadata = {"name": "bad", "namespace": namespace}
    return {"apiVersion": VERSION, "kind": "CronJob", "metadata": metadata, "spec": spec}


def judged(api: Api, namespace: str) -> str:
    """Return what the webhook says of a CronJob with an error; nothing while it is not reached."""
    path = f"/apis/{VERSION}/namespaces/{namespace}/cronjobs"
    reply = api.raw("POST", path, json=invalid(namespace))
    return str(reply.body["message"]) if reply.status == 422 else ""
