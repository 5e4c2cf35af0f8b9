"""hedgerow schedule explain: what it takes, what it tells, and what it refuses."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console

from hedgerow.cli import main
from hedgerow_schemas.base import ApiResource
from hedgerow_testing.memory.kind import ServedKind
from hedgerow_tools.schedule import explain, explained
from support.server.apiserver import Reply, unserved

DEMO = """
apiVersion: batch.tutorial.kubebuilder.io/v1
kind: CronJob
metadata: {name: demo, namespace: shop}
spec:
  schedule: "30 1,2 * * *"
  timeZone: America/New_York
  concurrencyPolicy: Forbid
  jobTemplate: {spec: {}}
"""
HOURLY = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: theirs}
spec: {schedule: "@hourly", jobTemplate: {}}
"""
OTHER = "{apiVersion: v1, kind: Service, metadata: {name: web}}"
NOW = datetime(2026, 3, 8, 5, 59, 59, 999, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(explain, "SystemClock", lambda: SimpleNamespace(now=lambda: NOW))


@pytest.fixture
def typed(capsys, tmp_path):
    """Type a line with a file of this text; give the exit code, standard output and error."""

    def run(text: str, *words: str) -> tuple[int, str, str]:
        file = tmp_path / "cronjob.yaml"
        file.write_text(text, "utf-8")
        with pytest.raises(SystemExit) as ended:
            main(["schedule", "explain", "-f", str(file), *words])
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err.replace(f"{tmp_path}/", "")

    return run


@pytest.fixture
def asked(typed):
    """Type a line and give the objects that come of it."""

    def run(text: str, *words: str) -> list[dict]:
        code, out, err = typed(text, "-o", "json", *words)
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


class TestTimes:
    def test_it_is_asked_from_now_for_a_day_unless_told(self, asked):
        [found] = asked(HOURLY)

        assert (found["from"], found["to"]) == ("2026-03-08T05:59:59Z", "2026-03-09T05:59:59Z")
        assert len(found["starts"]) == 24

    def test_a_day_is_one_on_the_wall(self, asked):
        [found] = asked(DEMO, "--from", "2026-03-08")

        assert (found["from"], found["to"]) == ("2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z")

    @pytest.mark.parametrize(
        ("given", "meant"),
        [
            ("2026-03-01", "2026-03-01T05:00:00Z"),
            ("2026-03-01T12:00", "2026-03-01T17:00:00Z"),
            ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z"),
            ("2026-03-01t12:00:00.5z", "2026-03-01T12:00:00Z"),
            ("2026-03-01 12:00:00+02:00", "2026-03-01T10:00:00Z"),
        ],
    )
    def test_one_without_an_offset_is_in_the_schedules_zone(self, asked, given, meant):
        [found] = asked(DEMO, "--from", given)

        assert found["from"] == meant

    def test_each_cronjob_has_its_own(self, asked):
        ours, theirs = asked(f"{DEMO}---{HOURLY}", "--from", "2026-03-01", "--to", "2026-03-02")

        assert (ours["from"], theirs["from"]) == ("2026-03-01T05:00:00Z", "2026-03-01T00:00:00Z")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--from", "soon"), "--from takes a time such as 2026-03-08T02:30:00Z or a date"),
            (("--to", "2020-01-01"), "--to: 2020-01-01T00:00:00-05:00 is not after 2026-03-08T"),
            (("--to", "2026-03-08T05:59:59Z"), "is not after"),
            (("--from", "0001-01-01"), "--from: 0001-01-01 is not between 1970 and 9000"),
            (("--from", "0001-01-01T00:00+14:00"), "is not between 1970 and 9000"),
            (("--from", "9999-12-31T23:59-14:00"), "is not between 1970 and 9000"),
            (("--to", "2200-01-01"), "--to is more than a hundred years after --from"),
            (("--down", "2026-03-08"), "--down takes two times, FROM/TO, not '2026-03-08'"),
            (("--down", "x/2026-03-08"), "--down takes a time such as"),
            (("--down", "2026-03-09/2026-03-08"), "--down: 2026-03-08T00:00:00-05:00 is not after"),
            (("--duration", "5"), "--duration '5': a unit is missing after '5'"),
            (("--duration", "-5s"), "--duration '-5s': it is not between 0 and a hundred years"),
            (("--duration", "2000000h"), "it is not between 0 and a hundred years"),
            (("--limit", "0"), "Invalid value for '--limit'"),
            (("--limit", "1001"), "Invalid value for '--limit'"),
            (("-o", "xml"), "Invalid value for '--output'"),
        ],
    )
    def test_what_makes_no_sense_is_one_line_and_exit_code_2(self, typed, words, said):
        code, out, err = typed(DEMO, *words)

        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1


