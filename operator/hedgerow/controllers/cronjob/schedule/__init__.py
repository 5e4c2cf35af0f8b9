"""Cron: when a schedule starts, in the dialect of Go's robfig/cron v3 `ParseStandard`.

`parse` reads an expression once; the `Schedule` it gives then answers for any instant. Nothing
here knows what time it is. Why it is written here and not taken from a library: ADR 9.
"""

from hedgerow.controllers.cronjob.schedule.dialect import LIMIT, errors, parse
from hedgerow.controllers.cronjob.schedule.errors import ScheduleError
from hedgerow.controllers.cronjob.schedule.schedule import Every, Missed, Schedule
from hedgerow.controllers.cronjob.schedule.zones import ZONE_FIELD, repeated, zone

__all__ = [
    "LIMIT",
    "ZONE_FIELD",
    "Every",
    "Missed",
    "Schedule",
    "ScheduleError",
    "errors",
    "parse",
    "repeated",
    "zone",
]
