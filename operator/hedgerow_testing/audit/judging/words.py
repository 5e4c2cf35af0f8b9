"""Words: a report in short texts, for all pages that show it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from hedgerow.texts import numbered, printable
from hedgerow_testing.audit.judging.rules import CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hedgerow_testing.audit.judging.findings import AuditReport, Finding, RuleGroup, RuleVerdict

GROUPS: Final[Mapping[RuleGroup, str]] = {
    "author": "The author's fields",
    "others": "Fields of others on its children",
    "quiet": "Quiet",
    "rights": "Rights and writes",
}
MARKS: Final[Mapping[RuleVerdict, str]] = {
    "failed": "✗", "noted": "!", "passed": "✓", "not checked": "·",
}  # fmt: skip
_ABSENT: Final = "(absent)"


def title(report: AuditReport) -> str:
    """Return the title of an audit: `Audit of ./operator --flag`."""
    return printable(f"Audit of {shlex.join(report.command)}")


def figures(report: AuditReport) -> str:
    """Return the measurements in one line."""
    counts = report.figures
    quiet = counts.quiet_after
    parts = (
        f"Kubernetes {report.kubernetes}" if report.kubernetes else "",
        f"{counts.seconds:.0f} s",
        f"{numbered(counts.requests, 'request')}, {numbered(counts.writes, 'write')}",
        "never quiet" if quiet is None else f"quiet after {quiet:.1f} s",
        numbered(counts.children, "child", "children"),
        f"{numbered(counts.fields_tried, 'field')} tried, {counts.fields_changed} of them changed",
    )
    return printable("; ".join(filter(None, parts)))


def verdicts(report: AuditReport) -> str:
    """Return how many rules have which verdict: `2 failed, 1 noted, 22 passed, 1 not checked`."""
    counts = ((name, sum(result.verdict == name for result in report.results)) for name in MARKS)
    return ", ".join(f"{count} {name}" for name, count in counts if count)


def place(finding: Finding) -> str:
    """Return where a rule is broken: `Widget shop/demo .spec.size`; it may be empty."""
    about = str(finding.object) if finding.object else ""
    return printable(" ".join(filter(None, (about, finding.path))))


def facts(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the evidence of a finding: what each part is, and the part."""
    for name, text in _facts(finding):
        if text:
            yield name, printable(text)


def _facts(finding: Finding) -> Iterator[tuple[str, str]]:
    yield "found", finding.detail
    yield "value", values(finding)
    holder = str(finding.holder or "")
    yield "holder", "" if holder in finding.detail else holder
    yield "cause", why(finding)
    yield "request", _request(finding)
    yield "sent", finding.request.body if finding.request else ""
    yield "when", _when(finding)


def why(finding: Finding) -> str:
    """Return the causes in words."""
    return "; ".join(CAUSES[cause] for cause in finding.causes)


def values(finding: Finding) -> str:
    """Return the change of the value: `60s → 1m0s`."""
    before, after = finding.before, finding.after
    if before is None and after is None:
        return ""
    if before == after:
        return f"{after}, unchanged"
    return f"{_ABSENT if before is None else before} → {_ABSENT if after is None else after}"


def _request(finding: Finding) -> str:
    request = finding.request
    if request is None:
        return ""
    what = f" ({request.what})" if request.what not in {"", request.verb} else ""
    code = f", answered {request.code}" if request.code else ""
    return f"{request.verb} {request.uri}{what}{code}"


def _when(finding: Finding) -> str:
    is_told = str(finding.count) in finding.detail
    times = f"{finding.count} times" if finding.count > 1 and not is_told else ""
    return ", ".join(filter(None, (finding.request.at if finding.request else "", times)))
