"""Recorder: gathers the findings of an audit, each once, until they are a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow_testing.audit.judging.findings import AuditReport, Figures
from hedgerow_testing.audit.judging.rules import RULES, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hedgerow_testing.audit.judging.findings import Finding, SampleView


class FindingRecorder:
    """The findings so far; a repeated one counts once."""

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self._checked: dict[str, str] = {}
        self._unchecked: dict[str, str] = {}
        self.notes: dict[str, None] = {}
        self.samples: tuple[SampleView, ...] = ()
        self.figures = Figures()
        self.partial = ""

    def add(self, *findings: Finding) -> None:
        """Take findings; of two about the same, the first is kept."""
        for finding in findings:
            self._findings.setdefault(finding.key, finding)

    def has(self, rule: str, path: str, about: str) -> bool:
        """Return whether a rule has a finding about a path of an object, by the object's key."""
        return any(
            (finding.rule, finding.path, finding.object.key if finding.object else "")
            == (rule, path, about)
            for finding in self._findings.values()
        )

    def checked(self, rule: str, how: str) -> None:
        """Note that a rule was checked, and on how much."""
        self._checked[rule] = how

    def unchecked(self, rule: str, why: str) -> None:
        """Note why a rule was not checked."""
        self._unchecked[rule] = why

    def report(self, command: tuple[str, ...], kubernetes: str) -> AuditReport:
        """Return all of it."""
        order = {rule.name: place for place, rule in enumerate(RULES)}
        findings = sorted(
            self._findings.values(), key=lambda finding: (order[finding.rule], finding.key)
        )
        why = self.partial or "there was nothing to check it on"
        return AuditReport(
            command=command,
            kubernetes=kubernetes,
            results=judged(findings, self._checked, self._unchecked, why),
            findings=tuple(findings),
            samples=self.samples,
            partial=self.partial,
            notes=tuple(self.notes),
            figures=self.figures,
        )


def together(reports: Sequence[AuditReport]) -> AuditReport:
    """Return the reports of several audits of one operator as one; figures are the last's.

    It is partial if any of them is.
    """
    *_, last = reports
    recorder = FindingRecorder()
    for report in reports:
        recorder.add(*report.findings)
        recorder.notes |= dict.fromkeys(report.notes)
        recorder.partial = recorder.partial or report.partial
        for result in report.results:
            if result.verdict == "not checked":
                recorder.unchecked(result.rule.name, result.why)
            else:
                recorder.checked(result.rule.name, result.checked)
    recorder.samples, recorder.figures = last.samples, last.figures
    return recorder.report(last.command, last.kubernetes)
