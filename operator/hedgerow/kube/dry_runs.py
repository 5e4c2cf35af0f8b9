"""Dry runs: of the two requests that kubectl makes for client-side apply.

The operator asks by the first one whether it could create a child anew, and `hedgerow plan` by the
second one what is left for kubectl to take over. Both always have `dryRun=All`: the API server
checks them and stores nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube import bodies, wire
from hedgerow.kube.wire import JSON, Request

if TYPE_CHECKING:
    from hedgerow_schemas.base import ApiResource, Object

MERGE_PATCH = "application/merge-patch+json"


def created(api: ApiResource, namespace: str, body: Object, *, manager: str) -> Request:
    """Return the request for an object that does not exist; raises Invalid if it is too large."""
    content = bodies.whole(api, body)
    return Request("POST", wire.path(api, namespace), _params(manager), content, JSON)


def patched(api: ApiResource, namespace: str, name: str, patch: Object, *, manager: str) -> Request:
    """Return the request for an existing object; raises Invalid if it is too large."""
    path = wire.path(api, namespace, name)
    return Request("PATCH", path, _params(manager), bodies.written(patch), MERGE_PATCH)


def _params(manager: str) -> dict[str, str]:
    return {"dryRun": "All", "fieldManager": manager, "fieldValidation": "Strict"}
