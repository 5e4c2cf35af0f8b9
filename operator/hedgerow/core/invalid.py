"""Invalid: what is wrong with an object, said field by field as the API server says it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow_schemas.base import ApiResource, Object

SHOWN = 128
"""Characters of a refused value that an answer repeats."""
LONGEST_DETAIL = 512
MOST_CAUSES = 64
_UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field's error: its path as in `spec.ports[0].name`, its value, and what is wrong."""

    field: str
    value: Any
    detail: str
    reason: Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueTooMany"] = (
        "FieldValueInvalid"
    )

    @property
    def message(self) -> str:
        """What Kubernetes's `field.Error` prints after the path; values are cut, not left out."""
        detail = cut(self.detail, LONGEST_DETAIL)
        if self.reason == "FieldValueRequired":
            return f"Required value: {detail}"
        if self.reason == "FieldValueTooMany":
            return f"Too many: {self.value}: {detail}"
        return f"Invalid value: {quoted(self.value)}: {detail}"

    def __str__(self) -> str:
        """Write it as the API server does: path and message."""
        return f"{self.field}: {self.message}"

    def cause(self) -> Object:
        """Give the entry of a Status's `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


def annotation_path(name: str) -> str:
    """Give the path of an annotation: what is no plain step stands in brackets."""
    return f"metadata.annotations[{name}]"


def cut(text: str, limit: int) -> str:
    """Give a text within a limit, the end of a longer one as an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quoted(value: Any) -> str:
    """Write a value for a message, cut short and with nothing in it that a terminal obeys."""
    text = _beginning(cut(value, SHOWN) if isinstance(value, str) else value)
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return shown if isinstance(value, str) else cut(shown, SHOWN)


def _beginning(value: Any) -> str:
    """Write a value as JSON, no more of a long one than is shown."""
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > SHOWN and not isinstance(value, str):
            break
    return "".join(pieces)


def status(api: ApiResource, name: str, errors: Sequence[FieldError]) -> Object:
    """Give the Status with which an object is refused: every error, as `NewInvalid` puts them.

    The rules are those of apimachinery, api/errors.NewInvalid: one error stands alone, several in
    brackets.
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
