"""Starts: the Job of a scheduled start, and the start of a Job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hedgerow.core.contract import Create
from hedgerow_schemas.job import Job, instant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hedgerow_schemas.base import Object
    from hedgerow_schemas.cronjob import CronJob

START_GUARD = "batch.tutorial.kubebuilder.io/start-guard"
SCHEDULED_AT = "batch.tutorial.kubebuilder.io/scheduled-at"
_LAST_SECOND = int(datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp())


def name_of(owner: str, start: datetime) -> str:
    """Name the Job of a start after its second: to make it twice, two would need one name."""
    return f"{owner}-{int(start.timestamp())}"


def named(owner: str, name: str) -> datetime | None:
    """Give the start that a Job of that name was made for; None when the name tells of none."""
    prefix, _, digits = name.rpartition("-")
    if prefix == owner and digits.isascii() and digits.isdecimal():
        return datetime.fromtimestamp(min(int(digits[:12]), _LAST_SECOND), UTC)
    return None


def start_of(owner: str, job: Job) -> datetime | None:
    """Give the start that a Job was made for: by its name, which nobody can edit, if it tells."""
    start = named(owner, job.name)
    if start:
        return start
    noted = instant(job.text("metadata", "annotations", SCHEDULED_AT))
    return noted.replace(microsecond=0) if noted else None


def latest(
    owner: str, jobs: Iterable[Job], recorded: datetime | None, made: Iterable[tuple[str, str]] = ()
) -> datetime | None:
    """Give the newest start made: the one on record, or that of a Job made since.

    `made` are kinds and names of what was made since and need not be there any more.
    """
    known = [recorded, *(start_of(owner, job) for job in jobs)]
    known += [named(owner, name) for _, name in made]
    return max((start for start in known if start), default=None)


def creation(cj: CronJob, at: datetime) -> Create:
    """Create the Job of one start, once: what the template becomes later is for later Jobs."""
    template = cj.spec.job_template
    given: Object = template.get("metadata") or {}
    scheduled = {SCHEDULED_AT: f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    metadata: Object = {
        "labels": given.get("labels") or {},
        "annotations": (given.get("annotations") or {}) | scheduled,
        **({"finalizers": [START_GUARD]} if cj.spec.start_guard else {}),
    }
    name = name_of(cj.metadata.name, at)
    return Create(Job, name, {"metadata": metadata, "spec": template.get("spec") or {}})
