"""Where the report of an audit goes, and the files of its baseline, without an audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from hedgerow.cli.exits import CommandError, Exit
from hedgerow_testing.audit.cli.command import exit_code
from hedgerow_testing.audit.cli.outputs import (
    Destination,
    baselines,
    deliver,
    destinations,
    judged_by,
)
from hedgerow_testing.audit.judging.baseline import BaselineError, baseline, compared, line_of
from testing.audit.reports import CLEAN, EVIL, ORDINARY, RESTLESS, TIMEOUT, VAIN, hostile, report

GONE = "writes-at-rest Service/old .spec.ports"


class TestTargets:
    def test_a_report_is_printed_as_text_unless_another_format_is(self, tmp_path):
        file = tmp_path / "a=b.html"

        assert destinations(()) == (Destination("text"),)
        assert destinations(("json",)) == (Destination("json"),)
        assert destinations((f"html={file}",)) == (Destination("html", file), Destination("text"))
        assert destinations((f"html={file}", "json")) == (
            Destination("html", file),
            Destination("json"),
        )

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (["pdf"], "there is no format 'pdf'; there are text, json, html"),
            (["text=a"], "text is for terminals"),
            (["html="], "is a directory; name a file"),
            (["html=/"], "is a directory"),
            (["json=nowhere/a.json"], "nowhere is not there"),
            (["json", "html"], "only one format can be printed; give the others files: html=FILE"),
        ],
    )
    def test_what_cannot_be_is_told_before_the_audit(self, tmp_path, monkeypatch, given, expected):
        monkeypatch.chdir(tmp_path)

        with pytest.raises(typer.BadParameter, match=expected):
            destinations(given)

    def test_a_link_is_told_before_the_audit_and_not_followed_after_it(self, tmp_path):
        link, target = tmp_path / "report.html", tmp_path / "theirs"
        link.symlink_to(target)

        with pytest.raises(typer.BadParameter, match="is a symbolic link"):
            destinations((f"html={link}",))
        with pytest.raises(CommandError, match="cannot be written: it is a symbolic link"):
            deliver(ORDINARY, compared(ORDINARY), (Destination("html", link),))
        assert not target.exists()

    def test_a_directory_that_may_not_be_written_is_told_before_the_audit(self, monkeypatch):
        monkeypatch.setattr("os.access", lambda *_: False)

        with pytest.raises(typer.BadParameter, match="may not be written"):
            destinations(("json=a.json",))


class TestDelivery:
    def test_each_file_has_its_format_and_the_page_is_printed(self, tmp_path, capsys):
        names = ("json", "html")
        wanted = destinations(f"{name}={tmp_path / name}" for name in names)
        deliver(ORDINARY, compared(ORDINARY, dict.fromkeys((line_of(TIMEOUT), GONE), ())), wanted)

        found = json.loads((tmp_path / "json").read_text())
        assert found["gone"] == [GONE]
        assert [one["known"] for one in found["findings"]] == [True, False, False, False, False]
        assert (tmp_path / "html").read_text().startswith("<!doctype html>")
        printed = capsys.readouterr().out
        assert "known: .spec.timeout: 60s → 1m0s; manager (Update) holds it" in printed
        assert f"Gone: these lines of the baseline can be removed.\n    {GONE}\n" in printed
        assert "1 findings are known" not in printed
        assert "1 finding is known" in printed

    @pytest.mark.parametrize(("name", "begins"), [("json", "{"), ("html", "<!doctype")])
    def test_any_format_is_printed(self, capsys, name, begins):
        deliver(hostile(), compared(hostile()), (Destination(name),))

        printed = capsys.readouterr().out
        assert printed.startswith(begins)
        assert "\x1b" not in printed
        assert EVIL not in printed

    def test_a_file_that_cannot_be_written_after_all_is_one_sentence(self, tmp_path):
        target = Destination("json", tmp_path / "gone" / "a.json")

        with pytest.raises(CommandError, match=r"a\.json cannot be written: No such file"):
            deliver(CLEAN, compared(CLEAN), (target,))


class TestBaselines:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / "known.txt"

    def test_known_findings_do_not_fail_and_new_ones_do(self, file):
        file.write_text(baseline((TIMEOUT, VAIN)))
        outcome = judged_by(ORDINARY, baselines(file, None), None)

        assert exit_code(ORDINARY, outcome) == Exit.CONFLICT
        assert TIMEOUT not in outcome.failing
        file.write_text(baseline(ORDINARY.findings))
        assert exit_code(ORDINARY, judged_by(ORDINARY, baselines(file, None), None)) == Exit.DONE

    def test_what_is_written_is_known_from_then_on(self, file):
        outcome = judged_by(ORDINARY, baselines(None, file), None)

        assert exit_code(ORDINARY, outcome) == Exit.DONE
        assert file.read_text() == baseline(ORDINARY.findings)

    def test_it_shrinks_and_keeps_its_comments(self, file):
        file.write_text(baseline((TIMEOUT,)).replace("reapply", "# see 12\nreapply") + GONE + "\n")
        outcome = judged_by(report(TIMEOUT, RESTLESS), baselines(file, file), None)

        assert outcome.gone == (GONE,)
        lines = file.read_text().splitlines()
        assert lines[4:] == ["# see 12", line_of(TIMEOUT), line_of(RESTLESS)]

    def test_one_read_from_elsewhere_gives_its_comments_to_a_new_file(self, file, tmp_path):
        file.write_text(baseline((TIMEOUT,)).replace("reapply", "# see 12\nreapply"))
        other = tmp_path / "new.txt"
        judged_by(report(TIMEOUT), baselines(file, other), None)

        assert other.read_text() == file.read_text()

    def test_a_partial_report_writes_none(self, file, capsys):
        partial = report(TIMEOUT, partial="it was interrupted")
        outcome = judged_by(partial, baselines(None, file), None)

        assert not file.exists()
        assert outcome.failing == (TIMEOUT,)
        assert "known.txt was not written: the report is partial" in capsys.readouterr().err

    def test_a_file_that_is_none_is_not_overwritten(self, file):
        file.write_bytes(b"\xff\xfe precious")

        with pytest.raises(BaselineError, match="is no baseline"):
            baselines(None, file)
        assert file.read_bytes() == b"\xff\xfe precious"

    def test_one_that_is_not_there_is_told_with_the_option_that_writes_it(self, file):
        with pytest.raises(
            CommandError, match=r"known\.txt cannot be read: No such file"
        ) as caught:
            baselines(file, None)

        assert caught.value.exit_code == Exit.USAGE
        assert "--write-baseline" in str(caught.value)
