"""Diff: the changes between two forms of one object, field by field, with the managers."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from hedgerow.encoding import to_ascii
from hedgerow.fields.canonical import identical
from hedgerow.fields.managed_fields import entries
from hedgerow.fields.paths import is_list, path_of, show
from hedgerow.fields.redaction import HIDDEN, is_private
from hedgerow.fields.sets import members
from hedgerow.objects import metadata
from hedgerow_tools.fields.field_tree import owners

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.field_tree import Node
    from hedgerow_tools.fields.structure import Structure

DifferenceKind = Literal["added", "changed", "removed", "moved", "released", "shared"]
_SHAPES: Final = "\0shapes"
"""The manager of entries that are added to an object only for the list keys they contain."""
_DELETION: Final = frozenset({"deletionGracePeriodSeconds", "deletionTimestamp"})
_BOOKKEEPING: Final = frozenset({
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
    "managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid",
})  # fmt: skip


class Line(Struct, frozen=True, rename={"kind": "change", "after": "holdersAfter"}):
    """One field that differs; its path is as managed fields and the causes of a conflict print it.

    `old` of what is added is UNSET, and so is `new` of what is removed. `holders` are the managers
    before, `after` those afterwards. moved: the items of a list are in another order; `old` and
    `new` are these orders, of a keyed list as paths print its items, and without those that are not
    in both. released: we no longer hold the field, and its value stays. shared: we now hold it too,
    and its value stays. If nobody holds a changed field `after`, the server set it: as a default,
    or by admission.
    """

    path: str
    kind: DifferenceKind
    old: Any
    new: Any
    holders: tuple[Holder, ...]
    after: tuple[Holder, ...]

    @property
    def is_change(self) -> bool:
        """Whether the value itself differs."""
        return self.kind in ("added", "changed", "removed", "moved")


class ComparedFields(Struct, frozen=True):
    """The fields of one version of an object, by place: its leaves, and each list's items."""

    leaves: dict[FieldPath, Node]
    lists: dict[FieldPath, dict[str, Node]]


class Reordering(Struct, frozen=True):
    """A list whose items are in another order than before: those in both versions, as they were."""

    field_path: FieldPath
    old: tuple[Node, ...]
    new: tuple[Node, ...]


def difference(
    before: Object | None,
    after: Object | None,
    field_manager: str,
    structure: Structure | None = None,
) -> tuple[Line, ...]:
    """Return the fields that differ between two versions of an object; None: it does not exist.

    Its identity and the metadata that only the server sets are left out, and its status unless
    `writes_status`. Values of a Secret are compared, but hidden in the result. `structure` is that
    of the object's kind, if known.
    """
    was, now = fields(before, after, structure), fields(after, before, structure)
    old, new = was.leaves, now.leaves
    places = [*new, *(place for place in old if place not in new)]
    lines = {place: _line(place, old.get(place), new.get(place), field_manager) for place in places}
    lines |= {change.field_path: _moved(change) for change in reordered(was, now)}
    kind = str((after or before or {}).get("kind", ""))
    return tuple(
        _hidden(line) if is_private(kind, place) else line for place, line in lines.items() if line
    )


def _line(
    field_path: tuple[str, ...], old: Node | None, new: Node | None, field_manager: str
) -> Line | None:
    held, holds = old.holders if old else (), new.holders if new else ()
    was_value, value = old.value if old else UNSET, new.value if new else UNSET
    kind: DifferenceKind
    if old is None or new is None:
        kind = "added" if old is None else "removed"
    elif not identical(was_value, value):
        kind = change_of(was_value, value)
    else:
        was, ours = (any(h.is_applier(field_manager, "") for h in some) for some in (held, holds))
        if was == ours:
            return None
        kind = "shared" if ours else "released"
    return Line(path_of(field_path), kind, was_value, value, held, holds)


def change_of(old: Any, new: Any) -> Literal["changed", "moved"]:
    """Return how a value became another one: a list may have only its items in another order."""
    if is_list(old) and is_list(new) and len(old) == len(new):
        before, after = (sorted(map(_text, items)) for items in (old, new))
        return "moved" if before == after else "changed"
    return "changed"


def _text(value: Any) -> str:
    return to_ascii(value, ordered=True)


def reordered(before: ComparedFields, after: ComparedFields) -> Iterator[Reordering]:
    """Yield the lists of which the items that are in both versions are in another order."""
    for place, items in after.lists.items():
        others = before.lists.get(place, {})
        old = [element for element in others if element in items]
        new = [element for element in items if element in others]
        if old != new:
            nodes = (tuple(by[e] for e in order) for by, order in ((others, old), (items, new)))
            yield Reordering(place, *nodes)


