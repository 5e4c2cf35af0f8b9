"""Told: what a pass may observe, and what it says of a resource."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hedgerow.contract import Answers, Apply, Desired, Keep, Observed
from hedgerow_schemas.base import View
from hedgerow_schemas.builtin import Pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def observed(*views: View, refused: frozenset[tuple[str, str]] = frozenset()) -> Observed:
    """Return what is observed at noon: pods are related, all else are children."""
    pods = tuple(view for view in views if isinstance(view, Pod))
    children = tuple(view for view in views if not isinstance(view, Pod))
    return Observed(NOW, children, pods, answers=Answers(refused=refused))


def applied(desired: Desired) -> dict[tuple[str, str], dict[str, Any]]:
    return {(c.kind.api.kind, c.name): c.fields for c in desired.children if isinstance(c, Apply)}


def kept(desired: Desired) -> list[str]:
    return sorted(child.name for child in desired.children if isinstance(child, Keep))


def says(desired: Desired, kind: str = "Ready") -> str:
    """Return a condition's status and reason, or an empty text."""
    assert desired.status is not None
    found = {c.type: f"{c.status}/{c.reason}" for c in desired.status.conditions}
    return found.get(kind, "")


def message(desired: Desired, kind: str = "Ready") -> str:
    assert desired.status is not None
    return next(c.message for c in desired.status.conditions if c.type == kind)
