"""The sandbox's promises about nodes and controllers, kept by the real servers."""

import os
from collections.abc import Iterator

import psutil
import pytest

from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from hedgerow_testing.sandbox.leash import marked
from hedgerow_testing.waiting import eventually

pytestmark = pytest.mark.cluster

CONTAINERS = [{"name": "it", "image": "example.com/it"}]


@pytest.fixture
def api(nodes_sandbox: Sandbox) -> Iterator[Api]:
    connection = Api(nodes_sandbox.kubeconfig)
    yield connection
    connection.close()


def test_every_server_listens_on_the_loopback_address_alone(nodes_sandbox: Sandbox) -> None:
    """Fact: the addresses at which real servers listen."""
    mark = (nodes_sandbox.directory / ".hedgerow-sandbox").read_text()

    listening = {
        connection.laddr.ip
        for pid in marked(mark)
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_a_namespace_has_its_default_service_account(api: Api) -> None:
    """Fact: the controller of ServiceAccounts runs."""
    assert api.raw("GET", "/api/v1/namespaces/default/serviceaccounts/default").ok


@pytest.mark.oldest
def test_a_readiness_gate_decides_as_with_a_real_kubelet(api: Api, nodes_namespace: str) -> None:
    """Fact: the simulated node and the Deployment controller mind readiness gates."""
    gates = [{"conditionType": "example.com/open"}]
    target = deployment(nodes_namespace, readinessGates=gates)
    api.apply(target, "test").must()

    def ready() -> str:
        (pod,) = pods(api, nodes_namespace)
        conditions = {c["type"]: c for c in pod["status"].get("conditions", [])}
        return conditions.get("Ready", {}).get("status", "")

    def set_gate(value: str) -> None:
        (pod,) = pods(api, nodes_namespace)
        patch = {"status": {"conditions": [{"type": "example.com/open", "status": value}]}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}
        api.merge(pod, patch, "test", "status", "strategic-merge").must()

    eventually(lambda: pods(api, nodes_namespace) and ready() == "False")
    set_gate("True")
    eventually(lambda: ready() == "True")
    eventually(lambda: api.get(target).body["status"].get("availableReplicas") == 1)
    (pod,) = pods(api, nodes_namespace)
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["podIP"]
    set_gate("False")
    eventually(lambda: ready() == "False")
    eventually(lambda: not api.get(target).body["status"].get("availableReplicas"))


@pytest.mark.oldest
def test_a_job_completes_after_the_time_its_annotation_says(api: Api, nodes_namespace: str) -> None:
    """Fact: the simulated node ends pods, and the Job controller counts them."""
    for name, delay in (("quick", "0s"), ("slow", "600s")):
        api.apply(job(nodes_namespace, name, delay), "test").must()

    quick, slow = (job(nodes_namespace, name, "") for name in ("quick", "slow"))
    eventually(lambda: api.get(quick).body["status"].get("succeeded") == 1)
    eventually(lambda: api.get(slow).body["status"].get("active") == 1)
    assert not api.get(slow).body["status"].get("succeeded")


@pytest.mark.oldest
def test_children_are_garbage_collected_and_namespaces_end(api: Api) -> None:
    """Fact: the garbage collector and the controller of namespaces run."""
    name = api.namespace(f"ending-{os.getpid()}")
    target = deployment(name)
    api.apply(target, "test").must()
    eventually(lambda: pods(api, name))

    api.delete(target)
    eventually(lambda: not pods(api, name))

    api.raw("DELETE", f"/api/v1/namespaces/{name}")
    path = f"/api/v1/namespaces/{name}"
    eventually(lambda: api.raw("GET", path).status == 404)


def deployment(namespace: str, *, replicas: int = 1, **pod: object) -> dict[str, object]:
    labels = {"app": "it"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS, **pod}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "it", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


def job(namespace: str, name: str, delay: str) -> dict[str, object]:
    annotations = {"pod-complete.stage.kwok.x-k8s.io/delay": delay}
    pod = {"restartPolicy": "Never", "containers": CONTAINERS}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": pod}},
    }


def pods(api: Api, namespace: str) -> list[dict]:
    return api.raw("GET", f"/api/v1/namespaces/{namespace}/pods").body["items"]