class TestJson:
    def test_each_start_is_an_object(self, asked):
        [found] = asked(DEMO, "--from", "2026-03-07", "--duration", "75m", "--limit", "4")

        assert {name: value for name, value in found.items() if name != "starts"} == {
            "apiVersion": "batch.tutorial.kubebuilder.io/v1",
            "kind": "CronJob",
            "namespace": "shop",
            "name": "demo",
            "schedule": "30 1,2 * * *",
            "zone": "America/New_York",
            "concurrencyPolicy": "Forbid",
            "from": "2026-03-07T05:00:00Z",
            "to": "2026-03-08T05:00:00Z",
            "begins": "2026-03-07T05:00:00Z",
            "durationSeconds": 4500.0,
            "missedBefore": 0,
            "madeAtOnce": None,
            "recordAhead": None,
            "summary": {"runs": 1, "runsLate": 1},
            "more": 0,
        }
        assert found["starts"][1] == {
            "local": "2026-03-07T02:30:00-05:00",
            "utc": "2026-03-07T07:30:00Z",
            "happens": "runsLate",
            "why": "late at 02:45:00: demo-1772865000 has ended",
            "job": "demo-1772868600",
            "begins": "2026-03-07T07:45:00Z",
            "repeated": None,
            "skipped": [],
        }

    def test_what_the_clocks_skip_has_no_instant(self, asked):
        [found] = asked(DEMO, "--from", "2026-03-08")

        assert found["starts"][1] == {
            "local": "2026-03-08T02:30:00",
            "utc": None,
            "happens": "skippedByClocks",
            "why": "the clocks skip 02:30",
            "job": None,
            "begins": None,
            "repeated": None,
            "skipped": ["2026-03-08T02:30:00"],
        }

    def test_what_they_repeat_is_marked(self, asked):
        [found] = asked(DEMO, "--from", "2026-11-01", "--to", "2026-11-02")

        assert [start["repeated"] for start in found["starts"]] == ["first", "second", None]

    def test_times_without_an_operator_may_be_several(self, asked):
        [found] = asked(
            HOURLY,
            *("--from", "2026-03-01", "--to", "2026-03-01T04:00"),
            *("--down", "2026-03-01T00:30/2026-03-01T01:30"),
            *("--down", "2026-03-01T02:30Z/2026-03-01T03:30Z"),
        )

        assert [start["happens"] for start in found["starts"]] == [
            *("runsLate", "runs"),
            *("runsLate", "runs"),
        ]


