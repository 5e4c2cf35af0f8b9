"""Diff: what changed between two forms of one object, field by field, with the managers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from hedgerow.fields.canonical import identical
from hedgerow.fields.field_tree import owners
from hedgerow.fields.paths import path_of
from hedgerow.fields.redaction import HIDDEN, is_private
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from hedgerow.fields.field_tree import Node
    from hedgerow.fields.managed_fields import Holder
    from hedgerow_schemas.base import Object

DifferenceKind = Literal["added", "changed", "removed", "released", "shared"]
_SHAPES: Final = "\0shapes"
"""The manager of entries that are added to an object only for the list keys they contain."""
_DELETION: Final = frozenset({"deletionGracePeriodSeconds", "deletionTimestamp"})
_BOOKKEEPING: Final = frozenset({
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
    "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
})  # fmt: skip


class Line(Struct, frozen=True):
    """One field that differs.

    `holders` are the managers before, `after` those afterwards. released: we no longer hold the
    field, and its value stays. shared: we now hold it too, and its value stays. If nobody holds a
    changed field `after`, the server set it: as a default, or by admission.
    """

    kind: DifferenceKind
    field_path: tuple[str, ...]
    old: Any
    new: Any
    holders: tuple[Holder, ...]
    after: tuple[Holder, ...]

    @property
    def path(self) -> str:
        """The field as managed fields and the causes of a conflict print it."""
        return path_of(self.field_path)

    @property
    def is_change(self) -> bool:
        """Whether the value itself differs."""
        return self.kind in ("added", "changed", "removed")


def difference(before: Object | None, after: Object | None, field_manager: str) -> tuple[Line, ...]:
    """Return the fields that differ between two versions of an object; None: it does not exist.

    Its status, its identity and the metadata that only the server sets are left out. Values of a
    Secret are compared, but hidden in the result.
    """
    old, new = leaves(before, after), leaves(after, before)
    field_path = [*new, *(step for step in old if step not in new)]
    lines = (_line(step, old.get(step), new.get(step), field_manager) for step in field_path)
    kind = str((after or before or {}).get("kind", ""))
    return tuple(
        _hidden(line) if is_private(kind, line.field_path) else line for line in lines if line
    )


def _line(
    field_path: tuple[str, ...], old: Node | None, new: Node | None, field_manager: str
) -> Line | None:
    held, holds = old.holders if old else (), new.holders if new else ()
    was_value, value = old.value if old else None, new.value if new else None
    if old is None or new is None:
        return Line(
            "added" if old is None else "removed", field_path, was_value, value, held, holds
        )
    if not identical(was_value, value):
        return Line("changed", field_path, was_value, value, held, holds)
    was, is_ours = (any(h.is_applier(field_manager, "") for h in some) for some in (held, holds))
    if was == is_ours:
        return None
    return Line("shared" if is_ours else "released", field_path, was_value, value, held, holds)


def leaves(
    live: Object | None, other: Object | None, *, whole: bool = False
) -> dict[tuple[str, ...], Node]:
    """Return the leaves to compare; list keys are taken from both versions of the object.

    `whole`: with the status, and with what the server sets when a deletion begins.
    """
    if live is None:
        return {}
    left_out = _BOOKKEEPING - _DELETION if whole else _BOOKKEEPING
    tops = ("kind",) if whole else ("status", "kind")
    lent = [{**entry, "manager": _SHAPES} for entry in _managed(other)]
    meta = {name: value for name, value in metadata(live).items() if name not in left_out}
    looked: Object = {
        **{k: v for k, v in live.items() if k not in tops},
        "metadata": {**meta, "managedFields": [*_managed(live), *lent]},
    }
    return {node.field_path: _honest(node) for node in owners(looked).leaves() if _counts(node)}


def _managed(live: Object | None) -> list[Object]:
    return list(metadata(live or {}).get("managedFields") or ())


def _counts(node: Node) -> bool:
    return node.field_path not in (("f:apiVersion",), ("f:metadata",))


def _honest(node: Node) -> Node:
    return replace(node, holders=tuple(h for h in node.holders if h.manager != _SHAPES))


def _hidden(line: Line) -> Line:
    old, new = (None if value is None else HIDDEN for value in (line.old, line.new))
    return Line(line.kind, line.field_path, old, new, line.holders, line.after)
