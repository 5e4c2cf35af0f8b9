"""Validation: what is wrong with a CronJob, and the defaults of fields that it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hedgerow import FieldError
from hedgerow.controllers.cronjob.missed import schedule_problems
from hedgerow_schemas.cronjob import LONGEST_NAME, CronJob, CronJobSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow import Object

DEFAULTED: Final = (
    "concurrency_policy",
    "suspend",
    "successful_jobs_history_limit",
    "failed_jobs_history_limit",
)
"""The fields that the original operator's webhook defaults, with the CRD schema's defaults."""


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


def defaulted(cj: Object) -> Object:
    """Return the CronJob as sent, plus the defaults of the original operator's webhook."""
    spec = cj.get("spec")
    if not isinstance(spec, dict):
        return cj  # the CRD's validation rejects it
    fields = (CronJobSpec.model_fields[name] for name in DEFAULTED)
    given = {key: value for key, value in spec.items() if value is not None}  # pyright: ignore[reportUnknownVariableType]
    return {**cj, "spec": {str(field.alias): field.default for field in fields} | given}
