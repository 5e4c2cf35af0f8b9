"""Accounts: what managed fields say of a live object, read without the code under test."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from hedgerow.fields.redaction import HIDDEN
from hedgerow_testing.api import Api
from hedgerow_tools.fields.field_tree import Node, Ownership, owners

Object = dict[str, Any]
FieldPath = tuple[str, ...]
Holding = tuple[FieldPath, tuple[str, ...]]
"""A place, and the manager, operation, subresource and time of an entry that holds it."""


def must_account(live: Object) -> Ownership:
    """Fail unless every value is in the tree once, and every holding of an entry is told of."""
    found = owners(live)
    assert rebuilt(found) == readable(live)
    there, elsewhere = holdings(live)
    assert {(node.field_path, _who(h)) for node in found.places() for h in node.holders} == there
    assert {(gone.field_path, _who(gone.holder)) for gone in found.gone} == elsewhere
    return found


def accounted(api: Api) -> Counter[str]:
    """Have every object of the cluster accounted for; give how many there are of each kind."""
    kinds = Counter[str]()
    for live in _everything(api):
        must_account(live)
        kinds[live["kind"]] += 1
    return kinds


def holdings(live: Object) -> tuple[set[Holding], set[Holding]]:
    """Return every holding whose place the object has, and those whose place it does not have."""
    there: set[Holding] = set()
    elsewhere: set[Holding] = set()
    for entry in live["metadata"].get("managedFields") or ():
        who = tuple(entry.get(key, "") for key in ("manager", "operation", "subresource", "time"))
        for field_path in _members(entry.get("fieldsV1") or {}):
            (there if _exists([live], field_path) else elsewhere).add((field_path, who))
    return there, elsewhere


def rebuilt(found: Ownership) -> Object:
    """Put the object together again from its places."""
    return {field.field_path[-1][2:]: _rebuilt(field) for field in found.fields}


def readable(live: Object) -> Object:
    """Return the object as it may be shown: without managed fields and without secrets."""
    shown = json.loads(json.dumps(live))
    shown["metadata"].pop("managedFields", None)
    if shown["kind"] == "Secret" and shown["apiVersion"] == "v1":
        for part in (shown.get("data"), shown["metadata"].get("annotations")):
            for name in part or ():
                part[name] = HIDDEN
    return shown


def _everything(api: Api) -> Iterator[Object]:
    """Yield every object of the cluster, in every version that the server serves."""
    groups = api.raw("GET", "/apis").must()["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    for version in ("v1", *versions):
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for kind in api.raw("GET", root).must()["resources"]:
            if "list" in kind["verbs"] and "get" in kind["verbs"]:
                for item in api.raw("GET", f"{root}/{kind['name']}").must()["items"]:
                    yield {"apiVersion": version, "kind": kind["kind"], **item}


def _rebuilt(node: Node) -> Any:
    if node.kind != "branch":
        return node.value
    values = [_rebuilt(child) for child in node.children]
    names = [child.field_path[-1] for child in node.children]
    if names[0].startswith("f:"):
        return {name[2:]: value for name, value in zip(names, values, strict=True)}
    return values


def _members(tree: Object, field_path: FieldPath = ()) -> Iterator[FieldPath]:
    for element, below in tree.items():
        if element != ".":
            if below == {} or "." in below:
                yield (*field_path, element)
            yield from _members(below, (*field_path, element))


def _exists(places: list[Any], field_path: FieldPath) -> bool:
    for step in field_path:
        places = [inner for place in places for inner in _inside(place, step)]
    return bool(places)


def _inside(place: Any, step: str) -> list[Any]:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return [place[text]] if isinstance(place, dict) and text in place else []
    items = place if isinstance(place, list) else []
    if kind == "v:":
        return [item for item in items if json.dumps(item) == json.dumps(json.loads(text))]
    keys = json.loads(text)
    return [i for i in items if isinstance(i, dict) and {**i, **keys} == i]


def _who(holder: Any) -> tuple[str, ...]:
    return (holder.manager, holder.operation, holder.subresource, holder.time)
