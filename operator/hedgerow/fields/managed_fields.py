"""Managed fields: who holds which part of a live object, read from `metadata.managedFields`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from hedgerow.fields.paths import parse
from hedgerow.texts import escaped
from hedgerow_schemas.base import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow.fields.paths import Tree
    from hedgerow_schemas.base import Object


class Holder(Struct, frozen=True, omit_defaults=True):
    """The writer of one `managedFields` entry; `time` is RFC 3339, empty when unknown.

    As JSON it has no member for what is empty.
    """

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""

    def is_applier(self, manager: str, subresource: str) -> bool:
        """Return whether this entry comes from applies of that manager to that subresource.

        An `Update` entry of the same name does not count: the server reports a conflict with it as
        with any other manager (kubernetes/kubernetes#107417).
        """
        return (
            self.manager == manager
            and self.operation == "Apply"
            and self.subresource == subresource
        )


class Entries:
    """The managed fields entries that contain one place, each with its tree at that place.

    A tree is None where its shape is unknown. Subtrees are grouped by element once: looking up
    every element takes time in proportion to the trees, not to elements times entries.
    """

    __slots__ = ("_below", "_everywhere", "pairs")

    def __init__(
        self, pairs: Iterable[tuple[Holder, Tree | None]] = (), *, everywhere: bool = False
    ) -> None:
        """`everywhere`: the entries count for every place below, even if no tree contains it."""
        self.pairs = list(pairs)
        self._everywhere = everywhere
        self._below: dict[str, Entries] | None = None

    def below(self, element: str) -> Entries:
        """Return the entries that contain an element directly below this place."""
        if self._below is None:
            self._below = self._sorted()
        below = self._below.get(element)
        if below is None and self._everywhere:
            return Entries([(holder, None) for holder, _ in self.pairs], everywhere=True)
        return _NO_ENTRIES if below is None else below

    def at(self, field_path: Iterable[str]) -> Entries:
        """Return the entries that contain the place at these elements below this one."""
        place = self
        for element in field_path:
            place = place.below(element)
        return place

    def elements(self) -> Iterator[str]:
        """Return every element of every tree."""
        return (element for _, tree in self.pairs for element in tree or ())

    def _sorted(self) -> dict[str, Entries]:
        sorted_entries: dict[str, Entries] = {}
        for holder, tree in self.pairs:
            for element, below in (tree or {}).items():
                if element not in sorted_entries:
                    sorted_entries[element] = Entries(everywhere=self._everywhere)
                sorted_entries[element].pairs.append((holder, below))
        return sorted_entries


_NO_ENTRIES: Final = Entries()


def held(live: Mapping[str, Any], *, but: tuple[str, str] | None = None) -> Entries:
    """Return an object's entries, without those of the applier `but` (manager, subresource)."""
    pairs = ((holder, tree) for holder, _, tree in entries(live))
    return Entries(pair for pair in pairs if but is None or not pair[0].is_applier(*but))


def entries(live: Mapping[str, Any]) -> Iterator[tuple[Holder, str, Tree]]:
    """Yield each entry's holder, apiVersion and fieldsV1 tree, in the server's order."""
    metadata: dict[str, Any] = live.get("metadata") or {}
    entry: dict[str, Any]
    for entry in metadata.get("managedFields") or ():
        holder = Holder(
            entry.get("manager", ""),
            entry.get("operation", ""),
            escaped(entry.get("subresource", "")),  # the API server takes any
            entry.get("time", ""),
        )
        yield holder, entry.get("apiVersion", ""), entry.get("fieldsV1") or {}


def entry(live: Mapping[str, Any], manager: str, subresource: str = "") -> Tree | None:
    """Return the fieldsV1 tree of a manager's applies, or None when it has no entry."""
    for holder, _, tree in entries(live):
        if holder.is_applier(manager, subresource):
            return tree
    return None


def holders(live: View, *path: str) -> tuple[Holder, ...]:
    """Return who holds a field of an object, or fields below it, in the server's order.

    `path` are names of fields, such as `"spec", "replicas"`. Nobody holds a default, nor replicas
    that were scaled to 0. Of a manager of ours, `Holder.is_applier` tells.
    """
    steps = (f"f:{name}" for name in path)
    return tuple(holder for holder, _ in held(live.raw).at(steps).pairs)


def held_items(live: View, *path: str) -> Iterator[tuple[Holder, View, frozenset[str]]]:
    """Yield the holders of each item of a list that is merged by keys, with their fields.

    An item is given by its keys (of a Service's ports: `port` and `protocol`), with the names of
    the fields that the holder has in it.
    """
    for holder, tree in held(live.raw).at(f"f:{name}" for name in path).pairs:
        for element, below in (tree or {}).items():
            item = parse(element)
            if item.kind == "k":
                keys = dict(zip(item.names, item.values, strict=True))
                yield holder, View(keys), frozenset(name.removeprefix("f:") for name in below)


def applied(live: View, manager: str, *path: str) -> frozenset[str]:
    """Return the names of the fields that a manager's applies hold directly below a place.

    `path` are names of fields, such as `"data"`. It takes one look at the object, however many
    fields there are; `holders` looks at it for each.
    """
    tree: Tree = entry(live.raw, manager) or {}
    for name in path:
        tree = tree.get(f"f:{name}") or {}
    return frozenset(step.removeprefix("f:") for step in tree if step.startswith("f:"))


def all_holders(live: Object) -> tuple[Holder, ...]:
    """Return every entry's holder, in the server's order."""
    return tuple(holder for holder, _, _ in entries(live))
