"""Caches: Memcacheds and what may be observed of their children."""

from __future__ import annotations

from typing import Any

from controllers import told
from hedgerow.contract import Desired
from hedgerow_schemas.builtin import Deployment, Pod, Service
from hedgerow_schemas.memcached import Memcached

Object = dict[str, Any]

OWN = {"app": "memcached", "memcached_cr": "cache"}
OTHER = {"app": "cache"}
HASH = "5f"


def memcached(size: int = 3, **spec: Any) -> Memcached:
    meta = {"name": "cache", "namespace": "ns", "uid": "u"}
    return Memcached.model_validate({"metadata": meta, "spec": {"size": size, **spec}})


def deployment(
    size: int = 3, *, up: int | None = None, seen: int = 1, labels: Object | None = None
) -> Deployment:
    """A Deployment of `size` pods of which `up` are ready; its controller has seen `seen`."""
    ready = size if up is None else up
    return Deployment(
        {
            "metadata": {"name": "cache", "namespace": "ns", "generation": 1},
            "spec": {"replicas": size, "selector": {"matchLabels": labels or OWN}},
            "status": {
                "observedGeneration": seen,
                "replicas": size,
                "updatedReplicas": size,
                "readyReplicas": ready,
                "availableReplicas": ready,
                "conditions": [
                    {"type": "Available", "status": "True" if ready == size else "False"}
                ],
            },
        }
    )


def service(address: str = "None") -> Service:
    meta = {"name": "cache", "namespace": "ns"}
    return Service({"metadata": meta, "spec": {"clusterIP": address, "selector": OWN}})


def pod(
    name: str,
    labels: Object | None = None,
    owner: str = f"cache-{HASH}",
    *,
    going: bool = False,
    created: str = "2026-01-01T11:00:00Z",
    **status: Any,
) -> Pod:
    """A pod of the cache's Deployment, which began an hour ago."""
    meta: Object = {
        "name": name,
        "namespace": "ns",
        "creationTimestamp": created,
        "labels": {**(OWN if labels is None else labels), "pod-template-hash": HASH},
        "ownerReferences": [{"kind": "ReplicaSet", "name": owner, "controller": True}],
    }
    if going:
        meta["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    return Pod({"metadata": meta, "status": status})


def applied(desired: Desired) -> dict[str, Object]:
    """Return what is declared, by kind; each child is named as the Memcached."""
    assert {child.name for child in desired.children} == {"cache"}
    return {kind: fields["spec"] for (kind, _), fields in told.applied(desired).items()}