class TestTable:
    def test_it_tells_in_lines_and_a_summary(self, typed):
        code, out, err = typed(DEMO, "--from", "2026-03-08", "--to", "2026-03-09T02:00")
        lines = [" ".join(line.split()) for line in out.splitlines()]

        assert (code, err) == (0, "")
        assert lines == [
            "CronJob/demo: '30 1,2 * * *' in America/New_York, Forbid; Jobs take 0s",
            "No Job is ever in the way of another: --duration says how long they take.",
            "start (America/New_York) UTC what happens why Job",
            "Sun 2026-03-08 01:30:00 EST -05:00 2026-03-08T06:30:00Z runs on time demo-1772951400",
            "Sun 2026-03-08 02:30:00 skipped by clocks the clocks skip 02:30",
            "Mon 2026-03-09 01:30:00 EDT -04:00 2026-03-09T05:30:00Z runs on time demo-1773034200",
            "runs: 2, skipped by clocks: 1",
        ]

    def test_utc_is_not_shown_twice_and_kubernetes_own_are_named_as_such(self, typed):
        _, out, _ = typed(HOURLY, "--duration", "1h30m5s", "--limit", "1")
        lines = [" ".join(line.split()) for line in out.splitlines()]

        assert lines == [
            "CronJob/theirs: '@hourly' in UTC, Allow; Jobs take 1h30m5s",
            "It is a CronJob of Kubernetes (batch/v1); this is what hedgerow would do with it.",
            "start (UTC) what happens why Job",
            "Sun 2026-03-08 06:00:00 UTC +00:00 runs on time theirs-1772949600",
            "runs: 1; 23 more starts until 2026-03-09T05:59:59Z: see --limit",
        ]

    def test_one_start_more_is_no_starts(self, typed):
        _, out, _ = typed(HOURLY, "--to", "2026-03-08T07:30Z", "--limit", "1")

        assert "; 1 more start until" in out

    def test_there_may_be_nothing_to_tell(self, typed):
        _, out, _ = typed(
            HOURLY, "--to", "2026-03-08T05:59:59.9999Z", "--from", "2026-03-08T05:00Z"
        )

        assert out.splitlines()[-1] == "There is no start until 2026-03-08T05:59:59Z."

    def test_what_was_before_is_told_first(self, typed):
        started = f"{HOURLY}status: {{lastScheduleTime: '2026-03-08T02:00:00Z'}}"
        _, late, _ = typed(started, "--limit", "1")
        _, early, _ = typed(started, "--from", "2026-03-08T01:00Z", "--limit", "1")

        assert "Before 2026-03-08T05:59:59Z, 3 starts had passed without a Job." in late
        assert "It begins at 2026-03-08T02:00:00Z: status.lastScheduleTime is later" in early

    def test_several_are_told_apart_by_an_empty_line(self, typed):
        _, out, _ = typed(f"{DEMO}---{HOURLY}", "--limit", "1")

        assert "\n\nCronJob/theirs: " in out

    @pytest.mark.parametrize(
        ("columns", "titles"),
        [
            (80, "start (America/New_York) what happens why"),
            (120, "start (America/New_York) UTC what happens why"),
            (150, "start (America/New_York) UTC what happens why Job"),
        ],
    )
    def test_a_narrow_terminal_is_told_less(self, typed, monkeypatch, columns, titles):
        monkeypatch.setattr(
            explained,
            "Terminal",
            lambda: Console(width=columns, force_terminal=True, color_system=None),
        )
        _, out, _ = typed(DEMO, "--from", "2026-03-08")

        assert titles in [" ".join(line.split()) for line in out.splitlines()]

    def test_a_zone_without_a_name_is_its_offset(self, typed):
        _, out, _ = typed(
            HOURLY.replace("jobT", "timeZone: America/Sao_Paulo, jobT"), "--limit", "1"
        )

        assert "Sun 2026-03-08 03:00:00 -03:00  2026-03-08T06:00:00Z" in out


