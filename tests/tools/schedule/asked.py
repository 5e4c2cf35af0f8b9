"""CronJobs and questions as short as a table needs them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hedgerow_schemas.cronjob import CronJob
from hedgerow_tools.schedule.simulation import Question, StartFate, StartForecast, forecast

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


def cronjob(schedule: str = "*/10 * * * *", status: Any = None, **spec: Any) -> CronJob:
    return CronJob.model_validate(
        {
            "metadata": {"name": "c", "namespace": "default", "generation": 1},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": {}}, **spec},
            "status": status or {},
        }
    )


def at(minute: float) -> datetime:
    return BEGIN + timedelta(minutes=minute)


def foresee(
    cj: CronJob,
    *,
    minutes: float = 60,
    takes: float = 0,
    down: tuple[tuple[float, float], ...] = (),
    limit: int = 100,
    since: datetime = BEGIN,
    now: datetime | None = None,
) -> StartForecast:
    """Ask for so many minutes from BEGIN; Jobs take so many, and all else is in minutes too."""
    away = tuple((at(begin), at(end)) for begin, end in down)
    until = since + timedelta(minutes=minutes)
    return forecast(cj, Question(since, until, timedelta(minutes=takes), away, limit, now))


def short(fate: StartFate) -> tuple[int, str, int | None]:
    """Return a fate's start and its Job's beginning as minutes after BEGIN, around what happens."""
    began = (fate.began - BEGIN) // timedelta(minutes=1) if fate.began else None
    return (fate.start - BEGIN) // timedelta(minutes=1), fate.happens.value, began


def days(*seen: StartFate) -> list[tuple[str, str]]:
    return [(f"{fate.wall:%m-%dT%H:%M}", fate.happens.value) for fate in seen]
