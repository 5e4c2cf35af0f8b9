"""Field patterns: paths with `*` and `**`, and which fields of an object they cover.

Patterns are matched together, part by part, without regular expressions. A part is compared with at
most 4096 characters of a step, so the work depends on the patterns' length and not on the path's.
"""

from __future__ import annotations

import dataclasses
import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from hedgerow.fields.paths import show
from hedgerow.texts import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hedgerow.fields.sets import FieldPath

LONGEST: Final = 4096
"""The most characters of an annotation, and of a name or item that can be named in one."""
MOST_COMPARED: Final = 300_000
"""The most comparisons for one plan, which take about 0.15 s. Ten paths as long as
`spec.template.spec.containers[name="web"].resources` need 16 for a field."""
SHOWN: Final = 80
"""The most characters of a pattern that an error repeats."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_KEY = rf"[A-Za-z][A-Za-z0-9]*=(?:{_STRING}|-?[0-9]+|true|false)"
_LETTER = r'[^\s.,;:*\[\]"=]'
_TOKEN: Final = re.compile(
    rf"(?P<any>\*\*)|(?P<each>\[\*\])|(?P<dot>\.)"
    rf"|(?P<item>\[(?:={_STRING}|=[^\s\[\]\",]+|{_KEY}(?:,{_KEY})*)\])"
    rf"|(?P<name>{_LETTER}++(?:\*(?!\*){_LETTER}*+)?|\*{_LETTER}*+)"
)
_NEVER_AFTER: Final = {
    "dot": ("dot", "each", "item"), "each": ("name",), "item": ("name",), "name": ("name",),
}  # fmt: skip
_PAIR: Final = re.compile(rf"[\[,]({_KEY})")
_INDEX: Final = re.compile(r"\[[0-9]+\]")
_BY_KEY: Final = '; a list item is named by its keys: [name="web"], or [*] for all of them'
_PRINTED: Final = re.compile(
    r'\.(?P<name>[^.\[]*)|(?P<item>\[(?:"(?:[^"\\]|\\.?+)*+"?+|[^\]"])*+\]?)|[^.\[]+', re.DOTALL
)
"""A step of a printed path. Whatever the text is, each character is read once."""
_FIELD, _DOT, _WHOLE, _EACH = "f:", ".", "*", "[*]"


class FieldPatternError(ValueError):
    """A text that is no pattern; the message says where it breaks."""


class TooManyComparisonsError(ValueError):
    """More parts of patterns were compared than `MOST_COMPARED`."""


class Comparisons(Struct):
    """How many more parts of patterns may be compared with fields: patterns share one of these.

    A field costs up to what the patterns are long, and an object has up to a hundred thousand.
    """

    left: int = MOST_COMPARED

    def spend(self, number: int) -> None:
        """Count comparisons. Raises TooManyComparisonsError."""
        self.left -= number
        if self.left < 0:
            raise TooManyComparisonsError


class Glob(Struct, frozen=True):
    """A text with a `*`: what comes before it, and what comes after it."""

    begin: str
    end: str

    def fits(self, text: str) -> bool:
        """Return whether a whole text is covered."""
        fits = text.startswith(self.begin) and text.endswith(self.end)
        return fits and len(text) >= len(self.begin) + len(self.end)


PatternPart = str | Glob
"""A dot; the name after it, up to the next dot; or a whole step: `*`, `[*]`, or a printed item."""
PatternPlace = tuple[int, int]
"""The index of a step, and of a character of it."""


class FieldPattern(Struct, frozen=True):
    """The parts before `**`, and those after it; without `**` all are before it.

    Of a name that touches `**` a part is known, as in `spec.rep**`.
    """

    before: tuple[PatternPart, ...]
    after: tuple[PatternPart, ...] | None = None


def glob(text: str) -> PatternPart:
    """Return a text that may contain one `*`."""
    begin, star, end = text.partition("*")
    return Glob(begin, end) if star else text


def fits(part: PatternPart, text: str) -> bool:
    """Return whether a name covers a whole text."""
    return part.fits(text) if isinstance(part, Glob) else part == text


def parse(text: str) -> FieldPattern:
    """Return a path as a pattern. Raises FieldPatternError."""
    rest, at, kind, before = "." + text.removeprefix("."), 0, "", None
    parts: list[PatternPart] = []
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        last, kind = kind, str(token and token.lastgroup)
        twice = kind == "any" and before is not None
        if token is None or twice or kind in _NEVER_AFTER.get(last, ()):
            hint = _BY_KEY if _INDEX.match(rest, at) else ""
            where = f"it breaks at {short(rest[at:])}{hint}"
            raise FieldPatternError(f"{short(text)} is no path; {where}")
        at = token.end()
        if kind == "any":
            before, parts = tuple(parts), []
        elif token[0] == _WHOLE and last == "dot":
            parts[-1] = _WHOLE
        elif token[0] != _WHOLE or last != "any":
            parts.append(_READ.get(kind, str)(token[0]))
    if kind == "dot":
        raise FieldPatternError("a path is missing, or ends in a dot")
    return FieldPattern(tuple(parts)) if before is None else FieldPattern(before, tuple(parts))


def short(text: str) -> str:
    """Return a part of a user's text in quotes, cut to a length that fits in a condition."""
    return cut(repr(cut(text.strip(), SHOWN)), SHOWN)


