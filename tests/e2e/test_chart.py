"""The chart's own test, which `helm test` runs, in the cluster of the real operator."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
import yaml

from e2e.deployment import Deployment
from e2e.node.node import Node
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually
from support.helm import programs
from support.helm.chart import CHART, KUBERNETES, NAMESPACE, RELEASE, Helm

pytestmark = pytest.mark.e2e


def test_each_service_answers_whom_the_authority_trusts(
    node: Node, api: Api, deployment: Deployment, tmp_path: Path
):
    """Fact: a pod reaches the Services by their names."""
    helm = Helm(anyio.run(programs.prepare, print)[programs.HELM_4], tmp_path)
    where = ("--namespace", NAMESPACE, "--kube-version", KUBERNETES)
    pod = yaml.safe_load(
        helm("template", RELEASE, CHART, *where, "--show-only", "templates/test.yaml").stdout
    )
    pod["spec"]["hostAliases"] = [service(api, name) for name in ("metrics", "webhook")]
    api.apply(pod, "helm").must()
    try:
        phase = eventually(
            lambda: (ended := api.get(pod).must()["status"].get("phase")) in ENDED and ended, 90
        )
        logs = node.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"])
    finally:
        api.delete(pod)

    assert phase == "Succeeded", logs
    assert [line.rpartition(" ")[2] for line in logs.splitlines()] == ["401", "404"]


def service(api: Api, name: str) -> Object:
    """Return what a DNS would know of a Service; the node has none."""
    path = f"/api/v1/namespaces/{NAMESPACE}/services/hedgerow-{name}"
    address = api.raw("GET", path).must()["spec"]["clusterIP"]
    return {"ip": address, "hostnames": [f"hedgerow-{name}.{NAMESPACE}.svc"]}


ENDED = ("Succeeded", "Failed")
