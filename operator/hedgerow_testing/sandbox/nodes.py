"""Nodes: simulated nodes, on which Pods become Ready without running anything."""

from pathlib import Path
from typing import Any

from hedgerow_testing.sandbox.api import SandboxApi
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.pauses import until

_NODES = "/api/v1/nodes"


async def register(api: SandboxApi, count: int, *, seconds: float, log: Path) -> None:
    """Apply the Nodes and wait until each is Ready. Raises SandboxError after a timeout."""
    names = [f"node-{number}" for number in range(count)]
    for name in names:
        await api.apply(f"{_NODES}/{name}", manifest(name))

    async def ready() -> bool:
        listed = await api.read_object(_NODES) or {}
        return sum(map(is_ready, listed.get("items", []))) >= count

    if not await until(ready, seconds=seconds):
        raise SandboxError(f"the nodes are not Ready after {seconds:.0f} s", f"see {log}")


def manifest(name: str) -> dict[str, Any]:
    """Return a Node as a kubelet would register it."""
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "type": "kwok",
    }
    annotations = {"kwok.x-k8s.io/node": "fake"}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}


def is_ready(node: dict[str, Any]) -> bool:
    """Return whether a Node's condition Ready is True."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
