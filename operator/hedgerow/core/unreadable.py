"""Unreadable: what a model refuses, in Kubernetes's words, field by field; never pydantic's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hedgerow.core.invalid import FieldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_REQUIRED: Final = "missing"
_TOO_SHORT: Final = "too_short"
_UNION: Final = ("int", "str")
"""The branches of an int-or-string, which pydantic adds to the path as if they were fields."""
_OTHERWISE: Final = "has a value that cannot be read"
_DETAILS: Final[Mapping[str, str]] = {
    _REQUIRED: "must be set",
    "extra_forbidden": "there is no such field",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "must match {pattern}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "too_long": "must have at most {max_length} items",
    _TOO_SHORT: "must have at least {min_length} items",
}
_TYPES: Final[Mapping[str, str]] = {
    "bool": "must be true or false",
    "datetime": "must be a time such as 2026-01-31T12:00:00Z",
    "dict": "must be a map",
    "float": "must be a number",
    "int": "must be an integer",
    "json": "must be JSON",
    "list": "must be a list",
    "model": "must be a map",
    "string": "must be a string",
    "tuple": "must be a list",
}
"""By the first word of pydantic's error types: `int_type`, `int_parsing`, `int_from_float`."""


def field_errors(error: ValidationError) -> Iterator[FieldError]:
    """Yield an error per field, its path as in `spec.ports[0].name`."""
    found = error.errors(include_url=False)
    places = {item["loc"] for item in found}
    parents = {place[:depth] for place in places for depth in range(len(place))}
    for item in found:
        branch = _branch(item["loc"], places)
        if branch == _UNION[1] or (item["type"] == _TOO_SHORT and item["loc"] in parents):
            continue  # said of the other branch; or of the items, which pydantic does not count
        detail = "must be an integer or a string" if branch else _detail(item)
        reason = "FieldValueRequired" if item["type"] == _REQUIRED else "FieldValueInvalid"
        location = item["loc"][:-1] if branch else item["loc"]
        yield FieldError(path(location), item["input"], detail, reason)


def in_a_line(error: ValidationError) -> str:
    """Return what is wrong with each field as one line, without the values."""
    return "; ".join(
        f"{found.field}: {found.detail}" if found.field else found.detail
        for found in field_errors(error)
    )


def path(location: tuple[int | str, ...]) -> str:
    """Return a location as the API server writes a field's path."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _branch(location: tuple[int | str, ...], places: set[tuple[int | str, ...]]) -> str:
    """Return the branch of an int-or-string that an error is about; empty for any other error."""
    *before, last = location or ("",)
    both = last in _UNION and all((*before, branch) in places for branch in _UNION)
    return str(last) if both else ""


def _detail(item: ErrorDetails) -> str:
    context: Mapping[str, Any] = item.get("ctx", {})
    kind = item["type"]
    if kind == "value_error":
        return str(context["error"])
    known = _DETAILS.get(kind) or _TYPES.get(kind.partition("_")[0], _OTHERWISE)
    return known.format_map(
        {
            name: f"{value:g}" if isinstance(value, float) else value
            for name, value in context.items()
        }
    )
