"""Field patterns: paths with `*`, `[*]` and a last `**`, and which fields of an object they cover.

Patterns are matched together, step by step and without regular expressions, so a field costs what
its own path is long, however many patterns there are.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow.fields.paths import show
from hedgerow.texts import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hedgerow.fields.sets import FieldPath

LONGEST: Final = 4096
"""The most characters of an annotation, and of a name or item that can be named in one."""
SHOWN: Final = 80
"""The most characters of a pattern that an error repeats."""
ANY: Final = "*"
"""Any name: a field's, whatever dots it has, or that of an object."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_KEY = rf"[A-Za-z][A-Za-z0-9]*=(?:{_STRING}|-?[0-9]+|true|false)"
_TOKEN: Final = re.compile(
    rf"(?P<each>\[\*\])|(?P<dot>\.)"
    rf"|(?P<item>\[(?:={_STRING}|=[^\s\[\]\",]+|{_KEY}(?:,{_KEY})*)\])"
    rf'|(?P<name>[^\s.,;:\[\]"=]+)'
)
_NEVER_AFTER: Final = {"dot": ("dot", "each", "item"), "each": ("name",), "item": ("name",)}
_PAIR: Final = re.compile(rf"[\[,]({_KEY})")
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_BY_KEY: Final = '; a list item is named by its keys: [name="web"], or [*] for all of them'
_WHOLE_NAME: Final = "; * stands for a whole name, as in spec.*"
_AT_THE_END: Final = (
    "; ** stands only at the end, as in spec.**; before it, write each step, or * for any"
)
_PRINTED: Final = re.compile(
    r'\.(?P<name>[^.\[]*)|(?P<item>\[(?:"(?:[^"\\]|\\.?+)*+"?+|[^\]"])*+\]?)|[^.\[]+', re.DOTALL
)
"""A step of a printed path. Whatever the text is, each character is read once."""
_FIELD, _EACH, _BELOW = "f:", "[*]", "**"


class FieldPatternError(ValueError):
    """A text that is no pattern; the message says where it breaks, and what to write instead."""


class FieldPattern(Struct, frozen=True):
    """A path: its names, split at their dots, list items as they are printed, `*` and `[*]`.

    `is_open`: it covers all fields below that path (`**`), and not the path itself.
    """

    parts: tuple[str, ...]
    is_open: bool = False


def parse(text: str) -> FieldPattern:
    """Return a path as a pattern. Raises FieldPatternError."""
    rest, at, kind = "." + text.removeprefix("."), 0, ""
    parts: list[str] = []
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        last, kind = kind, str(token and token.lastgroup)
        is_last = token is not None and token.end() == len(rest)
        if token is None or kind in _NEVER_AFTER.get(last, ()) or not _stands(token[0], is_last):
            where = f"it breaks at {short(rest[at:])}{_hint(rest[at:])}"
            raise FieldPatternError(f"{short(text)} is no path; {where}")
        at = token.end()
        if token[0] == _BELOW:
            return FieldPattern(tuple(parts), is_open=True)
        if kind != "dot":
            parts.append(_sorted(token[0]) if kind == "item" else token[0])
    if kind == "dot":
        raise FieldPatternError("a path is missing, or ends in a dot")
    return FieldPattern(tuple(parts))


def _stands(token: str, is_last: bool) -> bool:
    """Return whether a token has no star but where one may stand."""
    if token[0] == "[":
        return True
    return ANY not in token or token == ANY or (token == _BELOW and is_last)


def _hint(rest: str) -> str:
    """Return the text to write instead of the part that breaks a path; empty if unknown."""
    if _INDEX.match(rest):
        return _BY_KEY
    token = _TOKEN.match(rest)
    if token is None or ANY not in token[0]:
        return ""
    return _AT_THE_END if _BELOW in token[0] else _WHOLE_NAME


def short(text: str) -> str:
    """Return a part of a user's text in quotes, cut to a length that fits in a condition."""
    return cut(repr(cut(text.strip(), SHOWN)), SHOWN)


def keys(item: str) -> Iterator[str]:
    """Yield the keys of a printed list item with their values, such as `name="web"`."""
    return (match[1] for match in _PAIR.finditer(item))


