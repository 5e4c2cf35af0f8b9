"""Resources: a page for every custom resource, with every field, from the models."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from hedgerow.registry import ours
from hedgerow_schemas.crd import crd_name
from hedgerow_schemas.openapi import structural_schema, without_editor
from website.markdown import code, definitions, prose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import CustomResource

DIRECTORY = "reference/resources"
_UPSTREAM = "kubernetes"
_BOUNDS = {
    "minimum": ("at least", ""),
    "maximum": ("at most", ""),
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
}


def place(resource: type[CustomResource]) -> str:
    """Return the page of a custom resource."""
    return f"{DIRECTORY}/{resource.api.kind.lower()}.md"


@cache
def pages() -> dict[str, str]:
    """Return the pages by their places."""
    resources = ours().resources
    listed = definitions(
        (f"[{one.api.kind}]({place(one).rpartition('/')[2]})", f"{code(one.api.group_version)}")
        for one in resources
    )
    overview = (
        "# Custom resources\n\nEvery field of the custom resources that hedgerow defines, from the"
        f" models that the definitions are made of.\n\n{listed}"
    )
    made = {place(resource): _page(resource) for resource in resources}
    return made | {f"{DIRECTORY}/index.md": overview}


def _page(resource: type[CustomResource]) -> str:
    api, definition = resource.api, resource.definition
    schema = without_editor(structural_schema(resource, lambda name: {_UPSTREAM: name}))
    facts = [
        ("API version", code(api.group_version)),
        ("Definition", code(crd_name(resource))),
        ("Scope", "Namespaced" if api.namespaced else "Cluster"),
    ]
    if definition.short_names:
        facts.append(("Short names", ", ".join(map(code, definition.short_names))))
    parts = [f"# {api.kind}", prose(schema.get("description", "")), definitions(facts)]
    for part in ("spec", "status"):
        parts.append(f"## {part}")
        parts += [_field(*each) for each in fields(schema["properties"][part], part)]
    return "\n\n".join(parts)


def fields(schema: Any, path: str) -> Iterator[tuple[str, Any, bool]]:
    """Yield each field below one, with its schema and whether it is required; parents first."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field, name in schema.get("required", ())
        yield from fields(field, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from fields(schema[word], f"{path}[*]")


def _field(path: str, schema: Any, required: bool) -> str:
    facts = [_type(schema), *(["required"] if required else []), *_facts(schema)]
    told = [f"### {code(path)}", prose(schema.get("description", "")), f"*{'; '.join(facts)}*"]
    rules = schema.get("x-kubernetes-validations", ())
    told.append(
        "\n".join(f"- {prose(rule.get('message') or code(rule['rule']))}" for rule in rules)
    )
    return "\n\n".join(filter(None, told))


def _type(schema: Any) -> str:
    """Return what a field holds, in words."""
    if _UPSTREAM in schema:
        *_, version, kind = schema[_UPSTREAM].split(".")
        return f"Kubernetes's {kind} ({version})"
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_type(schema['additionalProperties'])}"
    if schema.get("format"):
        return f"{schema['type']} ({schema['format']})"
    return schema.get("type", "anything")


def _facts(schema: Any) -> Iterator[str]:
    """Yield what else a schema says of a field's value."""
    if "default" in schema:
        yield f"default {code(json.dumps(schema['default']))}"
    if "enum" in schema:
        yield "one of " + ", ".join(code(str(value)) for value in schema["enum"])
    for word, (bound, unit) in _BOUNDS.items():
        if word in schema:
            units = unit + "s" * (unit != "" and schema[word] != 1)
            yield f"{bound} {schema[word]} {units}".strip()
    if "pattern" in schema:
        yield f"pattern {code(schema['pattern'])}"
    if schema.get("x-kubernetes-list-type") == "map":
        yield "merged by " + ", ".join(map(code, schema["x-kubernetes-list-map-keys"]))
    elif schema.get("x-kubernetes-list-type") == "atomic" or (
        schema.get("x-kubernetes-map-type") == "atomic"
    ):
        yield "atomic: field managers hold it as a whole"
