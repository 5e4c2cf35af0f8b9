"""Removing: `hedgerow release --unowned`, fields that nobody holds removed, or given a holder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from hedgerow.cli.exits import CommandError, Exit
from hedgerow.cli.program import field_manager, typed
from hedgerow.fields.applyconfiguration import declaring
from hedgerow.kube.errors import Conflict, Forbidden, Invalid
from hedgerow.texts import command_line, numbered, printable, within
from hedgerow_tools.fields.identity import identity_of
from hedgerow_tools.fields.transfers import MoveRefused, changes, holdings
from hedgerow_tools.fields.unowned import let_go, unowned
from hedgerow_tools.moving import report
from hedgerow_tools.moving.outcomes import keep_copy, moved
from hedgerow_tools.objects.writing import until_settled
from hedgerow_tools.render.holders import change_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hedgerow.fields.sets import FieldPath
    from hedgerow_schemas.base import Object
    from hedgerow_tools.fields.transfers import Change, Move
    from hedgerow_tools.objects.writing import Subject


@dataclass(frozen=True, slots=True)
class _Removal:
    """One removal: the object, the requested fields, and who holds them for it, or from then on."""

    subject: Subject
    fields: tuple[str, ...]
    to: str

    @property
    def manager(self) -> str:
        return self.to or field_manager()


async def remove_unowned(
    subject: Subject, fields: tuple[str, ...], to: str, *, dry_run: bool
) -> report.Transfer:
    """Remove the fields of an object that nobody holds, or make `to` hold them; return which.

    Between its two applies nothing interrupts it: what nobody held would have a holder. Raises
    CommandError, MoveRefused and KubeError.
    """
    keep_copy(subject.live, to, "name another field manager with --to")
    removal = _Removal(subject, fields, to)
    moves = unowned(subject.live, fields, to)
    if dry_run:
        await _held(removal, subject.live, dry_run=True)
    else:
        with anyio.CancelScope(shield=True):
            moves, changed = await _carried_out(removal)
            _refuse_defaults(removal, moves, changed)
    made = report.UnownedReport(identity_of(subject.live), dry_run, moved(moves))
    return report.Transfer(made, _notes(removal, moves, dry_run=dry_run))


async def _carried_out(removal: _Removal) -> tuple[tuple[Move, ...], tuple[Change, ...]]:
    """Make the manager hold the fields and, unless it keeps them, let go of them again.

    Return the moves, and the changed values of all these fields.
    """

    async def take(_: int) -> tuple[Object, Object]:
        live = await removal.subject.again()
        return live, await _held(removal, live, dry_run=False)

    before, after = await until_settled(removal.subject.ref, take)
    moves = unowned(before, removal.fields, removal.to)
    if not removal.to:
        after = await _removed(removal, before, after)
    return moves, changes(before, after, [move.field_path for move in moves])


async def _held(removal: _Removal, live: Object, *, dry_run: bool) -> Object:
    """Apply the fields with their values as the manager, to exactly this version."""
    places = [move.field_path for move in unowned(live, removal.fields, removal.to)]
    body = declaring(live, removal.manager, places)
    try:
        after = await removal.subject.apply(body, removal.manager, dry_run=dry_run)
    except (Conflict, Forbidden, Invalid) as error:
        raise CommandError(
            f"{printable(removal.manager)} cannot hold them: {error.message}; nothing was changed",
            Exit.CONFLICT,
        ) from None
    _refuse_changes(live, after, [*holdings(live), *places])
    return after


async def _removed(removal: _Removal, before: Object, held: Object) -> Object:
    """Apply what the manager held before, so that what it took over goes."""

    async def leave_out(number: int) -> Object:
        live = held if number == 1 else await removal.subject.again()
        body = let_go(before, removal.manager, live)
        after = await removal.subject.apply(body, removal.manager)
        _refuse_changes(live, after, holdings(before))
        return after

    try:
        return await until_settled(removal.subject.ref, leave_out)
    except (Conflict, Forbidden, Invalid) as error:
        ref, manager = removal.subject.ref, removal.manager
        words = ("adopt", str(ref), "--from", manager, "--to", "MANAGER", *within(ref.namespace))
        command = command_line(typed(), *words)
        raise CommandError(
            f"{ref}: the server refuses to remove them: {error.message}; {manager} holds them"
            f" now, with their values: `{command}` gives them to another manager",
            Exit.CONFLICT,
        ) from None


def _refuse_changes(before: Object, after: Object, kept: Iterable[FieldPath]) -> None:
    """Raise MoveRefused if an apply to exactly one version has changed other values."""
    if lost := changes(before, after, kept):
        words = "; ".join(map(change_words, lost))
        raise MoveRefused(f"admission changed values that were to stay: {words}")


def _notes(removal: _Removal, moves: Sequence[Move], *, dry_run: bool) -> list[str]:
    """Return what was done, or would be, for people."""
    ref, count = removal.subject.ref, numbered(len(moves), "field")
    if removal.to:
        verb = "would hold" if dry_run else "holds"
        note = f"{ref}: {printable(removal.to)} {verb} {count} that nobody held, no value changed"
        done = " Nothing was changed; --yes does it." if dry_run else ""
        return [note, f"An apply of that manager that leaves a field out removes it.{done}"]
    if dry_run:
        return [
            f"{ref}: {count} that nobody holds would be removed",
            "A field that has a default gets it again. Nothing was changed; --yes does it.",
        ]
    return [f"{ref}: removed {count} that nobody held"]


def _refuse_defaults(removal: _Removal, moves: Sequence[Move], changed: Sequence[Change]) -> None:
    """Raise CommandError if the server has set a removed field again, as before."""
    gone = {change.path for change in changed}
    back = [move for move in moves if move.path not in gone]
    if back and not removal.to:
        raise CommandError(
            f"{removal.subject.ref}: the server has set {printable(back[0].path)} again, as a"
            " default; with --to MANAGER, the next apply of that manager removes it together with"
            " what needs it"
        )
