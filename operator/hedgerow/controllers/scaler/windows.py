"""Windows: the replicas that an object's annotations ask for, at any instant.

A window is in force from a start of the schedule `scale-out` to the next start of `scale-in`.
Windows follow from the schedules and the clock alone; nothing is remembered of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from hedgerow import ScheduleError, timetable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import tzinfo

    from hedgerow import Schedule

DOMAIN: Final = "ars.44smkn.github.io/"
SCALE_OUT: Final = f"{DOMAIN}scale-out"
SCALE_IN: Final = f"{DOMAIN}scale-in"
OUT_REPLICAS: Final = f"{DOMAIN}scale-out-replicas"
IN_REPLICAS: Final = f"{DOMAIN}scale-in-replicas"
TIME_ZONE: Final = f"{DOMAIN}time-zone"
ASKED: Final = (SCALE_OUT, SCALE_IN, OUT_REPLICAS, IN_REPLICAS, TIME_ZONE)
"""The annotations that the author of an object writes."""
BEFORE: Final = f"{DOMAIN}before"
HOLDS: Final = f"{DOMAIN}holds"
WRITTEN: Final = (BEFORE, HOLDS)
"""The annotations that the scaler writes; see `record`."""

NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for the last transition if there has been none."""
_MOST: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_SECOND: Final = timedelta(seconds=1)
_SHOWN: Final = 40


class AnnotationsError(ValueError):
    """Annotations that cannot be read; the text has every reason."""


@dataclass(frozen=True, slots=True)
class WindowPhase:
    """The time between two transitions: how many replicas there are to be, since when, until when.

    `replicas` is None outside of windows if no number is given for that. `until` is None if there
    is no further transition. `since` is `NEVER` before the first one.
    """

    in_force: bool
    replicas: int | None
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """The schedules of an object, and the replicas within and outside of its windows."""

    scale_out: Schedule
    scale_in: Schedule
    out_replicas: int
    in_replicas: int | None
    zone: tzinfo

    def at(self, now: datetime) -> WindowPhase:
        """Return the phase of an instant. Raises ValueError for an instant without a zone."""
        began, ended = self.scale_out.before(now), self.scale_in.before(now)
        if began is not None and (ended is None or ended <= began):
            # Starts within a window do not begin another; one that never ends begins with each.
            first = None if ended is None else self.scale_out.after(ended - _SECOND)
            return WindowPhase(True, self.out_replicas, first or began, self.scale_in.after(now))
        last = None if began is None else self.scale_in.after(began)
        return WindowPhase(False, self.in_replicas, last or NEVER, self.scale_out.after(now))

    def phases(self, since: datetime, until: datetime) -> Iterator[WindowPhase]:
        """Yield the phases between two instants, in order."""
        now: datetime | None = since
        while now is not None and now < until:
            phase = self.at(now)
            yield phase
            now = phase.until


def read_plan(annotations: Mapping[str, str], created: datetime | None) -> ScalePlan | None:
    """Return the plan that the annotations ask for; None if they ask for nothing.

    `@every` counts from `created`. Raises AnnotationsError.
    """
    asked = {
        key: value
        for key, value in annotations.items()
        if key.startswith(DOMAIN) and key not in WRITTEN
    }
    if not asked:
        return None
    problems = list(_problems(asked))
    schedules: list[Schedule] = []
    for key in (SCALE_OUT, SCALE_IN):
        try:
            schedules.append(timetable(asked.get(key, "@daily"), asked.get(TIME_ZONE), created))
        except ScheduleError as error:
            problems.append(f"{key}: {error}")
    if problems:
        raise AnnotationsError("; ".join(problems))
    scale_out, scale_in = schedules
    outside = asked.get(IN_REPLICAS)
    return ScalePlan(
        scale_out,
        scale_in,
        int(asked[OUT_REPLICAS]),
        None if outside is None else int(outside),
        scale_out.zone,
    )


def _problems(asked: Mapping[str, str]) -> Iterator[str]:
    for key in asked:
        if key not in ASKED:
            yield f"{key[:_SHOWN]} is no annotation of the scaler: there are {', '.join(ASKED)}"
    for key in (SCALE_OUT, SCALE_IN, OUT_REPLICAS):
        if key not in asked:
            yield f"{key} is missing"
    for key in (OUT_REPLICAS, IN_REPLICAS):
        value = asked.get(key, "0")
        if not _NUMBER.fullmatch(value) or int(value) > _MOST:
            yield f"{key}: {value[:_SHOWN]!r} is no number of replicas"
