"""Fieldset: the elements of fieldsV1, the list items they stand for, and how they are printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeGuard

Tree = Mapping[str, Any]
"""A `fieldsV1` tree or a part of it: elements to subtrees; `{}` is a leaf."""

SELF: Final = "."
"""The element that says: the map or item itself is owned, not only what is in it."""

Key = tuple[Any, ...]


class Element(NamedTuple):
    """One parsed element: `f:spec`, `k:{"name":"c"}` or `v:"x"`.

    `names` are field names (of `f:` the one, of `k:` the keys in sorted order), `values` the key
    values or the set's value.
    """

    kind: Literal["f", "k", "v", "?"]
    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def key(self) -> Key:
        """The values as something that can be looked up; strict about JSON types."""
        return tuple(_token(value) for value in self.values)


def is_map(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a JSON value is an array."""
    return isinstance(value, list)


@lru_cache(maxsize=8192)
def parse(element: str) -> Element:
    """Parse an element of fieldsV1; what cannot be read is of kind `?` and matches nothing."""
    kind, _, text = element.partition(":")
    if kind == "f":
        return Element("f", (text,))
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):  # anybody may write an element, as deep as they like
        return Element("?")
    if kind == "v":
        return Element("v", (), (value,))
    if kind == "k" and is_map(value):
        pairs = sorted(value.items())
        return Element("k", tuple(name for name, _ in pairs), tuple(value for _, value in pairs))
    return Element("?")


@lru_cache(maxsize=8192)
def show(element: str) -> str:
    """Print an element as the field of a 409's cause does: `.spec`, `[name="c"]`, `[="x"]`."""
    parsed = parse(element)
    if parsed.kind == "f":
        return "." + parsed.names[0]
    if parsed.kind == "v":
        return f"[={_go(parsed.values[0])}]"
    if parsed.kind == "k":
        pairs = zip(parsed.names, parsed.values, strict=True)
        return "[" + ",".join(f"{name}={_go(value)}" for name, value in pairs) + "]"
    return f"[{element.partition(':')[2]}]"


def path_of(steps: Iterable[str]) -> str:
    """Print elements as one path: `.spec.template.spec.containers[name="blue"].image`."""
    return "".join(map(show, steps))


def assign(items: Sequence[Any], known: Iterable[str]) -> list[str | None]:
    """Give each list item its element among `known`, or None where none fits.

    Exact keys come first. An item that leaves out a key with a default (`protocol`) gets what is
    left over; where several fit, the first one: a guess, hence: spell keys out.
    """
    elements = [(element, parse(element)) for element in known]
    exact = {(parsed.names, parsed.key): element for element, parsed in elements}
    shapes = dict.fromkeys(parsed.names for _, parsed in elements if parsed.kind in "kv")
    chosen = [_exact(item, shapes, exact) for item in items]
    if None not in chosen:
        return chosen
    rest = [(element, parsed) for element, parsed in elements if element not in chosen]
    return [have or _leftover(item, rest) for item, have in zip(items, chosen, strict=True)]


def coin(item: Any, known: Iterable[str]) -> str | None:
    """Write the element for an item that no entry has, shaped as the `known`; None if keyless."""
    for parsed in map(parse, known):
        if parsed.kind == "v":
            return "v:" + json.dumps(item)
        if parsed.kind == "k" and _key(item, parsed.names) is not None:
            return "k:" + json.dumps({name: item[name] for name in parsed.names})
    return None


def positions(items: Sequence[Any], elements: Iterable[str]) -> dict[str, list[int]]:
    """Tell for each element at which indices of a live list it stands."""
    indexed: dict[tuple[str, ...], dict[Key, list[int]]] = {}
    found: dict[str, list[int]] = {}
    for element in elements:
        parsed = parse(element)
        if parsed.names not in indexed:
            indexed[parsed.names] = _index(items, parsed.names)
        found[element] = indexed[parsed.names].get(parsed.key, []) if parsed.values else []
    return found


def _index(items: Sequence[Any], names: tuple[str, ...]) -> dict[Key, list[int]]:
    index: dict[Key, list[int]] = {}
    for position, item in enumerate(items):
        key = _key(item, names)
        if key is not None:
            index.setdefault(key, []).append(position)
    return index


def _key(item: Any, names: tuple[str, ...]) -> Key | None:
    """Read an item's key values; no names means a set, whose items are their own key."""
    if not names:
        return (_token(item),)
    if not is_map(item):
        return None
    try:
        return tuple([_token(item[name]) for name in names])
    except KeyError:
        return None


def _exact(
    item: Any, shapes: Iterable[tuple[str, ...]], exact: Mapping[tuple[Any, Key], str]
) -> str | None:
    for names in shapes:
        key = _key(item, names)
        element = None if key is None else exact.get((names, key))
        if element is not None:
            return element
    return None


def _leftover(item: Any, rest: list[tuple[str, Element]]) -> str | None:
    for position, (element, parsed) in enumerate(rest):
        if parsed.kind == "k" and is_map(item) and _agrees(item, parsed):
            del rest[position]
            return element
    return None


def _agrees(item: Mapping[str, Any], parsed: Element) -> bool:
    pairs = list(zip(parsed.names, parsed.key, strict=True))
    said = [(name, key) for name, key in pairs if name in item]
    return all(_token(item[name]) == key for name, key in said)


def _token(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type(value), repr(value)
    return value


def _go(value: Any) -> str:
    """Print a scalar as Go's `%v`, a string as its `%q`."""
    if isinstance(value, str):
        return '"' + "".join(map(_quoted, value)) + '"'
    return json.dumps(value)


_ESCAPES: Final = dict(
    zip('\a\b\f\n\r\t\v\\"', (*(f"\\{c}" for c in "abfnrtv\\"), '\\"'), strict=True)
)
_DELETE: Final = 0x7F
_BASIC_PLANE: Final = 0x10000


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < ord(" ") or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BASIC_PLANE else f"\\U{code:08x}"
