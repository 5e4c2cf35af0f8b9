"""Client side: the dry run of what kubectl sends for client-side apply to an existing object.

`hedgerow plan` asks by it what is left for kubectl to take over. It always has `dryRun=All`: the
API server checks it and stores nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.kube import bodies, dry_runs, wire
from hedgerow.kube.wire import Request

if TYPE_CHECKING:
    from hedgerow_schemas.base import ApiResource, Object

MERGE_PATCH = "application/merge-patch+json"


def patched(api: ApiResource, namespace: str, name: str, patch: Object, *, manager: str) -> Request:
    """Return the request; raises Invalid if it is too large."""
    path = wire.path(api, namespace, name)
    return Request("PATCH", path, dry_runs.params(manager), bodies.written(patch), MERGE_PATCH)
