"""Crons: CronJobs, the Jobs that may be observed of them, and what compose answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from controllers.told import kept, message, says
from hedgerow.contract import Answers, Create, Desired, Notice, Observed
from hedgerow.controllers.cronjob.controller import compose, missed_in_a_row
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


def made_by(manager: str, found: Job, **meta: Any) -> Job:
    """The same Job, as a field manager created it."""
    entries = [{"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    return Job(
        {**found.raw, "metadata": {**found.raw["metadata"], "managedFields": entries, **meta}}
    )


def composed(
    cj: CronJob,
    now: datetime,
    *jobs: Job,
    made: frozenset[tuple[str, str]] = frozenset(),
    server: datetime | None = None,
) -> Desired:
    """Compose at a time of the operator's clock, and of the API server's if that is known."""
    answers = Answers(created=dict.fromkeys(made, ""))
    return compose(cj, Observed(now=now, server_time=server, children=jobs, answers=answers))


def started(desired: Desired) -> list[str]:
    """The names of the Jobs that are to be created."""
    return [child.name for child in desired.children if isinstance(child, Create)]


def told(desired: Desired) -> list[tuple[str, str]]:
    return [(notice.type, notice.reason) for notice in remarks(desired)]


def remarks(desired: Desired) -> list[Notice]:
    """Return the Events but for those that tell of a Job that started or ended as it should."""
    return [notice for notice in desired.events if notice.reason not in PROGRESS]


def status(desired: Desired) -> Object:
    """What the status is to say, but for its conditions."""
    assert desired.status is not None
    said = desired.status.wire()
    return {k: v for k, v in said.items() if k not in ("conditions", "contested")}


# --- rows -----------------------------------------------------------------------------------------


def minute_of(text: str | None) -> float | None:
    """Return how many minutes after noon a time is."""
    return text and (datetime.fromisoformat(text) - NOON) / timedelta(minutes=1)


def dated(name: str) -> float | str:
    """Return the minute after which a Job is named, or a name of another kind."""
    second = name.removeprefix("demo-")
    return (int(second) - NOON.timestamp()) / 60 if second.isdecimal() else name


def only(found: list[Any]) -> Any:
    """Return the one item, or None; there is no second one."""
    assert len(found) < 2
    return found[0] if found else None


LOOKS: dict[str, Callable[[Desired], object]] = {
    "starts": lambda desired: only([dated(name) for name in started(desired)]),
    "keeps": lambda desired: tuple(dated(name) for name in kept(desired)),
    "tells": lambda desired: tuple(reason for _, reason in told(desired)),
    "warns": lambda desired: tuple(
        reason if kind == "Warning" else f"{kind} {reason}" for kind, reason in told(desired)
    ),
    "notes": lambda desired: tuple(notice.note for notice in remarks(desired)),
    "ready": says,
    "why": message,
    "stalled": lambda desired: says(desired, "Stalled"),
    "ahead": lambda desired: says(desired, "DatedAhead"),
    "why_ahead": lambda desired: message(desired, "DatedAhead"),
    "status": status,
    "missed": lambda desired: status(desired).get("missed"),
    "lists": lambda desired: status(desired).get("active"),
    "active": lambda desired: status(desired)["activeCount"],
    "last": lambda desired: minute_of(status(desired).get("lastScheduleTime")),
    "next": lambda desired: minute_of(status(desired).get("nextScheduleTime")),
    "succeeded": lambda desired: minute_of(status(desired).get("lastSuccessfulTime")),
    "in_a_row": lambda desired: missed_in_a_row(desired.status),
    "waits": lambda desired: desired.requeue_after and desired.requeue_after.total_seconds(),
}
"""What a pass comes to; minutes after noon stand for times and Jobs."""


@dataclass(frozen=True)
class Row:
    """One pass: when it is by our clock and the server's, what is there, and what it comes to."""

    name: str
    cronjob: CronJob
    minute: float
    jobs: tuple[Job, ...]
    made: tuple[float, ...]
    server: float | None
    shows: Object

    def __str__(self) -> str:
        return self.name

    def check(self) -> None:
        made = frozenset(("Job", job_name(minute)) for minute in self.made)
        server = None if self.server is None else at(self.server)
        desired = composed(self.cronjob, at(self.minute), *self.jobs, made=made, server=server)
        found = {name: LOOKS[name](desired) for name in self.shows}
        assert found == self.shows


def row(
    name: str,
    cj: CronJob,
    minute: float,
    *jobs: Job,
    made: tuple[float, ...] = (),
    server: float | None = None,
    **shows: object,
) -> Row:
    return Row(name, cj, minute, jobs, made, server, shows)
