"""Owners view: the places of an object with their managers, which is the JSON and is drawn."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct

from hedgerow_tools.fields.identity import ObjectIdentity, identity_of
from hedgerow_tools.fields.selection import NO_DISPUTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.plan.remedies import Remedy
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.field_tree import Node, Ownership
    from hedgerow_tools.fields.selection import Dispute, Disputes

OwnedState = Literal["held", "unowned", "identity", "branch", "gone", "missing"]


class OwnedField(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One place of an object, in the object's order; `depth` is 0 at the top.

    A branch is a map, list or item without a value here; it may be held itself. The server alone
    sets an identity. A place that is held but not there is gone, one that is contested but not
    there is missing. `contested` is the resource that declares another value.
    """

    path: str
    name: str
    depth: int
    state: OwnedState
    managers: tuple[Holder, ...]
    value: Any = UNSET
    contested: str = ""
    api_version: str = ""
    """The version in which a place that is gone was written."""


class OwnersSummary(Struct, frozen=True):
    """The fields of the whole object, each counted once."""

    fields: int
    unowned: int
    contested: int


class OwnersView(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who holds the chosen fields of an object.

    `managers` has each manager's number of fields in the whole object, in the server's order.
    `contested` are all contested fields, with what settles each; `together` settles several.
    `unserved` are versions of managed fields that the server does not serve.
    """

    object: ObjectIdentity
    summary: OwnersSummary
    managers: dict[str, int]
    fields: tuple[OwnedField, ...]
    gone: tuple[OwnedField, ...]
    missing: tuple[OwnedField, ...]
    contested: tuple[Dispute, ...] = ()
    together: tuple[Remedy, ...] = ()
    unserved: tuple[str, ...] = ()


def owners_view(
    live: Object,
    whole: Ownership,
    chosen: Ownership,
    disputes: Disputes = NO_DISPUTES,
    unserved: Sequence[str] = (),
) -> OwnersView:
    """Return the view of the chosen part of an object."""
    leaves = [node for node in whole.leaves() if node.kind == "leaf"]
    contested = sum(bool(node.contested) for node in whole.places()) + len(whole.missing)
    return OwnersView(
        identity_of(live),
        OwnersSummary(len(leaves), sum(node.unowned for node in leaves), contested),
        _managers(whole),
        tuple(_fields(chosen.fields)),
        tuple(
            OwnedField(lost.path, lost.path, 0, "gone", (lost.holder,), api_version=lost.version)
            for lost in chosen.gone
        ),
        tuple(
            OwnedField(path, path, 0, "missing", (), contested=owner)
            for path, owner in chosen.missing
        ),
        disputes.all,
        disputes.together,
        tuple(unserved),
    )


def _managers(whole: Ownership) -> dict[str, int]:
    counts = Counter(
        name
        for node in whole.leaves()
        for name in dict.fromkeys(holder.manager for holder in node.holders)
    )
    return {holder.manager: counts[holder.manager] for holder in whole.holders}


def _fields(nodes: Iterable[Node], depth: int = 0) -> Iterator[OwnedField]:
    for node in nodes:
        is_branch = node.kind == "branch"
        yield OwnedField(
            node.path,
            node.name.removeprefix("."),
            depth,
            node.kind if node.kind != "leaf" else "held" if node.holders else "unowned",
            node.holders,
            UNSET if is_branch else node.value,
            node.contested,
        )
        yield from _fields(node.children, depth + 1)
