"""Validation: the mistakes of a CronJob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow import FieldError
from hedgerow.schedule import schedule_problems
from hedgerow_schemas.cronjob import LONGEST_NAME, CronJob

if TYPE_CHECKING:
    from collections.abc import Iterator


def errors(cj: CronJob) -> Iterator[FieldError]:
    """Yield what the original operator's webhook refuses, and all that compose cannot read."""
    name = cj.metadata.name
    if len(name) > LONGEST_NAME:
        detail = f"must be no more than {LONGEST_NAME} characters"
        yield FieldError("metadata.name", name, detail)
    values = {"schedule": cj.spec.schedule, "timeZone": cj.spec.time_zone}
    for fault in schedule_problems(cj.spec.schedule, cj.spec.time_zone):
        value, error = values[fault.field], fault.error
        # The field error repeats the value already.
        detail = error.reason if error.value == value else str(error)
        yield FieldError(f"spec.{fault.field}", value, detail)
