"""Definitions: custom resources as tests write them, and the words of a structural schema."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
KEPT: Schema = {"x-kubernetes-preserve-unknown-fields": True}


def text(**more: Any) -> Schema:
    return {"type": "string", **more}


def number(kind: str = "integer", **more: Any) -> Schema:
    return {"type": kind, **more}


def of(*required: str, **properties: Schema) -> Schema:
    """Return the schema of an object with these fields."""
    asked = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **asked}


def free(schema: Schema | None = None, **more: Any) -> Schema:
    """Return the schema of a map of any keys, with texts if nothing else is said."""
    return {"type": "object", "additionalProperties": schema or text(), **more}


def items(schema: Schema, *keys: str, kind: str = "", **more: Any) -> Schema:
    """Return the schema of a list; with keys, or of another kind, one that is merged."""
    merged = {"x-kubernetes-list-type": kind or "map"} if keys or kind else {}
    keyed = {"x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": schema, **merged, **keyed, **more}


def definition(group: str, kind: str, schema: Schema, *versions: str) -> dict[str, Any]:
    """Return a definition whose versions all have this schema; the first is stored.

    Where the schema has a status, it is a subresource.
    """
    status = {"subresources": {"status": {}}} if "status" in schema.get("properties", ()) else {}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    kept = {"served": True, "schema": {"openAPIV3Schema": schema}, **status}
    known = versions or ("v1",)
    described = [{"name": name, "storage": name == known[0], **kept} for name in known]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": described},
    }
