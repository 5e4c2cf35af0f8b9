"""Manifests: objects that hedgerow may declare, and what others may write to them."""

from __future__ import annotations

from support.objects.cases import LABEL, Field, case
from support.objects.hedge import CUSTOM
from support.objects.workloads import AUTOSCALER, JOB, RICH_DEPLOYMENT

POLICY = {
    "podSelector": {},
    "policyTypes": ["Ingress"],
    "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 80}]}],
}
NOBODYS = {
    "apiGroups": ["none.hedgerow.example"],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["nones"],
}
HOOK = {
    "name": "one.hedgerow.example",
    "clientConfig": {"url": "https://127.0.0.1:9/none"},
    "sideEffects": "None",
    "failurePolicy": "Ignore",
    "admissionReviewVersions": ["v1"],
    "rules": [NOBODYS],
}

SERVICE = case(
    *("v1", "Service", LABEL),
    Field(("spec", "selector"), {"app": "b"}),
    Field(("spec", "ports", {"port": 80, "protocol": "TCP"}, "name"), "web"),
    Field(("spec", "ports", {"port": 53, "protocol": "UDP"}, "targetPort"), 5353),
    spec={
        "selector": {"app": "a"},
        "ports": [
            {"name": "http", "port": 80, "protocol": "TCP"},
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"},
        ],
    },
)
CONFIG_MAP = case(
    *("v1", "ConfigMap"),
    Field(("data", "a"), "2"),
    Field(("data", "b"), "full"),
    Field(("metadata", "annotations", "hedgerow.dev/note"), "plain"),
    metadata={
        "annotations": {"hedgerow.dev/note": 'odd "text"\u200b'},
        "finalizers": ["hedgerow.dev/one", "hedgerow.dev/two"],
    },
    data={"a": "1", "b": "", "weird.key": "x"},
)
LEASE = case(
    *("coordination.k8s.io/v1", "Lease"),
    Field(("spec", "holderIdentity"), "two"),
    Field(("spec", "renewTime"), "2026-01-01T00:00:09.000000Z"),
    spec={"holderIdentity": "one", "renewTime": "2026-01-01T00:00:00.000000Z"},
)
NETWORK_POLICY = case(
    *("networking.k8s.io/v1", "NetworkPolicy"),
    Field(("spec", "podSelector"), {"matchLabels": {"app": "b"}}),
    Field(("spec", "ingress"), [{"ports": [{"port": 81}]}]),
    spec=POLICY,
)
CLAIM = case(
    *("v1", "PersistentVolumeClaim", LABEL),
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
)
WEBHOOK = case(
    *("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    Field(("webhooks", {"name": HOOK["name"]}, "failurePolicy"), "Fail"),
    webhooks=[HOOK],
)
CASES = (
    RICH_DEPLOYMENT, SERVICE, CONFIG_MAP, LEASE, NETWORK_POLICY, AUTOSCALER, JOB, CLAIM, WEBHOOK,
    CUSTOM,
)  # fmt: skip
"""One of each way in which a server merges, fills in, respells or refuses."""
