"""Report: fields that change managers, as lines for people and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hedgerow.cli.output import echo, echo_data
from hedgerow.encoding import builtins
from hedgerow.fields.redaction import worded
from hedgerow.fields.sets import ABSENT
from hedgerow.terminal import Terminal
from hedgerow.texts import cut, printable
from hedgerow_tools.objects.identity import identity_of, identity_of_ref
from hedgerow_tools.render.tables import print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.fields.managed_fields import Holder
    from hedgerow_schemas.base import Object
    from hedgerow_tools.moving.transfers import Change, Move
    from hedgerow_tools.moving.writing import ObjectOutcome

_HEADERS = ("FIELD", "VALUE", "FROM", "TO")
_WIDEST = 40
"""The most columns of each cell but the path."""
_ENDLESS = 10_000
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Transfer:
    """What a command did to the fields of one object, or would do; `notes` are for people."""

    live: Object
    moves: Sequence[Move]
    notes: Sequence[str]
    dry_run: bool


def show(transfer: Transfer, output: str) -> None:
    """Print a transfer."""
    if output == "json":
        moves = [move_data(move) for move in transfer.moves]
        told = {"object": identity_of(transfer.live), "dryRun": transfer.dry_run, "moves": moves}
        echo_data(told)
        return
    if transfer.moves:
        print_moves(transfer.moves)
    for note in transfer.notes:
        echo(note)


def outcome_line(outcome: ObjectOutcome, words: str) -> str:
    """Return an outcome in one line, in these words unless it failed."""
    words = f"failed: {printable(outcome.why)}" if outcome.fate == "failed" else words
    return f"{printable(str(outcome))}: {words}"


def outcome_data(outcome: ObjectOutcome, fate: str, **more: Any) -> Object:
    """Return an outcome for programs."""
    return {
        **builtins(identity_of_ref(outcome.ref)),
        **({"subresource": outcome.endpoint} if outcome.endpoint else {}),
        "fate": fate,
        **more,
        **({"why": outcome.why} if outcome.why else {}),
    }


def print_moves(moves: Iterable[Move]) -> None:
    """Print a table with a line for each move; paths are never cut, as their ends may differ."""
    rows = ((path, *(cut(cell, _WIDEST) for cell in cells)) for path, *cells in map(_row, moves))
    print_table(_HEADERS, rows, Terminal(width=_ENDLESS))


def told(change: Change) -> str:
    """Return a change in one line."""
    return f"{printable(change.path)}: {_value(change.before)} → {_value(change.after)}"


def change_data(change: Change) -> Object:
    """Return a change for programs."""
    values = {"before": change.before, "after": change.after}
    return {"path": change.path} | {k: v for k, v in values.items() if v is not ABSENT}


def source_data(holder: Holder) -> Object:
    """Return a holder that gives fields up, for programs: when it wrote does not matter."""
    return builtins(replace(holder, time=""))


def move_data(move: Move) -> Object:
    """Return a move for programs."""
    source = source_data(move.source)
    value = {} if move.value is ABSENT else {"value": move.value}
    return {"path": move.path, **value, "fate": move.fate, "from": source, "to": list(move.to)}


def _row(move: Move) -> tuple[str, str, str, str]:
    target = ", ".join(map(printable, move.to)) or NOBODY
    return printable(move.path), _value(move.value), holder_words(move.source), target


def holder_words(holder: Holder) -> str:
    """Return a holder as `kubectl-edit Update`, with its subresource if it has one."""
    words = (holder.manager, holder.operation, holder.subresource)
    return printable(" ".join(filter(None, words))) or NOBODY


def _value(value: Any) -> str:
    return "(absent)" if value is ABSENT else worded(value)
