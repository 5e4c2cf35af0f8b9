"""Cases: what is asked of the real robfig/cron, as lines for main.go, which says how to run it."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from itertools import product

MINUTES = ["*", "0", "59", "*/15", "5/20", "7-52/9", "1,2,,30", "?", "+3", ",", "*-9", "0-59/100"]
HOURS = [
    "*",
    "0",
    "23",
    "*/6",
    "2/5",
    "9-17",
    "1-5/2,22",
    "?/1",
    "00000000000000000000000000000004",
]
DAYS = ["*", "1", "31", "*/2", "10/10", "28-31", "13,*/20", "?", "*/1", "30"]
MONTHS = ["*", "1", "FEB", "*/3", "nov/1", "mar-Oct", "jan,dec", "?", "2", "feb-apr/2"]
WEEKDAYS = ["*", "0", "fri", "*/2", "mon-Fri", "sat,SUN", "?", "1/2", "*/1", "4-6/100"]

MACROS = ["yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly"]
DURATIONS = [
    "1s", "1h30m", "1.5h", ".5m", "90m", "1m1.999999999s", "0", "+0", "-0", "-5h", "+2m", "1ns",
    "1us",
    "1µs", "1μs", "999ms", "1.s", "0.0000000000000000000000001h", "1h1h", "2540400h", "9223372036s",
    "9223372036854775807ns", "-9223372036854775808ns", "1.00000000000000000000000000000000001s",
    "00000000000000000000000000000001h", "0.9999999999999999999999s", "1s1ms", "8760h",
]  # fmt: skip
"""What time.ParseDuration takes."""

VALID = [
    *map(" ".join, product(["0", "*/20"], ["0", "*/8"], DAYS, ["*", "2"], WEEKDAYS)),
    *(f"{minute} 3 * * *" for minute in MINUTES),
    *(f"30 {hour} * * *" for hour in HOURS),
    *(f"15 4 {day} {month} *" for day in ("1", "31", "*/2") for month in MONTHS),
    *(f"@{name}" for name in MACROS),
    *(f"@every {duration}" for duration in DURATIONS),
    "0 0 29 2 *", "0 0 29 FEB ?", "0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 */2 *", "* , * * *",
    "* * , * *", "* * , * mon", "* * * , *", "* * * * ,", "* * * * *,1", "0 0 13 * 5",
    "0 0 */1 * 5",
    "0 0 */2 * 5", "0 0 1-31 * 1", "0 0 1-31/1 * ?", "*/1 * * * *", "*-5-7-x/2 * * * *",
    "? ? ? ? ?",
    "\t0  0\n1\v1\f*\r", "0\u00a00\u20001\u20281\u3000*", "0\x850\u16801\u202f1\u205f*",
    "0 0 * * FR\u0130", "*/9223372036854775807 * * * *", "0/59 0/23 1/30 1/11 0/6",
    "5-5 5-5 5-5 5-5 5-5",
    "TZ=UTC 0 0 * * *", "CRON_TZ=UTC 0 0 * * *", "TZ= 0 0 * * *", "CRON_TZ= @daily",
    "TZ=Asia/Tokyo 30 4 * * *", "CRON_TZ=America/New_York  \t@daily  ", "TZ=Etc/GMT+5 @hourly",
    "TZ=Europe/London @every 45m ", "CRON_TZ=EST5EDT 0 9 * * 1-5", "TZ=Asia/Kathmandu */30 * * * *",
]  # fmt: skip

ODD = ["", "-1", "60", "x", "1-", "-", "*/0", "*/", "/", "1/2/3", "1-2-3", "*/-1", "5-1", "**",
       "1..2",
       "1.5", "0x1", "1_0", "9223372036854775808", "\u0663", "\uff11", "*/+", "+", "*x", "x*",
       "1/*", "?*",
       "#1", "L", "1W", "@", "99999999999999999999999999999999999999999999999999999999999999999",
       "1--2",
       "*/*", "1-/2", "/5", "1;2", "--", "+-1", "1/-0"]  # fmt: skip
"""What no field takes; the empty one leaves only four."""

INVALID = [
    *(
        " ".join([*["*"] * place, odd, *["*"] * (4 - place)])
        for odd, place in product(ODD, range(5))
    ),
    "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 7", "* * * * 0-7",
    "* * * * sun-7", "* * * * fri-mon", "* * * dec-jan *", "mon * * * *", "* jan * * *",
    "* * feb * *",
    "* * * mon *", "* * * * jan", "* * * january *", "* * * * monday", "* * * * m", "* 22-2 * * *",
    "", " ", "*", "* *", "* * *", "* * * *", "* * * * * *", "0 * * * * *", "* * * * * * *", "\n",
    "@",
    "@Daily", "@DAILY", "@ daily", " @daily", "@daily ", "@dayly", "@reboot", "@every", "@every ",
    "@daily *",
    "@every  1h", "@every 1h ", "@every 1", "@every h", "@every .h", "@every 1.2.3h", "@every 1d",
    "@every 1w",
    "@every --1h", "@every +-1h", "@every +", "@every -", "@every 1h-1m", "@every 1h 1m",
    "@every 1 h",
    "@every 9223372036854775808ns", "@every 2562048h", "@every 9223372037s", "@every 1H",
    "@every 1e3s",
    "@every 9223372036854775807ns1ns", "@every 99999999999999999999999h", "@every \u0661h",
    "@every 1h\n",
    "@every -9223372036854775809ns", "@every 1,5h", "@every P1D", "@every *", "@Every 1h",
    "@every\t1h",
    "0\x1f0 1 1 *", "0\u200b0 1 1 *", "0\x000 1 1 *", "*,*", "*,*,*,*,*", "0 0 1 1 *\x00",
    "\ufeff* * * * *",
    "TZ=UTC ", "TZ=UTC  ", "TZ=UTC *", "TZ=UTC * * * *", "TZ=UTC * * * * * *",
    "TZ=UTC TZ=UTC * * * * *",
    "TZ=Nowhere/Land * * * * *", "TZ=../UTC * * * * *", "TZ=/UTC * * * * *", "TZ=\\UTC * * * * *",
    "TZ=/etc/localtime * * * * *", "TZ=America * * * * *", "TZ=leapseconds * * * * *",
    "tz=UTC * * * * *",
    "TZ=tzdata.zi * * * * *", "TZ=zone.tab * * * * *", "TZ=europe/berlin * * * * *",
    "TZ UTC * * * * *",
    "TZ=Europe/../UTC * * * * *", "TZ=\x00 * * * * *", "TZ=U\x00TC * * * * *",
    "CRON_TZ=+01:00 * * * * *",
    " TZ=UTC * * * * *", "CRONTZ=UTC * * * * *", "cron_tz=UTC * * * * *", "TZ=UTC\t* * * * *",
    "TZ==UTC * * * * *", 'TZ="UTC" * * * * *', "TZ='UTC' * * * * *", "TZ=:UTC * * * * *",
    "TZ=UTC+1 * * * * *", "TZ=Europe/ * * * * *",
    "TZ=UTC @every", "TZ=UTC @daly", "TZ=UTC @every 1", "TZ=Europe//Berlin/ * * * * *", "TZ=UTC",
    "CRON_TZ=UTC",
    "TZ=", "CRON_TZ=", "TZ=UTC\t@daily",
]  # fmt: skip

INSTANTS = [
    ("UTC", "2026-01-30T23:59:59.999+00:00"),
    ("America/New_York", "2024-02-29T04:30:00+00:00"),
    ("Asia/Kathmandu", "2027-12-31T18:14:59.500+00:00"),
    ("Europe/Berlin", "1999-12-31T22:59:00+00:00"),
]

CHANGES = [
    ("America/New_York", "2026-03-08T07:00:00Z"), ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Europe/London", "2026-03-29T01:00:00Z"), ("Europe/London", "2026-10-25T01:00:00Z"),
    ("Europe/Berlin", "2026-03-29T01:00:00Z"), ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"), ("America/Sao_Paulo", "2019-02-17T02:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"), ("Australia/Lord_Howe",
    "2026-10-03T15:30:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00:00Z"), ("Pacific/Apia", "2011-09-24T11:00:00Z"),
    ("Asia/Tehran", "2022-03-21T20:30:00Z"), ("Asia/Tehran", "2022-09-21T19:30:00Z"),
    ("Antarctica/Troll", "2026-03-29T01:00:00Z"), ("Antarctica/Troll", "2026-10-25T01:00:00Z"),
    ("Africa/Cairo", "2024-04-25T22:00:00Z"), ("Africa/Cairo", "2024-10-31T21:00:00Z"),
    ("Asia/Beirut", "2024-03-30T22:00:00Z"), ("Asia/Beirut", "2024-10-26T21:00:00Z"),
    ("America/Havana", "2024-03-10T05:00:00Z"), ("America/Havana", "2024-11-03T05:00:00Z"),
    ("Asia/Amman", "2021-03-25T22:00:00Z"), ("Asia/Amman", "2021-10-28T22:00:00Z"),
    ("Atlantic/Azores", "2026-03-29T01:00:00Z"), ("Atlantic/Azores", "2026-10-25T01:00:00Z"),
    ("America/St_Johns", "2010-03-14T03:31:00Z"), ("America/St_Johns", "2010-11-07T02:31:00Z"),
    ("Africa/Casablanca", "2026-02-15T02:00:00Z"), ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("Europe/Dublin", "2026-10-25T01:00:00Z"), ("America/New_York", "1883-11-18T17:00:00Z"),
]  # fmt: skip
"""Changes of the offset, in UTC: common ones, at midnight, of half an hour, of two, of a day."""

AROUND = [
    "* * * * *", "*/15 * * * *", "10 * * * *", "0 * * * *", "45 1 * * *", "0 0 * * *", "30 0 * * *",
    "15 0 * * *", "0 1 * * *", "30 1 * * *", "15 2 * * *", "30 2 * * *", "0 3 * * *", "30 3 * * *",
    "0 5 * * *", "15 5 * * *", "0 23 * * *", "30 23 * * *", "0 */2 * * *", "30 0-3 * * *",
    "15 1,2 * * *",
    "0 0 * * 0", "0 0 * * 5", "30 2 * * 0", "15 0 * * 1", "0 0 1 * *", "0 0 31 12 *",
    "0 2 25,29 * *",
    "0 0 1 11 *", "0 0 */2 * *", "0 12 8 3 0", "59 23 28-31 * *", "@daily", "@hourly", "@weekly",
    "@every 1h",
]  # fmt: skip
BEFORE_AND_AFTER = [-36 * 3600, -5400, -1, 1805, 5400]
"""Seconds from a change to where the search starts: these in turn."""


def milliseconds(moment: str) -> int:
    return round(datetime.fromisoformat(moment).astimezone(UTC).timestamp() * 1000)


def dialect() -> list[list[object]]:
    """Ask for every expression, valid or not, in the zones in turn."""
    asked = []
    for number, expression in enumerate([*VALID, *INVALID]):
        zone, moment = INSTANTS[number % len(INSTANTS)]
        asked.append([expression, zone, milliseconds(moment), 5])
    return asked


def changes() -> list[list[object]]:
    """Ask for starts before, at and after the changes of offsets."""
    return [
        [expression, zone, milliseconds(moment) + 1000 * BEFORE_AND_AFTER[number % 5], 4]
        for number, ((zone, moment), expression) in enumerate(product(CHANGES, AROUND))
    ]


if __name__ == "__main__":
    for line in {"dialect": dialect, "changes": changes}[sys.argv[1]]():
        print(json.dumps(line))
