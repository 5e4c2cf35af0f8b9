"""Audit page: a report for people: a verdict on each rule, then the findings with the remedy."""

from __future__ import annotations

import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from hedgerow.cli.widths import hanging, is_limited
from hedgerow.terminal import Terminal, one_line
from hedgerow.testing.audit.recorder import numbered
from hedgerow.testing.audit.rules import BY_NAME, CAUSES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rich.console import Console

    from hedgerow.testing.audit.findings import AuditReport, Finding, RuleResult

_PIPED: Final = 120
_GROUPS: Final = {
    "author": "The author's fields",
    "others": "Fields of others on its children",
    "quiet": "Quiet",
    "rights": "Rights and writes",
}
_SIGNS: Final = {
    "passed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "noted": ("!", "yellow"),
    "not checked": ("·", "dim"),
}
_MOST: Final = 12
"""Findings of one rule that are printed; the others are counted."""
_NAME: Final = 24


def show(
    report: AuditReport, fail_on: Collection[str] | None = None, console: Console | None = None
) -> None:
    """Print a report; long lines are wrapped, never cut."""
    out = console or Terminal(width=None if is_limited() else _PIPED)
    for indent, line in _lines(report, fail_on):
        first, *more = hanging(line, max(out.width - indent, 30), 2)
        for number, part in enumerate((first, *more)):
            margin = " " * (indent + (2 if number else 0))
            out.print(Text(margin).append_text(part), soft_wrap=True)


def _lines(report: AuditReport, fail_on: Collection[str] | None) -> Iterator[tuple[int, Text]]:
    command = shlex.join(report.command)
    yield 0, Text.assemble("Audit of ", (one_line(command).plain, "bold"))
    yield 0, Text(_figures(report), "dim")
    if report.partial:
        yield 0, one_line(f"This report is partial: {report.partial}.", "bold yellow")
    for group, results in groupby(report.results, key=lambda one: one.rule.group):
        yield 0, Text()
        yield 0, Text(_GROUPS[group], "bold")
        for result in results:
            yield 2, _verdict(result, report.partial)
    for result in report.results:
        if result.count:
            yield from _explained(result, report)
    if report.notes:
        yield 0, Text()
        for note in report.notes:
            yield 0, one_line(f"Note: {note}.")
    yield 0, Text()
    yield 0, one_line(_summary(report, fail_on), "bold")


def _figures(report: AuditReport) -> str:
    found = report.figures
    parts = (
        f"Kubernetes {report.kubernetes or '?'}",
        f"{numbered(found.fields_tried, 'field')} tried, {found.fields_changed} really changed",
        numbered(found.children, "child", "children"),
        f"{numbered(found.requests, 'request')}, {numbered(found.writes, 'write')}",
        f"{found.seconds:.0f} seconds",
    )
    return "; ".join(parts)


def _verdict(result: RuleResult, told: str) -> Text:
    """Return a rule with its verdict; why a report is partial was told, and is not repeated."""
    sign, style = _SIGNS[result.verdict]
    more = result.checked if result.why in {"", told} else result.why
    if result.count:
        more = numbered(result.count, "finding")
    name = result.rule.name.ljust(_NAME)
    return Text.assemble(
        (f"{sign} ", style), (name, style), result.rule.title, (f"  {more}", "dim")
    )


def _explained(result: RuleResult, report: AuditReport) -> Iterator[tuple[int, Text]]:
    rule, found = result.rule, report.of(result.rule.name)
    sign, style = _SIGNS[result.verdict]
    yield 0, Text()
    yield 0, Text.assemble((f"{sign} {rule.name}", style), f": {rule.meaning}")
    for about, some in groupby(found[:_MOST], key=lambda one: str(one.object or "")):
        if about:
            yield 4, one_line(about, "bold")
        for finding in some:
            yield from _finding(finding)
    if len(found) > _MOST:
        yield 4, Text(f"and {len(found) - _MOST} more; `-o json` has all of them", "dim")
    yield 4, Text.assemble(("To mend: ", "bold"), rule.remedy)


def _finding(finding: Finding) -> Iterator[tuple[int, Text]]:
    change = ""
    if finding.before is not None or finding.after is not None:
        before, after = ("(absent)" if x is None else x for x in (finding.before, finding.after))
        change = f": {before} → {after}"
    where = f"{finding.path}{change}" if finding.path else ""
    yield 6, one_line(f"{where}; {finding.detail}" if where else finding.detail)
    if finding.causes:
        reasons = "; ".join(CAUSES[name] for name in finding.causes)
        yield 8, one_line(f"cause: {reasons}", "yellow")
    if finding.request:
        yield 8, one_line(f"{finding.request.what}: {finding.request.uri}", "dim")


def _summary(report: AuditReport, fail_on: Collection[str] | None) -> str:
    failed = list(dict.fromkeys(one.rule for one in report.failing(fail_on)))
    verdicts = [one.verdict for one in report.results]
    counts = ", ".join(
        f"{verdicts.count(verdict)} {verdict}" for verdict in _SIGNS if verdict in verdicts
    )
    total = len(BY_NAME)
    if failed:
        return f"{counts} of {total} rules. The audit fails because of {', '.join(failed)}."
    if report.partial:
        return f"{counts} of {total} rules. The report is partial, so the audit did not pass."
    return f"{counts} of {total} rules. The audit passed."
