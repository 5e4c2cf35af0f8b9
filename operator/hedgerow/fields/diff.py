"""Diff: what changed between two forms of one object, field by field, with the managers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow.fields.canonical import identical
from hedgerow.fields.owners import owners
from hedgerow.fields.paths import path_of
from hedgerow.fields.redaction import HIDDEN, is_private
from hedgerow.objects import metadata

if TYPE_CHECKING:
    from hedgerow.fields.managed import Holder
    from hedgerow.fields.owners import Node
    from hedgerow_schemas.base import Object

Kind = Literal["added", "changed", "removed", "released", "shared"]
_SHAPES: Final = "\0shapes"
"""The holder of the entries that are laid under a look only to tell its list keys."""
_BOOKKEEPING: Final = frozenset({
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
    "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One field that differs.

    `holders` are those before, `after` those afterwards. Released: we hold it no more, and the
    value stays; shared: we come to hold it too, and the value stays. A changed field that nobody
    holds `after` is a matter of the server: a default, or what admission makes of it.
    """

    kind: Kind
    steps: tuple[str, ...]
    old: Any
    new: Any
    holders: tuple[Holder, ...]
    after: tuple[Holder, ...]

    @property
    def path(self) -> str:
        """The field as managed fields and the causes of a conflict print it."""
        return path_of(self.steps)

    @property
    def is_change(self) -> bool:
        """Whether the value itself differs."""
        return self.kind in ("added", "changed", "removed")


def difference(before: Object | None, after: Object | None, field_manager: str) -> tuple[Line, ...]:
    """Compare two looks at an object; None is an object that is not there.

    Its status, its identity and what the server alone counts are left out. Values of a Secret are
    compared, and never given.
    """
    old, new = _leaves(before, after), _leaves(after, before)
    steps = [*new, *(step for step in old if step not in new)]
    lines = (_line(step, old.get(step), new.get(step), field_manager) for step in steps)
    kind = str((after or before or {}).get("kind", ""))
    return tuple(_hidden(line) if is_private(kind, line.steps) else line for line in lines if line)


def _line(
    steps: tuple[str, ...], old: Node | None, new: Node | None, field_manager: str
) -> Line | None:
    held, holds = old.holders if old else (), new.holders if new else ()
    was_value, value = old.value if old else None, new.value if new else None
    if old is None or new is None:
        return Line("added" if old is None else "removed", steps, was_value, value, held, holds)
    if not identical(was_value, value):
        return Line("changed", steps, was_value, value, held, holds)
    was, is_ours = (any(h.is_applier(field_manager, "") for h in some) for some in (held, holds))
    if was == is_ours:
        return None
    return Line("shared" if is_ours else "released", steps, was_value, value, held, holds)


def _leaves(live: Object | None, other: Object | None) -> dict[tuple[str, ...], Node]:
    """Return the leaves that can be compared; both looks take their list keys from both."""
    if live is None:
        return {}
    lent = [{**entry, "manager": _SHAPES} for entry in _managed(other)]
    meta = {name: value for name, value in metadata(live).items() if name not in _BOOKKEEPING}
    looked: Object = {
        **{k: v for k, v in live.items() if k not in ("status", "kind")},
        "metadata": {**meta, "managedFields": [*_managed(live), *lent]},
    }
    return {node.steps: _honest(node) for node in owners(looked).leaves() if _counts(node)}


def _managed(live: Object | None) -> list[Object]:
    return list(metadata(live or {}).get("managedFields") or ())


def _counts(node: Node) -> bool:
    return node.kind == "leaf" and node.steps not in (("f:apiVersion",), ("f:metadata",))


def _honest(node: Node) -> Node:
    return replace(node, holders=tuple(h for h in node.holders if h.manager != _SHAPES))


def _hidden(line: Line) -> Line:
    old, new = (None if value is None else HIDDEN for value in (line.old, line.new))
    return Line(line.kind, line.steps, old, new, line.holders, line.after)
