"""Cron: when a schedule starts, in the dialect of Go's robfig/cron v3 `ParseStandard`.

`parse` reads an expression once and returns a `Schedule`, which then answers for any instant.
Nothing here reads a clock. ADR 0018 says why this is not taken from a library.
"""

from hedgerow.schedule.errors import ScheduleError
from hedgerow.schedule.parser import LIMIT, errors, parse
from hedgerow.schedule.schedule import Every, Missed, Schedule
from hedgerow.schedule.timetables import ScheduleProblem, schedule_problems, timetable
from hedgerow.schedule.zones import ZONE_FIELD, zone

__all__ = [
    "LIMIT",
    "ZONE_FIELD",
    "Every",
    "Missed",
    "Schedule",
    "ScheduleError",
    "ScheduleProblem",
    "errors",
    "parse",
    "schedule_problems",
    "timetable",
    "zone",
]
