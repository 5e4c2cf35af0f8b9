"""Values: another valid value for a field, in the spelling of the present one.

The schema says what is allowed as far as it can be followed; whether a value is valid is the API
server's to say, so several are offered.
"""

from __future__ import annotations

import re
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from hedgerow.fields.canonical import identical
from hedgerow.fields.paths import is_list, is_map
from hedgerow.fields.sets import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object

MOST: Final = 4
"""Values that are offered for one field."""
_ANY: Final[Mapping[str, Any]] = {}
_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_LARGEST: Final = 2**31 - 1
_BEFORE: Final = 60
"""Characters of a text that are shown before what differs."""


def schema_at(schema: Mapping[str, Any], field_path: FieldPath) -> Mapping[str, Any]:
    """Return the OpenAPI schema of a place; an empty one allows anything."""
    part = schema
    for element in field_path:
        if element.startswith("f:"):
            properties: Object = part.get("properties") or {}
            more: Any = properties.get(element[2:], part.get("additionalProperties"))
        else:
            more = part.get("items")
        part = more if is_map(more) else _ANY
    return part


def is_required(schema: Mapping[str, Any], field_path: FieldPath) -> bool:
    """Return whether the schema requires a field of the map that it is in."""
    above = schema_at(schema, field_path[:-1])
    return field_path[-1][2:] in (above.get("required") or ())


def others(value: Any, schema: Mapping[str, Any] = _ANY) -> tuple[Any, ...]:
    """Return other values for a field, the most ordinary first; empty if none can be told."""
    offers: list[Any] = []
    for candidate in _candidates(value, schema):
        fits = not identical(candidate, value) and _is_allowed(candidate, schema)
        if fits and not any(identical(candidate, known) for known in offers):
            offers.append(candidate)
    return tuple(offers[:MOST])


def _candidates(value: Any, schema: Mapping[str, Any]) -> Iterable[Any]:
    if schema.get("enum"):
        return list(schema["enum"])
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return _numbers(value, schema)
    if isinstance(value, str):
        return _texts(value, schema)
    if is_map(value):
        return islice(_maps(value, schema), MOST)
    return islice(_lists(value, schema), MOST) if is_list(value) else ()


def _numbers(value: float, schema: Mapping[str, Any]) -> Iterator[float]:
    step = schema.get("multipleOf") or 1
    yield from (value + step, value - step, value * 2)
    for bound in ("minimum", "maximum"):
        if bound in schema:
            yield schema[bound]


def _texts(value: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield texts of the same form: another number in it, or another end."""
    numbers = list(_NUMBER.finditer(value))
    # The first number of `1m30s` and the last one of `app:v1.27` are what people change.
    for number in (*numbers[:1], *numbers[-1:]):
        for change in (_doubled, _next, _previous):
            yield _spliced(value, number, change(int(number[0])))
    longest = int(schema.get("maxLength") or _LARGEST)
    if len(value) < longest:
        yield f"{value}-b" if value and len(value) + 2 <= longest else f"{value}b"
    if value:
        yield value[:-1] + ("b" if value[-1] != "b" else "c")


def _spliced(value: str, number: re.Match[str], other: int) -> str:
    text = str(other).zfill(len(number[0])) if number[0][0] == "0" else str(other)
    return value[: number.start()] + text + value[number.end() :]


def _doubled(number: int) -> int:
    return number * 2


def _next(number: int) -> int:
    return number + 1


def _previous(number: int) -> int:
    return max(number - 1, 0)


def _maps(value: Object, schema: Mapping[str, Any]) -> Iterator[Object]:
    for name, inner in value.items():
        for other in others(inner, schema_at(schema, (f"f:{name}",))):
            yield {**value, name: other}


def _lists(value: list[Any], schema: Mapping[str, Any]) -> Iterator[list[Any]]:
    for index, item in enumerate(value):
        for other in others(item, schema_at(schema, ("i:0",))):
            yield [*value[:index], other, *value[index + 1 :]]


def _is_allowed(value: Any, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return _is_between(value, schema)
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", _LARGEST)
    return True


def _is_between(value: float, schema: Mapping[str, Any]) -> bool:
    low, high = schema.get("minimum", -_LARGEST), schema.get("maximum", _LARGEST)
    if value < low or value > high:
        return False
    if value == low and schema.get("exclusiveMinimum"):
        return False
    if value == high and schema.get("exclusiveMaximum"):
        return False
    step = schema.get("multipleOf")
    return not step or value % step == 0


def differing(left: Any, right: Any, above: FieldPath = ()) -> tuple[FieldPath, Any, Any]:
    """Return the first place at which two values differ, and what each has there, or ABSENT.

    Of long texts their ends are returned, from a little before the difference on.
    """
    pairs: list[tuple[str, Any, Any]] = []
    if is_map(left) and is_map(right):
        pairs = [(f"f:{k}", left.get(k, ABSENT), right.get(k, ABSENT)) for k in {**left, **right}]
    elif is_list(left) and is_list(right):
        both = enumerate(zip_longest(left, right, fillvalue=ABSENT))
        pairs = [(f"i:{index}", *values) for index, values in both]
    for element, mine, its in pairs:
        if ABSENT in (mine, its) or not identical(mine, its):
            return differing(mine, its, (*above, element))
    if isinstance(left, str) and isinstance(right, str):
        characters = enumerate(zip_longest(left, right))
        at = next((index for index, (mine, its) in characters if mine != its), 0)
        if at > _BEFORE:
            left, right = (f"…{text[at - _BEFORE :]}" for text in (left, right))
    return above, left, right
