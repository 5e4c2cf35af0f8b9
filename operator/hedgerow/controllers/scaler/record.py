"""Record: the value before the scaler held a field, as an annotation beside the field.

It is on the object that has the field, and one apply writes both. So the former value is never
lost between two writes, and giving the field back takes the record along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field

from hedgerow import Model, Time, json_text, read_json

if TYPE_CHECKING:
    from datetime import datetime

UNKNOWN: Final = "unknown"
"""In place of the former holder: somebody removed the record while the field was held."""
LONGEST: Final = 2048
"""The most characters of an annotation that is read; a field manager has at most 128."""
SOMEBODY: Final = "somebody"
"""In place of the former holder: it was scaled, and the API server did not record by whom."""


class FormerValue(Model):
    """The former value, whom it was taken from by force, and in which transition.

    `taken_from` is empty if nobody held the field with another value. `taken_at` is the transition
    in which force was used last: it is not used twice in one.
    """

    replicas: Annotated[int, Field(ge=0, le=2**31 - 1)]
    taken_from: str = ""
    taken_at: Time | None = None

    def text(self) -> str:
        """Return the annotation: compact JSON, without what is empty."""
        return json_text({name: value for name, value in self.wire().items() if value != ""})

    def was_taken_at(self, transition: datetime) -> bool:
        """Return whether force was used in this transition."""
        return self.taken_at == transition


def recorded(text: str) -> FormerValue | None:
    """Return the record of an annotation; None if there is none, or if it is unreadable."""
    try:
        return FormerValue.model_validate(read_json(text)) if 0 < len(text) <= LONGEST else None
    except ValueError:
        return None
