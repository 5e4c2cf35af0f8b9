"""Baseline: findings that are known, as a text file that may only shrink.

Each line is the key of a finding, sorted, so that a change of the file reads as what it means. The
lines above a key that begin with `#` are its author's, and stay where the file is written again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hedgerow.errors import OneLineError
from hedgerow.texts import escaped
from hedgerow_testing.audit.judging.rules import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from hedgerow_testing.audit.judging.findings import AuditReport, Finding

FIRST: Final = "hedgerow audit baseline 1"
"""The first line: the purpose of the file, and the version of its form."""
_HEAD: Final = (
    FIRST,
    "# Findings that are known and do not fail an audit. Remove a line once it is mended; lines",
    "# that begin with # may say above a finding why it is here.",
    "",
)
VARIES: Final = "# varies:"
"""How a comment begins of a finding that not every audit of the same operator has."""
_WORDS: Final = FIRST.rpartition(" ")[0]


class BaselineError(OneLineError):
    """Why a file is no baseline, in one sentence."""


@dataclass(frozen=True, slots=True)
class AuditOutcome:
    """A report compared with the known findings.

    `failing` are findings that fail the audit, `known` those that the baseline has, and `gone` the
    keys in the baseline that do not occur any more.
    """

    failing: tuple[Finding, ...]
    known: tuple[Finding, ...] = ()
    gone: tuple[str, ...] = ()


def line_of(finding: Finding) -> str:
    """Return the line of a finding."""
    return escaped(finding.key).strip()


def read_baseline(name: str, text: str) -> dict[str, tuple[str, ...]]:
    """Return the lines of a baseline, each with the comments above it. Raises BaselineError."""
    first, *lines = text.removeprefix("\ufeff").splitlines() or [""]
    if first.strip() != FIRST:
        raise BaselineError(_other(name, first.strip()))
    known: dict[str, tuple[str, ...]] = {}
    comments: list[str] = []
    for number, line in enumerate(map(str.strip, lines), 2):
        if not line or line in _HEAD:
            comments.clear()
        elif line.startswith("#"):
            comments.append(line)
        elif line.partition(" ")[0] not in BY_NAME:
            raise BaselineError(
                f"{name}:{number}: a line begins with the name of a rule, and"
                f" `{escaped(line.partition(' ')[0])}` is none"
            )
        else:
            known[line] = tuple(comments)
            comments.clear()
    return known


def _other(name: str, first: str) -> str:
    if first.startswith(_WORDS):
        return (
            f"{name} is a baseline of another version: it begins with `{escaped(first)}`, and this"
            f" hedgerow reads `{FIRST}`; write it again with --write-baseline"
        )
    return f"{name} is no baseline: its first line is not `{FIRST}`; --write-baseline writes one"


def varying(reports: Collection[AuditReport]) -> dict[str, str]:
    """Return the lines that some of several reports have and others have not, with a comment."""
    counts = Counter(line for report in reports for line in set(map(line_of, report.findings)))
    total = len(reports)
    return {
        line: f"{VARIES} in {count} of {total} audits"
        for line, count in counts.items()
        if count < total
    }


def baseline(
    findings: Iterable[Finding],
    comments: Mapping[str, tuple[str, ...]] | None = None,
    varies: Mapping[str, str] | None = None,
) -> str:
    """Return the text of a baseline with these findings; comments of lines that remain stay."""
    known, changing = comments or {}, varies or {}
    lines = sorted({line_of(finding) for finding in findings})

    def above(line: str) -> Iterator[str]:
        yield from (text for text in known.get(line, ()) if not text.startswith(VARIES))
        yield from (changing[line],) if line in changing else ()

    parts = (part for line in lines for part in (*above(line), line))
    return "\n".join((*_HEAD, *parts, ""))


def compared(
    report: AuditReport,
    known: Mapping[str, tuple[str, ...]] | None = None,
    rules: Iterable[str] | None = None,
) -> AuditOutcome:
    """Return a report compared with the lines of a baseline, each with its comments.

    Findings of `rules` fail; by default those of the rules that fail an audit. A finding is gone
    only if its rule was checked, and if it did not vary: of a report that is partial nothing is.
    """
    known = known or {}
    lines = {line_of(item) for item in report.findings}
    checked = {item.rule.name for item in report.results if item.verdict != "not checked"}
    gone = () if report.partial else sorted(set(known) - lines)
    return AuditOutcome(
        tuple(item for item in report.failing(rules) if line_of(item) not in known),
        tuple(item for item in report.findings if line_of(item) in known),
        tuple(
            line
            for line in gone
            if line.partition(" ")[0] in checked
            and not any(text.startswith(VARIES) for text in known[line])
        ),
    )
