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


def case(version: str, kind: str, *fields: Field, **body: Any) -> Case:
    """Return the case of a kind, named after it: labelled, with what else is in the body."""
    meta = {"labels": LABELS, **body.pop("metadata", {})}
    manifest = {"apiVersion": version, "kind": kind, "metadata": meta, **body}
    return Case(kind.lower(), manifest, fields)


def container(name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": "registry.example/app:1", **more}


def pod(*containers: Object, **more: Any) -> Object:
    return {"metadata": {"labels": POD_LABELS}, "spec": {"containers": list(containers), **more}}


def workload(kind: str, template: Object, *fields: Field, **spec: Any) -> Case:
    selector = {"matchLabels": POD_LABELS}
    return case("apps/v1", kind, *fields, spec={"selector": selector, "template": template, **spec})


MAIN = ("spec", "template", "spec", "containers", {"name": "main"})
