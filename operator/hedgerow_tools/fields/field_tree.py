"""Field tree: a live object as a tree in which each field has its managers.

As in `ownership`, the fieldsV1 trees tell list keys and atomic fields; where they do not, or tell
what was so before a definition was changed, the server's OpenAPI does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from hedgerow.fields.managed_fields import Entries, Holder, all_holders, entries, held
from hedgerow.fields.paths import (
    SELF,
    Tree,
    coin,
    is_list,
    is_map,
    named,
    parse,
    path_of,
    show,
)
from hedgerow.fields.redaction import HIDDEN
from hedgerow.fields.sets import members
from hedgerow.objects import metadata
from hedgerow_tools.fields.concealing import concealed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.structure import Structure


_ROOT_IDENTITY: Final = frozenset({"f:apiVersion", "f:kind"})
_METADATA_IDENTITY: Final = frozenset({
    "f:creationTimestamp", "f:deletionGracePeriodSeconds", "f:deletionTimestamp", "f:generation",
    "f:name", "f:namespace", "f:resourceVersion", "f:selfLink", "f:uid",
})  # fmt: skip
_METADATA_DEPTH: Final = 2


class Node(Struct, frozen=True):
    """One place of an object.

    A `leaf` has a `value`: a scalar, or a whole map or list that is atomic or empty. A `branch` has
    `children` and may be held itself, which fieldsV1 writes as `.`. An `identity` is set by the
    server alone, which does not record it in managed fields. `field_path` are fieldsV1 elements;
    for a list item with unknown keys the last one is `i:` and the index. `contested` names the
    resource that declares another value here.
    """

    field_path: tuple[str, ...]
    kind: Literal["leaf", "branch", "identity"]
    value: Any = None
    holders: tuple[Holder, ...] = ()
    children: tuple[Node, ...] = ()
    contested: str = ""

    @property
    def path(self) -> str:
        """The place as managed fields and the causes of a conflict print it."""
        return path_of(self.field_path)

    @property
    def name(self) -> str:
        """The last step of the path: `.image` or `[name="blue"]`."""
        return show(self.field_path[-1])

    @property
    def unowned(self) -> bool:
        """Whether nobody holds this value: it is a default, or its manager gave it up."""
        return self.kind == "leaf" and not self.holders

    def walk(self) -> Iterator[Node]:
        """Yield the node and all nodes below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


class MissingField(Struct, frozen=True):
    """A place that an entry holds but the object lacks; `version` is the entry's apiVersion."""

    field_path: tuple[str, ...]
    holder: Holder
    version: str

    @property
    def path(self) -> str:
        """The place as managed fields and the causes of a conflict print it."""
        return path_of(self.field_path)