def moved_items(old: Sequence[Any], new: Sequence[Any]) -> list[int]:
    """Return the indices in `new` of the fewest items whose moves make it of `old`'s order."""
    where: defaultdict[str, deque[int]] = defaultdict(deque)
    for index, item in enumerate(old):
        where[_text(item)].append(index)
    order = [where[_text(item)].popleft() for item in new]
    stay = _longest_rise(order)
    return [index for index in range(len(order)) if index not in stay]


def _longest_rise(order: Sequence[int]) -> set[int]:
    """Return the indices of a longest rising subsequence of different numbers."""
    ends: list[int] = []
    indices: list[int] = []
    above: list[int] = []
    for index, number in enumerate(order):
        length = bisect_left(ends, number)
        above.append(indices[length - 1] if length else -1)
        ends[length : length + 1], indices[length : length + 1] = [number], [index]
    rise: set[int] = set()
    last = indices[-1] if indices else -1
    while last >= 0:
        rise.add(last)
        last = above[last]
    return rise


def _moved(change: Reordering) -> Line:
    old, new = ([show(node.field_path[-1]) for node in nodes] for nodes in (change.old, change.new))
    path = path_of(change.field_path)
    return Line(path, "moved", old, new, holders(change.old), holders(change.new))


def holders(nodes: Iterable[Node]) -> tuple[Holder, ...]:
    """Return the managers of several places, each once."""
    return tuple(dict.fromkeys(holder for node in nodes for holder in node.holders))


def fields(
    live: Object | None,
    other: Object | None,
    structure: Structure | None = None,
    *,
    whole: bool = False,
) -> ComparedFields:
    """Return the fields to compare; list keys are taken from both versions of the object.

    `whole`: with the status, and with what the server sets when a deletion begins.
    """
    if live is None:
        return ComparedFields({}, {})
    left_out = _BOOKKEEPING - _DELETION if whole else _BOOKKEEPING
    tops = ("kind",) if whole or writes_status(live, other) else ("status", "kind")
    lent = [{**entry, "manager": _SHAPES} for entry in _managed(other)]
    meta = {name: value for name, value in metadata(live).items() if name not in left_out}
    looked: Object = {
        **{k: v for k, v in live.items() if k not in tops},
        "metadata": {**meta, "managedFields": [*_managed(live), *lent]},
    }
    compared = ComparedFields({}, {})
    for node in owners(looked, structure=structure).places():
        if node.kind == "branch":
            items = {item.field_path[-1]: _honest(item) for item in node.children if _is_item(item)}
            compared.lists.update({node.field_path: items} if items else {})
        elif _counts(node):
            compared.leaves[node.field_path] = _honest(node)
    return compared


def writes_status(*versions: Object | None) -> bool:
    """Return whether writes to the object itself write its status, as managed fields record.

    So it is of a kind without a status subresource. With one, the status changes at any time, and
    by other writes than those that are compared.
    """
    return any(
        "f:status" in tree
        for live in versions
        for holder, _, tree in entries(live or {})
        if not holder.subresource
    )


def is_held_otherwise(before: Object | None, after: Object | None) -> bool:
    """Return whether writes to the object itself hold other places of it than before.

    Besides what `difference` tells, these are maps and lists that are held as such, and whatever
    managers gain and lose that do not apply.
    """
    return _held(before) != _held(after)


def _held(live: Object | None) -> set[tuple[str, str, frozenset[FieldPath]]]:
    held = (
        (holder.manager, holder.operation, frozenset(members(tree)))
        for holder, _, tree in entries(live or {})
        if not holder.subresource
    )
    return {entry for entry in held if entry[-1]}


def _is_item(node: Node) -> bool:
    """Return whether it is a list item that its keys or its value tell from others."""
    return node.field_path[-1][:2] in ("k:", "v:")


def _managed(live: Object | None) -> list[Object]:
    return list(metadata(live or {}).get("managedFields") or ())


def _counts(node: Node) -> bool:
    return node.field_path not in (("f:apiVersion",), ("f:metadata",))


def _honest(node: Node) -> Node:
    return replace(node, holders=tuple(h for h in node.holders if h.manager != _SHAPES))


def _hidden(line: Line) -> Line:
    old, new = (UNSET if value is UNSET else HIDDEN for value in (line.old, line.new))
    return replace(line, old=old, new=new)
