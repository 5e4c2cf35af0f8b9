"""Narrowing: what stored objects lose by another schema of their definition, or break of it.

The API server prunes what a schema does not have, and refuses every later write of an object that
breaks a rule of it. It says nothing of either when a definition is applied. So the two schemas are
compared, and the objects are looked at by what the later one asks and the present one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from hedgerow.encoding import encode
from hedgerow.fields.paths import is_list, is_map
from hedgerow.texts import cut
from hedgerow.validation import SHOWN, quoted
from hedgerow_schemas.base import View, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Schema = Mapping[str, Any]


class Each(Enum):
    """A step to every item of a list, or to the value of every key of a map."""

    ITEM = "[*]"
    KEY = ".*"


SchemaPath = tuple[str | Each, ...]
ANY: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}
"""The schema of what is kept as it is."""
IDENTITY: Final = frozenset({"apiVersion", "kind", "metadata"})
"""What the API server keeps of an object, whatever its schema has."""
CLOSED: Final = "closed"
"""The limit of a map: the keys that are kept. The others are pruned."""
_RULES: Final = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class SchemaLimit:
    """What a schema asks of the values at a path; `word` is JSON Schema's, or `CLOSED`."""

    path: SchemaPath
    word: str
    value: Any

    def broken_by(self, obj: Any) -> Iterator[str]:
        """Yield what an object loses, or breaks of it, as texts that begin with the path."""
        at = shown(self.path)
        for value in _values(obj, self.path):
            if self.word == CLOSED:
                keys = (cut(key, SHOWN) for key in _lost(value, self.value))
                yield from (f"{at}.{key}: would be lost" for key in keys)
            elif _breaks(self.word, self.value, value):
                yield f"{at or '.'}: {_said(self.word, self.value)}"


def shown(path: SchemaPath) -> str:
    """Return a path as people read it: `.spec.ports[*].name`."""
    return "".join(step.value if isinstance(step, Each) else f".{step}" for step in path)


def limits(before: Schema, after: Schema) -> list[SchemaLimit]:
    """Return what the later schema of an object asks and the present one does not.

    Whether something stored is beyond it, the objects tell.
    """
    return list(_limits(before, after, (), keeps=IDENTITY))


def _limits(
    before: Schema, after: Schema, at: SchemaPath, keeps: frozenset[str]
) -> Iterator[SchemaLimit]:
    present = _asked(before)
    yield from (
        SchemaLimit(at, word, value)
        for word, value in _asked(after).items()
        if value != present.get(word)
    )
    if _closes(before, after):
        yield SchemaLimit(at, CLOSED, keeps | _properties(after).keys())
    for step in (*sorted({**_properties(before), **_properties(after)}), Each.KEY, Each.ITEM):
        was, now = _below(before, step), _below(after, step)
        if was is None or now is None or was == now or (step == "metadata" and keeps):
            continue
        yield from _limits(was, now, (*at, step), _kept_in(now))
    if keeps and "metadata" in _properties(after):
        # Of the metadata a schema limits the name, and nothing of it is pruned.
        was, now = (_properties(_properties(side).get("metadata", {})) for side in (before, after))
        for name in now:
            yield from _limits(was.get(name, {}), now[name], (*at, "metadata", name), frozenset())


def _kept_in(schema: Schema) -> frozenset[str]:
    return IDENTITY if schema.get("x-kubernetes-embedded-resource") else frozenset()


def _properties(schema: Schema) -> Schema:
    return schema.get("properties", {})


def _below(schema: Schema, step: str | Each) -> Schema | None:
    """Return the schema of what is there; None if nothing is."""
    if step is Each.ITEM:
        return schema.get("items")
    if isinstance(step, str) and step in _properties(schema):
        return _properties(schema)[step]
    more = schema.get("additionalProperties")
    return more if is_map(more) else ANY if _is_open(schema) else None


def _is_open(schema: Schema) -> bool:
    return bool(
        schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties")
    )


def _closes(before: Schema, after: Schema) -> bool:
    """Return whether a map has keys that the later schema does not keep."""
    if _is_open(after) or after.get("type") != "object":
        return False
    return _is_open(before) or not _properties(before).keys() <= _properties(after).keys()


_PLAIN: Final = (
    *("enum", "multipleOf", "minLength", "maxLength", "pattern", "format"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
    *("allOf", "anyOf", "oneOf", "not", "x-kubernetes-embedded-resource"),
)
"""Words whose value alone says what is asked."""


def _asked(schema: Schema) -> dict[str, Any]:
    """Return what a schema asks of a value itself, by words that `_breaks` knows."""
    demands = {word: schema[word] for word in _PLAIN if schema.get(word)}
    demands["type"] = (
        "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type"),
        bool(schema.get("nullable")),
    )
    for word in ("minimum", "maximum"):
        if word in schema:
            demands[word] = (schema[word], bool(schema.get(f"exclusive{word.capitalize()}")))
    for name in schema.get("required", ()):
        if "default" not in _properties(schema).get(name, {}):
            demands[f"required {name}"] = name
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        demands["unique"] = tuple(schema.get("x-kubernetes-list-map-keys", ()))
    for rule in schema.get(_RULES, ()):
        text = str(rule["rule"])
        # What holds for new objects alone, or for changes alone, breaks none that is there.
        if not text.startswith("oldSelf.hasValue() ||") and (
            "oldSelf" not in text or rule.get("optionalOldSelf")
        ):
            demands[f"rule {text}"] = str(rule.get("message") or text)
    return demands