def keys(item: str) -> Iterator[str]:
    """Yield the keys of a printed list item with their values, such as `name="web"`."""
    return (found[1] for found in _PAIR.finditer(item))


def _sorted(item: str) -> str:
    pairs = sorted(keys(item), key=lambda pair: pair.partition("=")[0])
    return f"[{','.join(pairs)}]" if pairs else item


_READ: Final = {"name": glob, "item": _sorted}


def steps_of(path: str) -> FieldPath:
    """Return the steps of a printed path: names as elements, list items as they are printed.

    A key with dots counts as several steps.
    """
    return tuple(
        found[0] if found["name"] is None else f"{_FIELD}{found['name']}"
        for found in _PRINTED.finditer(path)
    )


class _Node(Struct):
    """Patterns that agree up to here: how they go on, and which of them end or become open."""

    exact: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    globs: dict[Glob, _Node] = field(default_factory=dict[Glob, "_Node"])
    ended: list[int] = field(default_factory=list[int])
    opened: list[tuple[PatternPart, tuple[PatternPart, ...], int]] = field(
        default_factory=list[tuple[PatternPart, tuple[PatternPart, ...], int]]
    )
    """At `**`: the beginning of a name before it, the parts after it, and which pattern it is."""


@dataclasses.dataclass(frozen=True)
class FieldPatterns:
    """Patterns that are matched together, by the parts with which they begin."""

    patterns: tuple[FieldPattern, ...]
    comparisons: Comparisons | None = dataclasses.field(default=None, compare=False, repr=False)

    @cached_property
    def _root(self) -> _Node:
        root = _Node()
        for index, pattern in enumerate(self.patterns):
            _add(root, pattern, index)
        return root

    def covers(self, steps: Sequence[str]) -> bool:
        """Return whether one of the patterns covers a field."""
        return next(self.covering(steps), None) is not None

    def covering(self, steps: Sequence[str]) -> Iterator[int]:
        """Yield the indices of the patterns that cover a field, by its elements or `steps_of`.

        Raises TooManyComparisonsError.
        """
        todo, spend = [(self._root, -1, 0)], (self.comparisons or Comparisons()).spend
        while todo:
            node, at, end = todo.pop()
            spend(1 + len(node.globs))
            yield from _opened(node, steps, (at, end), spend)
            if at < 0 or end == len(steps[at]):
                at, end = at + 1, 0
                if at == len(steps):
                    yield from node.ended
                    continue
                known = (node.exact.get(part) for part in _wholes(steps[at]))
                todo += ((found, at, len(steps[at])) for found in known if found)
            dot = node.exact.get(_DOT)
            if dot and _is_field(steps[at]):
                begin = end + 1 if end else len(_FIELD)
                name = steps[at][begin : begin + LONGEST + 1].partition(_DOT)[0]
                spend(1 + len(dot.globs))
                yield from _opened(dot, steps, (at, begin), spend, name)
                todo += ((found, at, begin + len(name)) for found in _named(dot, name))


