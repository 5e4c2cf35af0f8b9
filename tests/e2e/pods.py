"""Pods: what may run under PodSecurity "restricted", and what came of it."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from e2e.node.node import Node
from hedgerow_testing.api import Api, Object
from hedgerow_testing.waiting import eventually

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_SOON, _RESTARTS = 60.0, 120.0


def container(image: str, *arguments: str, command: tuple[str, ...] = (), **more: Any) -> Object:
    """Declare a container of an image that the node has; there is no registry to pull from."""
    declared: Object = {"name": "main", "image": image, "imagePullPolicy": "Never"}
    if command:
        declared["command"] = list(command)
    if arguments:
        declared["args"] = list(arguments)
    return {**declared, "securityContext": CONFINED, **more}


def spec(*containers: Object, **more: Any) -> Object:
    """Declare a pod's spec as "restricted" wants it, without naming a user."""
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "securityContext": security,
        "automountServiceAccountToken": False,
        "containers": list(containers),
        **more,
    }


def user(*containers: Object, **more: Any) -> Object:
    """Declare a pod's spec for images that name no user of their own."""
    declared = spec(*containers, **more)
    declared["securityContext"] |= {"runAsUser": 10001, "runAsGroup": 10001}
    return declared


@contextmanager
def fresh(api: Api) -> Generator[str]:
    """Make a namespace under PodSecurity "restricted", and begin its deletion in the end."""
    name = f"test-{secrets.token_hex(4)}"
    metadata = {"name": name, "labels": RESTRICTED}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, "test").must()
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: api.raw("GET", account).ok, 90, "what every pod runs as")
    yield name
    api.raw("DELETE", f"/api/v1/namespaces/{name}")


def pod(namespace: str, name: str, declared: Object) -> Object:
    """Return a whole manifest."""
    metadata = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": declared}


def finished(node: Node, api: Api, manifest: Object) -> tuple[str, str]:
    """Apply a pod, wait until it has ended, and give its phase and its log."""
    api.apply(manifest, "test").must()

    def ended() -> str:
        phase = api.get(manifest).body.get("status", {}).get("phase")
        return phase if phase in ("Succeeded", "Failed") else ""

    metadata = manifest["metadata"]
    what = f"the end of the pod {metadata['name']}"
    phase = eventually(ended, _SOON, what)
    return phase, node.kubectl("logs", "-n", metadata["namespace"], metadata["name"])


def is_ready(live: Object) -> bool:
    """Return whether a pod's condition Ready is True."""
    conditions = live.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def must_restart(api: Api, pod: Object) -> None:
    """Wait until a pod is ready with another process in it than when it was read."""
    before = pod["status"]["containerStatuses"][0]["restartCount"]

    def again() -> bool:
        live = api.get({"apiVersion": "v1", "kind": "Pod", **pod}).body
        return live["status"]["containerStatuses"][0]["restartCount"] > before and is_ready(live)

    eventually(again, _RESTARTS, "the pod ready again")
