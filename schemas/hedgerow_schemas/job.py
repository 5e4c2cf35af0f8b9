"""Job: a tolerant view of Kubernetes's own Job, as far as composing reads it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import ClassVar, Final

from hedgerow_schemas.base import ApiResource, View
from hedgerow_schemas.builtin import WithConditions

_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
)


def instant(text: str) -> datetime | None:
    """Return an RFC 3339 time, as Go reads it; None if it is absent or invalid.

    A date alone, a week, a blank instead of the T, or a time without an offset is invalid.
    """
    if not _RFC_3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


class Job(WithConditions):
    """A Job: whether it still runs, and how it ended."""

    api: ClassVar[ApiResource] = ApiResource("batch/v1", "Job", "jobs")
    __slots__ = ()

    @property
    def succeeded(self) -> bool:
        """Whether the condition `Complete` is `True`."""
        return self.condition("Complete") == "True"

    @property
    def failed(self) -> bool:
        """Whether the condition `Failed` is `True`."""
        return self.condition("Failed") == "True"

    @property
    def finished(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.succeeded or self.failed

    @property
    def going(self) -> bool:
        """Whether it is being deleted."""
        return bool(self.at("metadata", "deletionTimestamp"))

    @property
    def start_time(self) -> datetime | None:
        """`status.startTime`."""
        return instant(self.text("status", "startTime"))

    @property
    def completion_time(self) -> datetime | None:
        """`status.completionTime`: set when it succeeded."""
        return instant(self.text("status", "completionTime"))

    @property
    def finalizers(self) -> tuple[str, ...]:
        """`metadata.finalizers`."""
        found = View(self.raw).items("metadata", "finalizers")
        return tuple(name for name in found if isinstance(name, str))
