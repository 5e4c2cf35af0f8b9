"""Widgets: the definition, the sample and the rights of the operator in programs/widgets.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from support.objects.definitions import KEPT, definition, number, of, text

Object = dict[str, Any]
PROGRAM = Path(__file__).parents[1] / "programs" / "widgets.py"
SPEC = of(
    *("message", "interval", "size"),
    message=text(),
    interval=text(),
    size=number(minimum=1, maximum=9),
    mode=text(enum=["Fast", "Slow"]),
    paused=number("boolean"),
)
STATUS = {"type": "object", **KEPT}
DEFINITION = definition("example.org", "Widget", of("spec", spec=SPEC, status=STATUS))
SAMPLE: Object = {
    "apiVersion": "example.org/v1",
    "kind": "Widget",
    "metadata": {"name": "demo", "labels": {"team": "garden"}},
    "spec": {"message": "hello", "interval": "60s", "size": 2, "mode": "Fast"},
}
CHILD = ["get", "list", "watch", "create", "patch", "delete"]
RULES = (
    ("example.org", "widgets", ["get", "list", "watch", "patch"]),
    ("example.org", "widgets/status", ["patch"]),
    ("", "configmaps", CHILD),
    ("apps", "deployments", CHILD),
)


def role() -> Object:
    """Return the ClusterRole of the operator."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "widgets"},
        "rules": [
            {"apiGroups": [group], "resources": [resource], "verbs": verbs}
            for group, resource, verbs in RULES
        ],
    }


def put(directory: Path) -> Path:
    """Write the files that an audit takes: crds.yaml, samples.yaml and rights.yaml."""
    found = {"crds": DEFINITION, "samples": SAMPLE, "rights": role()}
    for name, content in found.items():
        (directory / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return directory
