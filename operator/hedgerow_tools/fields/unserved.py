"""Unserved: managed fields entries of API versions that the server no longer has.

If a CustomResourceDefinition no longer has the version of an entry, every apply to the object fails
with 500, and the next update by anybody empties its managed fields (kubernetes/kubernetes#111937).
Of a built-in kind, the next write drops such an entry, so that nobody holds its fields. If the
definition still has the version, but does not serve it, nothing is lost. (Seen on 1.36.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from hedgerow_schemas.base import Object


def unserved(entries: Iterable[Object], served: Collection[str]) -> tuple[Object, ...]:
    """Return the entries whose group version is not among those served, in their order."""
    return tuple(
        entry for entry in entries if entry.get("apiVersion") and entry["apiVersion"] not in served
    )
