"""Client-side apply: the two requests that kubectl makes for it, as dry runs and nothing else.

`hedgerow plan` asks with them what a `kubectl apply` would get. Neither can be sent without
`dryRun=All`: the API server judges it, and stores nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube import bodies, wire
from hedgerow.kube.wire import JSON, Request

if TYPE_CHECKING:
    from hedgerow_schemas.base import ApiResource, Object

MERGE_PATCH = "application/merge-patch+json"


def created(api: ApiResource, namespace: str, body: Object, *, manager: str) -> Request:
    """Return the request for an object that is not there; raises Invalid when it is too large."""
    content = bodies.whole(api, body)
    return Request("POST", wire.path(api, namespace), _params(manager), content, JSON)


def patched(api: ApiResource, namespace: str, name: str, patch: Object, *, manager: str) -> Request:
    """Return the request for an object that is there; raises Invalid when it is too large."""
    path = wire.path(api, namespace, name)
    return Request("PATCH", path, _params(manager), bodies.written(patch), MERGE_PATCH)


def _params(manager: str) -> dict[str, str]:
    return {"dryRun": "All", "fieldManager": manager, "fieldValidation": "Strict"}
