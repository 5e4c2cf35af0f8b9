"""Generated: objects as `kubectl create --dry-run=client` and other programs in Go print them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

POD: Object = {
    "containers": [{"name": "c", "image": "busybox", "command": ["date"], "resources": {}}],
    "restartPolicy": "OnFailure",
}
JOB_TEMPLATE: Object = {
    "metadata": {"creationTimestamp": None, "name": "generated"},
    "spec": {"template": {"metadata": {"creationTimestamp": None}, "spec": POD}},
}
CLAIM_TEMPLATE: Object = {
    "metadata": {"creationTimestamp": None},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
WITH_A_CLAIM: Object = {
    "containers": [{"name": "c", "image": "busybox", "resources": {}}],
    "volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": CLAIM_TEMPLATE}}],
}
"""A pod specification with the one template that has metadata of its own."""
CHECK: Object = {"name": "smoke", "job": JOB_TEMPLATE}


def cronjob(namespace: str, name: str = "generated", **spec: Any) -> Object:
    """Return the output of `kubectl create cronjob`, in hedgerow's API group."""
    return {
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": {"creationTimestamp": None, "name": name, "namespace": namespace},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": JOB_TEMPLATE, **spec},
        "status": {},
    }


def bluegreen(namespace: str, name: str = "generated", **spec: Any) -> Object:
    """Return a BlueGreen whose every template is generated."""
    return {
        "apiVersion": "app.demo.kakao.com/v1",
        "kind": "BlueGreen",
        "metadata": {"creationTimestamp": None, "name": name, "namespace": namespace},
        "spec": {
            "routeTo": "Blue",
            "blueSpec": WITH_A_CLAIM,
            "greenSpec": WITH_A_CLAIM,
            "promotion": "WhenChecked",
            "checks": [CHECK],
            **spec,
        },
    }