class TestHeading:
    """What the table alone does not say."""

    def heading(self, typed, status: str = "", **spec: object) -> list[str]:
        """The lines before the table, of a CronJob whose spec is changed so."""
        text = DEMO.replace("30 1,2 * * *", str(spec.pop("schedule", "0 * * * *")))
        more = "".join(f"  {name}: {value}\n" for name, value in spec.items())
        code, out, err = typed(f"{text.rstrip()}\n{more}{status}")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        return lines[: next(i for i, line in enumerate(lines) if line.startswith("start ("))]

    def test_a_deadline_of_nothing_is_said_to_let_nothing_start(self, typed):
        assert self.heading(typed, startingDeadlineSeconds=0)[-1] == (
            "Nothing ever starts: startingDeadlineSeconds is 0, and every start is late by then."
        )

    def test_a_record_ahead_of_now_is_said_to_be_none(self, typed):
        lines = self.heading(typed, "status: {lastScheduleTime: '2099-01-01T00:00:00Z'}\n")

        assert lines[-1] == (
            "status.lastScheduleTime 2099-01-01T00:00:00Z is later than now, so it records no"
            " start: starts go on from now."
        )

    @pytest.mark.parametrize(
        ("policy", "ends"), [("Forbid", ""), ("Replace", ", and ends the Job that runs")]
    )
    def test_what_an_edit_starts_at_once_is_said(self, typed, policy, ends):
        runs = "demo-1772928000" if policy == "Replace" else ""
        active = f"active: [{{name: {runs}}}], " if runs else ""
        status = f"status: {{{active}lastScheduleTime: '2026-03-08T00:00:00Z'}}\n"
        text = DEMO.replace("Forbid", policy).replace("30 1,2 * * *", "0 * * * *")
        _, out, _ = typed(text.rstrip() + "\n" + status, "--duration", "10h")

        assert (
            f"That of 2026-03-08T05:00:00Z is made at once{ends}; so it is after an edit of"
            " schedule or timeZone, and when suspend is taken away.\n"
        ) in out

    def test_where_nothing_is_made_at_once_nothing_is_said_of_it(self, typed):
        status = "status: {lastScheduleTime: '2026-03-08T05:00:00Z'}\n"

        assert "at once" not in "".join(self.heading(typed, status))

    def test_programs_are_told_it_too(self, asked):
        text = DEMO.replace("30 1,2 * * *", "0 * * * *").rstrip()
        [late] = asked(f"{text}\nstatus: {{lastScheduleTime: '2026-03-08T00:00:00Z'}}\n")
        [ahead] = asked(f"{text}\nstatus: {{lastScheduleTime: '2099-01-01T00:00:00Z'}}\n")

        assert (late["madeAtOnce"], late["recordAhead"]) == ("2026-03-08T05:00:00Z", None)
        assert (ahead["madeAtOnce"], ahead["recordAhead"]) == (None, "2099-01-01T00:00:00Z")


class TestFile:
    def test_a_dash_is_standard_input(self, capsys, monkeypatch):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(HOURLY.encode())))
        with pytest.raises(SystemExit) as ended:
            main(["schedule", "explain", "-f", "-", "--limit", "1"])

        assert not ended.value.code
        assert capsys.readouterr().out.startswith("CronJob/theirs: ")

    def test_what_is_no_cronjob_is_named_and_skipped(self, typed):
        code, out, err = typed(f"{OTHER}\n---{HOURLY}", "--limit", "1")

        assert code == 0
        assert out.startswith("CronJob/theirs: ")
        assert err == "hedgerow: cronjob.yaml: Service/web of v1 is skipped: it is no CronJob\n"

    def test_nothing_but_others_is_wrong_usage(self, typed):
        code, out, err = typed(OTHER)

        assert (code, out) == (2, "")
        assert err.splitlines()[-1] == (
            "hedgerow: cronjob.yaml: there is no CronJob of batch.tutorial.kubebuilder.io/v1 in it"
        )

    def test_every_field_that_is_wrong_is_a_line_and_nothing_is_explained(self, typed):
        wrong = HOURLY.replace("@hourly", "61 * * * *").replace("jobT", "suspend: 5, jobT")
        code, out, err = typed(f"{DEMO}---{wrong}---{HOURLY.replace('@hourly', '* *')}")

        assert (code, out) == (2, "")
        lines = err.splitlines()
        assert len(lines) == 2
        assert lines[0].startswith("hedgerow: cronjob.yaml: CronJob/theirs: .spec.suspend: ")
        assert lines[1].startswith("hedgerow: cronjob.yaml: CronJob/theirs: .spec.schedule: ")

    @pytest.mark.parametrize(
        ("text", "said"),
        [("a: [", "cronjob.yaml: line 2: "), ("- a", "cronjob.yaml: it holds no Kubernetes")],
    )
    def test_one_that_cannot_be_read_says_where(self, typed, text, said):
        code, out, err = typed(text)

        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1

    def test_one_that_is_no_text_says_so(self, typed, tmp_path, capsys):
        file = tmp_path / "image"
        file.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(SystemExit) as ended:
            main(["schedule", "explain", "-f", str(file)])

        assert ended.value.code == 2
        assert "it is no text in UTF-8" in capsys.readouterr().err

    def test_one_that_is_not_there_is_a_failure(self, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["schedule", "explain", "-f", "/nowhere/cronjob.yaml"])

        assert ended.value.code == 1
        assert "/nowhere/cronjob.yaml: No such file" in capsys.readouterr().err


