"""Cronjobs: what is wrong with a CronJob, and the values of what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow.core import cron
from hedgerow.core.agenda import timetable
from hedgerow.core.invalid import FieldError
from hedgerow_schemas.cronjob import LONGEST_NAME, CronJob, CronJobSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow_schemas.base import Object

DEFAULTED: Final = (
    "concurrency_policy",
    "suspend",
    "successful_jobs_history_limit",
    "failed_jobs_history_limit",
)
"""What the original's webhook gives a value, the one of the definition's schema."""
_ANY: Final = "@daily"


def errors(cj: CronJob) -> Iterator[FieldError]:
    """Give what the original's webhook refuses, and with it all that compose cannot read."""
    name = cj.metadata.name
    if len(name) > LONGEST_NAME:
        detail = f"must be no more than {LONGEST_NAME} characters"
        yield FieldError("metadata.name", name, detail)
    schedule, zone = cj.spec.schedule, cj.spec.time_zone
    alone = [
        *_errors("spec.schedule", schedule, schedule, None),
        *_errors("spec.timeZone", zone, _ANY, zone),
    ]
    yield from alone or _errors("spec.timeZone", zone, schedule, zone)


def _errors(field: str, value: str | None, schedule: str, zone: str | None) -> Iterator[FieldError]:
    """Ask as compose asks; what its status would say stands beside the value, so without it."""
    try:
        timetable(schedule, zone, None)
    except cron.ScheduleError as error:
        yield FieldError(field, value, str(error).removeprefix(f"{error.field} {value!r}: "))


def defaulted(cj: Object) -> Object:
    """Give a CronJob as it was sent with the defaults of the original's webhook."""
    spec = cj.get("spec")
    if not isinstance(spec, dict):
        return cj  # the definition's schema has the word on it
    fields = (CronJobSpec.model_fields[name] for name in DEFAULTED)
    given = {key: value for key, value in spec.items() if value is not None}  # pyright: ignore[reportUnknownVariableType]
    return {**cj, "spec": {str(field.alias): field.default for field in fields} | given}
