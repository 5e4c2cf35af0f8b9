"""Holders: who holds a field, and how its value changes, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from hedgerow.fields.redaction import worded
from hedgerow.texts import printable

if TYPE_CHECKING:
    from hedgerow.fields.managed_fields import Holder
    from hedgerow_schemas.base import ContestedField
    from hedgerow_tools.fields.by_manager import ManagerCount
    from hedgerow_tools.fields.transfers import Change

NOBODY = "nobody"


def way(holder: Holder | ContestedField | ManagerCount) -> str:
    """Return how it is held: the operation, and the subresource if there is one."""
    return printable(" ".join(filter(None, (holder.operation, holder.subresource))))


def holder_words(holder: Holder) -> str:
    """Return a holder as `kubectl-edit Update`, with its subresource if it has one."""
    return f"{printable(holder.manager)} {way(holder)}".strip() or NOBODY


def short(holder: Holder | ContestedField) -> str:
    """Return a holder as `helm` if it applies the object, and `kubectl-edit (Update)` if not."""
    name = printable(holder.manager or "")
    return f"{name} ({way(holder)})" if way(holder) not in ("Apply", "") else name or NOBODY


def value_words(value: Any) -> str:
    """Return a value in words."""
    return "(absent)" if value is UNSET else worded(value)


def change_words(change: Change) -> str:
    """Return a change in one line."""
    values = f"{value_words(change.before)} → {value_words(change.after)}"
    return f"{printable(change.path)}: {values}"
