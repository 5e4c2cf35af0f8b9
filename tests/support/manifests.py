"""Manifests: one object of each kind hedgerow may declare, and the fields others write to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
Path = tuple[Any, ...]
"""Map keys as strings; a dict stands for the list item that has these values."""


@dataclass(frozen=True)
class Field:
    """A declared field and another valid value for it."""

    path: Path
    other: Any


@dataclass(frozen=True)
class Case:
    """A manifest without its identity's names, and the fields under test."""

    name: str
    manifest: Object
    fields: tuple[Field, ...] = ()

    def named(self, name: str, namespace: str) -> Object:
        """Give the manifest as one particular object."""
        metadata = {**self.manifest.get("metadata", {}), "name": name, "namespace": namespace}
        if self.manifest["kind"] == "ValidatingWebhookConfiguration":
            del metadata["namespace"]
        return {**self.manifest, "metadata": metadata}

    def __str__(self) -> str:
        return self.name


LABELS = {"app": "a", "tier": "front"}
POD_LABELS = {"app": "a"}
LABEL = Field(("metadata", "labels", "tier"), "back")


def container(name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "registry.example/app:1", **more}


def pod(*containers: Object, **more: Any) -> Object:
    return {"metadata": {"labels": POD_LABELS}, "spec": {"containers": list(containers), **more}}


def workload(kind: str, template: Object, **spec: Any) -> Object:
    selector = {"matchLabels": POD_LABELS}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"labels": LABELS},
        "spec": {"selector": selector, "template": template, **spec},
    }


