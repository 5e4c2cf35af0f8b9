"""Paths: the path elements of fieldsV1, the list items they select, and how paths are printed."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, Final, Literal, NamedTuple, TypeGuard, TypeVar

from hedgerow.encoding import decode, to_ascii
from hedgerow.texts import escaped

V = TypeVar("V")

Tree = Mapping[str, Any]
"""A `fieldsV1` tree or a part of it: elements to subtrees; `{}` is a leaf."""

SELF: Final = "."
"""The element for the map or item itself: it is owned, not only its contents."""

ItemKey = tuple[Any, ...]
FieldNames = tuple[str, ...]


class Element(NamedTuple):
    """One parsed element: `f:spec`, `k:{"name":"c"}` or `v:"x"`.

    `names` are field names: one for `f:`, the sorted keys for `k:`. `values` are the key values,
    or the one value of a set.
    """

    kind: Literal["f", "k", "v", "?"]
    names: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def key(self) -> ItemKey:
        """The values as a key for lookups; different JSON types are never equal."""
        return tuple(_token(value) for value in self.values)


def is_map(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is an array."""
    return isinstance(value, list)


_REMEMBERED: Final = 8192
_LONGEST_REMEMBERED: Final = 256
"""Characters of an element. Of longer ones, such as a set's long values, few are kept in memory."""
_MOST_CHARACTERS: Final = 2**21
"""Of the longer elements together: as many as one object has, since each is in many paths."""
_LONGEST_SHOWN: Final = 1024
"""The most characters of an element in a printed path."""


def remembered(make: Callable[[str], V]) -> Callable[[str], V]:
    """Return `make` with a cache for 8192 elements, and for two million characters of long ones."""
    held = 0

    def weighed(element: str) -> V:
        nonlocal held
        held += len(element)
        return make(element)

    known = lru_cache(maxsize=_REMEMBERED)(make)
    long = lru_cache(maxsize=_REMEMBERED)(weighed)

    @wraps(make)
    def made(element: str) -> V:
        nonlocal held
        if len(element) <= _LONGEST_REMEMBERED:
            return known(element)
        if held > _MOST_CHARACTERS:
            held = 0
            long.cache_clear()
        return long(element)

    return made


@remembered
def parse(element: str) -> Element:
    """Return a parsed element of fieldsV1; an unreadable one has kind `?` and matches nothing."""
    kind, _, text = element.partition(":")
    if kind == "f":
        return Element("f", (text,))
    try:
        value: Any = decode(text.encode())
    except ValueError:  # anyone may write an element, nested to any depth
        return Element("?")
    if kind == "v":
        return Element("v", (), (value,))
    if kind == "k" and is_map(value):
        pairs = sorted(value.items())
        return Element("k", tuple(name for name, _ in pairs), tuple(value for _, value in pairs))
    return Element("?")


@remembered
def show(element: str) -> str:
    """Return an element as a 409's cause prints it: `.spec`, `[name="c"]`, `[="x"]`.

    What is not printable in a name is escaped, unlike there: anyone may give a field any name.
    A very long one is cut, since every path through it repeats it; a digest tells it from others.
    """
    shown = _shown(element)
    if len(shown) <= _LONGEST_SHOWN:
        return shown
    digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{shown[:_LONGEST_SHOWN]}…{digest}"


def _shown(element: str) -> str:
    parsed = parse(element)
    if parsed.kind == "f":
        return "." + escaped(parsed.names[0])
    if parsed.kind == "v":
        return f"[={_go(parsed.values[0])}]"
    if parsed.kind == "k":
        pairs = zip(parsed.names, parsed.values, strict=True)
        return "[" + ",".join(f"{escaped(name)}={_go(value)}" for name, value in pairs) + "]"
    return f"[{escaped(element.partition(':')[2])}]"


def path_of(field_path: Iterable[str]) -> str:
    """Return elements as one path: `.spec.template.spec.containers[name="blue"].image`."""
    return "".join(map(show, field_path))


