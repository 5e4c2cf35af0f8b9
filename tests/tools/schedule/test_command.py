"""hedgerow schedule next, as it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial

import pytest

from hedgerow.runtime.clock import SystemClock


@pytest.fixture
def typed(typing, monkeypatch):
    """Type `hedgerow schedule next` and more; give exit code, standard output, standard error."""
    monkeypatch.delenv("COLUMNS", raising=False)  # with it, lines are as long as it says
    return partial(typing, "schedule", "next")


def lines(out: str) -> list[str]:
    """Return the lines with single blanks, as a table pads its columns."""
    return [" ".join(line.split()) for line in out.splitlines()]


class TestTable:
    def test_a_start_is_shown_on_both_clocks_and_from_how_far(self, typed):
        code, out, err = typed(
            "0 9 * * 1-5", "--zone", "Europe/Berlin", "--from", "2026-06-05T08:29:30Z",
            "--count", "2",
        )  # fmt: skip

        assert (code, err) == (0, "")
        assert lines(out) == [
            "local (Europe/Berlin) UTC in",
            "Mon 2026-06-08 09:00:00 CEST +02:00 2026-06-08T07:00:00Z 2d 22h 30m 30s",
            "Tue 2026-06-09 09:00:00 CEST +02:00 2026-06-09T07:00:00Z 3d 22h 30m 30s",
        ]

    def test_a_skipped_start_is_marked_at_the_one_that_comes_after_it(self, typed):
        _, out, _ = typed(
            "30 2 * * *", "--zone", "America/New_York", "--from", "2026-03-07T00:00", "--count", "2"
        )

        assert lines(out)[0].endswith("in daylight saving")
        assert lines(out)[1].endswith("2026-03-07T07:30:00Z 2h 30m")
        assert lines(out)[2].endswith("2d 1h 30m skipped before it: 2026-03-08 02:30")

    def test_of_many_skipped_ones_on_its_day_the_first_are_named(self, typed):
        _, out, _ = typed(
            "*/10 * * * *", "--zone", "Europe/London", "--from", "2026-03-29T00:50Z", "--count", "1"
        )

        assert lines(out)[1].endswith("10m skipped before it: 01:00, 01:10, 01:20 and more")

    def test_both_passes_of_a_repeated_hour_are_marked(self, typed):
        _, out, _ = typed(
            "30 1 * * *", "--zone", "America/New_York", "--from", "2026-11-01", "--count", "3"
        )

        _, first, second, after = lines(out)
        assert first.endswith("EDT -04:00 2026-11-01T05:30:00Z 1h 30m first 01:30 of two")
        assert second.endswith("EST -05:00 2026-11-01T06:30:00Z 2h 30m second 01:30 of two")
        assert after.endswith("2026-11-02T06:30:00Z 1d 2h 30m")

    def test_a_zone_without_an_abbreviation_shows_its_offset_once(self, typed):
        _, out, _ = typed(
            "@daily", "--zone", "America/Sao_Paulo", "--from", "2026-01-01", "--count", "1"
        )

        assert lines(out)[1].startswith("Fri 2026-01-02 00:00:00 -03:00 2026-01-02T03:00:00Z")

    def test_the_prefix_names_the_zone(self, typed):
        _, out, _ = typed("CRON_TZ=Asia/Tokyo @daily", "--from", "2026-01-01", "--count", "1")

        assert lines(out)[0] == "local (Asia/Tokyo) UTC in"
        assert lines(out)[1].endswith("JST +09:00 2026-01-01T15:00:00Z 1d")

    def test_from_now_in_utc_ten_are_shown(self, typed, monkeypatch):
        now = datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)
        monkeypatch.setattr(SystemClock, "now", lambda _: now)

        _, out, _ = typed("@every 1s")

        assert len(lines(out)) == 12
        assert lines(out)[1] == "Thu 2026-01-01 00:00:01 UTC +00:00 2026-01-01T00:00:01Z 0s"
        assert lines(out)[2].endswith("2026-01-01T00:00:02Z 1s")

    def test_a_distance_is_said_to_count_from_the_creation_in_a_cluster(self, typed):
        _, out, _ = typed("@every 1h", "--from", "2026-01-01")

        assert lines(out)[-1] == (
            "Counted from 2026-01-01T00:00:00Z; in a cluster @every counts from the creation of the"
            " CronJob."
        )
        assert "Counted" not in typed("@hourly")[1]

    @pytest.mark.parametrize(
        "schedule", ["-1 * * * *", "-5 0 * * mon", "-", "-*/5 * * * *", "-o 1 * * *"]
    )
    def test_one_that_begins_with_a_hyphen_is_refused_as_a_schedule(self, typed, schedule):
        code, out, err = typed(schedule, "--count", "1")

        assert (code, out) == (2, "")
        assert "schedule" in err or "minute" in err
        assert "option" not in err

    def test_a_misspelt_option_is_still_one(self, typed):
        assert "No such option: --zon" in typed("@daily", "--zon", "UTC")[2]

    def test_without_a_terminal_no_line_is_broken(self, typed, monkeypatch):
        monkeypatch.delenv("COLUMNS", raising=False)
        zone = ("--zone", "Europe/London", "--from", "2026-03-29T00:50Z")

        _, out, _ = typed("*/10 * * * *", *zone, "--count", "1")

        assert len(out.splitlines()) == 2
        assert max(map(len, out.splitlines())) < 200

    def test_a_terminal_sets_the_width(self, typed, monkeypatch):
        words = ("*/10 * * * *", "--zone", "Europe/London", "--from", "2026-03-29T00:50Z")
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")

        _, out, _ = typed(*words, "--count", "1")

        plain = [line for line in out.splitlines() if "\x1b" not in line]
        assert len(plain) > 1
        assert max(map(len, plain)) <= 80

    def test_what_never_starts_is_said_to_have_none(self, typed):
        assert typed("0 0 30 2 *", "--from", "2026-01-01") == (
            0,
            "No start within five years of 2026-01-01T00:00:00Z.\n",
            "",
        )

    def test_what_ends_is_said_to_end(self, typed):
        code, out, _ = typed("0 0 29 2 *", "--from", "2090-01-01")

        assert code == 0
        assert len(lines(out)) == 4
        assert lines(out)[3] == "No further start within five years of 2096-02-29T00:00:00Z."

    def test_it_ends_before_the_calendar_of_the_machine_does(self, typed):
        _, out, _ = typed(
            "@yearly", "--from", "8999-06-01", "--count", "1000", "--zone", "Pacific/Kiritimati"
        )

        years = [line[4:8] for line in lines(out) if line[8:14] == "-01-01"]
        assert (years[0], years[-1]) == ("9000", "9990")


class TestJson:
    def test_it_tells_the_same(self, typed):
        code, out, _ = typed(
            "30 2 * * *", "--zone", "America/New_York", "--from", "2026-03-07T12:00:00-05:00",
            "--count", "1", "-o", "json",
        )  # fmt: skip

        [found] = json.loads(out)
        assert code == 0
        assert (found["schedule"], found["zone"]) == ("30 2 * * *", "America/New_York")
        assert found["starts"] == [
            {
                "local": "2026-03-09T02:30:00-04:00",
                "zone": "EDT",
                "utc": "2026-03-09T06:30:00Z",
                "inSeconds": 135_000,
                "repeated": None,
                "skippedBefore": ["2026-03-08T02:30:00"],
            }
        ]

    def test_which_of_two_it_is(self, typed):
        _, out, _ = typed(
            "30 2 * * *", "--zone", "Europe/Berlin", "--from", "2026-10-25", "--count", "2",
            "--output", "json",
        )  # fmt: skip

        assert [start["repeated"] for start in json.loads(out)[0]["starts"]] == ["first", "second"]

    def test_none_is_said_in_a_note(self, typed):
        [found] = json.loads(typed("0 0 30 2 *", "--from", "2026-01-01", "-o", "json")[1])

        assert found["notes"] == ["No start within five years of 2026-01-01T00:00:00Z."]
        assert "starts" not in found


class TestErrors:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("* * * * 7",), "day of week '7': 7 is above 6; Sunday is 0"),
            (("",), "schedule '': it takes 5 fields"),
            (("*/5", "*", "*", "*", "*"), "the schedule came as 5 words: quote it, as in '30 2"),
            (("--", "-1 * * * *"), "minute '-1': a value is missing; write for instance 0-59"),
            (("* * * * SAT-SUN",), "a range does not go round: say sat,sun"),
            (("0 0 9 * * *",), "not 6: none for seconds or years, as in Kubernetes"),
            (("0 0 L * *",), "L is of Quartz; this dialect is that of robfig/cron, as in Kube"),
            (("@every -1h",), "@every '-1h': it is negative"),
            (("@daily", "--zone", "europe/berlin"), "none of this name; it has Europe/Berlin"),
            (("61 * * * *", "--zone", "Mars"), "61 is above 59; time zone 'Mars': the IANA"),
            (("@daily", "--zone", "Mars"), "time zone 'Mars': the IANA database has none"),
            (("@daily", "--zone", ""), "time zone '': this is no IANA name"),
            (("@daily", "--zone", "../../etc/passwd"), "this is no IANA name"),
            (("TZ=UTC @daily", "--zone", "UTC"), "the schedule names a zone of its own, UTC: drop"),
            (("@daily", "--from", "yesterday"), "--from takes a time such as 2026-03-08T02:30:00Z"),
            (("@daily", "--from", "0001-01-01T00:00:00Z"), "is not between 1970 and 9000"),
            (("@daily", "--from", "9999-12-31T23:59:59Z"), "is not between 1970 and 9000"),
            (("@daily", "--count", "0"), "--count"),
            (("@daily", "--count", "1001"), "--count"),
            (("@daily", "-o", "yaml"), "'--output'"),
            ((), "give either a schedule or KIND/NAME, or a file with -f"),
            (("@daily", "-f", "x"), "give either a schedule or KIND/NAME, or a file with -f"),
            (("cronjob/x", "--zone", "UTC"), "--zone is for a schedule alone"),
        ],
    )
    def test_wrong_input_is_one_line_and_exit_code_2(self, typed, words, said):
        code, out, err = typed(*words)

        assert (code, out) == (2, "")
        assert err.startswith("hedgerow: ")
        assert said in err
        assert err.count("\n") == 1


class TestCost:
    def test_it_loads_no_part_that_talks_to_a_cluster(self):
        program = (
            "import sys\nfrom hedgerow.cli import main\n"
            "try: main(['schedule', 'next', '@daily', '--from', '2026-01-01', '-o', 'json'])\n"
            "except SystemExit: pass\n"
            "loaded = [m for m in ('httpx', 'kr8s', 'cryptography') if m in sys.modules]\n"
            "print(loaded, file=sys.stderr)"
        )

        shown = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )

        assert shown.stderr.strip() == "[]"
