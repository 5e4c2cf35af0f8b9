"""Template: objects as YAML with the actions of Go's templates, by which Helm fills them in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from hedgerow.deploy.manifest import to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PLACE: Final = re.compile(r"zz-([a-z]+)-zz")
_SHORT: Final = 60
"""Characters: a longer text is written as a block, in which nothing needs quotes."""


@dataclass(frozen=True, slots=True)
class Only:
    """A value of a map, or an item of a list, that is there only if a condition is true."""

    condition: str
    value: Any


@dataclass(frozen=True, slots=True)
class Text:
    """A text with actions in it."""

    template: str


@dataclass(frozen=True, slots=True)
class Value:
    """An expression for a value that is no text; `is_block` if it is a map or a list."""

    expression: str
    is_block: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines as they are, between the keys of a map or the items of a list.

    `@` stands for their indent, `@+` for that of the lines below.
    """

    template: str


def place(name: str) -> str:
    """Return the text that stands for a place until objects are written; it is a DNS label too."""
    return f"zz-{name}-zz"


def escaped(text: str) -> str:
    """Return a text that Helm gives out as it is, but for the places in it."""
    return text.replace("{{", '{{ "{{" }}')


def written(objects: list[Any], places: Mapping[str, str]) -> str:
    """Return objects, of which some may be `Only` there, as YAML documents.

    `places` are the expressions for the places; raises KeyError for one that is not there.
    """
    text_lines: list[str] = []
    for made in objects:
        condition, obj = (made.condition, made.value) if isinstance(made, Only) else ("", made)
        lines = ["---", *_lines(obj, 0)]
        if condition:
            lines = [f"{{{{- if {condition} }}}}", *lines, "{{- end }}"]
        text_lines += lines
    return filled("\n".join(text_lines) + "\n", places)


def filled(text: str, places: Mapping[str, str]) -> str:
    """Return a text with the expressions for its places; one that is a value itself is quoted."""
    whole = re.compile(rf"(?m)(?<=: |- ){_PLACE.pattern}$")
    text = whole.sub(lambda match: f"{{{{ {places[match[1]]} | quote }}}}", text)
    return _PLACE.sub(lambda match: f"{{{{ {places[match[1]]} }}}}", text)


def _lines(value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, dict):
        for key, below in cast("dict[Any, Any]", value).items():
            yield from _entry(f"{key}:" if isinstance(key, str) else key, below, indent)
    else:
        for item in value:
            yield from _entry("-", item, indent)


def _entry(start: Any, value: Any, indent: int) -> Iterator[str]:
    """Yield the lines of a key or a hyphen with its value."""
    pad = " " * indent
    if isinstance(start, Lines) or isinstance(value, Lines):
        yield from _as_they_are(start if isinstance(start, Lines) else value, indent)
    elif isinstance(value, Only):
        yield f"{pad}{{{{- if {value.condition} }}}}"
        yield from _entry(start, value.value, indent)
        yield f"{pad}{{{{- end }}}}"
    elif value and isinstance(value, dict | list | tuple):
        yield from _nested(start, cast("Any", value), indent)
    else:
        yield from _scalar(start, value, indent)


def _nested(start: str, value: dict[Any, Any] | Sequence[Any], indent: int) -> Iterator[str]:
    pad = " " * indent
    if not isinstance(value, dict):
        yield f"{pad}{start}{_if_empty(value)}"
        yield from _lines(value, indent)
    elif start == "-":
        first, *rest = _lines(value, indent + 2)
        yield f"{pad}- {first.strip()}"
        yield from rest
    else:
        yield f"{pad}{start}"
        yield from _lines(value, indent + 2)


def _scalar(start: str, value: Any, indent: int) -> Iterator[str]:
    pad = " " * indent
    match value:
        case Value(expression, True):
            yield f"{pad}{start} {{{{- toYaml {expression} | nindent {indent + 2} }}}}"
        case Value(expression):
            yield f"{pad}{start} {{{{ {expression} }}}}"
        case Text(template):
            yield from _block(start, template, indent)
        case str() if len(value) > _SHORT or "{{" in value:
            yield from _block(start, escaped(value), indent)
        case _:
            scalar = to_yaml({"a": value}).removeprefix("a: ").rstrip("\n")
            yield f"{pad}{start} {scalar}"


def _if_empty(items: Sequence[Any]) -> str:
    """Return the action that writes `[]` if none of the items is there."""
    if not all(isinstance(item, Only) for item in items):
        return ""
    conditions = dict.fromkeys(f"({item.condition})" for item in items)
    return f"{{{{ if not (or {' '.join(conditions)}) }}}} []{{{{ end }}}}"


def _block(start: str, template: str, indent: int) -> Iterator[str]:
    pad = " " * indent
    yield f"{pad}{start} |-"
    yield from (f"{pad}  {line}" if line else "" for line in template.splitlines())


def _as_they_are(lines: Lines, indent: int) -> Iterator[str]:
    pad = " " * indent
    text = lines.template.replace("@+", str(indent + 2)).replace("@", str(indent))
    yield from (pad + line for line in text.splitlines())
