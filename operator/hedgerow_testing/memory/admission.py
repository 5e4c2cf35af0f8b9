"""Admission: the steps between the merge and the store: defaults and refusals."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from hedgerow_testing.memory import answers
from hedgerow_testing.memory.schema import Atomic, Items, Keyed, Map, Struct, takes_null
from hedgerow_testing.memory.typed import child, mistyped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hedgerow_testing.memory.kind import ServedKind
    from hedgerow_testing.memory.schema import Object, TypedSchema

    Wrong = tuple[str, str]

KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def decoded(kind: ServedKind, body: Object, live: Object | None, subresource: str) -> Object:
    """Return the part of a body that the server reads, such as all but status; raises Refused."""
    if kind.status and not kind.builtin and not subresource:
        body = {name: value for name, value in body.items() if name != "status"}
    elif live is not None and not kind.builtin and subresource == "status":
        written = {name: body[name] for name in ("metadata", "status") if name in body}
        body = {name: value for name, value in live.items() if name != "status"} | written
    if text := mistyped(kind.schema, body):
        if kind.builtin or text.startswith(".metadata"):  # what Go cannot read
            raise answers.bad_request(text)
        _refuse(kind.validate(body, live))
    return body


def created(kind: ServedKind, body: Object, *, uid: str, stamp: str, number: int) -> Object:
    """Return the object that a create stores, without managed fields; raises Refused."""
    _refuse(_nulls(kind, body))
    new: Object = {
        **kind.schema.normal(body),
        "kind": kind.api.kind,
        "apiVersion": kind.api.group_version,
    }
    given: Object = new["metadata"]
    metadata = {k: v for k, v in given.items() if k not in {"resourceVersion", *KEPT}}
    new["metadata"] = {**metadata, "uid": uid, "creationTimestamp": stamp}
    if kind.generations:
        new["metadata"]["generation"] = 1
    if kind.status:
        new.pop("status", None)
        if "status" in kind.empty:
            new["status"] = copy.deepcopy(kind.empty["status"])
    _refuse(kind.validate(new, None))
    return kind.server_sets(new, number)


def updated(kind: ServedKind, live: Object, body: Object, subresource: str) -> Object:
    """Return the object that an update stores, without managed fields; raises Refused."""
    old = bare(live)
    _refuse(_nulls(kind, body))
    new = kind.schema.normal(body)
    version = new["metadata"].get("resourceVersion") or old["metadata"]["resourceVersion"]
    if version != old["metadata"]["resourceVersion"]:
        reason = "the object has been modified; please apply your changes to the latest"
        raise answers.stale(reason, old["metadata"]["name"])
    new = _kept(kind, old, new, subresource)
    if "status" in kind.empty:
        new.setdefault("status", copy.deepcopy(kind.empty["status"]))
    uid = new["metadata"].get("uid") or old["metadata"]["uid"]
    wrong: dict[str, str] = {}
    if uid != old["metadata"]["uid"]:
        wrong["metadata.uid"] = "field is immutable"
    metadata = {k: v for k, v in new["metadata"].items() if k not in KEPT}
    metadata |= {k: old["metadata"][k] for k in KEPT if k in old["metadata"]}
    metadata["resourceVersion"] = version
    metadata.pop("generation", None)
    if "generation" in old["metadata"]:
        metadata["generation"] = old["metadata"]["generation"] + _changed(kind, old, new)
    new["metadata"] = metadata
    _refuse(
        wrong | _new_finalizers(old, new) | (kind.validate(new, old) if not subresource else {})
    )
    return new


def patched(live: Any, patch: Any) -> Any:
    """Return a value after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged: Object = {**live} if isinstance(live, dict) else {}
    changes = cast("Object", patch)
    for name, value in changes.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = patched(merged.get(name), value)
    return merged


def bare(live: Object) -> Object:
    """Return an object without its managed fields."""
    metadata = {k: v for k, v in live["metadata"].items() if k != "managedFields"}
    return {**live, "metadata": metadata}


def _kept(kind: ServedKind, old: Object, new: Object, subresource: str) -> Object:
    """Keep the fields of the old object that this endpoint does not write."""
    new = copy.deepcopy(new)
    if subresource == "status":
        for path in kind.status_keeps:
            _copy(old, new, [element[2:] for element in path])
    elif kind.status:
        _copy(old, new, ["status"])
    return kind.keeps(old, new)


def _copy(old: Object, new: Object, path: list[str]) -> None:
    for step in path[:-1]:
        old, new = old.get(step, {}), new.setdefault(step, {})
    if path[-1] in old:
        new[path[-1]] = copy.deepcopy(old[path[-1]])
    else:
        new.pop(path[-1], None)


def _changed(kind: ServedKind, old: Object, new: Object) -> int:
    parts: dict[str, Callable[[Object], Any]] = {
        "spec": lambda body: body.get("spec"),
        "annotations": lambda body: body["metadata"].get("annotations"),
    }
    return int(any(parts[part](old) != parts[part](new) for part in kind.generations))


def _nulls(kind: ServedKind, body: Object) -> dict[str, str]:
    """Return the nulls of a custom resource: a merge that empties a map leaves one."""
    if kind.builtin:
        return {}
    parts = {name: value for name, value in body.items() if name != "metadata"}
    return dict(_nulls_in(kind.schema, parts, ""))


def _nulls_in(schema: TypedSchema | Items | None, value: Any, path: str) -> Iterator[Wrong]:
    """Yield the nulls where a schema takes none; where there is no schema, null is a value.

    A default takes the place of null.
    """
    if value is None and schema is not None and not takes_null(schema):
        yield path.removeprefix("."), "Invalid value: null"
    if isinstance(schema, Atomic):
        schema = schema.within
    if isinstance(value, dict) and isinstance(schema, Struct | Map):
        filled = schema.defaults.keys() if isinstance(schema, Struct) else ()
        for name, inner in cast("Object", value).items():
            if inner is not None or name not in filled:
                yield from _nulls_in(child(schema, f"f:{name}"), inner, f"{path}.{name}")
    elif isinstance(value, list) and isinstance(schema, Keyed | Items):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from _nulls_in(schema.item, inner, f"{path}[{index}]")


def _new_finalizers(old: Object, new: Object) -> dict[str, str]:
    before = set(old["metadata"].get("finalizers", ()))
    added = set(new["metadata"].get("finalizers", ())) - before
    if "deletionTimestamp" in old["metadata"] and added:
        return {"metadata.finalizers": "no new finalizers can be added while being deleted"}
    return {}


def _refuse(wrong: dict[str, str]) -> None:
    if wrong:
        raise answers.invalid(wrong)
