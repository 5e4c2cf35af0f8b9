"""Managed fields: who holds which part of a live object, read from `metadata.managedFields`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.core.fieldset import Tree
    from hedgerow_schemas.base import Object


@dataclass(frozen=True, slots=True)
class Holder:
    """The writer of one `managedFields` entry; `time` is RFC 3339, empty when unknown."""

    manager: str
    operation: str
    subresource: str = ""
    time: str = ""

    def is_applier(self, manager: str, subresource: str) -> bool:
        """Tell whether this is that manager's apply; its own name under `Update` is foreign.

        The server conflicts with the `Update` entry just so (kubernetes/kubernetes#107417).
        """
        return (
            self.manager == manager
            and self.operation == "Apply"
            and self.subresource == subresource
        )


def entries(live: Object) -> Iterator[tuple[Holder, str, Tree]]:
    """Give each entry's holder, apiVersion and fieldsV1 tree, in the server's order."""
    metadata: dict[str, Any] = live.get("metadata") or {}
    found: dict[str, Any]
    for found in metadata.get("managedFields") or ():
        holder = Holder(
            found.get("manager", ""),
            found.get("operation", ""),
            found.get("subresource", ""),
            found.get("time", ""),
        )
        yield holder, found.get("apiVersion", ""), found.get("fieldsV1") or {}


def entry(live: Object, manager: str, subresource: str = "") -> Tree | None:
    """Give the fieldsV1 tree of a manager's applies, or None when it has no entry."""
    for holder, _, tree in entries(live):
        if holder.is_applier(manager, subresource):
            return tree
    return None


def managers(live: Object) -> tuple[Holder, ...]:
    """Give every entry's holder, in the server's order."""
    return tuple(holder for holder, _, _ in entries(live))
