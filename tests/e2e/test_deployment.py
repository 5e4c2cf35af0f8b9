"""The operator in the cluster: what its manifests make of its image."""

import pytest

from e2e.deployment import ACCOUNT, REPLICAS, Deployment
from e2e.node.images import MEMCACHED
from e2e.node.node import Node
from e2e.pods import is_ready
from hedgerow.testing.api import Api, Object
from hedgerow.testing.waiting import eventually

pytestmark = pytest.mark.e2e


class TestDeployment:
    def test_every_replica_is_ready_under_restricted(self, deployment: Deployment, api: Api):
        namespace = api.raw("GET", "/api/v1/namespaces/hedgerow-system").must()
        pods = deployment.pods()

        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        assert len(pods) == REPLICAS
        assert all(is_ready(pod) for pod in pods)

    def test_its_pods_run_what_the_containerfile_made(self, deployment: Deployment, node: Node):
        for pod in deployment.pods():
            assert [c["restartCount"] for c in pod["status"]["containerStatuses"]] == [0]
            assert len(node.pids(pod)) > 1

    def test_one_of_them_leads(self, deployment: Deployment):
        assert deployment.leader()["metadata"]["name"].startswith("hedgerow-")

    def test_it_reconciles_as_its_service_account(
        self, deployment: Deployment, node: Node, api: Api, namespace: str
    ):
        deployment.leader()
        mark = node.audit.mark()
        cache = {
            "apiVersion": "memcached.cache.example.com/v1",
            "kind": "Memcached",
            "metadata": {"namespace": namespace, "name": "cache"},
            "spec": {"size": 1, "image": MEMCACHED},
        }
        api.apply(cache, "test").must()

        eventually(lambda: condition(api.get(cache).must(), "Ready") == "True", 60, "Ready")
        writes = node.audit.writes(mark, user=ACCOUNT, namespace=namespace)
        assert {entry["verb"] for entry in writes} == {"patch"}


def condition(live: Object, kind: str) -> str:
    conditions = live.get("status", {}).get("conditions", [])
    return next((c["status"] for c in conditions if c["type"] == kind), "")
