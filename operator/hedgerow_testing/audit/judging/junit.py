"""JUnit: a report as test results, as GitLab and Jenkins read them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hedgerow.texts import escaped_lines
from hedgerow_testing.audit.judging.words import facts, figures, place, title, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import AuditReport, Finding, RuleResult


def junit(report: AuditReport, outcome: AuditOutcome) -> str:
    """Return a test case for each rule; it fails if the rule has findings that fail the audit.

    Other findings are in its output. A report that is partial has one more case, an error.
    """
    known = frozenset(outcome.known)
    failing = frozenset(outcome.failing)
    cases = [_case(report, one, failing, known) for one in report.results]
    if report.partial:
        partial = ET.Element("testcase", _named("whole", "audit"))
        _text(partial, "error", report.partial, type="partial")
        cases.append(partial)
    counts = {
        "tests": len(cases),
        "failures": sum(one.find("failure") is not None for one in cases),
        "errors": sum(one.find("error") is not None for one in cases),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    numbers["time"] = f"{report.figures.seconds:.3f}"
    suites = ET.Element("testsuites", {"name": "hedgerow audit", **numbers})
    skipped = str(sum(one.find("skipped") is not None for one in cases))
    suite = ET.SubElement(
        suites, "testsuite", {"name": escaped_lines(title(report)), **numbers, "skipped": skipped}
    )
    suite.extend(cases)
    _text(suite, "system-out", "\n".join(_about(report, outcome)))
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _case(
    report: AuditReport, result: RuleResult, fails: frozenset[Finding], known: frozenset[Finding]
) -> ET.Element:
    rule = result.rule
    case = ET.Element("testcase", _named(rule.name, f"audit.{rule.group}"))
    if result.verdict == "not checked":
        _text(case, "skipped", result.why or "it was not checked")
        return case
    failing = [one for one in report.of(rule.name) if one in fails]
    others = [one for one in report.of(rule.name) if one not in fails]
    if failing:
        told = "\n\n".join((rule.meaning, *map(_told, failing), f"Remedy: {rule.remedy}"))
        places = f"{len(failing)} findings" if len(failing) > 1 else place(failing[0])
        message = f"{rule.title}: {places or failing[0].detail}"
        _text(case, "failure", message, told, type=rule.name)
    if others:
        _text(case, "system-out", "\n\n".join(_others(others, known)))
    return case


def _named(name: str, group: str) -> dict[str, str]:
    return {"name": name, "classname": group, "time": "0.000"}


def _others(findings: Iterable[Finding], known: frozenset[Finding]) -> Iterator[str]:
    for one in findings:
        yield f"{'known' if one in known else 'noted'}: {_told(one)}"


def _told(finding: Finding) -> str:
    lines = (f"  {name}: {text}" for name, text in facts(finding))
    return "\n".join((place(finding) or "the operator", *lines))


def _about(report: AuditReport, outcome: AuditOutcome) -> Iterator[str]:
    yield figures(report)
    yield verdicts(report)
    yield from report.notes
    yield from (f"gone, remove it from the baseline: {line}" for line in outcome.gone)


def _text(parent: ET.Element, tag: str, message: str, told: str = "", **more: str) -> None:
    """Add an element; what XML does not allow in a text is escaped."""
    output = tag == "system-out"
    given = {} if output else {"message": escaped_lines(message).replace("\n", " ")}
    ET.SubElement(parent, tag, {**given, **more}).text = escaped_lines(message if output else told)
