"""Report: fields that change managers, as the values that are the JSON, and as lines for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, Struct, UnsetType

from hedgerow.cli.output import echo, echo_data
from hedgerow.cli.terminal import Terminal
from hedgerow.texts import cut, printable
from hedgerow_tools.render.holders import NOBODY, holder_words, value_words
from hedgerow_tools.render.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hedgerow_tools.fields.identity import ObjectIdentity
    from hedgerow_tools.moving.outcomes import MovedField, ObjectOutcome

_HEADERS = ("FIELD", "VALUE", "FROM", "TO")
_WIDEST = 40
"""The most columns of each cell but the path."""
_ENDLESS = 10_000
Action = Literal["adopt", "release", "repair", "undo"]


class MoveReport(Struct, frozen=True, rename="camel"):
    """What became of the objects of a command, or of all that the `instance` held.

    It is not `complete` if it ended early.
    """

    action: Action
    dry_run: bool
    complete: bool
    objects: Sequence[ObjectOutcome]
    unread: Mapping[str, str] | UnsetType = UNSET
    instance: str | UnsetType = UNSET


class UnownedReport(Struct, frozen=True, rename="camel"):
    """What became of fields that nobody held."""

    object: ObjectIdentity
    dry_run: bool
    moves: Sequence[MovedField]


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a command did to the fields of one object, or would do; `notes` are for people."""

    report: UnownedReport
    notes: Sequence[str]


def show(transfer: Transfer, output: str) -> None:
    """Print a transfer."""
    if output == "json":
        echo_data(transfer.report)
        return
    if transfer.report.moves:
        print_moves(transfer.report.moves)
    for note in transfer.notes:
        echo(note)


def outcome_line(outcome: ObjectOutcome, words: str) -> str:
    """Return an outcome in one line, in these words unless it failed."""
    words = f"failed: {printable(outcome.why)}" if outcome.fate == "failed" else words
    return f"{printable(str(outcome))}: {words}"


def print_moves(moves: Iterable[MovedField]) -> None:
    """Print a table with a line for each move; paths are never cut, as their ends may differ."""
    rows = ((path, *(cut(cell, _WIDEST) for cell in cells)) for path, *cells in map(_row, moves))
    print_table(_HEADERS, rows, Terminal(width=_ENDLESS))


def _row(move: MovedField) -> tuple[str, str, str, str]:
    target = ", ".join(map(printable, move.to)) or NOBODY
    return printable(move.path), value_words(move.value), holder_words(move.source), target
