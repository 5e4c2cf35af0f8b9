"""Finalizers: the apply that removes one of ours from an object and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.fields.applyconfiguration import extract
from hedgerow.objects import ObjectRef, digest, metadata
from hedgerow.plan.writes import Write

if TYPE_CHECKING:
    from collections.abc import Collection

    from hedgerow_schemas.base import ApiResource, Object


def finalizers_of(obj: Object) -> tuple[str, ...]:
    """Return `metadata.finalizers`."""
    return tuple(metadata(obj).get("finalizers") or ())


def finalization(
    api: ApiResource, live: Object, manager: str, given_up: Collection[str]
) -> Write | None:
    """Return the apply that takes our finalizers off, or None when the manager holds none of them.

    It declares anew all else that the manager declared, in the live spelling: what an apply leaves
    out, it removes. An object that is being deleted takes it as well. It is for this very version:
    an owner reference that garbage collection took off meanwhile, to orphan the object, would
    come back with the rest, and have it deleted.
    """
    body = extract(live, manager)
    held: list[str] = (body or {}).get("metadata", {}).get("finalizers", [])
    if body is None or not set(held) & set(given_up):
        return None
    kept = [name for name in held if name not in given_up]
    meta = {k: v for k, v in body["metadata"].items() if k != "finalizers"}
    body = {**body, "metadata": {**meta, **({"finalizers": kept} if kept else {})}}
    ref = ObjectRef(api, meta.get("namespace", ""), meta["name"], meta["uid"])
    guarded = {**body["metadata"], "resourceVersion": metadata(live)["resourceVersion"]}
    guarded_body = {**body, "metadata": guarded}
    return Write(ref, guarded_body, digest(body), create=False, once=True)
