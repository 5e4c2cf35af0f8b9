"""Crons: CronJobs, the Jobs that may be observed of them, and what compose answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hedgerow.contract import Create, Desired, Keep, Notice, Observed
from hedgerow.controllers.cronjob.controller import compose
from hedgerow.controllers.cronjob.starts import SCHEDULED_AT
from hedgerow_schemas.cronjob import CronJob
from hedgerow_schemas.job import Job

Object = dict[str, Any]

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""When the CronJob of these tests was created; its schedule is that of every minute."""
TEMPLATE: Object = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
    "spec": {"backoffLimit": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
}


PROGRESS = {"Started", "Completed", "Failed"}


def at(minute: float) -> datetime:
    """An instant so many minutes after noon."""
    return NOON + timedelta(minutes=minute)


def wire(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def cronjob(
    status: Object | None = None, *, created: datetime | None = NOON, **spec: Any
) -> CronJob:
    """A CronJob; None takes a field of the usual spec away."""
    full = {"schedule": "* * * * *", "jobTemplate": TEMPLATE, **spec}
    meta = {"name": "demo", "namespace": "ns", "uid": "u", "generation": 1}
    return CronJob.model_validate(
        {
            "metadata": meta | ({"creationTimestamp": wire(created)} if created else {}),
            "spec": {key: value for key, value in full.items() if value is not None},
            "status": status or {},
        }
    )


def recorded(minute: float, **more: Any) -> Object:
    """A status that tells of the start of that minute."""
    return {"lastScheduleTime": wire(at(minute)), **more}


def job_name(minute: float) -> str:
    return f"demo-{int(at(minute).timestamp())}"


def job(
    minute: float,
    how: str = "",
    *,
    name: str = "",
    began: float | None = None,
    ended: float | None = None,
    going: bool = False,
) -> Job:
    """The Job of a minute's start; `how` it ended, began and ended at these minutes."""
    meta: Object = {
        "name": name or job_name(minute),
        "namespace": "ns",
        "uid": f"uid-{minute:g}",
        "resourceVersion": "7",
        "annotations": {SCHEDULED_AT: wire(at(minute))},
    }
    if going:
        meta["deletionTimestamp"] = wire(at(minute))
    status: Object = {"conditions": [{"type": how, "status": "True"}] if how else []}
    if began is not None:
        status["startTime"] = wire(at(began))
    if ended is not None:
        status["completionTime"] = wire(at(ended))
    return Job({"metadata": meta, "status": status})


def composed(
    cj: CronJob,
    now: datetime,
    *jobs: Job,
    made: frozenset[tuple[str, str]] = frozenset(),
    server: datetime | None = None,
) -> Desired:
    """Compose at a time of the operator's clock, and of the API server's if that is known."""
    return compose(
        cj, Observed(now=now, server_time=server, children=jobs, created=dict.fromkeys(made, ""))
    )


def started(desired: Desired) -> list[str]:
    """The names of the Jobs that are to be created."""
    return [child.name for child in desired.children if isinstance(child, Create)]


def kept(desired: Desired) -> list[str]:
    return sorted(child.name for child in desired.children if isinstance(child, Keep))


def told(desired: Desired) -> list[tuple[str, str]]:
    return [(notice.type, notice.reason) for notice in remarks(desired)]


def remarks(desired: Desired) -> list[Notice]:
    """Return the Events but for those that tell of a Job that started or ended as it should."""
    return [notice for notice in desired.events if notice.reason not in PROGRESS]


def says(desired: Desired, kind: str = "Ready") -> str:
    assert desired.status is not None
    found = {c.type: f"{c.status}/{c.reason}" for c in desired.status.conditions}
    return found.get(kind, "")


def message(desired: Desired, kind: str = "Ready") -> str:
    assert desired.status is not None
    return next(c.message for c in desired.status.conditions if c.type == kind)


def status(desired: Desired) -> Object:
    """What the status is to say, but for its conditions."""
    assert desired.status is not None
    said = desired.status.wire()
    return {k: v for k, v in said.items() if k not in ("conditions", "contested")}
