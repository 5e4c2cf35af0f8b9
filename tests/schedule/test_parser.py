"""The dialect, rule by rule; tests of every combination against robfig itself: test_robfig.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hedgerow.schedule import LIMIT, Schedule, ScheduleError, fields, parse, zone
from hedgerow.schedule.days import civil
from hedgerow.schedule.durations import nanoseconds
from hedgerow.schedule.fields import ORDER, STAR, bits

FIELDS = "minute, hour, day of month, month, day of week"
NAMES = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every 1h30m"
HERE = "this dialect is that of robfig/cron, as in Kubernetes"
QUARTZ = f"is of Quartz; {HERE}"
DAY = "for the day of month"
UNLESS = "have the Job end at once unless it is the one meant"
START = datetime(2026, 1, 1, tzinfo=UTC)


def starts(expression: str, count: int = 3, start: datetime = START) -> list[str]:
    schedule = parse(expression)
    found = []
    for _ in range(count):
        start = schedule.after(start)
        found.append(start.strftime("%a %Y-%m-%d %H:%M:%S"))
    return found


class TestFields:
    @pytest.mark.parametrize(
        ("expression", "first", "second"),
        [
            ("*/20 * * * *", "Thu 2026-01-01 00:20:00", "Thu 2026-01-01 00:40:00"),
            ("50/5 1 * * *", "Thu 2026-01-01 01:50:00", "Thu 2026-01-01 01:55:00"),
            ("0 9-17/8 * * MON-fri", "Thu 2026-01-01 09:00:00", "Thu 2026-01-01 17:00:00"),
            ("0 0 ? feb,APR ?", "Sun 2026-02-01 00:00:00", "Mon 2026-02-02 00:00:00"),
            ("0 0 29 2 *", "Tue 2028-02-29 00:00:00", "Sun 2032-02-29 00:00:00"),
            ("0 0 * * 0", "Sun 2026-01-04 00:00:00", "Sun 2026-01-11 00:00:00"),
            ("5,,6 0 1 1 *", "Thu 2026-01-01 00:05:00", "Thu 2026-01-01 00:06:00"),
            ("@yearly", "Fri 2027-01-01 00:00:00", "Sat 2028-01-01 00:00:00"),
            ("@monthly", "Sun 2026-02-01 00:00:00", "Sun 2026-03-01 00:00:00"),
            ("@weekly", "Sun 2026-01-04 00:00:00", "Sun 2026-01-11 00:00:00"),
            ("@midnight", "Fri 2026-01-02 00:00:00", "Sat 2026-01-03 00:00:00"),
            ("@every 90m", "Thu 2026-01-01 01:30:00", "Thu 2026-01-01 03:00:00"),
        ],
    )
    def test_they_mean_these_starts(self, expression, first, second):
        assert starts(expression, 2) == [first, second]

    def test_two_restricted_day_fields_are_alternatives(self):
        assert starts("0 0 13 * 5", 4) == [
            "Fri 2026-01-02 00:00:00",
            "Fri 2026-01-09 00:00:00",
            "Tue 2026-01-13 00:00:00",
            "Fri 2026-01-16 00:00:00",
        ]

    def test_a_star_in_either_day_field_makes_both_conditions(self):
        assert starts("0 0 * * 5", 2) == ["Fri 2026-01-02 00:00:00", "Fri 2026-01-09 00:00:00"]
        assert starts("0 0 */1 * 5", 2) == ["Fri 2026-01-02 00:00:00", "Fri 2026-01-09 00:00:00"]

    def test_a_star_with_a_step_restricts_and_so_is_an_alternative(self):
        assert starts("0 0 */10 * 5", 3, datetime(2026, 1, 8, tzinfo=UTC)) == [
            "Fri 2026-01-09 00:00:00",
            "Sun 2026-01-11 00:00:00",
            "Fri 2026-01-16 00:00:00",
        ]

    def test_the_star_bit_is_that_of_robfig(self):
        weekday = ORDER[4]

        assert weekday.every == weekday.parse("?") == weekday.parse("2,*") == bits(0, 6) | STAR
        assert weekday.parse("*/2") == 0b1010101
        assert weekday.parse("0-6") == bits(0, 6)

    @pytest.mark.parametrize(
        "never",
        [
            "0 0 30 2 *", "0 0 31 2,4,6,9,11 *", ", * * * *", "* , * * *", "* * , * *",
            "* * * , *", "* * * * ,", "* * , * ,", "* * 31 , 1",
        ],
    )  # fmt: skip
    def test_what_is_never_is_none_without_a_search(self, never, monkeypatch):
        looks: list[int] = []
        monkeypatch.setattr(fields, "civil", lambda day: looks.append(day) or civil(day))
        found = parse(never, zone("America/New_York"))

        assert found.after(START) is None
        assert found.before(START) is None
        assert found.missed(START, START + timedelta(days=4000)).count == 0
        assert looks == []

    @pytest.mark.parametrize("weekdays", ["*", "*/7", "1", "1-5", "?"])
    @pytest.mark.parametrize("months", ["2", "4", "4,6,9,11", "2,6", "1", "*"])
    @pytest.mark.parametrize("days", ["1", "29", "30", "31", "30-31", "*/31", "*"])
    def test_what_matches_a_date_of_30_years_occurs_and_nothing_else(self, days, months, weekdays):
        fields = parse(f"0 0 {days} {months} {weekdays}").fields

        assert fields.occurs == any(map(fields.admit_date, range(30 * 366)))

    @pytest.mark.parametrize(
        ("expression", "said"),
        [
            ("60 * * * *", "minute '60': 60 is above 59"),
            ("* 1,24 * * *", "hour '24': 24 is above 23"),
            ("* * 0 * *", "day of month '0': 0 is below 1"),
            ("* * * 9-13 *", "month '9-13': 13 is above 12"),
            ("* * * * 7", "day of week '7': 7 is above 6; Sunday is 0"),
            ("* * * * 5-1", ("day of week '5-1': the range begins at 5 and ends before, at 1; a"
             " range does not go round: say 5-6,0-1")),
            ("* * * * SAT-SUN", ("day of week 'SAT-SUN': the range begins at 6 and ends before, at"
             " 0; a range does not go round: say sat,sun")),
            ("* * * * fri-mon", ("day of week 'fri-mon': the range begins at 5 and ends before, at"
             " 1; a range does not go round: say fri-sat,sun-mon")),
            ("* 22-6 * * *", ("hour '22-6': the range begins at 22 and ends before, at 6; a range"
             " does not go round: say 22-23,0-6")),
            ("* 22-6/2 * * *", "hour '22-6/2': the range begins at 22 and ends before, at 6"),
            ("* * * * 5-7", ("day of week '5-7': 7 is above 6; Sunday is 0; a range does not go"
             " round: say 5-6,0")),
            ("* * * * 1-8", "day of week '1-8': 8 is above 6"),
            ("* * * * 8-7", "day of week '8-7': 7 is above 6; Sunday is 0"),
            ("* * L * *", f"day of month 'L': L {QUARTZ}: say 28-31 {DAY}, and {UNLESS}"),
            ("* * L-3 * *", f"day of month 'L-3': L {QUARTZ}: say 28-31 {DAY}, and {UNLESS}"),
            ("* * * * 5L", f"day of week '5L': L {QUARTZ}: say 22-31 {DAY}, and {UNLESS}"),
            ("* * * * FRIL", f"day of week 'FRIL': L {QUARTZ}: say 22-31 {DAY}, and {UNLESS}"),
            ("* * 15W * *", f"day of month '15W': W {QUARTZ}: name the days, and {UNLESS}"),
            ("* * * * MON#1", f"day of week 'MON#1': # {QUARTZ}: say 1-7 {DAY}, and {UNLESS}"),
            ("H H(0-7) * * *", f"minute 'H': H is of Jenkins; {HERE}: say a number"),
            ("0 0 9 * * *", (f"schedule '0 0 9 * * *': it takes 5 fields ({FIELDS}), not 6: none"
             " for seconds or years, as in Kubernetes; @every 30s is each half minute")),
            ("*/0 * * * *", "minute '*/0': the step is 0"),
            ("1/2/3 * * * *", "minute '1/2/3': has more than one slash"),
            ("1-2-3 * * * *", "minute '1-2-3': has more than one hyphen"),
            ("mon * * * *", "minute 'mon': 'mon' is not a number"),
            ("* * * mon *", ("month 'mon': 'mon' is not a number or one of jan, feb, mar, apr, may,"
             " jun, jul, aug, sep, oct, nov, dec")),
            ("jul * * * *", "minute 'jul': 'jul' is not a number"),
            ("-1 * * * *", "minute '-1': a value is missing; write for instance 0-59, */5 or 0"),
            ("1- * * * *", "minute '1-': a value is missing; write for instance 0-59, */5 or 0"),
            ("*/ * * * *", "minute '*/': a value is missing; write for instance 0-59, */5 or 0"),
            ("*/-1 * * * *", "minute '*/-1': the number is negative"),
            ("* 9223372036854775808 * * *", "hour '9223372036854775808': the number is too large"),
            ("* *", f"schedule '* *': it takes 5 fields ({FIELDS}), not 2"),
            ("@reboot", f"schedule '@reboot': there is no such name; there are {NAMES}"),
            ("@every 1d", ("@every '1d': 'd' is no unit; there are h, m, s, ms, us, ns; a day is"
             " 24h")),
            ("@every 1y", "@every '1y': 'y' is no unit; there are h, m, s, ms, us, ns"),
            ("@every 1", "@every '1': a unit is missing after '1'; there are h, m, s, ms"),
            ("@every h", "@every 'h': a number is missing before 'h'"),
            ("@every ", "@every '': there is none; write for instance 1h30m"),
            ("@every -1h", "@every '-1h': it is negative; write for instance 1h30m"),
            ("@every -5m", "@every '-5m': it is negative; write for instance 1h30m"),
            ("@every 2562048h", "@every '2562048h': it is too long"),
            ("TZ=Mars * * * * *", "time zone 'Mars': the IANA database has none of this name"),
        ],
    )  # fmt: skip
    def test_an_error_names_the_field_and_the_value(self, expression, said):
        with pytest.raises(ScheduleError) as raised:
            parse(expression)

        assert str(raised.value) == said
        assert raised.value.value in expression


class TestPrefix:
    @pytest.mark.parametrize("prefix", ["TZ=", "CRON_TZ="])
    def test_it_is_where_the_fields_are_read(self, prefix):
        schedule = parse(f"{prefix}Asia/Tokyo 0 9 * * *", zone("Europe/Berlin"))

        assert schedule.zone_prefixed
        assert schedule.zone is zone("Asia/Tokyo")
        assert schedule.after(START) == datetime(2026, 1, 2, tzinfo=UTC)

    def test_without_it_they_are_read_in_the_zone_given(self):
        schedule = parse("0 9 * * *", zone("Europe/Berlin"))

        assert not schedule.zone_prefixed
        assert schedule.zone is zone("Europe/Berlin")
        assert schedule.after(START) == datetime(2026, 1, 1, 8, tzinfo=UTC)

    def test_no_name_is_utc_as_in_go(self):
        schedule = parse("TZ= 0 9 * * *", zone("Europe/Berlin"))

        assert schedule.zone_prefixed
        assert schedule.zone is UTC

    def test_local_is_refused_unlike_in_go(self):
        with pytest.raises(ScheduleError, match="time zone 'Local': say which"):
            parse("TZ=Local 0 9 * * *")


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0", 0), ("-0", 0), ("1ns", 1), ("1h2m3s4ms5us6ns", 3_723_004_005_006), (".5s",
            5 * 10**8),
            ("1.5h", 5_400 * 10**9), ("-2m", -120 * 10**9), ("+2m", 120 * 10**9), ("1\u00b5s",
            1000),
            ("1\u03bcs", 1000), ("1.s", 10**9), ("0.3333333333333333333h", 1_200 * 10**9),
            ("0.00000000000000000000000001h", 0), ("0.9223372036854775807h", 3_320_413_933_267),
            ("0.9223372036854775808s", 922_337_203), ("0.9223372036854775809s", 922_337_203),
            ("9223372036854775807ns", 2**63 - 1), ("-9223372036854775808ns", -(2**63)),
        ],
    )  # fmt: skip
    def test_they_are_read_as_go_reads_them(self, text, expected):
        assert nanoseconds(text) == expected

    @pytest.mark.parametrize(
        "text",
        ["9223372036854775808ns", "-9223372036854775809ns", "9223372036854775807ns2ns", "1h.s"],
    )
    def test_what_go_refuses_is_refused(self, text):
        with pytest.raises(ScheduleError):
            nanoseconds(text)

    @pytest.mark.parametrize(
        ("text", "seconds"), [("1.9s", 1), ("0", 1), ("1ms", 1), ("-0", 1), ("1m0.5s", 60)]
    )
    def test_they_are_whole_seconds_and_one_at_least(self, text, seconds):
        assert parse(f"@every {text}").after(START) == START + timedelta(seconds=seconds)


class TestHostileInput:
    @pytest.mark.parametrize(
        "expression",
        [
            "9" * LIMIT, "*/" + "9" * 1000 + " * * * *", "," * 1000 + "x * * * *", "-" * LIMIT,
            "@every " + "9" * 1000 + "h", "@every 0." + "9" * 1000, "@every " + "1h" * 500 + "x",
            "TZ=" + "A/" * 400 + " * * * * *", "* " * 500, "\ud800 * * * *", "\0" * 5, "1" * 10**6,
            "TZ=" + " " * 1000, "TZ=UTC " + "@" * 900,
        ],
    )  # fmt: skip
    def test_it_is_refused_in_a_short_line(self, expression):
        with pytest.raises(ScheduleError) as raised:
            parse(expression)

        assert len(str(raised.value)) < 300
        assert str(raised.value).isprintable()

    @pytest.mark.parametrize(
        "expression",
        [
            "0," * 500 + " * * * *", "0" * 1000 + " * * * *", "*" + "-x" * 500 + " * * * *",
            "@every " + "1h" * 500, "@every 1." + "9" * 1000 + "s", " * " * 5 + " " * 1000,
            "*/" + "0" * 990 + "1 * * * *",
        ],
    )  # fmt: skip
    def test_as_much_as_robfig_takes_of_it_is_taken(self, expression):
        assert parse(expression).after(START) is not None

    def test_one_character_too_many_is_refused(self):
        padded = "* * * * *".ljust(LIMIT)

        assert parse(padded).after(START) == START + timedelta(minutes=1)
        with pytest.raises(ScheduleError, match="it is longer than 1024 characters"):
            parse(padded + " ")

    @given(
        st.text(st.sampled_from("*?/-, 0123456789@TZ=every h.jansu\t\u00a0\x1f\u0663"), max_size=40)
    )
    @example("* * * * *")
    def test_nothing_but_a_schedule_or_its_error_comes_of_any_text(self, text):
        schedule = refusal = None
        try:
            schedule = parse(text)
        except ScheduleError as error:
            refusal = str(error)

        assert isinstance(schedule, Schedule) != bool(refusal and refusal.isprintable())
        after = schedule and schedule.after(START)
        assert after is None or after > START
