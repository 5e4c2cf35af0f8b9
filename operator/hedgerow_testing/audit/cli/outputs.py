"""Audit outputs: in which formats a report is wanted, where each goes, and the baseline's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.output import echo, echo_lines
from hedgerow.cli.program import say
from hedgerow.files import LINK, overwrite
from hedgerow.texts import escaped_lines
from hedgerow_testing.audit.judging.baseline import baseline, compared, line_of, read_baseline

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from hedgerow_testing.audit.judging.baseline import AuditOutcome
    from hedgerow_testing.audit.judging.findings import AuditReport

TEXT: Final = "text"
FORMATS: Final = (TEXT, "json", "html")
_OPTION: Final = "--output"


@dataclass(frozen=True, slots=True)
class Destination:
    """A format, and the file that it goes to; None: it is printed."""

    format: str
    file: Path | None = None


def destinations(given: Iterable[str]) -> tuple[Destination, ...]:
    """Return what `--output` asks for; a report that goes to files is printed as text besides.

    Raises BadParameter, so that nobody waits for a report that cannot be written.
    """
    chosen = tuple(map(_destination, given))
    printed = [output for output in chosen if output.file is None]
    if len(printed) > 1:
        raise typer.BadParameter(
            f"only one format can be printed; give the others files: {printed[1].format}=FILE",
            param_hint=_OPTION,
        )
    return chosen if printed else (*chosen, Destination(TEXT))


def _destination(given: str) -> Destination:
    name, has_file, file = given.partition("=")
    if name not in FORMATS:
        raise typer.BadParameter(
            f"there is no format {name!r}; there are {', '.join(FORMATS)}", param_hint=_OPTION
        )
    if not has_file:
        return Destination(name)
    if name == TEXT:
        raise typer.BadParameter(
            "text is for terminals; json and html go to files", param_hint=_OPTION
        )
    return Destination(name, writable(Path(file), _OPTION))


def writable(file: Path, option: str) -> Path:
    """Return the path of a file that can be written. Raises BadParameter."""
    if file.is_dir() or not file.name:
        raise typer.BadParameter(f"{file} is a directory; name a file", param_hint=option)
    if file.is_symlink():
        raise typer.BadParameter(f"{file}: {LINK}; name a file", param_hint=option)
    there = file if file.exists() else file.parent
    if not os.access(there, os.W_OK):
        why = "may not be written" if there.exists() else "is not there"
        raise typer.BadParameter(f"{there} {why}", param_hint=option)
    return file


@dataclass(frozen=True, slots=True)
class Baselines:
    """The lines of the baseline that is read, and the file that is written, with its comments."""

    known: Mapping[str, tuple[str, ...]]
    file: Path | None = None
    comments: Mapping[str, tuple[str, ...]] | None = None


def baselines(read: Path | None, write: Path | None) -> Baselines:
    """Return what `--baseline` and `--write-baseline` name. Raises BaselineError, OSError.

    A file that is there and is no baseline is not overwritten.
    """
    known = _lines(read) if read else {}
    if write is None:
        return Baselines(known)
    there = writable(write, "--write-baseline").exists()
    return Baselines(known, write, _lines(write) if there else known)


def _lines(file: Path) -> dict[str, tuple[str, ...]]:
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError:
        text = ""
    except OSError as error:
        why = f"{file} cannot be read: {error.strerror}; --write-baseline writes a baseline"
        raise CommandError(why, Exit.USAGE) from None
    return read_baseline(str(file), text)


def judged_by(
    report: AuditReport,
    files: Baselines,
    rules: Collection[str] | None,
    varies: Mapping[str, str] | None = None,
) -> AuditOutcome:
    """Return what a report means beside the baseline; write the other one, if one is wanted.

    What was written is known from then on. A partial report writes none: it has not seen all.
    `varies` are lines that some audits of several had, each with a comment that says so.
    """
    if files.file is None:
        return compared(report, files.known, rules)
    if report.partial:
        say(f"{files.file} was not written: the report is partial")
        return compared(report, files.known, rules)
    _write(files.file, baseline(report.findings, files.comments, varies))
    echo(f"{files.file} has the findings of this audit: {len(report.findings)}", err=True)
    known = dict.fromkeys(map(line_of, report.findings), ()) | dict(files.known)
    return compared(report, known, rules)


def deliver(report: AuditReport, outcome: AuditOutcome, wanted: Sequence[Destination]) -> None:
    """Write a report to its files, and print it."""
    for target in wanted:
        if target.format == TEXT:
            from hedgerow_testing.audit.cli.terminal import show  # noqa: PLC0415 - when it is used

            show(report, outcome)
        elif target.file:
            _write(target.file, f"{_drawn(report, outcome, target.format)}\n")
        else:
            echo_lines(_drawn(report, outcome, target.format))


def _drawn(report: AuditReport, outcome: AuditOutcome, name: str) -> str:
    """Return a report in a format; each is imported only when it is used."""
    if name == "json":
        from hedgerow.encoding import encode  # noqa: PLC0415
        from hedgerow_testing.audit.cli.listing import listed  # noqa: PLC0415

        return encode(listed(report, outcome), indent=2).decode()
    from hedgerow_testing.audit.judging.page_html import draw  # noqa: PLC0415

    return draw(report, outcome).rstrip("\n")


def _write(file: Path, text: str) -> None:
    try:
        overwrite(file, escaped_lines(text))
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from None
