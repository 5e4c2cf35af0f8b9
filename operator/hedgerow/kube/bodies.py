"""Bodies: what an apply and a delete carry, as bytes that the API server takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.kube import wire
from hedgerow.kube.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hedgerow_schemas.base import ApiResource


def whole(api: ApiResource, body: Mapping[str, Any]) -> bytes:
    """Write an object, or what is declared of it; raises Invalid as `written` does."""
    return written({"apiVersion": api.group_version, "kind": api.kind, **body})


def written(body: Mapping[str, Any]) -> bytes:
    """Write a body; raises Invalid for what the server could not take anyway."""
    try:
        content = wire.encode(body)
    except ValueError as error:
        raise Invalid(f"the body cannot be written as JSON: {error}") from error
    if len(content) > wire.BODY_LIMIT:
        raise Invalid(f"the body has {len(content)} bytes; the API server takes {wire.BODY_LIMIT}")
    return content


def delete(uid: str, version: str, propagation: str) -> bytes:
    """Write the options of a delete of that very object, and of that `version` if given."""
    conditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
    return wire.encode(
        {
            "apiVersion": "meta.k8s.io/v1",
            "kind": "DeleteOptions",
            "preconditions": conditions,
            "propagationPolicy": propagation,
        }
    )