def _add(node: _Node, pattern: FieldPattern, index: int) -> None:
    parts: Sequence[PatternPart] = pattern.before
    begin: PatternPart = ""
    if pattern.after is not None and _is_name(parts[-1]):
        *parts, begin = parts
    for part in parts:
        if isinstance(part, Glob):
            node = node.globs.setdefault(part, _Node())
        else:
            node = node.exact.setdefault(part, _Node())
    if pattern.after is None:
        node.ended.append(index)
    else:
        node.opened.append((begin, pattern.after, index))


def _is_name(part: PatternPart) -> bool:
    return isinstance(part, Glob) or (part not in (_DOT, _WHOLE) and part[0] != "[")


def _is_field(step: str) -> bool:
    return step.startswith(_FIELD)


def _wholes(step: str) -> tuple[str, ...]:
    """Return the parts that cover a whole step."""
    if _is_field(step):
        return (_WHOLE,)
    return (_EACH, step if step.startswith("[") else show(step))


def _named(node: _Node, name: str) -> Iterator[_Node]:
    if len(name) <= LONGEST:
        if name in node.exact:
            yield node.exact[name]
        yield from (found for part, found in node.globs.items() if part.fits(name))


def _opened(
    node: _Node,
    steps: Sequence[str],
    place: PatternPlace,
    spend: Callable[[int], None],
    name: str = "",
) -> Iterator[int]:
    """Yield the patterns that have come to `**` and whose last parts cover what comes later."""
    for begin, after, index in node.opened:
        spend(1)
        length = _beginning(begin, name)
        rest = None if length is None else _rest(after, steps, spend)
        if rest is not None and rest >= (place[0], place[1] + (length or 0)):
            yield index


def _beginning(part: PatternPart, name: str) -> int | None:
    """Return how many characters of a name it takes until a part of it is found."""
    begin, end = (part.begin, part.end) if isinstance(part, Glob) else (part, "")
    at = name.find(end, len(begin)) if name.startswith(begin) else -1
    return None if at < 0 else at + len(end)


def _rest(
    parts: Sequence[PatternPart], steps: Sequence[str], spend: Callable[[int], None]
) -> PatternPlace | None:
    """Return where the last steps that parts cover begin; None if they cover no last steps."""
    at, end = len(steps), 0
    for number in reversed(range(len(parts))):
        spend(1)
        part = parts[number]
        if part == _DOT:
            end = end - 1 if end > len(_FIELD) else 0
            continue
        is_whole = end == 0
        if is_whole:
            at -= 1
            end = len(steps[at]) if at >= 0 else 0
        if at < 0:
            return None
        if not _is_name(part):
            length = end if is_whole and part in _wholes(steps[at]) else None
        elif _is_field(steps[at]):
            length = _ending(part, _last_name(steps[at], end), is_open=number == 0)
        else:
            length = None
        if length is None:
            return None
        end -= length
    return at, end


def _last_name(step: str, end: int) -> str:
    begin = max(len(_FIELD), end - LONGEST - 1)
    return step[begin:end].rpartition(_DOT)[2]


def _ending(part: PatternPart, name: str, *, is_open: bool) -> int | None:
    """Return how many last characters of a name a part covers: all, or at least its own."""
    if not is_open:
        return len(name) if len(name) <= LONGEST and fits(part, name) else None
    begin, end = (part.begin, part.end) if isinstance(part, Glob) else ("", part)
    at = name.rfind(begin, 0, len(name) - len(end)) if name.endswith(end) else -1
    return None if at < 0 else len(name) - at
