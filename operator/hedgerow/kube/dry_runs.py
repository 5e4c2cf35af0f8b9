"""Dry runs: by which the operator asks whether it could create a child anew.

They always have `dryRun=All`: the API server checks the object and stores nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube import bodies, wire
from hedgerow.kube.wire import JSON, Request

if TYPE_CHECKING:
    from hedgerow_schemas.base import ApiResource, Object


def created(api: ApiResource, namespace: str, body: Object, *, manager: str) -> Request:
    """Return the request for an object that does not exist; raises Invalid if it is too large."""
    content = bodies.whole(api, body)
    return Request("POST", wire.path(api, namespace), params(manager), content, JSON)


def params(manager: str) -> dict[str, str]:
    """Return the parameters of a dry run of what kubectl sends for client-side apply."""
    return {"dryRun": "All", "fieldManager": manager, "fieldValidation": "Strict"}
