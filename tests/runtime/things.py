"""Things: the plain objects that the store's tests keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hedgerow.runtime.cache.store import Store, StoreChange

Object = dict[str, Any]


def thing(name: str = "a", version: int = 1, uid: str = "u", owner: str = "") -> Object:
    meta = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**meta, "labels": {"owner": owner}}}


def owners(obj: Object) -> tuple[str, ...]:
    owner = obj["metadata"]["labels"]["owner"]
    return (owner, owner) if owner else ()


MANY: Object = {"metadata": {"annotations": {f"a{number}": "" for number in range(3500)}}}
"""What makes any object too large: an annotation is two values, with its managed field."""


def contents(store: Store) -> dict[Any, Any]:
    keys = store.keys()
    return {key: store.get(key) for key in keys}


def replaced(store: Store, items: Iterable[Object], version: str) -> list[StoreChange]:
    """Have a store take in a whole list at once; give all changes."""
    return [change for part in store.replacing(items, version) for change in part]
