"""Pods: parts of pod specifications that any controller may declare, every list key spelled out.

Together they pass the Pod Security Standard "restricted".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import Object

CONFINED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""The security context of a container that gains nothing and writes nowhere."""


def unprivileged(user: int) -> Object:
    """Give the security context of pods that run as a user, and a group, of that number."""
    return {
        "runAsGroup": user,
        "runAsNonRoot": True,
        "runAsUser": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def answers(port: int, *, every: int, failures: int) -> Object:
    """Give a probe that asks for a TCP connection `every` so many seconds."""
    return {"tcpSocket": {"port": port}, "periodSeconds": every, "failureThreshold": failures}


def spread_over_nodes(selector: Object) -> list[Object]:
    """Give the constraints that spread what is selected over nodes, as far as there are any.

    Pods of an older template do not count: they are on their way out.
    """
    return [
        {
            "labelSelector": selector,
            "matchLabelKeys": ["pod-template-hash"],
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
        }
    ]
