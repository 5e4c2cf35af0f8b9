"""What the real robfig/cron v3.0.1 answered: robfig/main.go says how the lines were made."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from hedgerow.schedule import ScheduleError, parse, zone
from schedule.clocks import shown_by

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = None
DAY = 86_400
NEGATIVE = ("@every -5h", "@every -9223372036854775808ns")
"""What robfig takes for every second, and hedgerow refuses."""


def golden(name: str) -> list[tuple]:
    text = Path(__file__).with_name(name).read_text("utf-8")
    return [tuple(json.loads(line)) for line in text.split("\n") if line]


DIALECT = golden("dialect.jsonl")
CHANGES = golden("changes.jsonl")
ACCEPTED = [
    line for line in DIALECT if isinstance(line[3], list) and not line[0].startswith(NEGATIVE)
]
REFUSED = [line for line in DIALECT if line[3] in ("invalid", "panic")]
ENDLESS = [line for line in CHANGES if line[3] == "hang"]
ENDED = [line for line in CHANGES if line[3] != "hang"]


def advances(line: tuple) -> bool:
    return all(step is NEVER or step > 0 for step in line[3])


BACKWARDS = [line for line in ENDED if not advances(line)]
FORWARDS = [line for line in ENDED if advances(line)]


def starts(expression: str, place: str, start: int, count: int) -> list[int | None]:
    """Return the seconds between starts, and None where there is none, as the golden lines do."""
    schedule = parse(expression, zone(place))
    instant: datetime | None = EPOCH + timedelta(milliseconds=start)
    seconds = [start // 1000]
    for _ in range(count):
        instant = schedule.after(instant)
        if instant is None:
            return [*steps(seconds), NEVER]
        seconds.append(int(instant.timestamp()))
    return steps(seconds)


def steps(seconds: list[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(seconds)]


def refused(expression: str) -> bool:
    try:
        parse(expression)
    except ScheduleError as error:
        return str(error).isprintable()
    return False


def differing(lines: list[tuple]) -> list[tuple]:
    found = []
    for expression, place, start, expected in lines:
        given = starts(expression, place, start, len(expected))
        if given != expected:
            found.append((expression, place, start, expected, given))
    return found


class TestDialect:
    def test_there_are_several_hundred_of_either_kind(self):
        assert len(ACCEPTED) > 800
        assert len(REFUSED) > 300

    def test_what_robfig_accepts_has_the_same_starts(self):
        assert differing(ACCEPTED) == []

    def test_some_of_it_never_starts(self):
        assert len([line for line in ACCEPTED if line[3] == [NEVER]]) >= 5

    def test_what_robfig_refuses_is_refused(self):
        assert [line for line in REFUSED if not refused(line[0])] == []

    def test_a_negative_distance_is_an_error_where_robfig_takes_it_for_a_second(self):
        taken = [line[3] for line in DIALECT if line[0] in NEGATIVE]

        assert taken == [[1] * 5] * 2
        for expression in NEGATIVE:
            with pytest.raises(ScheduleError, match="it is negative"):
                parse(expression)

    def test_a_prefix_alone_is_an_error_where_robfig_panics(self):
        panicked = [expression for expression, *_, outcome in REFUSED if outcome == "panic"]

        assert "TZ=UTC" in panicked
        for expression in panicked:
            with pytest.raises(ScheduleError, match="no schedule follows the time zone"):
                parse(expression)


@pytest.mark.untraced
class TestChangesOfTheOffset:
    def test_starts_around_them_are_those_of_robfig_unless_it_contradicts_the_clocks(self):
        found = differing(FORWARDS)

        assert len(FORWARDS) > 1000
        assert len(found) < 50
        for expression, place, start, theirs, ours in found:
            since = start // 1000
            shown = shown_by(expression, place, since, since + max(sum(theirs), sum(ours)))
            assert ours == steps([since, *shown])[: len(ours)]

    def test_where_robfig_never_returns_there_is_a_start_after_the_missing_day(self):
        assert {place for _, place, *_ in ENDLESS} == {"Pacific/Apia"}
        for expression, place, start, _ in ENDLESS:
            assert all(step > 0 for step in starts(expression, place, start, 4))

    def test_where_robfig_goes_back_in_time_or_stands_still_the_starts_go_on(self):
        assert {place for _, place, *_ in BACKWARDS} == {"America/St_Johns"}
        for expression, place, start, _ in BACKWARDS:
            assert all(0 < step <= 9 * DAY for step in starts(expression, place, start, 4))
