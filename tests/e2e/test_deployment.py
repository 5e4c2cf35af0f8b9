"""The operator in the cluster: what its manifests make of its image."""

import pytest

from e2e.deployment import REPLICAS, Deployment
from e2e.node.node import Node
from e2e.pods import is_ready
from hedgerow_testing.api import Api

pytestmark = pytest.mark.e2e


class TestDeployment:
    def test_every_replica_is_ready_under_restricted(self, deployment: Deployment, api: Api):
        """Fact: a real kubelet starts and probes the pods."""
        namespace = api.raw("GET", "/api/v1/namespaces/hedgerow-system").must()
        pods = deployment.pods()

        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        assert len(pods) == REPLICAS
        assert all(is_ready(pod) for pod in pods)

    def test_its_pods_run_what_the_containerfile_made(self, deployment: Deployment, node: Node):
        """Fact: a real kubelet runs the image that was loaded."""
        for pod in deployment.pods():
            assert [c["restartCount"] for c in pod["status"]["containerStatuses"]] == [0]
            assert len(node.pids(pod)) > 1
