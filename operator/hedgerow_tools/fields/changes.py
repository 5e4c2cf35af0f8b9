"""Changes: the fields in which two states of one object differ, and who changed them.

The API server does not say who made a change: managed fields do, as far as they record it. Whoever
changes a value holds it from then on, and the entry gets a new time, in whole seconds. An update
that only removes fields is recorded nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import all_holders
from hedgerow.fields.paths import parse, path_of
from hedgerow_tools.fields.diff import change_of, fields, holders, reordered

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from hedgerow.fields.managed_fields import Holder
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.diff import Reordering
    from hedgerow_tools.fields.field_tree import Node

ChangeKind = Literal["added", "changed", "moved", "removed", "taken", "released"]
Record = Literal["wrote", "holds", "held", "nobody"]
_FieldPath = tuple[str, ...]


class FieldChange(Struct, frozen=True, rename={"kind": "change"}):
    """One field that differs, and what managed fields say of who did it.

    An item of a list that is new or gone is one field. moved: the items of a list are in another
    order. taken, released: the value is as before, and the managers hold the field now, or no
    longer. What is recorded of the managers: they wrote it; one of them wrote it, as they hold it
    now; they held it before it was removed, and who removed it is unknown; or nobody is recorded.
    """

    path: str
    kind: ChangeKind
    record: Record
    managers: tuple[Holder, ...] = ()


def changes(before: Object, after: Object, *, one_write: bool = True) -> tuple[FieldChange, ...]:
    """Return all fields in which two states of an object differ, in the object's order.

    Left out is what the server counts at each write, such as the generation. `one_write`: nothing
    else was written between the two states.
    """
    was, now = fields(before, after, whole=True), fields(after, before, whole=True)
    old, new = was.leaves, now.leaves
    known = frozenset(all_holders(before))
    writers = tuple(dict.fromkeys(holder for holder in all_holders(after) if holder not in known))
    moves = (_reordered(reordering, writers) for reordering in reordered(was, now))
    kept = (*_kept(old, new), *moves)
    # Within the second of its last write, the one who wrote has no new time.
    wrote = (change for change in kept if change.record == "wrote" and change.kind != "released")
    alone = writers or tuple(dict.fromkeys(who for change in wrote for who in change.managers))
    remover = alone if one_write and len(alone) == 1 else ()
    unique = dict.fromkeys((*kept, *_removed(old, new, writers, remover)))
    return tuple(sorted(unique, key=lambda change: _RANKS[change.kind]))


_RANKS: Mapping[ChangeKind, int] = {
    "added": 0,
    "changed": 0,
    "moved": 0,
    "removed": 1,
    "taken": 2,
    "released": 2,
}


def _kept(old: Mapping[_FieldPath, Node], new: Mapping[_FieldPath, Node]) -> Iterator[FieldChange]:
    """Yield the changes of fields that are in the new state."""
    branches = _branches(old)
    for place, node in new.items():
        was = old.get(place)
        if was is None:
            if not (_is_empty(node) and place in branches):
                yield _written("added", _item(place, branches), (), node.holders)
        elif not identical(was.value, node.value):
            yield _written(change_of(was.value, node.value), place, was.holders, node.holders)
        else:
            yield from _changed_hands(place, was.holders, node.holders)


def _written(
    kind: ChangeKind, place: _FieldPath, before: tuple[Holder, ...], after: tuple[Holder, ...]
) -> FieldChange:
    """Return a change of a value: by the entries that are new or have a new time, or the only one.

    Of several that have neither, one wrote within the second of its last write.
    """
    wrote = tuple(holder for holder in after if holder not in before)
    if wrote or len(after) == 1:
        return FieldChange(path_of(place), kind, "wrote", wrote or after)
    return FieldChange(path_of(place), kind, "holds" if after else "nobody", after)


def _reordered(reordering: Reordering, writers: tuple[Holder, ...]) -> FieldChange:
    """Return the change of a keyed list's order, which no manager holds: by who wrote in it.

    An update that changes nothing else is recorded nowhere.
    """
    held = holders(node for item in reordering.new for node in item.walk())
    wrote = tuple(writer for writer in writers if writer in held)
    record: Record = "wrote" if wrote else "nobody"
    return FieldChange(path_of(reordering.field_path), "moved", record, wrote)


def _changed_hands(
    place: _FieldPath, before: tuple[Holder, ...], after: tuple[Holder, ...]
) -> Iterator[FieldChange]:
    """Yield who took and who released a field whose value is as before."""
    if before == after:
        return
    was, now = set(map(_who, before)), set(map(_who, after))
    took = tuple(holder for holder in after if _who(holder) not in was)
    left = tuple(holder for holder in before if _who(holder) not in now)
    if took:
        yield FieldChange(path_of(place), "taken", "wrote", took)
    if left:
        yield FieldChange(path_of(place), "released", "wrote", left)


def _removed(
    old: Mapping[_FieldPath, Node],
    new: Mapping[_FieldPath, Node],
    writers: tuple[Holder, ...],
    remover: tuple[Holder, ...],
) -> Iterator[FieldChange]:
    """Yield the removed fields: removed by the holder that wrote, or by the one who wrote at all.

    The API server records nobody for an update that only removes fields.
    """
    branches = _branches(new)
    for place, node in old.items():
        if place in new or (_is_empty(node) and place in branches):
            continue
        held = set(map(_who, node.holders))
        wrote = tuple(writer for writer in writers if _who(writer) in held) or remover
        record: Record = "wrote" if wrote else "held" if node.holders else "nobody"
        path = path_of(_item(place, branches))
        yield FieldChange(path, "removed", record, wrote or node.holders)


def _item(place: _FieldPath, branches: Container[_FieldPath]) -> _FieldPath:
    """Return the outermost list item around a place that the other state lacks, or the place."""
    for depth in range(1, len(place)):
        if place[:depth] not in branches and parse(place[depth - 1]).kind != "f":
            return place[:depth]
    return place


def _who(holder: Holder) -> tuple[str, str, str]:
    """Return a holder without its time."""
    return holder.manager, holder.operation, holder.subresource


def _branches(places: Iterable[_FieldPath]) -> set[_FieldPath]:
    """Return the places that have one of these below them."""
    return {place[:depth] for place in places for depth in range(1, len(place))}


def _is_empty(node: Node) -> bool:
    """Return whether a leaf is an empty map or list, which is no leaf once something is in it."""
    return node.value in ({}, [])
