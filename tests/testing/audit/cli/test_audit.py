"""`hedgerow audit` as typed: its page, its JSON, its exit codes, and what is wrong usage."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from hedgerow.encoding import decode, encode
from hedgerow_testing.audit.cli import command
from hedgerow_testing.audit.cli.listing import listed
from hedgerow_testing.audit.judging.baseline import compared
from hedgerow_testing.audit.judging.findings import (
    AuditedObject,
    AuditedRequest,
    AuditReport,
    FieldHolder,
    FieldView,
    Figures,
    Finding,
    SampleView,
)
from hedgerow_testing.audit.judging.recorder import FindingRecorder
from support.objects import widgets

SCHEMA = json.loads(Path("docs/audit-report.schema.json").read_text("utf-8"))
DEMO = AuditedObject("example.org/v1", "Widget", "demo", "shop")
PUT = AuditedRequest("update", "/apis/example.org/v1/widgets/demo", "whole-object update", 200)
TAKEN = Finding(
    "reapply-conflict",
    DEMO,
    "manager (Update) holds it",
    ".spec.interval",
    "60s",
    "1m0s\x1b[2J",
    FieldHolder("manager", "Update"),
    PUT,
    ("other-spelling", "whole-object-update"),
)
GONE = "writes-at-rest Widget.example.org/other"
NOTED = Finding("empty-writes", DEMO, "a write changed nothing")


def report(*findings: Finding, partial: str = "") -> AuditReport:
    recorder = FindingRecorder()
    recorder.add(*findings)
    recorder.partial = partial
    recorder.checked("writes-at-rest", "45 seconds")
    recorder.unchecked("replicas-taken", "no child has replicas")
    recorder.notes["1 field could not be changed"] = None
    recorder.figures = Figures(seconds=90.5, requests=10, writes=2, quiet_after=1.0)
    held = (FieldHolder("helm", "Apply"), FieldHolder("manager", "Update", "status"))
    recorder.samples = (SampleView(DEMO, (FieldView((".spec", ".size"), "2", held[:1], held),)),)
    return recorder.report(("run", "a b"), "1.37.2")


@pytest.fixture
def audits(monkeypatch, tmp_path) -> Any:
    """Let an audit find this, and return the words that name its files."""
    files = widgets.put(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def found(made: AuditReport) -> list[str]:
        monkeypatch.setattr(command, "audit", lambda *_, **__: made)
        return ["audit", "--crds", f"{files}/crds.yaml", "--samples", f"{files}/samples.yaml"]

    return found


EXITS = {
    "nothing": (report(), (), 0),
    "what fails": (report(TAKEN), (), 3),
    "what informs": (report(NOTED), (), 0),
    "what was chosen": (report(NOTED), ("--fail-on", "child-fight,empty-writes"), 3),
    "all": (report(NOTED), ("--fail-on", "all"), 3),
    "what was not chosen": (report(TAKEN), ("--fail-on", "empty-writes"), 0),
    "not whole": (report(partial="it was interrupted"), (), 1),
    "not whole, and what fails": (report(TAKEN, partial="it crashed"), (), 3),
}


@pytest.mark.parametrize(("made", "words", "code"), EXITS.values(), ids=list(EXITS))
def test_the_exit_code_is_for_ci(typing, audits, made, words, code):
    assert typing(*audits(made), *words, "--", "run", "--flag")[0] == code


def test_the_page_has_a_verdict_for_each_rule_and_each_finding_with_its_remedy(typing, audits):
    _, out, _ = typing(*audits(report(TAKEN, NOTED)), "--", "run")

    assert "Audit of run 'a b'" in out
    assert "✗ reapply-conflict" in out
    assert "! empty-writes" in out
    assert "✓ writes-at-rest" in out
    assert "· replicas-taken" in out
    assert "no child has replicas" in out
    assert ".spec.interval: 60s → 1m0s\\u001b[2J; manager (Update) holds it" in out
    assert "cause: another spelling of the same value" in out
    assert "whole-object update: /apis/example.org/v1/widgets/demo" in out
    assert "To mend: Never write the resource itself" in out
    assert "Note: 1 field could not be changed." in out
    assert "The audit fails because of reapply-conflict." in out


def test_a_partial_report_says_so(typing, audits):
    _, out, _ = typing(*audits(report(partial="it was interrupted")), "--", "run")

    assert "This report is partial: it was interrupted." in out
    assert out.count("it was interrupted") == 1
    assert "The report is partial, so the audit did not pass." in out


def test_long_lines_are_wrapped_and_not_cut(typing, audits, monkeypatch):
    words = audits(report(TAKEN))
    monkeypatch.setenv("COLUMNS", "60")

    _, out, _ = typing(*words, "--", "run")

    assert max(map(len, out.splitlines())) <= 62
    assert PUT.uri in out.replace("\n", "").replace(" ", "")


def test_many_findings_of_a_rule_are_counted(typing, audits):
    many = [Finding("empty-writes", None, f"write {n}", mark=str(n)) for n in range(20)]

    _, out, _ = typing(*audits(report(*many)), "--", "run")

    assert "and 8 more; `-o json` has all of them" in out
    assert "What was checked has passed." in out


def data(made: AuditReport, known: dict[str, tuple[str, ...]] | None = None) -> Any:
    """Return a report as programs read it."""
    return decode(encode(listed(made, compared(made, known))))


def test_the_json_is_by_its_schema(typing, audits):
    made = report(TAKEN, NOTED)

    _, out, _ = typing(*audits(made), "-o", "json", "--", "run")

    assert json.loads(out) == data(made)
    Draft7Validator(SCHEMA).validate(json.loads(out))
    Draft7Validator(SCHEMA).validate(data(report(), {GONE: ()}))
    assert json.loads(out)["failed"] == ["reapply-conflict"]
    assert listed(made, compared(made, None, ("empty-writes",)))["failed"] == ["empty-writes"]


def test_one_audit_gives_files_a_baseline_and_the_page(typing, audits, tmp_path):
    words = audits(report(TAKEN, NOTED))
    known, html = tmp_path / "known.txt", tmp_path / "audit.html"

    code, out, err = typing(*words, "-o", f"html={html}", "--write-baseline", known, "--", "run")
    assert code == 0
    assert "2 findings are known. What was checked has passed." in out
    assert "known.txt has the findings of this audit: 2" in err
    assert html.read_text().startswith("<!doctype html>")
    with known.open("a") as file:
        file.write(f"{GONE}\n")
    code, out, _ = typing(*words, "--baseline", known, "-o", "html", "--", "run")
    assert code == 0
    assert f'<p class="command ink">{GONE}</p>' in out


def test_what_is_no_baseline_and_no_format_is_told_before_the_audit(typing, audits, tmp_path):
    words = audits(report())
    other = tmp_path / "other.txt"
    other.write_text("precious")

    assert "other.txt is no baseline" in typing(*words, "--baseline", other, "--", "run")[2]
    assert "other.txt is no baseline" in typing(*words, "--write-baseline", other, "--", "run")[2]
    assert "there is no format 'pdf'" in typing(*words, "-o", "pdf", "--", "run")[2]


def test_an_unknown_rule_is_wrong_usage(typing, audits):
    words = audits(report())

    code, _, err = typing(*words, "--fail-on", "empty-write", "--", "run")
    assert code == 2
    assert "there is no rule 'empty-write'; did you mean empty-writes?" in err
    assert "there are reapply-conflict" in typing(*words, "--fail-on", "x", "--", "run")[2]


def test_files_that_are_no_samples_are_told(typing, audits):
    words = audits(report())
    words[-1] = words[2]

    code, _, err = typing(*words, "--", "run")

    assert code == 1
    assert "has no object; --samples names the directory of examples" in err


def test_a_signal_ends_it_early_with_a_partial_report(typing, audits, monkeypatch):
    words = audits(report())

    def audit(_inputs: Any, attendant: Any, **_: Any) -> AuditReport:
        signal.raise_signal(signal.SIGINT)
        assert attendant.stop.wait(20)
        return report(partial="it was interrupted")

    monkeypatch.setattr(command, "audit", audit)
    code, out, err = typing(*words, "--", "run")

    assert code == 130
    assert "This report is partial: it was interrupted." in out
    assert "interrupted by SIGINT" in err


def test_what_varies_between_audits_is_in_the_baseline_and_each_is_kept(
    typing, audits, monkeypatch, tmp_path
):
    words, folders = audits(report()), []
    made = [report(TAKEN, NOTED), report(TAKEN)]

    def audit(_inputs: Any, *, keep: Path, **_: Any) -> AuditReport:
        folders.append(keep)
        return made[len(folders) - 1]

    monkeypatch.setattr(command, "audit", audit)
    known, kept = tmp_path / "known.txt", tmp_path / "kept"
    repeated = ("--repeat", "2", "--keep", kept, "--write-baseline", known, "--settle", "30")

    code, out, _ = typing(*words, *repeated, "--manager", "argocd", "--", "run")

    assert code == 0
    assert "2 findings are known" in out
    assert folders == [kept / "1", kept / "2"]
    assert all(one.is_dir() for one in folders)
    assert "# varies: in 1 of 2 audits\nempty-writes" in known.read_text()