def _said(word: str, limit: Any) -> str:
    """Return what a limit asks, in a sentence's words."""
    kind, _, name = word.partition(" ")
    if kind == "required":
        return f"{name} must be set"
    if kind == "rule":
        return f"a new rule, which only the API server can try: {limit}"
    if kind in ("minimum", "maximum"):
        bound, is_exclusive = limit
        least = "greater than" if kind == "minimum" else "less than"
        most = "at least" if kind == "minimum" else "at most"
        return f"must be {least if is_exclusive else most} {bound}"
    text = limit[0] if kind == "type" else quoted(limit)
    return _WORDS.get(kind, f"a new {kind}, which only the API server can try: {{}}").format(text)


_WORDS: Final[Mapping[str, str]] = {
    "type": "must be of type {}",
    "enum": "must be one of {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "pattern": "must match {}",
    "format": "must have the format {}",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} keys",
    "maxProperties": "must have at most {} keys",
    "unique": "must have no item twice",
}


def _values(value: Any, path: SchemaPath) -> Iterator[Any]:
    """Yield what is at a path."""
    if not path:
        yield value
        return
    step, *rest = path
    below: Iterable[Any] = ()
    if step is Each.ITEM:
        below = value if is_list(value) else ()
    elif is_map(value):
        below = value.values() if step is Each.KEY else [value[step]] if step in value else ()
    yield from chain.from_iterable(_values(inner, tuple(rest)) for inner in below)


def _lost(value: Any, kept: frozenset[str]) -> list[str]:
    return sorted(value.keys() - kept) if is_map(value) else []


def _breaks(word: str, limit: Any, value: Any) -> bool:
    """Return whether a value is beyond a limit; what cannot be tried here counts as beyond it."""
    if word == "type":
        return not _is_of(value, *limit)
    if value is None:
        return False
    kind, _, name = word.partition(" ")
    check = _CHECKS.get(kind)
    if kind == "required":
        return is_map(value) and name not in value
    return check is None or check(value, limit)


def _is_of(value: Any, kind: str | None, is_nullable: bool) -> bool:
    if value is None:
        return is_nullable
    if kind is None:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    is_whole = isinstance(value, float) and value.is_integer()
    return isinstance(value, _TYPES[kind]) or (kind == "integer" and is_whole)


_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "object": dict,
    "array": list,
    "int-or-string": (int, str),
}


def _repeats(items: Iterable[Any]) -> bool:
    texts = [encode(item) for item in items]
    return len({*texts}) < len(texts)


def _is_repeated(value: Any, keys: tuple[str, ...]) -> bool:
    """Return whether two items of a list are one; `keys` tell them apart, or all that they are."""
    if not is_list(value):
        return False
    if not keys:
        return _repeats(value)
    return _repeats([View(item).at(key) for key in keys] for item in value if is_map(item))


def _mismatches(value: Any, pattern: str) -> bool:
    """Return whether a text does not have a pattern, by an engine that is linear, as Go's is."""
    if not isinstance(value, str):
        return False
    try:
        TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)]).validate_python(value)
    except (ValidationError, SchemaError):
        return True
    return False


def _is_unlike(value: Any, form: str) -> bool:
    """Return whether a value does not have a format, or one that only the API server knows."""
    if bound := {"int32": 1 << 31, "int64": 1 << 63}.get(form):
        return isinstance(value, int) and not -bound <= value < bound
    if form in ("float", "double"):
        return False
    return isinstance(value, str) and (form != "date-time" or instant(value) is None)


def _compares(number: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: isinstance(value, int | float) and number(value, limit)


def _counts(kinds: type, number: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    return lambda value, limit: isinstance(value, kinds) and number(len(value), limit)


_CHECKS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "enum": lambda value, limit: value not in limit,
    "minimum": _compares(lambda value, to: value < to[0] or (to[1] and value == to[0])),
    "maximum": _compares(lambda value, to: value > to[0] or (to[1] and value == to[0])),
    "multipleOf": _compares(lambda value, to: bool(value % to)),
    "minLength": _counts(str, lambda value, to: value < to),
    "maxLength": _counts(str, lambda value, to: value > to),
    "minItems": _counts(list, lambda value, to: value < to),
    "maxItems": _counts(list, lambda value, to: value > to),
    "minProperties": _counts(dict, lambda value, to: value < to),
    "maxProperties": _counts(dict, lambda value, to: value > to),
    "unique": _is_repeated,
    "pattern": _mismatches,
    "format": _is_unlike,
}
