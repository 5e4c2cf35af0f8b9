"""Typed: the algorithms of structured-merge-diff over a schema, by value.

A set of fields is a set of paths; a path is a tuple of fieldsV1 elements. Only what is in the set
is owned: the ancestors of a path are not, unless they are in it themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from hedgerow.encoding import canonical_json, decode, to_ascii
from hedgerow.fields.paths import interleaved
from hedgerow_testing.memory.schema import (
    Atomic,
    Items,
    Keyed,
    Map,
    Object,
    Scalar,
    SetOf,
    Struct,
    TypedSchema,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path = tuple[str, ...]
PathSet = frozenset[Path]


class Absent:
    """An absent value, as opposed to null."""

    def __repr__(self) -> str:
        """Return what a failed comparison shows."""
        return "ABSENT"


ABSENT: Final = Absent()


class Untyped(Exception):  # noqa: N818 - upstream's word
    """A value that does not fit its schema: an unknown field, a list item doubled or keyless."""


def to_tree(fields: PathSet) -> Object:
    """Write a set of fields as fieldsV1."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _collapsed(tree)


def from_tree(tree: Object, above: Path = ()) -> PathSet:
    """Read fieldsV1."""
    paths: set[Path] = set()
    for element, below in tree.items():
        if element == ".":
            paths.add(above)
        elif not below:
            paths.add((*above, element))
        else:
            paths |= from_tree(below, (*above, element))
    return frozenset(paths)


def child(schema: TypedSchema, element: str) -> TypedSchema | None:
    """Return the schema below one element."""
    if isinstance(schema, Struct):
        return schema.fields.get(element[2:], Scalar() if schema.preserves else None)
    if isinstance(schema, Map):
        return schema.values
    if isinstance(schema, Keyed):
        return schema.item
    return schema.item if isinstance(schema, SetOf) else None


def element_of(schema: Keyed | SetOf, item: Any) -> str:
    """Return the element of a list item, keys defaulted."""
    if isinstance(schema, SetOf):
        return "v:" + canonical_json(item)
    if not isinstance(item, dict):
        raise Untyped("a keyed list has an item that is no map")
    filled: Object = {**schema.defaults, **item}
    keys = {key: filled[key] for key in sorted(schema.keys) if key in filled}
    if not keys:
        raise Untyped("a list item leaves out all its keys")
    return "k:" + canonical_json(keys)


def check(schema: TypedSchema | Items, value: Any) -> None:
    """Raise Untyped for a value that an applied configuration may not hold."""
    if text := mistyped(schema, value):
        raise Untyped(text)
    _check_members(schema, value)


def _check_members(schema: TypedSchema | Items, value: Any) -> None:
    """Raise Untyped for unknown fields and doubled items, within atomic values too."""
    if isinstance(schema, Atomic):
        if schema.within is not None:
            _check_members(schema.within, value)
        return
    if isinstance(schema, Keyed | SetOf) and isinstance(value, list):
        elements = [element_of(schema, item) for item in cast("list[Any]", value)]
        if len(set(elements)) < len(elements):
            raise Untyped("duplicate entries for key")
    for name, below, inner in _typed_members(schema, value):
        if below is None:
            raise Untyped(f"{name}: field not declared in schema")
        _check_members(below, inner)


def mistyped(schema: TypedSchema | Items, value: Any, path: str = "") -> str:
    """Return what is not of the type that the schema has there, or nothing: a number for a text.

    Unknown fields are passed over.
    """
    if isinstance(schema, Atomic):
        return mistyped(schema.within, value, path) if schema.within is not None else ""
    if value is None:
        return ""
    got = f"{path}: expected {{}}, got {type(value).__name__}"
    if isinstance(schema, Scalar):
        return "" if schema.takes(value) else got.format(schema.kind)
    if isinstance(schema, Struct | Map) and not isinstance(value, dict):
        return got.format("map")
    if not isinstance(schema, Struct | Map) and not isinstance(value, list):
        return got.format("list")
    mistakes = (
        mistyped(below, inner, f"{path}{name if name.startswith('[') else '.' + name}")
        for name, below, inner in _typed_members(schema, value)
        if below is not None
    )
    return next(filter(None, mistakes), "")


def _typed_members(
    schema: TypedSchema | Items, value: Any
) -> Iterator[tuple[str, TypedSchema | None, Any]]:
    """Yield the members of a map or list, with the schema of each; None if it has none."""
    if isinstance(schema, Struct | Map) and isinstance(value, dict):
        for name, inner in cast("Object", value).items():
            yield name, child(schema, "f:" + name), inner
    elif isinstance(schema, Keyed | SetOf | Items) and isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield f"[{number}]", schema.item, inner


def fields_of(schema: TypedSchema, value: Any, path: Path = ()) -> PathSet:
    """Return the fields of an applied configuration (`ToFieldSet`)."""
    if isinstance(schema, Scalar | Atomic):
        return frozenset({path} - {()})
    paths: set[Path] = set()
    for element, inner in _members(schema, value):
        here = (*path, element)
        paths |= fields_of(child(schema, element) or Scalar(), inner, here)
        named = isinstance(schema, Struct)
        if not named or inner is None or inner == {}:
            paths.add(here)
    return frozenset(paths)