class Ownership(Struct, frozen=True):
    """The places of a live object; `fields` are its top-level ones, in the server's order.

    `holders` are the managers of all entries. `gone` are places that an entry holds but the object
    lacks. `missing` are pairs: a contested path that the object lacks, and the resource that
    declares it.
    """

    fields: tuple[Node, ...]
    holders: tuple[Holder, ...]
    gone: tuple[MissingField, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()

    def places(self) -> Iterator[Node]:
        """Yield every node, parents first."""
        for field in self.fields:
            yield from field.walk()

    def leaves(self) -> Iterator[Node]:
        """Return every leaf, including unowned and identity ones: each value of the object once."""
        return (node for node in self.places() if node.kind != "branch")


def owners(
    live: Object,
    contested: Mapping[str, str] | None = None,
    structure: Structure | None = None,
) -> Ownership:
    """Return every place of a live object with its managers; raises nothing.

    `contested` maps each path at which a resource declares another value to that resource.
    `structure` is that of the object's kind, if it is known.
    A Secret's values are hidden, and so are its annotations, which may contain a copy of them.
    """
    marks = dict(contested or {})
    walk = _Walk(marks)
    shown = _shown(live)
    fields = walk.map((), shown, held(live), structure)
    ownership = Ownership(fields, tuple(dict.fromkeys(all_holders(live))))
    paths = {node.path for node in ownership.places()} if marks else set[str]()
    missing = tuple(pair for pair in marks.items() if pair[0] not in paths)
    return Ownership(fields, ownership.holders, tuple(_gone(live, ownership)), missing)


class _Walk:
    """One walk over one live object."""

    __slots__ = ("_contested",)

    def __init__(self, contested: Mapping[str, str]) -> None:
        self._contested = contested

    def map(
        self,
        field_path: tuple[str, ...],
        live: Object,
        there: Entries,
        structure: Structure | None,
    ) -> tuple[Node, ...]:
        return tuple(
            self._below(field_path, "f:" + name, value, there, structure)
            for name, value in live.items()
        )

    def _list(
        self,
        field_path: tuple[str, ...],
        live: list[Any],
        there: Entries,
        structure: Structure | None,
    ) -> tuple[Node, ...]:
        coined = structure.item_element if structure else ""
        elements = _elements(live, there, coined)
        return tuple(
            self._below(field_path, element, item, there, structure)
            for element, item in zip(elements, live, strict=True)
        )

    def _below(
        self,
        field_path: tuple[str, ...],
        element: str,
        value: Any,
        there: Entries,
        structure: Structure | None,
    ) -> Node:
        inner = structure.below(element) if structure else None
        return self._node((*field_path, element), value, there.below(element), inner)

    def _node(
        self, field_path: tuple[str, ...], value: Any, there: Entries, structure: Structure | None
    ) -> Node:
        atomic = structure.is_atomic if structure else None
        # Who holds a part of what has become atomic holds it, as the next write will record.
        pairs = [pair for pair in there.pairs if atomic or _is_member(pair[1])]
        holders = tuple(dict.fromkeys(holder for holder, _ in pairs))
        mark = self._contested.get(path_of(field_path), "") if self._contested else ""
        parted = not holders or any(element != SELF for element in there.elements())
        if value and (parted if atomic is None else not atomic):
            children = self._parts(field_path, value, there, structure)
            if children:
                return Node(field_path, "branch", None, holders, children, mark)
        identity = not holders and _is_identity(field_path)
        return Node(field_path, "identity" if identity else "leaf", value, holders, (), mark)

    def _parts(
        self, field_path: tuple[str, ...], value: Any, there: Entries, structure: Structure | None
    ) -> tuple[Node, ...]:
        """Return a map or list in parts, as it is shown if it is held in parts, or by nobody."""
        if is_map(value):
            return self.map(field_path, value, there, structure)
        return self._list(field_path, value, there, structure) if is_list(value) else ()


def _is_member(tree: Tree | None) -> bool:
    return not tree or SELF in tree


def _elements(items: list[Any], there: Entries, coined: str) -> list[str]:
    """Return the element of each live item; an item nobody holds is named by its siblings' keys.

    `coined` is an element of the keys that the items are known to have, or empty. Keys may be
    optional, so the element with the most keys is tried first.
    """
    known = dict.fromkeys(element for element in there.elements() if parse(element).kind in "kv")
    ranked = sorted(known, key=lambda element: -len(parse(element).names))
    more = [coined] if coined and not ranked else []
    elements = named(items, ranked) if ranked else [coin(item, more) for item in items]
    return [element or f"i:{index}" for index, element in enumerate(elements)]


def _is_identity(field_path: tuple[str, ...]) -> bool:
    if len(field_path) == _METADATA_DEPTH:
        return field_path[0] == "f:metadata" and field_path[1] in _METADATA_IDENTITY
    return len(field_path) == 1 and field_path[0] in _ROOT_IDENTITY


def _shown(live: Object) -> Object:
    """Return the object without its managed fields; values of a Secret are hidden."""
    meta = {name: value for name, value in metadata(live).items() if name != "managedFields"}
    shown: Object = {name: meta if name == "metadata" else live[name] for name in live}
    return concealed(shown, lambda _: HIDDEN)


def _gone(live: Object, ownership: Ownership) -> Iterable[MissingField]:
    there = {node.field_path for node in ownership.places()}
    for holder, version, tree in entries(live):
        for field_path in members(tree):
            if field_path not in there:
                yield MissingField(field_path, holder, version)
