"""Job: a tolerant view of Kubernetes's own Job, as far as composing reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from hedgerow_schemas.base import ApiResource, instant
from hedgerow_schemas.builtin import WithConditions

if TYPE_CHECKING:
    from datetime import datetime


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
