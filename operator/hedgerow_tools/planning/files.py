"""Files: what can be said of an object of a file before it is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hedgerow.cli.exits import CommandError
from hedgerow.fields.paths import is_map

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object


class PlanError(CommandError):
    """Why a plan cannot be made at all."""


def titled(obj: Object) -> str:
    """Return an object as it may be told of, whatever it lacks."""
    named = _metadata(obj).get("name")
    kind = obj.get("kind") or "an object without a kind"
    return f"{kind}/{named}" if named else str(kind)


def identity(obj: Object, namespace: str) -> tuple[str, ...] | None:
    """Return what tells an object from others, whatever version it is written in, if it has a name.

    `namespace` is that of objects without one.
    """
    meta = _metadata(obj)
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    parts = group, obj.get("kind"), meta.get("namespace") or namespace, meta.get("name")
    return tuple(map(str, parts)) if meta.get("name") else None


def flaw(obj: Object) -> str:
    """Return why an object cannot be applied whatever the server says; empty if it can."""
    meta = _metadata(obj)
    named = meta.get("name")
    if not all(isinstance(obj.get(field), str) for field in ("apiVersion", "kind")):
        return "it has no apiVersion or no kind"
    if not isinstance(named, str) or not named:
        return f"a {obj.get('kind')}{_nameless(meta)}"
    if named in {".", ".."} or set(named) & set("/%"):
        return f"{titled(obj)}: {named} is no name"
    place = meta.get("namespace")
    if place is not None and (not isinstance(place, str) or place in {".", ".."}):
        return f"{titled(obj)}: metadata.namespace is no string: {place!r:.80}"
    for field in ("labels", "annotations"):
        if not _is_text(meta.get(field)):
            return f"{titled(obj)}: metadata.{field} has what is no string"
    return ""


def _nameless(meta: Object) -> str:
    named, generated = meta.get("name"), meta.get("generateName")
    if named:
        return f": metadata.name is no string: {named!r:.80}"
    more = f", and an apply takes no generateName ({generated})" if generated else ""
    return f" has no metadata.name{more}"


def _metadata(obj: Object) -> Object:
    meta: Any = obj.get("metadata")
    return meta if is_map(meta) else {}


def _is_text(value: Any) -> bool:
    """Return whether a value is a map of strings, or missing; null is stored as an empty one."""
    if value is None:
        return True
    return isinstance(value, dict) and all(
        text is None or isinstance(text, str) for text in cast("Object", value).values()
    )
