"""Cases: a manifest of one kind, and the fields of it that others write to."""

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
        """Return the manifest as one particular object."""
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