@dataclass
class Difference:
    """The fields that a write removed, modified and added (`Compare`)."""

    removed: set[Path] = field(default_factory=set[Path])
    modified: set[Path] = field(default_factory=set[Path])
    added: set[Path] = field(default_factory=set[Path])

    def keep(self, wanted: Callable[[Path], bool]) -> Difference:
        """Return the part of it whose paths are wanted."""
        return Difference(
            set(filter(wanted, self.removed)),
            set(filter(wanted, self.modified)),
            set(filter(wanted, self.added)),
        )


def compare(schema: TypedSchema, old: Any, new: Any) -> Difference:
    """Compare two whole objects."""
    difference = Difference()
    _compare(schema, old, new, (), difference)
    return difference


def _compare(schema: TypedSchema, old: Any, new: Any, path: Path, difference: Difference) -> None:
    leaf = isinstance(schema, Scalar | Atomic) or (not _filled(old) and not _filled(new))
    if leaf and old is not ABSENT and new is not ABSENT:
        if not same(old, new):
            difference.modified.add(path)
        return
    if not leaf:
        olds, news = dict(_members(schema, old)), dict(_members(schema, new))
        for element in {**olds, **news}:
            below = child(schema, element) or Scalar()
            left, right = olds.get(element, ABSENT), news.get(element, ABSENT)
            _compare(below, left, right, (*path, element), difference)
    if path and old is ABSENT:
        difference.added.add(path)
    elif path and new is ABSENT:
        difference.removed.add(path)


def same(left: Any, right: Any) -> bool:
    """Compare JSON values; 1 is 1.0 but true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        first, second = cast("Object", left), cast("Object", right)
        return first.keys() == second.keys() and all(same(v, second[k]) for k, v in first.items())
    if isinstance(left, list) and isinstance(right, list):
        ones, others = cast("list[Any]", left), cast("list[Any]", right)
        return len(ones) == len(others) and all(map(same, ones, others))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def merge(schema: TypedSchema, old: Any, new: Any) -> Any:
    """Lay an applied configuration over the live object (`Merge`)."""
    if isinstance(schema, Scalar | Atomic) or (not _filled(old) and not _filled(new)):
        return old if new is ABSENT else new
    if isinstance(schema, Struct | Map):
        olds, news = _pairs(old), _pairs(new)
        merged = {
            name: merge(
                child(schema, "f:" + name) or Scalar(),
                olds.get(name, ABSENT),
                news.get(name, ABSENT),
            )
            for name in {**olds, **news}
        }
        return {name: value for name, value in merged.items() if value is not ABSENT} or ABSENT
    return _merge_lists(schema, old, new) or ABSENT


def _merge_lists(schema: Keyed | SetOf, old: Any, new: Any) -> list[Any]:
    """Interleave two lists: the new one's order for shared items, old items where they stood."""
    olds, news = list(_members(schema, old)), list(_members(schema, new))
    old_items, new_items = dict(olds), dict(news)
    return [
        merge(
            child(schema, element) or Scalar(),
            old_items.get(element, ABSENT),
            new_items.get(element, ABSENT),
        )
        for element in interleaved([name for name, _ in olds], [name for name, _ in news])
    ]


def without(schema: TypedSchema, value: Any, fields: PathSet) -> Any:
    """Take fields out of an object (`RemoveItems`)."""
    if not _filled(value) or isinstance(schema, Scalar | Atomic):
        return value if isinstance(schema, Scalar) else ABSENT
    kept: list[tuple[str, Any]] = []
    for element, inner in _members(schema, value):
        if (element,) in fields:
            continue
        below = frozenset(path[1:] for path in fields if len(path) > 1 and path[0] == element)
        left = without(child(schema, element) or Scalar(), inner, below) if below else inner
        kept.append((element, None if left is ABSENT else left))
    if isinstance(schema, Struct | Map):
        return {element[2:]: inner for element, inner in kept} or ABSENT
    return [inner for _, inner in kept] or ABSENT


def with_named(schema: TypedSchema, fields: PathSet) -> PathSet:
    """Add the named fields on the way to each path (`EnsureNamedFieldsAreMembers`)."""
    paths = set(fields)
    for path in fields:
        node: TypedSchema | None = schema
        for depth, element in enumerate(path[:-1]):
            named = isinstance(node, Struct) and element[2:] in node.fields
            if named:
                paths.add(path[: depth + 1])
            node = child(node, element) if node else None
    return frozenset(paths)


def _filled(value: Any) -> bool:
    return value is not ABSENT and value is not None and value not in ({}, [])


def _pairs(value: Any) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def _members(schema: TypedSchema, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, Struct | Map) and isinstance(value, dict):
        yield from (("f:" + name, inner) for name, inner in _pairs(value).items())
    elif isinstance(schema, Keyed | SetOf) and isinstance(value, list):
        yield from ((element_of(schema, item), item) for item in cast("list[Any]", value))


def _collapsed(tree: Object) -> Object:
    out = {element: _collapsed(below) for element, below in tree.items() if element != "."}
    if out and "." in tree:
        out["."] = {}
    return out


def path_of(path: Path) -> str:
    """Print a path as a conflict's cause does."""
    return "".join(map(_shown, path))


def _shown(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return "." + text
    value = decode(text.encode())
    if kind == "v":
        return f"[={to_ascii(value)}]"
    return "[" + ",".join(f"{name}={to_ascii(value[name])}" for name in sorted(value)) + "]"
