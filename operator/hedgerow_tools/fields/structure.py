"""Structure: which maps and lists of a kind are atomic, as the server's OpenAPI says.

Managed fields show the same as long as something in a map or list is held. They do not show it of
one that is held as such (`f:strategy: {}`): a granular one of which only defaults are left looks
like an atomic value. After a definition was changed, they show what it was before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.encoding import to_ascii
from hedgerow.fields.paths import is_list, is_map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import ApiResource, Object

_KIND = "x-kubernetes-group-version-kind"


@dataclass(frozen=True, slots=True)
class Structure:
    """One place of a kind: its schema, and the named types that schemas refer to."""

    _schema: Mapping[str, Any]
    _types: Mapping[str, Any]

    @property
    def is_atomic(self) -> bool | None:
        """Whether a map or list has one holder; None if it is neither, or if nothing is said."""
        if self._schema.get("type") == "array":
            return self._schema.get("x-kubernetes-list-type", "atomic") == "atomic"
        if "properties" in self._schema or "additionalProperties" in self._schema:
            return self._schema.get("x-kubernetes-map-type") == "atomic"
        return None

    @property
    def item_element(self) -> str:
        """An element of the list's shape: `k:{"name":""}`, or `v:""` of a set; empty if of none."""
        match self._schema.get("x-kubernetes-list-type"):
            case "map":
                keys = self._schema.get("x-kubernetes-list-map-keys") or ()
                return "k:" + to_ascii(dict.fromkeys(keys, ""), ordered=True)
            case "set":
                return 'v:""'
            case _:
                return ""

    def below(self, element: str) -> Structure | None:
        """Return the place of a field or list item; None if nothing is said of it."""
        if not element.startswith("f:"):
            inner = self._schema.get("items")
        else:
            fields = self._schema.get("properties")
            named = fields.get(element[2:]) if is_map(fields) else None
            inner = named or self._schema.get("additionalProperties")
        return Structure(_resolved(inner, self._types), self._types) if is_map(inner) else None


def structure_of(document: Any, api: ApiResource) -> Structure | None:
    """Return the structure of a kind by the OpenAPI document (v3) of its group version, if any."""
    components = document.get("components") if is_map(document) else None
    schemas = components.get("schemas") if is_map(components) else None
    types = schemas if is_map(schemas) else {}
    meant = {"group": api.group, "version": api.version, "kind": api.kind}
    for schema in types.values():
        if is_map(schema) and meant in (schema.get(_KIND) or ()):
            return Structure(schema, types)
    return None


def _resolved(schema: Object, types: Mapping[str, Any]) -> Object:
    """Return a schema with the type that it names; what it says by itself goes first."""
    several = schema.get("allOf")
    named = [schema, *(several if is_list(several) else ())]
    for part in named:
        target = types.get(str(part.get("$ref", "")).rpartition("/")[2])
        if is_map(target):
            return {**_resolved(target, types), **schema}
    return schema
