"""Page as HTML: a whole report in one file, with a picture of who holds each sample's fields."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from hedgerow.texts import numbered, printable
from hedgerow_testing.audit.judging.holders import called, is_taken, managers, rows, runs
from hedgerow_testing.audit.judging.words import (
    GROUPS,
    MARKS,
    facts,
    figures,
    place,
    title,
    verdicts,
)
from hedgerow_tools.render.colours import classes
from hedgerow_tools.render.hypertext import document, folding, header, legend, paragraph, tree_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import (
        AuditReport,
        FieldHolder,
        FieldView,
        Finding,
        RuleResult,
        SampleView,
    )
    from hedgerow_testing.audit.judging.holders import PlaceRow, Run

_FEW: Final = 5
"""Findings of a rule that are all unfolded."""
_SHORT: Final = 60
"""Rows of a tree that are all unfolded; of a longer one, those with changes are."""
_NONE: Final = {"before": "absent", "after": "nobody"}
"""The sign for a field that was not there yet, or that nobody holds."""
_LEGEND: Final = (
    "Before: as the author applied them, without the operator. After: once the operator was quiet."
    " The numbers are the fields that each holds then."
)
_STYLE: Final = (
    ".row{grid-template-columns:minmax(0,1fr) 15rem 15rem}"
    ".held{grid-column:2/4;grid-template-columns:15rem 15rem}"
    "h3{font-size:1rem;margin:1.6rem 0 .2rem}h2{font-size:1.15rem;margin:2.2rem 0 .4rem}"
    "h3,dd,a,.found{overflow-wrap:anywhere}a{color:inherit}"
    ".verdict{display:grid;grid-template-columns:1.5rem 13rem minmax(0,1fr) minmax(0,18rem);"
    "column-gap:.5rem;border-bottom:1px solid;padding:.1rem 0}"
    ".found{border-left:3px solid;padding:.1rem 0 .1rem .8rem;margin:.5rem 0}"
    ".found>summary::before{content:'▸ '}.found[open]>summary::before{content:'▾ '}"
    "dl{display:grid;grid-template-columns:5rem minmax(0,1fr);gap:0 .8rem;margin:.2rem 0}"
    "dd{margin:0}"
    ".strip{display:grid;grid-template-columns:4rem minmax(0,1fr);margin:.2rem 0}"
    ".strip>span:last-child{display:flex;height:1.4rem;border-width:1px;border-style:solid;"
    "border-radius:3px;overflow:hidden}"
    ".strip b{display:flex;flex-direction:column;flex-basis:0;min-width:0}.strip u{flex:1}"
    ".held>span>span{display:block;overflow:hidden;text-overflow:ellipsis}"
    "@media(max-width:55rem){.row{grid-template-columns:minmax(0,1fr)}"
    ".held{grid-column:1;margin-left:1rem;grid-template-columns:minmax(0,1fr) minmax(0,1fr)}"
    ".held>span::before{content:attr(data-when);opacity:.7}.top{display:none}"
    ".verdict{grid-template-columns:1.5rem minmax(0,1fr)}.verdict>:nth-child(n+3){grid-column:2}}"
    "@media(max-width:30rem){dl{grid-template-columns:minmax(0,1fr)}dd{margin-left:1rem}}"
)


def draw(report: AuditReport, outcome: AuditOutcome) -> str:
    """Return a report as an HTML document."""
    parts = (
        paragraph(figures(report)),
        *_summary(report, outcome),
        *_verdicts(report),
        *_findings(report, outcome),
        *_gone(outcome),
        *_samples(report),
    )
    return document(title(report), _STYLE, parts)


def _summary(report: AuditReport, outcome: AuditOutcome) -> Iterator[str]:
    if report.partial:
        yield paragraph(f"This report is partial: {printable(report.partial)}", "alarm")
    known = f"; {len(outcome.known)} known from the baseline" if outcome.known else ""
    text = f"{verdicts(report)}; {numbered(len(outcome.failing), 'finding')}"
    yield paragraph(f"Rules: {text} to mend{known}", "alarm" if outcome.failing else "ink")
    for note in report.notes:
        yield paragraph(printable(note))


def _verdicts(report: AuditReport) -> Iterator[str]:
    for group, name in GROUPS.items():
        yield f"<h2>{escape(name)}</h2>\n"
        yield from (_verdict(result) for result in report.results if result.rule.group == group)


def _verdict(result: RuleResult) -> str:
    rule = result.rule
    kind = {"failed": "alarm b", "passed": "", "noted": "b", "not checked": "faint"}[result.verdict]
    name = escape(rule.name)
    linked = f'<a href="#{name}">{name}</a>' if result.count else name
    more = result.why if result.verdict == "not checked" else result.checked
    count = f"{result.count} found" if result.count else ""
    text = printable("; ".join(filter(None, (result.verdict, count, more))))
    return (
        f'<div class="verdict rule {kind}"><span>{MARKS[result.verdict]}</span>'
        f"<span>{linked}</span>"
        f'<span>{escape(rule.title)}</span><span class="faint">{escape(text)}</span></div>\n'
    )


def _findings(report: AuditReport, outcome: AuditOutcome) -> Iterator[str]:
    known = frozenset(outcome.known)
    if report.findings:
        yield "<h2>Findings</h2>\n"
    for result in report.results:
        rule, findings = result.rule, report.findings_of(result.rule.name)
        if findings:
            yield f'<h3 id="{escape(rule.name)}">{escape(rule.title)}</h3>\n'
            yield paragraph(f"Broken: {rule.meaning}", "ink")
            yield paragraph(f"To mend it: {rule.remedy}", "ink")
            yield from (
                _finding(finding, known, is_open=len(findings) <= _FEW) for finding in findings
            )


def _finding(finding: Finding, known: frozenset[Finding], *, is_open: bool) -> str:
    about = place(finding) or "the operator"
    mark = ' <span class="faint">(known)</span>' if finding in known else ""
    rows = "".join(
        f'<dt class="faint">{escape(name)}</dt><dd>{escape(text)}</dd>'
        for name, text in facts(finding)
    )
    return (
        f'<details class="found rule"{" open" * is_open}><summary class="b">{escape(about)}{mark}'
        f"</summary><dl>{rows}</dl></details>\n"
    )


def _gone(outcome: AuditOutcome) -> Iterator[str]:
    if outcome.gone:
        yield "<h2>Gone</h2>\n"
        yield paragraph("Mended: these lines of the baseline can be removed.", "ink")
        yield from (paragraph(line, "command ink") for line in outcome.gone)


def _samples(report: AuditReport) -> Iterator[str]:
    if not report.samples:
        return
    counts = managers(report)
    named = classes(counts)
    yield "<h2>Who holds the samples' fields</h2>\n"
    yield paragraph(_LEGEND)
    yield legend(counts, named)
    for sample in report.samples:
        yield from _sample(sample, named)


def _sample(sample: SampleView, named: Mapping[str, str]) -> Iterator[str]:
    places = rows(sample)
    held = sum(bool(view.before) for view in sample.fields)
    taken = sum(map(is_taken, sample.fields))
    added = len(sample.fields) - held
    yield f"<h3>{escape(printable(str(sample.object)))}</h3>\n"
    have = "has another holder" if taken == 1 else "have other holders"
    more = f"; {added} more {'is' if added == 1 else 'are'} there by now" if added else ""
    text = f"{taken} of the author's {numbered(held, 'field')} {have} than before{more}"
    yield paragraph(text, "alarm" if taken else "faint")
    yield _strip(sample, "before", named)
    yield _strip(sample, "after", named)
    yield header("FIELD", "BEFORE", "AFTER")
    yield from folding(
        places,
        lambda view: _row(view, named),
        lambda view: len(places) <= _SHORT or view.has_changed,
    )


def _strip(sample: SampleView, when: str, named: Mapping[str, str]) -> str:
    """Return a strip of a sample's fields, each in the colours of its holders."""
    parts = "".join(_run(run, named) for run in runs(sample, when))
    return f'<div class="strip"><span>{when}</span><span class="rule">{parts}</span></div>\n'


