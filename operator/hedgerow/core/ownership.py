"""Ownership: whether the live object is what we declare, and who holds what is not.

The server moves a field out of our `managedFields` entry as soon as anyone else changes its value,
so that entry and the values together tell drift from rest without a request.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hedgerow.core.applied import leave_out, without_nulls
from hedgerow.core.canonical import builtin, same
from hedgerow.core.managed import Entries, Holder, entries, entry, managers
from hedgerow.core.walk import BEFORE_FIRST_APPLY, Leaf, Walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow.core.fieldset import Tree
    from hedgerow_schemas.base import Object

__all__ = [
    "Holder", "Leaf", "Verdict", "entry", "judge", "leave_out", "managers", "residual", "same",
    "without_nulls",
]  # fmt: skip

_IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
_METADATA_IDENTITY: Final = frozenset({
    "creationTimestamp", "generation", "managedFields", "name", "namespace", "resourceVersion",
    "selfLink", "uid",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an unforced apply would find.

    `owned`: we have an entry; `tracked`: anyone has one; `version_ok`: entry, declaration and live
    object speak the same apiVersion (an apply in another one rewrites the entry). `rewritten`:
    leaves that mutating admission is known to change whenever we apply them.
    """

    leaves: tuple[Leaf, ...]
    tracked: bool
    version_ok: bool
    owned: bool
    rewritten: tuple[Leaf, ...] = ()

    @property
    def settled(self) -> bool:
        """An apply would change nothing: send none."""
        return self.tracked and self.version_ok and not self.leaves

    @property
    def contested(self) -> tuple[Leaf, ...]:
        """The leaves for which an unforced apply is refused with 409."""
        return tuple(leaf for leaf in self.leaves if leaf.holders and not leaf.equal)


def judge(
    want: Object,
    live: Object,
    manager: str,
    subresource: str = "",
    *,
    hint: Tree | None = None,
) -> Verdict:
    """Hold an applied configuration against the live object; raises nothing.

    `want` is what would be sent: no nulls, with its identity (which is never walked). `hint` is the
    last fieldsV1 tree known of the object: it tells list keys when all managed fields were wiped.
    """
    mine: Tree | None = None
    others: list[tuple[Holder, Tree | None]] = []
    version = want.get("apiVersion")
    version_ok = live.get("apiVersion") == version
    for holder, entry_version, tree in entries(live):
        if holder.is_applier(manager, subresource):
            mine = tree
            version_ok = version_ok and entry_version == version
        else:
            others.append((holder, tree))
    tracked = mine is not None or bool(others)
    if not tracked:
        others.append((BEFORE_FIRST_APPLY, hint))
    walk = Walk(builtin=builtin(str(version)))
    foreign = Entries(others, everywhere=not tracked)
    walk.map(None, _body(want), live, mine or {}, foreign)
    return Verdict(tuple(walk.leaves), tracked, version_ok, mine is not None)


def residual(verdict: Verdict) -> str:
    """Digest a verdict's differences (16 hex digits); empty only when it is settled.

    Of the answer to our own apply it tells what the server's normal form, its defaults in atomic
    fields or admission made of our leaves. While later verdicts on the same declaration have that
    residual, a further apply would change nothing. Other managers' times do not count.
    """
    if verdict.settled:
        return ""
    rows = sorted(
        json.dumps(
            [leaf.path, leaf.why, leaf.want, leaf.live, _names(leaf.holders)], sort_keys=True
        )
        for leaf in verdict.leaves
    )
    text = json.dumps([verdict.tracked, verdict.version_ok, *rows])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _names(holders: Iterable[Holder]) -> list[tuple[str, str, str]]:
    return sorted((holder.manager, holder.operation, holder.subresource) for holder in holders)


def _body(want: Object) -> Object:
    """Drop identity and what the server alone sets: nobody ever owns it."""
    metadata: Any = want.get("metadata") or {}
    kept = {name: value for name, value in metadata.items() if name not in _METADATA_IDENTITY}
    body = {name: value for name, value in want.items() if name not in _IDENTITY}
    return {"metadata": kept, **body} if kept else body
