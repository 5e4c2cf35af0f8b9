"""Editor: a custom resource's model as JSON Schema, for completion and checks while typing.

Draft 7 is what the YAML language servers of editors read. Unlike the server's schema it refuses
unknown fields itself, and Kubernetes's own types stand in `definitions`, each once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hedgerow_schemas.definition import EDITOR
from hedgerow_schemas.kubernetes_types import Schema, Upstream
from hedgerow_schemas.openapi import structural_schema, upstream_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hedgerow_schemas.base import CustomResource

DRAFT = "http://json-schema.org/draft-07/schema#"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def needed_types(resources: Iterable[type[CustomResource]]) -> frozenset[str]:
    """Return the names of Kubernetes's types that the resources' schemas are made with."""
    used = {name for resource in resources for name in upstream_types(resource)}
    return frozenset(used | {OBJECT_META})


def editor_schema(resource: type[CustomResource], document: Mapping[str, Any]) -> Schema:
    """Return the JSON Schema of a resource's manifests.

    `document` is the OpenAPI document that Kubernetes's own types are taken from.
    """
    api = resource.api
    body = _plain(structural_schema(resource, _refer))
    body["properties"] |= {
        "apiVersion": {"const": api.group_version},
        "kind": {"const": api.kind},
        "metadata": _refer(OBJECT_META),
    }
    body["required"] = ["apiVersion", "kind", *body["required"]]
    names = upstream_types(resource) | {OBJECT_META}
    upstream = Upstream(document, describe=True)
    definitions = upstream.definitions(names, lambda name, _keys: _refer(name))
    return {
        "$schema": DRAFT,
        "title": f"{api.kind} ({api.group_version})",
        **body,
        "definitions": {name: _plain(schema) for name, schema in definitions.items()},
    }


def _refer(name: str) -> Schema:
    """Refer to a definition in a way that leaves room for a description beside it."""
    return {"allOf": [{"$ref": f"#/definitions/{name}"}]}


def _plain(node: Any) -> Any:
    """Return a structural schema in the words of JSON Schema alone."""
    if isinstance(node, list):
        return [_plain(value) for value in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("Schema", node)
    plain: Schema = {k: _plain(v) for k, v in schema.items() if not k.startswith("x-")}
    if schema.get("x-kubernetes-int-or-string") is True:
        plain["type"] = ["integer", "string"]
    if plain.pop("nullable", False) is True:
        plain["type"] = [plain["type"], "null"]
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if schema.get("type") == "object" and "properties" in schema and not is_open:
        plain["additionalProperties"] = False
    return plain | schema.get(EDITOR, {})
