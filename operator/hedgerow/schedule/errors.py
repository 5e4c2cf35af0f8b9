"""Errors: what is wrong with a schedule, with the field and the value."""

from __future__ import annotations

_SHOWN = 60
"""The most characters of a refused value that a message repeats."""


class ScheduleError(ValueError):
    """A schedule or time zone that cannot be used; the text names the field and the value.

    `reason` is the text without the field and the value.
    """

    def __init__(self, field: str, value: str, reason: str) -> None:
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        super().__init__(f"{field} {shown!r}: {reason}")
        self.field = field
        self.value = value
        self.reason = reason
