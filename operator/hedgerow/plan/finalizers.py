"""Finalizers: the apply that removes only our own finalizers from an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.fields.applyconfiguration import extract
from hedgerow.objects import ObjectRef, metadata
from hedgerow.plan.writes import Write, checksum

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from hedgerow_schemas.base import ApiResource, Object


def finalizers_of(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `metadata.finalizers`."""
    return tuple(metadata(obj).get("finalizers") or ())


def finalization(
    api: ApiResource, live: Object, manager: str, given_up: Collection[str]
) -> Write | None:
    """Return the apply that removes the finalizers `given_up`, or None if `manager` holds none.

    It declares again all else that the manager declared, in the live spelling: an apply removes
    what it leaves out. It also works on an object that is being deleted. It is only for this exact
    version. Garbage collection may have removed the owner reference in the meantime, to orphan the
    object: the apply would put the reference back, and the object would be deleted.
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
    return Write(ref, guarded_body, checksum(body), create=False, once=True)
