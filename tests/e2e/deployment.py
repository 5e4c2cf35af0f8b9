"""Deployment: the operator in the cluster, by the manifests as they are."""

import socket
from dataclasses import dataclass

import psutil

from e2e.node.images import OPERATOR, ROOT
from e2e.node.node import Node
from e2e.pods import is_ready
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

NAMESPACE = "hedgerow-system"
NAME = "hedgerow"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"
REPLICAS = 2

_SOON = 90.0


def is_answering(address: str) -> bool:
    """Return whether somebody takes connections to a Service's port 443."""
    try:
        with socket.create_connection((address, 443), timeout=2):
            return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Deployment:
    """What `kubectl apply --server-side -k` of an overlay made."""

    node: Node
    api: Api

    @classmethod
    def of(cls, node: Node, api: Api, overlay: str = "cluster") -> "Deployment":
        """Apply the overlay and wait until every replica is Ready."""
        made = cls(node, api)
        # The name in the manifests, as the container runtime completes it.
        image = made.images(overlay)[0]
        node.name(OPERATOR, f"docker.io/library/{image}")
        node.kubectl("apply", "--server-side", "-k", str(ROOT / "manifests" / overlay))
        made.ready()
        return made

    def remove(self) -> None:
        """Delete the Deployment, and wait until its pods are gone."""
        which = ("-n", NAMESPACE, f"deployment/{NAME}", "--ignore-not-found")
        self.node.kubectl("delete", *which, "--cascade=foreground", f"--timeout={_SOON:.0f}s")

    def images(self, overlay: str) -> list[str]:
        """Return the images that an overlay names."""
        printed = self.node.kubectl("kustomize", str(ROOT / "manifests" / overlay))
        lines = (line.strip().removeprefix("- ") for line in printed.splitlines())
        return [line.removeprefix("image: ") for line in lines if line.startswith("image: ")]

    def ready(self) -> None:
        """Wait until the rollout is complete, and kube-proxy knows of it: its rules come later."""
        eventually(self._is_rolled_out, _SOON, "the rollout")
        service = f"/api/v1/namespaces/{NAMESPACE}/services/{NAME}-webhook"
        if address := self.api.raw("GET", service).body.get("spec", {}).get("clusterIP"):
            eventually(lambda: is_answering(address), _SOON, "the webhooks' Service")

    def _is_rolled_out(self) -> bool:
        """Return what `kubectl rollout status` waits for."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
        live = self.api.raw("GET", path).must()
        status, wanted = live.get("status", {}), live["spec"]["replicas"]
        seen = status.get("observedGeneration", 0) >= live["metadata"]["generation"]
        counts = ("replicas", "updatedReplicas", "availableReplicas")
        return seen and all(status.get(count, 0) == wanted for count in counts)

    def pods(self) -> list[Object]:
        """Return the operator's live pods that are not being deleted."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        params = {"labelSelector": f"app.kubernetes.io/name={NAME}"}
        listed = self.api.raw("GET", path, params=params).must()["items"]
        return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]

    def process(self, pod: Object) -> psutil.Process:
        """Return the operator's own process in a pod."""
        found = [psutil.Process(pid) for pid in self.node.pids(pod)]
        (process,) = [one for one in found if "run" in one.cmdline()]
        return process

    def lease(self) -> Object:
        """Return the Lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
        return self.api.raw("GET", path).body

    def leader(self) -> Object:
        """Wait for a live leader, and give its pod."""

        def leading() -> Object | None:
            holder = self.lease().get("spec", {}).get("holderIdentity", "")
            found = [p for p in self.pods() if holder.startswith(f"{p['metadata']['name']}_")]
            return found[0] if found and is_ready(found[0]) else None

        found = eventually(leading, _SOON, "a leader")
        assert found is not None
        return found
