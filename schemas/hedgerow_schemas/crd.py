"""CRD: a custom resource's model as a CustomResourceDefinition, ready to be applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow_schemas.base import ApiResource, CustomResource, Object
from hedgerow_schemas.kubernetes_types import Schema, Upstream
from hedgerow_schemas.openapi import structural_schema, without_editor

if TYPE_CHECKING:
    from collections.abc import Mapping

CRD = ApiResource(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
PART_OF = "app.kubernetes.io/part-of"


def crd_name(resource: type[CustomResource]) -> str:
    """Return the name that the API server requires for a CRD: `<plural>.<group>`."""
    return f"{resource.api.plural}.{resource.api.group}"


def render(
    resource: type[CustomResource],
    document: Mapping[str, Any],
    *,
    describe: bool,
    program: str = "hedgerow",
) -> Object:
    """Return the CustomResourceDefinition of a resource, as a part of a program.

    `document` is the OpenAPI document with Kubernetes's own types. `describe` includes their
    descriptions. Raises SchemaError if the document lacks a type, or if the model cannot be
    expressed as a structural schema.
    """
    api = resource.api
    return {
        "apiVersion": CRD.group_version,
        "kind": CRD.kind,
        "metadata": {"name": crd_name(resource), "labels": {PART_OF: program}},
        "spec": {
            "group": api.group,
            "names": _names(resource, program),
            "scope": "Namespaced" if api.namespaced else "Cluster",
            "versions": [_version(resource, Upstream(document, describe=describe))],
        },
    }


def _names(resource: type[CustomResource], program: str) -> Object:
    api, definition = resource.api, resource.definition
    names: Object = {
        "kind": api.kind,
        "listKind": f"{api.kind}List",
        "plural": api.plural,
        "singular": api.kind.lower(),
        "categories": [program] if definition.categories is None else list(definition.categories),
    }
    return names | ({"shortNames": list(definition.short_names)} if definition.short_names else {})


def _version(resource: type[CustomResource], upstream: Upstream) -> Object:
    version: Object = {
        "name": resource.api.version,
        "served": True,
        "storage": True,
        "subresources": _subresources(resource),
        "schema": {"openAPIV3Schema": _root(resource, upstream)},
    }
    columns = [column.wire() for column in resource.definition.shown]
    return version | {"additionalPrinterColumns": columns}


def _subresources(resource: type[CustomResource]) -> Object:
    scale = resource.definition.scale
    status: Object = {"status": {}}
    return status | ({"scale": scale.wire()} if scale else {})


def _root(resource: type[CustomResource], upstream: Upstream) -> Schema:
    schema = without_editor(structural_schema(resource, upstream.inline))
    identity = {
        "apiVersion": {"type": "string", "description": "The API version of the object."},
        "kind": {"type": "string", "description": f"Always {resource.api.kind}."},
        # The server defines metadata itself, and does not accept more than this about it.
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    schema["properties"] = identity | {
        name: field for name, field in schema["properties"].items() if name != "metadata"
    }
    schema["required"] = [name for name in schema["required"] if name != "metadata"]
    return schema
