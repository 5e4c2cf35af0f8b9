"""Workload: the operator's pods, at least as confined as PodSecurity's `restricted` level."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hedgerow.deploy.names import (
    COMPONENT_LABEL,
    HEALTH,
    METRICS,
    WEBHOOK,
    Names,
)
from hedgerow.objects import variable_prefix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow.shard import Shard
    from hedgerow_schemas.base import Object

USER = 65532
"""The image's own user."""
REPLICAS = 2
GRACE = 40
"""Seconds: the pause before SIGTERM, the 20 of running passes, 2 for the Lease, 3 for running
requests, and a reserve."""
PAUSE = 5
"""Seconds for which a pod still serves, until it is removed from the Services' endpoints."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program that the pods run: an image, and the settings that differ between overlays."""

    names: Names
    image: str
    namespaces: tuple[str, ...] = ()
    webhooks: bool = True
    controllers: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"])
    shard: Shard | None = None

    @property
    def suffix(self) -> str:
        """The end of its Deployment's name, and the component label of its pods."""
        return self.shard.suffix if self.shard else ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its Deployment, which are also the selector of its pods."""
        own = {COMPONENT_LABEL: self.suffix} if self.shard else {}
        return self.names.labels | own

    @property
    def arguments(self) -> list[str]:
        """The settings as arguments."""
        given = ["run", "--leader-elect", "--metrics-secure"]
        given += [f"--shard={self.shard}"] if self.shard else []
        given += [f"--controllers={name}" for name in self.controllers]
        given += [f"--namespace={name}" for name in self.namespaces]
        given += [f"--instance={self.names.instance}"] if self.names.instance else []
        given += [
            f"--{controller}-{name}" + ("" if value == "true" else f"={value}")
            for controller, known in self.options.items()
            for name, value in known.items()
        ]
        return given


def namespace(names: Names) -> Object:
    """Return the operator's namespace; its pods must meet PodSecurity's `restricted` level."""
    labels = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
    }
    return names.cluster_wide("v1", "Namespace", names.namespace, labels)


def service_account(names: Names) -> Object:
    """Return the ServiceAccount; only the operator's own pods mount its token."""
    return names.object("v1", "ServiceAccount") | {"automountServiceAccountToken": False}


def disruption_budget(names: Names) -> Object:
    """Return the budget: evict one replica at a time; an unhealthy one does not block evictions."""
    spec = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": names.labels},
    }
    return names.object("policy/v1", "PodDisruptionBudget") | {"spec": spec}


def deployment(program: Program) -> Object:
    """Return the Deployment: a leader and a standby, and a third one during a rollout.

    Each shard has one.
    """
    names, labels = program.names, program.labels
    spec: Object = {
        "replicas": REPLICAS,
        "selector": {"matchLabels": labels},
        # A new replica is ready before an old one is deleted: two always serve webhooks.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
        "template": {"metadata": {"labels": labels}, "spec": _pod(program)},
    }
    made = names.object("apps/v1", "Deployment", program.suffix)
    return made | {"metadata": made["metadata"] | {"labels": labels}, "spec": spec}


def _pod(program: Program) -> Object:
    return {
        "serviceAccountName": program.names.account,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [_spread(program.labels, key) for key in _TOPOLOGY],
        "containers": [_container(program)],
        # In memory, for libraries that need temporary files.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
    }


_TOPOLOGY = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")


def _spread(labels: dict[str, str], key: str) -> Object:
    return {
        "topologyKey": key,
        "maxSkew": 1,
        # A single node must be enough. New pods of a rollout are counted separately.
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
        "matchLabelKeys": ["pod-template-hash"],
    }


def _environment(program: Program) -> list[Object]:
    """Return the settings that users may change in an overlay: arguments would override these."""
    prefix = variable_prefix(program.names.program)
    return [
        _of_pod(f"{prefix}SYSTEM_NAMESPACE", "metadata.namespace"),
        *([{"name": "ENABLE_WEBHOOKS", "value": "true"}] if program.webhooks else []),
    ]


def _of_pod(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _container(program: Program) -> Object:
    ports = {"metrics": METRICS, "health": HEALTH}
    ports |= {"webhook": WEBHOOK} if program.webhooks else {}
    return {
        "name": program.names.program,
        "image": program.image,
        "imagePullPolicy": "IfNotPresent",
        "args": program.arguments,
        "env": _environment(program),
        "ports": [
            {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()
        ],
        "startupProbe": _probe("/healthz", every=1, failures=60),
        "livenessProbe": _probe("/healthz", every=10, failures=6),
        "readinessProbe": _probe("/readyz", every=5, failures=2),
        "lifecycle": {"preStop": {"sleep": {"seconds": PAUSE}}},
        # No CPU limit: a throttled leader would lose its Lease.
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a pod's own
    }


def _probe(path: str, *, every: int, failures: int) -> Object:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": every,
        "failureThreshold": failures,
        "timeoutSeconds": 3,
    }
