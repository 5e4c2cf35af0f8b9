"""Validation: field errors in the API server's own words, and a model's refusals as such errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from hedgerow import encoding
from hedgerow.texts import cut, escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from hedgerow_schemas.base import ApiResource, Object


SHOWN = 128
"""The most characters of a refused value that a message repeats."""
LONGEST_DETAIL = 512
MOST_CAUSES = 64
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error of one field: a path such as `spec.ports[0].name`, the value, and the reason."""

    field: str
    value: Any
    detail: str
    reason: Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueTooMany"] = (
        "FieldValueInvalid"
    )

    @property
    def message(self) -> str:
        """The text that Kubernetes's `field.Error` prints after the path; long values are cut."""
        detail = cut(self.detail, LONGEST_DETAIL)
        if self.reason == "FieldValueRequired":
            return f"Required value: {detail}"
        if self.reason == "FieldValueTooMany":
            return f"Too many: {self.value}: {detail}"
        return f"Invalid value: {quoted(self.value)}: {detail}"

    def __str__(self) -> str:
        """Return path and message, as the API server writes them."""
        return f"{self.field}: {self.message}"

    def cause(self) -> Object:
        """Return the entry of a Status's `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def annotation_path(name: str) -> str:
    """Return the path of an annotation; its name is in brackets because it may contain dots."""
    return f"metadata.annotations[{name}]"


def quoted(value: Any) -> str:
    """Return a value for a message, cut short, with control characters escaped."""
    text = beginning(cut(value, SHOWN) if isinstance(value, str) else value)
    shown = escaped(text)
    return shown if isinstance(value, str) else cut(shown, SHOWN)


def beginning(value: Any, longest: int = SHOWN) -> str:
    """Return a value as JSON; of a long one a little more than as many characters."""
    pieces: list[str] = []
    length = 0
    for piece in encoding.pieces(value):
        pieces.append(piece)
        length += len(piece)
        if length > longest and not isinstance(value, str):
            break
    return "".join(pieces)


def status(api: ApiResource, name: str, errors: Sequence[FieldError]) -> Object:
    """Return the Status that refuses an object: all errors, in the format of `NewInvalid`.

    The format is that of apimachinery, api/errors.NewInvalid: several errors are in brackets, one
    error is not.
    """
    shown = errors[:MOST_CAUSES]
    texts = list(dict.fromkeys(map(str, shown)))
    if len(errors) > len(shown):
        texts.append(f"and {len(errors) - len(shown)} more")
    said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return {
        "status": "Failure",
        "code": _UNPROCESSABLE,
        "reason": "Invalid",
        "message": f'{api.kind}.{api.group} "{name}" is invalid: {said}',
        "details": {
            "name": name,
            "group": api.group,
            "kind": api.kind,
            "causes": [error.cause() for error in shown],
        },
    }


_REQUIRED: Final = "missing"
_TOO_SHORT: Final = "too_short"
_UNION: Final = ("int", "str")
"""The types of an int-or-string, which pydantic adds to the path as if they were fields."""
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
"""Messages by the first word of pydantic's error types, such as `int_type`, `int_parsing`."""


def field_errors(error: ValidationError) -> Iterator[FieldError]:
    """Yield an error for each field, with a path such as `spec.ports[0].name`."""
    items = error.errors(include_url=False)
    places = {item["loc"] for item in items}
    parents = {place[:depth] for place in places for depth in range(len(place))}
    for item in items:
        branch = _branch(item["loc"], places)
        if branch == _UNION[1] or (item["type"] == _TOO_SHORT and item["loc"] in parents):
            continue  # said of the other branch; or of the items, which pydantic does not count
        detail = "must be an integer or a string" if branch else _detail(item)
        reason = "FieldValueRequired" if item["type"] == _REQUIRED else "FieldValueInvalid"
        location = item["loc"][:-1] if branch else item["loc"]
        yield FieldError(path(location), item["input"], detail, reason)


def in_a_line(error: ValidationError) -> str:
    """Return the errors of all fields in one line, without the values."""
    return "; ".join(
        f"{wrong.field}: {wrong.detail}" if wrong.field else wrong.detail
        for wrong in field_errors(error)
    )


def path(location: tuple[int | str, ...]) -> str:
    """Return a location as the API server writes a field's path."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _branch(location: tuple[int | str, ...], places: set[tuple[int | str, ...]]) -> str:
    """Return which type of an int-or-string an error is about; empty for any other error."""
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