def _run(run: Run, named: Mapping[str, str]) -> str:
    colours = "".join(f'<u class="{named[manager]}"></u>' for manager in run.managers)
    names = escape(", ".join(run.managers))
    return f'<b style="flex-grow:{run.count}" title="{names}">{colours}</b>'


def _row(row: PlaceRow, named: Mapping[str, str]) -> str:
    name = escape(row.name)
    kind = "b" if row.view is None else "alarm b" if is_taken(row.view) else ""
    field = f'<span class="{kind}">{name}</span>'
    if row.view is None:
        return tree_row(row.depth, row.name, field, "")
    value = printable(row.view.value)
    path = printable(row.view.path)
    text = f"{path} = {value}" if value else path
    shown = f"{field}: {escape(value)}" if value else field
    cells = "".join(_cell(row.view, when, named) for when in ("before", "after"))
    return tree_row(row.depth, text, shown, f'<span class="held">{cells}</span>')


def _cell(view: FieldView, when: str, named: Mapping[str, str]) -> str:
    held = view.before if when == "before" else view.after
    shown = "".join(_holding(holder, named[called(holder)]) for holder in held)
    none = f'<span class="faint">{_NONE[when]}</span>'
    return f'<span data-when="{when}">{shown or none}</span>'


def _holding(holder: FieldHolder, kind: str) -> str:
    text = printable(str(holder))
    return (
        f'<span class="tint-{kind}" title="{escape(text)}"><i class="{kind}"></i>{escape(text)}'
        "</span>"
    )
