"""Selection: the requested part of an object, and its contested fields."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from hedgerow.objects import PROGRAM, metadata
from hedgerow.plan.remedies import annotate, remedies
from hedgerow.plan.status import said
from hedgerow.plan.yield_and_claim import CLAIM, YIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.remedies import Remedy
    from hedgerow_schemas.base import ContestedField, Object, Status
    from hedgerow_tools.fields.field_tree import Node, Ownership

LEAVE_ALL: Final = "To leave all fields that can be yielded"
TAKE_ALL: Final = "To take back all fields that can be claimed"


def contested_in(
    live: Object, resource: Object, reader: Callable[[Object], Status] = said
) -> dict[str, str]:
    """Return an object's contested paths, as a resource lists them for this `reader`.

    Each value is the resource's name, such as `BlueGreen/demo`.
    """
    name, fields = _named(live), reader(resource).contested
    return {field.path: _named(resource) for field in fields if field.object == name}


@dataclass(frozen=True, slots=True)
class Dispute:
    """A contested field of an object, and its remedies."""

    field: ContestedField
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True)
class Disputes:
    """All contested fields of an object."""

    all: tuple[Dispute, ...] = ()
    together: tuple[Remedy, ...] = ()
    """The remedy that settles several of them at once."""


NO_DISPUTES: Final = Disputes()


def disputes(
    live: Object,
    resource: Object,
    owner: ObjectRef,
    program: str = PROGRAM,
    *,
    reader: Callable[[Object], Status] = said,
    command: str = "",
) -> Disputes:
    """Return an object's contested fields with remedies, as its resource lists them.

    `reader` reads what the resource says; for the others see `settled`.
    """
    contested = [f for f in reader(resource).contested if f.object == _named(live)]
    return settled(contested, resource, owner, program, command)


def settled(
    fields: Sequence[ContestedField],
    resource: Object,
    owner: ObjectRef,
    program: str = PROGRAM,
    command: str = "",
) -> Disputes:
    """Return contested fields of a resource's objects with remedies.

    `owner` refers to that resource; `program` manages it, and is called by `command`.
    """
    annotations: Mapping[str, str] = metadata(resource).get("annotations") or {}
    called = {"program": program, "command": command}
    each = tuple(Dispute(f, remedies(owner, annotations, f, **called)) for f in fields)
    return Disputes(each, tuple(_together(owner, annotations, each)))


def _together(
    resource: ObjectRef, annotations: Mapping[str, str], disputes: Sequence[Dispute]
) -> Iterator[Remedy]:
    """Yield the commands that settle several contested fields at once.

    Those of each field replace each other: they write the same annotation.
    """
    for word, effect in ((YIELD, LEAVE_ALL), (CLAIM, TAKE_ALL)):
        meant = [
            dispute.field
            for dispute in disputes
            if any(f"{word}=" in remedy.command for remedy in dispute.remedies)
        ]
        if len(meant) > 1:
            yield from annotate(resource, annotations, word, effect, *meant)


def choose(ownership: Ownership, manager: str = "", *, contested: bool = False) -> Ownership:
    """Return only the places that a manager (a glob) holds, or that are contested, or both.

    A chosen place keeps all its holders. Branches that only lead to a chosen place have none.
    """

    def wanted(node: Node) -> bool:
        named = not manager or any(_is_meant(holder, manager) for holder in node.holders)
        return named and (bool(node.contested) or not contested)

    gone = [field for field in ownership.gone if not manager or _is_meant(field.holder, manager)]
    return replace(
        ownership,
        fields=_pruned(ownership.fields, wanted),
        gone=() if contested else tuple(gone),
        missing=() if manager else ownership.missing,
    )


UNKNOWN: Final = "it is not known which fields are contested"
"""The message if the resource that controls an object may not be read."""


def nothing(manager: str = "", *, contested: bool = False, hidden: bool = False) -> str:
    """Return what is said of an object of which `choose` leaves nothing.

    `hidden` says that the resource which may contest fields cannot be read.
    """
    if contested and hidden:
        return UNKNOWN
    if contested:
        return f"no field of {manager} is contested" if manager else "no field is contested"
    return f"no field is held by {manager}" if manager else "no field is held"


def _is_meant(holder: Holder, manager: str) -> bool:
    return fnmatchcase(holder.manager, manager)


def _pruned(nodes: tuple[Node, ...], wanted: Callable[[Node], bool]) -> tuple[Node, ...]:
    pruned = (_kept(node, _pruned(node.children, wanted), wanted(node)) for node in nodes)
    return tuple(node for node in pruned if node is not None)


def _kept(node: Node, children: tuple[Node, ...], is_wanted: bool) -> Node | None:
    """Return a wanted node; a branch that only leads to wanted nodes loses its holders."""
    if is_wanted:
        return replace(node, children=children)
    return replace(node, children=children, holders=(), contested="") if children else None


def _named(obj: Object) -> str:
    return f"{obj.get('kind', '')}/{metadata(obj).get('name', '')}"