def assign(items: Sequence[Any], known: Iterable[str]) -> list[str | None]:
    """Return for each list item its element among `known`, or None if none fits.

    Exact matches of all keys come first. An item that omits a key with a default (`protocol`) gets
    the first remaining element that fits. That is a guess, so declarations should write all keys.
    """
    elements = [(element, parse(element)) for element in known]
    exact = {(parsed.names, parsed.key): element for element, parsed in elements}
    shapes = dict.fromkeys(parsed.names for _, parsed in elements if parsed.kind in "kv")
    chosen = [_exact(item, shapes, exact) for item in items]
    if None not in chosen:
        return chosen
    taken = set(chosen)
    rest = _Leftovers([pair for pair in elements if pair[1].kind == "k" and pair[0] not in taken])
    return [have or rest.take_fitting(item) for item, have in zip(items, chosen, strict=True)]


class _Leftovers:
    """Elements that match no item by all keys; each is taken once, in order.

    They are indexed by the keys that an item has, so an item is not compared with all of them.
    """

    __slots__ = ("_elements", "_filed", "_shapes", "_taken")

    def __init__(self, elements: Sequence[tuple[str, Element]]) -> None:
        self._elements = elements
        self._shapes = dict.fromkeys(parsed.names for _, parsed in elements)
        self._filed: dict[tuple[FieldNames, FieldNames], dict[ItemKey, deque[int]]] = {}
        self._taken: set[int] = set()

    def take_fitting(self, item: Any) -> str | None:
        """Return the first free element that agrees with all keys of the item, or None."""
        if not is_map(item):
            return None
        places = [place for names in self._shapes for place in self._first(item, names)]
        if not places:
            return None
        self._taken.add(min(places))
        return self._elements[min(places)][0]

    def _first(self, item: Mapping[str, Any], names: FieldNames) -> Sequence[int]:
        said = tuple(name for name in names if name in item)
        if (names, said) not in self._filed:
            self._filed[names, said] = self._file(names, said)
        filed = self._filed[names, said].get(tuple(_token(item[name]) for name in said))
        while filed and filed[0] in self._taken:
            filed.popleft()
        return (filed[0],) if filed else ()

    def _file(self, names: FieldNames, said: FieldNames) -> dict[ItemKey, deque[int]]:
        filed: dict[ItemKey, deque[int]] = {}
        for place, (_, parsed) in enumerate(self._elements):
            if parsed.names == names:
                keys = dict(zip(names, parsed.key, strict=True))
                filed.setdefault(tuple(keys[name] for name in said), deque()).append(place)
        return filed


def shapes(known: Iterable[str]) -> tuple[str, ...]:
    """Return the first element of each shape, that is each set of keys, as `coin` needs them."""
    first: dict[tuple[str, FieldNames], str] = {}
    for element in known:
        parsed = parse(element)
        first.setdefault((parsed.kind, parsed.names), element)
    return tuple(first.values())


def coin(item: Any, known: Iterable[str]) -> str | None:
    """Return a new element for an item, shaped like a `known` one; None if the item lacks its keys.

    Only the first element of each shape matters: pass `shapes(known)`.
    """
    for parsed in map(parse, known):
        if parsed.kind == "v":
            return "v:" + to_ascii(item)
        if parsed.kind == "k" and _key(item, parsed.names) is not None:
            return "k:" + to_ascii({name: item[name] for name in parsed.names})
    return None


def named(items: Sequence[Any], known: Iterable[str]) -> list[str | None]:
    """Return the element of each list item: a `known` one, or a new one of the same shape.

    None for an item that has none of the keys, and for all if no element is known.
    """
    elements = list(known)
    coined = shapes(elements)
    return [
        element or coin(item, coined)
        for item, element in zip(items, assign(items, elements), strict=True)
    ]