MAIN = ("spec", "template", "spec", "containers", {"name": "main"})
RICH = container(
    command=["app", "--serve"],
    env=[
        {"name": "MODE", "value": "fast"},
        {"name": "EMPTY", "value": ""},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    ports=[
        {"name": "http", "containerPort": 80, "protocol": "TCP"},
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
    ],
    resources={"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5"}},
    volumeMounts=[{"name": "work", "mountPath": "/work"}],
    readinessProbe={"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
    securityContext={"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
)

DEPLOYMENT = Case(
    "deployment",
    workload("Deployment", pod(container())),
    (
        LABEL,
        Field((*MAIN, "image"), "registry.example/app:2"),
        Field(("spec", "template", "metadata", "labels", "app"), "a"),
    ),
)
RICH_DEPLOYMENT = Case(
    "rich deployment",
    workload(
        "Deployment",
        pod(
            RICH,
            container("side", ports=[{"containerPort": 81, "protocol": "TCP"}]),
            volumes=[
                {"name": "work", "emptyDir": {"sizeLimit": "1024Mi"}},
                {"name": "more", "emptyDir": {}},
            ],
            nodeSelector={"disk": "fast"},
            tolerations=[{"key": "dedicated", "operator": "Exists"}],
            hostNetwork=False,
        ),
        replicas=2,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        paused=False,
    ),
    (
        Field(("spec", "replicas"), 5),
        Field(("spec", "strategy", "rollingUpdate", "maxSurge"), "30%"),
        Field((*MAIN, "env", {"name": "MODE"}, "value"), "slow"),
        Field(
            (*MAIN, "env", {"name": "POD"}, "valueFrom", "fieldRef"), {"fieldPath": "spec.nodeName"}
        ),
        Field((*MAIN, "command"), ["other"]),
        Field((*MAIN, "ports", {"containerPort": 80, "protocol": "TCP"}, "name"), "web"),
        Field((*MAIN, "resources", "limits", "cpu"), "2"),
        Field((*MAIN, "readinessProbe", "periodSeconds"), 7),
        Field(("spec", "template", "spec", "nodeSelector"), {"disk": "slow"}),
        Field(
            ("spec", "template", "spec", "tolerations"), [{"key": "other", "operator": "Exists"}]
        ),
    ),
)
SERVICE = Case(
    "service",
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"labels": LABELS},
        "spec": {
            "selector": {"app": "a"},
            "ports": [
                {"name": "http", "port": 80, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"},
            ],
        },
    },
    (
        LABEL,
        Field(("spec", "selector"), {"app": "b"}),
        Field(("spec", "ports", {"port": 80, "protocol": "TCP"}, "name"), "web"),
        Field(("spec", "ports", {"port": 53, "protocol": "UDP"}, "targetPort"), 5353),
    ),
)
CONFIG_MAP = Case(
    "configmap",
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "labels": LABELS,
            "annotations": {"hedgerow.dev/note": 'odd "text"\u200b'},
            "finalizers": ["hedgerow.dev/one", "hedgerow.dev/two"],
        },
        "data": {"a": "1", "b": "", "weird.key": "x"},
    },
    (
        Field(("data", "a"), "2"),
        Field(("data", "b"), "full"),
        Field(("metadata", "annotations", "hedgerow.dev/note"), "plain"),
    ),
)
SECRET = Case(
    "secret",
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"labels": LABELS},
        "type": "Opaque",
        "data": {"password": "c2VjcmV0"},
    },
    (LABEL, Field(("data", "password"), "b3RoZXI=")),
)
LEASE = Case(
    "lease",
    {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"labels": LABELS},
        "spec": {"holderIdentity": "one", "renewTime": "2026-01-01T00:00:00.000000Z"},
    },
    (
        Field(("spec", "holderIdentity"), "two"),
        Field(("spec", "renewTime"), "2026-01-01T00:00:09.000000Z"),
    ),
)
NETWORK_POLICY = Case(
    "networkpolicy",
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"labels": LABELS},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 80}]}],
        },
    },
    (
        Field(("spec", "podSelector"), {"matchLabels": {"app": "b"}}),
        Field(("spec", "ingress"), [{"ports": [{"port": 81}]}]),
    ),
)
INGRESS = Case(
    "ingress",
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"labels": LABELS},
        "spec": {
            "rules": [
                {
                    "host": "a.example",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "a", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ]
        },
    },
    (LABEL,),
)
BUDGET = Case(
    "poddisruptionbudget",
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"labels": LABELS},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    },
    (
        Field(("spec", "minAvailable"), "50%"),
        Field(("spec", "selector", "matchLabels"), {"app": "b"}),
    ),
)
AUTOSCALER = Case(
    "horizontalpodautoscaler",
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"labels": LABELS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "minReplicas": 2,
            "maxReplicas": 5,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 60},
                    },
                }
            ],
        },
    },
    (Field(("spec", "maxReplicas"), 6), Field(("spec", "minReplicas"), 1)),
)
JOB_TEMPLATE = {
    "spec": {
        "backoffLimit": 2,
        "template": {"spec": {"containers": [container()], "restartPolicy": "OnFailure"}},
    }
}
CRON_JOB = Case(
    "cronjob",
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"labels": LABELS},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": JOB_TEMPLATE, "suspend": False},
    },
    (
        Field(("spec", "schedule"), "0 * * * *"),
        Field(("spec", "suspend"), True),
        Field(("spec", "jobTemplate", "spec", "backoffLimit"), 3),
    ),
)
JOB = Case(
    "job",
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"labels": LABELS},
        "spec": {**JOB_TEMPLATE["spec"], "parallelism": 2},
    },
    (LABEL, Field(("spec", "parallelism"), 3)),
)
STATEFUL_SET = Case(
    "statefulset",
    workload(
        "StatefulSet",
        pod(container()),
        serviceName="a",
        volumeClaimTemplates=[
            {
                "metadata": {"name": "store"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1024Mi"}},
                },
            }
        ],
    ),
    (Field((*MAIN, "image"), "registry.example/app:2"),),
)
CLAIM = Case(
    "persistentvolumeclaim",
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"labels": LABELS},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1024Mi"}},
        },
    },
    (LABEL,),
)
ROLE = Case(
    "role",
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"labels": LABELS},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    (Field(("rules",), [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]),),
)
ACCOUNT = Case(
    "serviceaccount",
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"labels": LABELS},
        "imagePullSecrets": [{"name": "pull"}],
        "automountServiceAccountToken": False,
    },
    (Field(("automountServiceAccountToken",), True),),
)
WEBHOOK = Case(
    "validatingwebhookconfiguration",
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"labels": LABELS},
        "webhooks": [
            {
                "name": "one.hedgerow.example",
                "clientConfig": {"url": "https://127.0.0.1:9/none"},
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "admissionReviewVersions": ["v1"],
                "rules": [
                    {
                        "apiGroups": ["none.hedgerow.example"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["nones"],
                    }
                ],
            }
        ],
    },
    (Field(("webhooks", {"name": "one.hedgerow.example"}, "failurePolicy"), "Fail"),),
)
CUSTOM = Case(
    "custom resource",
    {
        "apiVersion": "test.hedgerow.example/v1",
        "kind": "Hedge",
        "metadata": {"labels": LABELS},
        "spec": {
            "height": 2,
            "limit": "1000m",
            "plants": [{"name": "yew", "count": 3}, {"name": "box", "count": 1}],
            "colours": ["green", "red"],
            "trail": ["a", "b"],
            "soil": {"kind": "loam"},
            "notes": {"one": "1"},
        },
    },
    (
        Field(("spec", "height"), 3),
        Field(("spec", "limit"), "1"),
        Field(("spec", "plants", {"name": "yew"}, "count"), 9),
        Field(("spec", "trail"), ["b"]),
        Field(("spec", "soil"), {"kind": "clay"}),
        Field(("spec", "notes", "one"), "2"),
    ),
)


def _text(**more: Any) -> Object:
    return {"type": "string", **more}


HEDGE = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "hedges.test.hedgerow.example"},
    "spec": {
        "group": "test.hedgerow.example",
        "names": {"kind": "Hedge", "plural": "hedges"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "height": {"type": "integer"},
                                    "limit": _text(),
                                    "plants": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": _text(),
                                                "count": {"type": "integer"},
                                                "kept": {"type": "boolean", "default": True},
                                            },
                                        },
                                    },
                                    "colours": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": _text(),
                                    },
                                    "trail": {"type": "array", "items": _text()},
                                    "soil": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "properties": {
                                            "kind": _text(),
                                            "depth": {"type": "integer", "default": 1},
                                        },
                                    },
                                    "notes": {
                                        "type": "object",
                                        "additionalProperties": _text(),
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": _text(),
                                    "conditions": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type"],
                                            "properties": {"type": _text(), "status": _text()},
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}

CASES = (
    DEPLOYMENT, RICH_DEPLOYMENT, SERVICE, CONFIG_MAP, SECRET, LEASE, NETWORK_POLICY, INGRESS,
    BUDGET, AUTOSCALER, CRON_JOB, JOB, STATEFUL_SET, CLAIM, ROLE, ACCOUNT, WEBHOOK, CUSTOM,
)  # fmt: skip
