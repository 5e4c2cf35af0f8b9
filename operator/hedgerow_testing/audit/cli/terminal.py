"""Audit page: a report for people: a verdict on each rule, then the findings with the remedy."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from hedgerow.cli.terminal import one_line
from hedgerow.texts import numbered
from hedgerow_testing.audit.judging.rules import BY_NAME
from hedgerow_testing.audit.judging.words import (
    GROUPS,
    MARKS,
    figures,
    title,
    values,
    verdicts,
    why,
)
from hedgerow_tools.render.widths import hanging, page_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import (
        AuditReport,
        Finding,
        RuleResult,
        RuleVerdict,
    )

_STYLES: Final[Mapping[RuleVerdict, str]] = {
    "failed": "bold red", "noted": "yellow", "passed": "green", "not checked": "dim",
}  # fmt: skip
_MOST: Final = 12
"""Findings of one rule that are printed; the others are counted."""
_NAME: Final = 24


def show(report: AuditReport, outcome: AuditOutcome, console: Console | None = None) -> None:
    """Print a report; long lines are wrapped, never cut."""
    out = console or page_terminal()
    for indent, line in _lines(report, outcome):
        first, *more = hanging(line, max(out.width - indent, 30), 2)
        for number, part in enumerate((first, *more)):
            margin = " " * (indent + (2 if number else 0))
            out.print(Text(margin).append_text(part), soft_wrap=True)


def _lines(report: AuditReport, outcome: AuditOutcome) -> Iterator[tuple[int, Text]]:
    yield 0, one_line(title(report), "bold")
    yield 0, one_line(figures(report), "dim")
    if report.partial:
        yield 0, one_line(f"This report is partial: {report.partial}.", "bold yellow")
    for group, name in GROUPS.items():
        yield 0, Text()
        yield 0, Text(name, "bold")
        yield from (
            (2, _verdict(row, report.partial)) for row in report.results if row.rule.group == group
        )
    for result in report.results:
        if result.count:
            yield from _explained(result, report, frozenset(outcome.known))
    if outcome.gone:
        yield 0, Text()
        yield 0, Text("Gone: these lines of the baseline can be removed.", "bold green")
        for line in outcome.gone:
            yield 4, one_line(line)
    if report.notes:
        yield 0, Text()
        for note in report.notes:
            yield 0, one_line(f"Note: {note}.")
    yield 0, Text()
    yield 0, one_line(_summary(report, outcome), "bold")


def _verdict(result: RuleResult, reason: str) -> Text:
    """Return a rule with its verdict; why a report is partial was told, and is not repeated."""
    sign, style = MARKS[result.verdict], _STYLES[result.verdict]
    more = result.checked if result.why in {"", reason} else result.why
    if result.count:
        more = numbered(result.count, "finding")
    name = result.rule.name.ljust(_NAME)
    return Text.assemble(
        (f"{sign} ", style), (name, style), result.rule.title, (f"  {more}", "dim")
    )


def _explained(
    result: RuleResult, report: AuditReport, known: frozenset[Finding]
) -> Iterator[tuple[int, Text]]:
    rule, findings = result.rule, report.findings_of(result.rule.name)
    sign, style = MARKS[result.verdict], _STYLES[result.verdict]
    yield 0, Text()
    yield 0, Text.assemble((f"{sign} {rule.name}", style), f": {rule.meaning}")
    for about, some in groupby(findings[:_MOST], key=lambda finding: str(finding.object or "")):
        if about:
            yield 4, one_line(about, "bold")
        for finding in some:
            yield from _finding(finding, is_known=finding in known)
    if len(findings) > _MOST:
        yield 4, Text(f"and {len(findings) - _MOST} more; `-o json` has all of them", "dim")
    yield 4, Text.assemble(("To mend: ", "bold"), rule.remedy)


def _finding(finding: Finding, *, is_known: bool) -> Iterator[tuple[int, Text]]:
    change = f": {shown}" if (shown := values(finding)) else ""
    where = f"{finding.path}{change}; " if finding.path else ""
    known = "known: " if is_known else ""
    yield 6, one_line(f"{known}{where}{finding.detail}", "dim" if is_known else "")
    if finding.causes:
        yield 8, one_line(f"cause: {why(finding)}", "yellow")
    if finding.request:
        yield 8, one_line(f"{finding.request.what}: {finding.request.uri}", "dim")


def _summary(report: AuditReport, outcome: AuditOutcome) -> str:
    total = f"{verdicts(report)} of {len(BY_NAME)} rules."
    if outcome.known:
        total += f" {numbered(len(outcome.known), 'finding is', 'findings are')} known."
    failed = dict.fromkeys(result.rule for result in outcome.failing)
    if failed:
        return f"{total} The audit fails because of {', '.join(failed)}."
    if report.partial:
        return f"{total} The report is partial, so the audit did not pass."
    if any(result.verdict == "not checked" for result in report.results):
        return f"{total} What was checked has passed."
    return f"{total} The audit passed."
