"""Explained: forecasts as tables for people and as objects for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hedgerow.terminal import Terminal
from hedgerow.texts import numbered
from hedgerow_tools.render.times import local, utc
from hedgerow_tools.schedule.simulation import Happens

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime, tzinfo

    from hedgerow_schemas.cronjob import CronJob
    from hedgerow_tools.schedule.simulation import Question, StartFate, StartForecast

LABELS = {
    Happens.RUNS: ("runs", "green"),
    Happens.LATE: ("runs late", "yellow"),
    Happens.REPLACES: ("replaces", "yellow"),
    Happens.FORBIDDEN: ("forbidden", "red"),
    Happens.DEADLINE: ("deadline passed", "red"),
    Happens.MISSED: ("missed", "red"),
    Happens.LIMITED: ("active limit", "red"),
    Happens.SUSPENDED: ("suspended", "dim"),
    Happens.SKIPPED: ("skipped by clocks", "red"),
}
"""The label of a start's fate, and its colour."""

PIPED = 200
"""Columns without a terminal: lines for programs must not be broken."""

ROOM_FOR_UTC = 110
ROOM_FOR_JOBS = 140
"""From this width on, a terminal has room for more columns."""

_ORDINALS = (None, "first", "second")


@dataclass(frozen=True, slots=True)
class ExplainedCronJob:
    """A CronJob, the question, and the answer; `foreign` if it is Kubernetes's own."""

    cj: CronJob
    zone: tzinfo
    foreign: bool
    question: Question
    forecast: StartForecast


def as_data(explained: Iterable[ExplainedCronJob]) -> list[dict[str, Any]]:
    """Return an object for each CronJob; times are RFC 3339."""
    return [_wire(each) for each in explained]


def show(explained: Iterable[ExplainedCronJob]) -> None:
    """Print a table for each CronJob, with the question before it and a summary after it."""
    console = Terminal()
    if not console.is_terminal:
        console.width = PIPED
    for number, each in enumerate(explained):
        if number:
            console.print()
        for line in _heading(each):
            console.print(line)
        if each.forecast.fates:
            console.print(_table(each, console.width))
        console.print(_summary(each))


def _heading(each: ExplainedCronJob) -> Iterator[str]:
    cj, asked, found = each.cj, each.question, each.forecast
    yield (
        f"CronJob/{cj.metadata.name}: {cj.spec.schedule!r} in {each.zone},"
        f" {cj.spec.concurrency_policy}; Jobs take {_length(asked.duration)}"
    )
    if each.foreign:
        yield "It is a CronJob of Kubernetes (batch/v1); this is what hedgerow would do with it."
    if asked.duration == timedelta() and cj.spec.concurrency_policy != "Allow":
        yield "No Job is ever in the way of another: --duration says how long they take."
    if cj.spec.starting_deadline_seconds == 0:
        yield "Nothing ever starts: startingDeadlineSeconds is 0, and every start is late by then."
    if found.refused:
        yield (
            f"status.lastScheduleTime {utc(found.refused)} is later than now, so it records no"
            f" start: starts go on from now."
        )
    if found.since:
        yield f"It begins at {utc(found.begins)}: {found.since} is later than --from."
    if found.missed_before:
        starts = numbered(found.missed_before, "start")
        yield f"Before {utc(found.begins)}, {starts} had passed without a Job."
    if found.at_once:
        yield _at_once(each, found.at_once)


def _at_once(each: ExplainedCronJob, start: datetime) -> str:
    """Return what the operator starts at once, for example after the schedule is edited."""
    fate = next((fate for fate in each.forecast.fates if fate.start == start), None)
    ends = ", and ends the Job that runs" if fate and fate.happens is Happens.REPLACES else ""
    return (
        f"That of {utc(start)} is made at once{ends}; so it is after an edit of schedule or"
        " timeZone, and when suspend is taken away."
    )


def _table(each: ExplainedCronJob, width: int) -> Table:
    """Return the table; if there is little room, the reasons get the rest of it."""
    zoned, named = each.zone is not UTC and width >= ROOM_FOR_UTC, width >= ROOM_FOR_JOBS
    table = Table(box=None, pad_edge=False)
    for title in (f"start ({each.zone})", *(["UTC"] if zoned else []), "what happens"):
        table.add_column(title, no_wrap=True)
    table.add_column("why", overflow="fold")
    if named:
        table.add_column("Job", no_wrap=True)
    for fate in each.forecast.fates:
        label, style = LABELS[fate.happens]
        also = ["" if fate.skipped else utc(fate.start)] if zoned else []
        job = [fate.job or ""] if named else []
        table.add_row(_local(fate, each.zone), *also, label, fate.why, *job, style=style)
    return table


def _summary(each: ExplainedCronJob) -> str:
    found, until = each.forecast, utc(each.question.until)
    if not found.fates:
        return f"There is no start until {until}."
    counted = Counter(fate.happens for fate in found.fates)
    parts = [f"{LABELS[kind][0]}: {counted[kind]}" for kind in Happens if counted[kind]]
    left = f"; {numbered(found.more, 'more start')} until {until}: see --limit"
    more = left if found.more else ""
    return f"{', '.join(parts)}{more}"


def _wire(each: ExplainedCronJob) -> dict[str, Any]:
    cj, asked, found = each.cj, each.question, each.forecast
    return {
        "apiVersion": "batch/v1" if each.foreign else cj.api.group_version,
        "kind": cj.api.kind,
        "namespace": cj.metadata.namespace or None,
        "name": cj.metadata.name,
        "schedule": cj.spec.schedule,
        "zone": str(each.zone),
        "concurrencyPolicy": cj.spec.concurrency_policy,
        "from": utc(asked.since),
        "to": utc(asked.until),
        "begins": utc(found.begins),
        "durationSeconds": asked.duration.total_seconds(),
        "missedBefore": found.missed_before,
        "madeAtOnce": utc(found.at_once) if found.at_once else None,
        "recordAhead": utc(found.refused) if found.refused else None,
        "starts": [_fate_wire(fate, each.zone) for fate in found.fates],
        "summary": Counter(fate.happens.value for fate in found.fates),
        "more": found.more,
    }


def _fate_wire(fate: StartFate, zone: tzinfo) -> dict[str, Any]:
    there_is = not fate.skipped
    return {
        "local": (fate.start.astimezone(zone) if there_is else fate.wall).isoformat(),
        "utc": utc(fate.start) if there_is else None,
        "happens": fate.happens.value,
        "why": fate.why,
        "job": fate.job,
        "begins": utc(fate.began) if fate.began else None,
        "repeated": _ORDINALS[fate.repeated],
        "skipped": [time.isoformat() for time in fate.skipped],
    }


def _local(fate: StartFate, zone: tzinfo) -> str:
    """Return a start as `Sun 2026-03-29 03:30:00 CEST +02:00`; a skipped one has no offset."""
    if fate.skipped:
        return f"{fate.wall:%a %Y-%m-%d %H:%M:%S}"
    return local(fate.start.astimezone(zone))


def _length(duration: timedelta) -> str:
    """Return a duration as Go writes it, `1h30m0s`, but without zeros."""
    minutes, seconds = divmod(duration.total_seconds(), 60)
    parts = {"h": int(minutes) // 60, "m": int(minutes) % 60, "s": seconds}
    return "".join(f"{number:g}{unit}" for unit, number in parts.items() if number) or "0s"