class TestCluster:
    """CronJobs that are in a cluster."""

    @pytest.fixture(autouse=True)
    def put(self, server):
        """Return what has a CronJob there, in the namespace of the context."""

        def put(text: str, **meta: str) -> None:
            obj = yaml.safe_load(text)
            metadata = {**obj["metadata"], "namespace": "shop", **meta}
            server.store.put({**obj, "metadata": metadata})

        server.store.serve(ServedKind(ApiResource("batch/v1", "CronJob", "cronjobs"), {}))
        put(DEMO)
        put(HOURLY)
        return put

    @pytest.fixture
    def typed(self, typing):
        return partial(typing, "schedule", "explain")

    @pytest.mark.parametrize(
        ("words", "version"),
        [
            (["cronjob/demo"], "batch.tutorial.kubebuilder.io/v1"),
            (["CronJob", "demo"], "batch.tutorial.kubebuilder.io/v1"),
            (["cj/demo"], "batch.tutorial.kubebuilder.io/v1"),
            (["cronjobs.batch.tutorial.kubebuilder.io/demo"], "batch.tutorial.kubebuilder.io/v1"),
            (["cronjob/theirs"], "batch/v1"),
            (["cronjobs.v1.batch", "theirs"], "batch/v1"),
        ],
    )
    def test_it_is_explained_as_from_a_file(self, typed, words, version):
        code, out, err = typed(*words, "-o", "json", "--duration", "90m")
        [found] = json.loads(out)

        assert (code, err) == (0, "")
        assert (found["apiVersion"], found["durationSeconds"]) == (version, 5400)
        assert found["starts"]

    def test_where_both_have_one_it_is_ours(self, typed, put):
        put(HOURLY, name="demo")

        assert "30 1,2 * * *" in typed("cronjob/demo")[1]
        assert "@hourly" in typed("cronjobs.batch/demo")[1]

    def test_where_ours_are_not_installed_it_is_that_of_kubernetes(self, typed, server):
        server.answers["read CronJob"] = lambda exchange, act: (
            act() if exchange.api.group == "batch" else Reply(404, unserved().status)
        )

        assert "It is a CronJob of Kubernetes (batch/v1)" in typed("cronjob/theirs")[1]

    def test_one_that_the_operator_refuses_is_not_explained(self, typed, put):
        put(DEMO.replace("30 1,2", "0 99"))
        code, out, err = typed("cronjob/demo")

        assert (code, out) == (1, "")
        assert err.startswith("hedgerow: CronJob/demo: .spec.schedule: ")

    def test_one_that_is_not_there_is_told(self, typed):
        assert typed("cronjob/nope", "-n", "farm") == (
            1,
            "",
            "hedgerow: CronJob/nope does not exist in namespace farm; name another with -n\n",
        )