def interleaved(olds: Sequence[str], news: Sequence[str]) -> list[str]:
    """Return the elements of a live and an applied list in the order in which the server has them.

    Those in both have the applied list's order; those in the live one alone stay where they are.
    Source: `mergingWalker.visitListItems` of structured-merge-diff.
    """
    in_both = frozenset(olds) & frozenset(news)
    shared = iter([element for element in news if element in in_both])
    expected = next(shared, None)
    merged: list[str] = []
    taken: set[str] = set()
    left, right = 0, 0
    while left < len(olds) or right < len(news):
        old, new = olds[left] if left < len(olds) else "", news[right] if right < len(news) else ""
        if old and old not in in_both:
            merged.append(old)
            left += 1
        elif old in taken or (old and new and old not in (new, expected)):
            left += 1
        else:
            merged.append(new)
            taken.add(new)
            left, right = left + (old == new), right + 1
            expected = next(shared, None) if new == expected else expected
    return merged


def by_element(places: Mapping[FieldNames, V]) -> dict[str, dict[FieldNames, V]]:
    """Return places with their values, grouped by first element and keyed by the rest."""
    groups: dict[str, dict[FieldNames, V]] = {}
    for field_path, said in places.items():
        if field_path:
            groups.setdefault(field_path[0], {})[field_path[1:]] = said
    return groups


class Positions:
    """The indices of a list's elements; the list is read once for each shape of element."""

    __slots__ = ("_indexed", "_items")

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items
        self._indexed: dict[FieldNames, dict[ItemKey, list[int]]] = {}

    def indices(self, element: str) -> Sequence[int]:
        """Return the indices of the items that an element selects; empty if there are none."""
        parsed = parse(element)
        if not parsed.values:
            return ()
        if parsed.names not in self._indexed:
            self._indexed[parsed.names] = _index(self._items, parsed.names)
        return self._indexed[parsed.names].get(parsed.key, ())


def _index(items: Sequence[Any], names: FieldNames) -> dict[ItemKey, list[int]]:
    """Return the positions of items by their keys; an item may lack a key that is empty.

    The server stores no empty values, and so `{}` for the item `k:{"name":""}`.
    """
    index: dict[ItemKey, list[int]] = {}
    for position, item in enumerate(items):
        key = _key(item, names) or _filled_key(item, names)
        if key is not None:
            index.setdefault(key, []).append(position)
    return index


def _key(item: Any, names: FieldNames) -> ItemKey | None:
    """Return an item's key values; no names means a set, whose items are their own key."""
    if not names:
        return (_token(item),)
    if not is_map(item):
        return None
    try:
        return tuple([_token(item[name]) for name in names])
    except KeyError:
        return None


def _filled_key(item: Any, names: FieldNames) -> ItemKey | None:
    """Return an item's key values, those that it lacks empty."""
    return tuple(_token(item.get(name, "")) for name in names) if is_map(item) else None


def _exact(
    item: Any, shapes: Iterable[FieldNames], exact: Mapping[tuple[Any, ItemKey], str]
) -> str | None:
    for names in shapes:
        key = _key(item, names) or _filled_key(item, names)
        element = None if key is None else exact.get((names, key))
        if element is not None:
            return element
    return None


def _token(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type(value), repr(value)
    return value


def _go(value: Any) -> str:
    """Return a scalar as Go's `%v` prints it, a string as `%q` does."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) is not None
        return f'"{value}"' if plain else '"' + "".join(map(_quoted, value)) + '"'
    return to_ascii(value)


_ESCAPES: Final = dict(
    zip('\a\b\f\n\r\t\v\\"', (*(f"\\{c}" for c in "abfnrtv\\"), '\\"'), strict=True)
)
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
"""ASCII text that needs no escapes: a fast path, since nearly every key is such a text."""
_DELETE: Final = 0x7F
_BASIC_PLANE: Final = 0x10000


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code <= _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BASIC_PLANE else f"\\U{code:08x}"
