"""Blues: BlueGreens and what may be observed of their children."""

from __future__ import annotations

from typing import Any

from controllers.told import applied
from hedgerow.contract import Desired
from hedgerow_schemas.bluegreen import BlueGreen
from hedgerow_schemas.builtin import Deployment, Pod, Service

Object = dict[str, Any]

PODS: Object = {"containers": [{"name": "c", "image": "example/echo:1"}]}
BOTH = {"blueSpec": PODS, "greenSpec": PODS}


def selector(phase: str, name: str = "demo") -> Object:
    return {
        "app.kubernetes.io/managed-by": "app.demo.kakao.com",
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/phase": phase,
    }


def bluegreen(status: Object | None = None, **spec: Any) -> BlueGreen:
    full = {"routeTo": "Blue", **BOTH, **spec}
    return BlueGreen.model_validate(
        {
            "metadata": {"name": "demo", "namespace": "ns", "uid": "u"},
            "spec": {key: value for key, value in full.items() if value is not None},
            "status": status or {},
        }
    )


def service(phase: str = "Blue", **labels: str) -> Service:
    return Service({"metadata": {"name": "demo"}, "spec": {"selector": selector(phase) | labels}})


def deployment(colour: str, *, generation: int = 1, seen: int = 1, up: int = 1) -> Deployment:
    """A Deployment of one wanted pod: `up` tells how many are available."""
    return Deployment(
        {
            "metadata": {"name": f"demo{colour}-deployment", "generation": generation},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": seen,
                "replicas": 1,
                "updatedReplicas": 1,
                "availableReplicas": up,
                "conditions": [{"type": "Available", "status": "True" if up else "False"}],
            },
        }
    )


def pod(colour: str, name: str, reason: str = "") -> Pod:
    """A pod of a Deployment, waiting for `reason`."""
    waiting = {"state": {"waiting": {"reason": reason}}} if reason else {"ready": True}
    return Pod(
        {
            "metadata": {
                "name": name,
                "labels": {"pod-template-hash": "5f"},
                "ownerReferences": [
                    {
                        "kind": "ReplicaSet",
                        "name": f"demo{colour}-deployment-5f",
                        "controller": True,
                    }
                ],
            },
            "status": {"containerStatuses": [waiting]},
        }
    )


def declared_phase(desired: Desired) -> str:
    return applied(desired)["Service", "demo"]["spec"]["selector"]["app.kubernetes.io/phase"]