def _sorted(item: str) -> str:
    pairs = sorted(keys(item), key=lambda pair: pair.partition("=")[0])
    return f"[{','.join(pairs)}]" if pairs else item


def steps_of(path: str) -> FieldPath:
    """Return the steps of a printed path: names as elements, list items as they are printed.

    A key with dots counts as several steps.
    """
    return tuple(
        match[0] if match["name"] is None else f"{_FIELD}{match['name']}"
        for match in _PRINTED.finditer(path)
    )


class FieldPatterns(Struct, frozen=True, dict=True):
    """Patterns that are matched together."""

    patterns: tuple[FieldPattern, ...]

    def covers(self, steps: Sequence[str]) -> bool:
        """Return whether one of the patterns covers a field, by its elements or `steps_of`."""
        return self._matcher.covering(steps) != 0

    def first(self, places: Iterable[FieldPath]) -> dict[int, FieldPath]:
        """Return for each pattern that covers one of these fields, by its index, the first one."""
        places_by_number: dict[int, FieldPath] = {}
        left = sum(self._matcher.ends)
        for place in places:
            if not left:
                break
            new = self._matcher.covering(place) & left
            if new:
                left ^= new
                met = (index for index, end in enumerate(self._matcher.ends) if new & end)
                places_by_number.update(dict.fromkeys(met, place))
        return places_by_number

    @cached_property
    def _matcher(self) -> _Matcher:
        matcher = _Matcher()
        for pattern in self.patterns:
            matcher.add(pattern)
        return matcher


class _Matcher:
    """Matches all patterns at once: Shift-And (Baeza-Yates and Gonnet 1992).

    An integer says how far each pattern has come along a path. It has a bit for each part of each
    pattern, that part being the next one, and a bit for each pattern's end. The limits of an
    annotation (`LONGEST`, `yield_and_claim.MOST`) bound it to some 2,100 bits.

    The integers on the way to the last path are kept: fields are asked about in the order of a
    tree, and a step that the next path begins with, too, is not taken again. So a tree costs what
    its own names and items are long together. Measured with the largest annotations of each kind
    and 5,000 fields in tests/plan/test_yield_and_claim.py.
    """

    __slots__ = (
        "_any", "_bit", "_closed", "_each", "_items", "_names", "_open", "_path", "_trail", "ends",
    )  # fmt: skip

    def __init__(self) -> None:
        self._bit = 1
        self._names: dict[str, int] = {}
        self._items: dict[str, int] = {}
        self._any = self._each = self._closed = self._open = 0
        self._path: Sequence[str] = ()
        self._trail: list[tuple[int, int]] = [(0, 0)]
        self.ends: list[int] = []

    def add(self, pattern: FieldPattern) -> None:
        """Add a pattern, before the first question."""
        self._trail = [(self._trail[0][0] | self._bit, 0)]
        for part in pattern.parts:
            if part == ANY:
                self._any |= self._bit
            elif part == _EACH:
                self._each |= self._bit
            else:
                known = self._items if part[0] == "[" else self._names
                known[part] = known.get(part, 0) | self._bit
            self._bit <<= 1
        self.ends.append(self._bit)
        if pattern.is_open:
            self._open |= self._bit
        else:
            self._closed |= self._bit
        self._bit <<= 1

    def covering(self, steps: Sequence[str]) -> int:
        """Return the ends of the patterns that cover a path."""
        trail, same = self._trail, 0
        for known, step in zip(self._path, steps, strict=False):
            if known != step:
                break
            same += 1
        del trail[same + 1 :]
        self._path = steps
        state, covered = trail[-1]
        for step in steps[same:]:
            covered |= state & self._open
            state = self._after(state, step) if state else 0
            trail.append((state, covered))
        return covered | state & self._closed

    def _after(self, state: int, step: str) -> int:
        if not step.startswith(_FIELD):
            item = step if step[:1] == "[" else show(step)
            return (state & (self._items.get(item, 0) | self._each)) << 1
        named = state
        # No pattern has a longer name.
        for word in step[len(_FIELD) :].split(".") if len(step) <= LONGEST else ("",):
            named = (named & self._names.get(word, 0)) << 1
            if not named:
                break
        return named | (state & self._any) << 1
