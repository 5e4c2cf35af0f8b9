"""History: which ended Jobs may be deleted, and when a Job last succeeded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow import Job

BEGINNING = datetime.fromtimestamp(0, UTC)


def outdated(jobs: Iterable[Job], succeeded: int, failed: int) -> frozenset[str]:
    """Return the names of the oldest ended Jobs, beyond the limits `succeeded` and `failed`.

    The age is that of `status.startTime`; a Job without one is the oldest.
    """
    ended = sorted(
        (job for job in jobs if job.finished),
        key=lambda job: (job.start_time or BEGINNING, job.name),
    )
    good = [job.name for job in ended if job.succeeded]
    bad = [job.name for job in ended if not job.succeeded]
    return frozenset((*_beyond(good, succeeded), *_beyond(bad, failed)))


def last_success(jobs: Iterable[Job], recorded: datetime | None) -> datetime | None:
    """Return when a Job last succeeded: the recorded time, or that of a Job that ended later."""
    ended = (recorded, *(job.completion_time for job in jobs if job.succeeded))
    return max((end for end in ended if end), default=None)


def _beyond(names: list[str], limit: int) -> list[str]:
    return names[: max(0, len(names) - limit)]
