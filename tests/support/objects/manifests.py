"""Manifests: one object of each kind that hedgerow may declare, and what others may write to it."""

from __future__ import annotations

from support.objects.cases import LABEL, LABELS, Case, Field
from support.objects.hedge import CUSTOM
from support.objects.workloads import (
    AUTOSCALER,
    CRON_JOB,
    DEPLOYMENT,
    JOB,
    RICH_DEPLOYMENT,
    STATEFUL_SET,
)  # fmt: skip

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
CASES = (
    DEPLOYMENT, RICH_DEPLOYMENT, SERVICE, CONFIG_MAP, SECRET, LEASE, NETWORK_POLICY, INGRESS,
    BUDGET, AUTOSCALER, CRON_JOB, JOB, STATEFUL_SET, CLAIM, ROLE, ACCOUNT, WEBHOOK, CUSTOM,
)  # fmt: skip
