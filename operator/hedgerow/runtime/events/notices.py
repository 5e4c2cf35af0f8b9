"""Notices: which Events a pass sends, besides those that compose returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow.contract import Desired, Notice
from hedgerow.fields.redaction import shown
from hedgerow.objects import PROGRAM, metadata
from hedgerow.plan.conditions import IGNORED, REWRITTEN, Problem, conclude
from hedgerow.plan.conflict_messages import group, groups, sentence
from hedgerow.plan.remedies import overview, own, remedies
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow.runtime.events.recorder import LONGEST_NOTE
from hedgerow.texts import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hedgerow.fields.ownership import Leaf
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.conflict_messages import Group
    from hedgerow.plan.status import StatusReport
    from hedgerow_schemas.base import ContestedField, Object, Status

TOLD = ("Stalled", REWRITTEN, IGNORED)
MOST_SINGLE = 10
"""The most fields of one child and one field manager with an Event each; more share one Event."""
_NAMED = 3
TAKEN_OVER: Final = "UnownedFieldTaken"
"""The reason of an Event: a field that nobody held was in the way of what is declared."""


def due(
    desired: Desired,
    problems: Iterable[Problem],
    before: Status,
    rewritten: str = "",
    ignored: Sequence[str] = (),
) -> Iterator[tuple[Notice, str]]:
    """Yield the Events that the status `before` does not contain yet, each with its occurrence.

    The status serves as memory, also after a restart: what it contains was already sent. An empty
    occurrence stands for the resource's generation.
    """
    told = {(condition.type, condition.message) for condition in before.conditions}
    composed = desired.status.conditions if desired.status else ()
    found = conclude(
        composed, (), tuple(problems), rewritten, ignored=ignored, before=before.conditions
    )
    for condition in found:
        if condition.type in TOLD and (condition.type, condition.message) not in told:
            reason = condition.reason if condition.type == "Stalled" else condition.type
            yield Notice(reason, condition.message, "Warning"), ""
    for notice in desired.events:
        yield notice, ""


class ConflictEvent(Struct, frozen=True):
    """A newly contested field: the object, the Event, and since when.

    `since` is empty if the live object has no time for it: nobody holds the field, or its holder's
    entry has no time. Then only the status remembers it. `words` are for the log: the same text
    without remedies.
    """

    object: str
    notice: Notice
    since: str
    words: str


def conflicts(
    owner: ObjectRef,
    report: StatusReport,
    live: Object,
    before: Status,
    dated: Callable[[ContestedField], bool],
    *,
    program: str = PROGRAM,
) -> Iterator[ConflictEvent]:
    """Yield news of the contested fields that the status `before` does not contain yet.

    `dated` returns whether the holder of a field has a time. Each field gets one Event. If one
    field manager holds more than ten fields of one child, they share one Event with their number.
    So do the fields that the status does not list.
    """
    known = {(old.object, old.path, old.manager) for old in before.contested}
    told, all_now = groups(before.contested), groups(report.contested)
    was_cut = (before.contested_count or 0) > len(before.contested)
    summed: set[Group] = set()
    for field in report.listed:
        held = group(field)
        if all_now[held] > MOST_SINGLE:
            is_known = told[held] > MOST_SINGLE or (told[held] > 0 and was_cut)
            if not is_known and held not in summed:
                summed.add(held)
                fields = [f for f in report.contested if group(f) == held]
                yield _sum(owner, field, fields, _since(fields, dated), program)
        elif (field.object, field.path, field.manager) not in known:
            yield _single(owner, field, live, _since([field], dated), program)
    if len(report.contested) > len(report.listed) and not was_cut:
        yield _rest(owner, report, _since(report.contested, dated), program)


def settled(contested: Iterable[ContestedField], before: Status) -> tuple[ContestedField, ...]:
    """Return the fields that the status `before` lists as contested and that no longer are."""
    still = {(field.object, field.path) for field in contested}
    return tuple(old for old in before.contested if (old.object, old.path) not in still)


def _single(
    owner: ObjectRef, field: ContestedField, live: Object, since: str, program: str
) -> ConflictEvent:
    words = f"{field.object}: {field.path}: {sentence(field, program)}; left as it is"
    offered = remedies(owner, metadata(live).get("annotations") or {}, field, program=program)
    note = ". ".join((words, *map(str, offered)))
    if not offered or len(note.encode()) > LONGEST_NOTE:
        note = f"{cut(words, LONGEST_NOTE // 2)}. {_overview(owner, field.object, program)}"
    return ConflictEvent(field.object, Notice("FieldConflict", note, "Warning"), since, words)


def _sum(
    owner: ObjectRef,
    first: ContestedField,
    fields: Sequence[ContestedField],
    since: str,
    program: str,
) -> ConflictEvent:
    named = ", ".join(cut(field.path, LONGEST_NOTE // 8) for field in fields[:_NAMED])
    held = f"held by {first.manager}" if first.manager else "held by nobody"
    words = f"{first.object}: {len(fields)} fields are {held}, not as declared: {named}, …"
    return _many(owner, first.object, words, since, program)


def _rest(owner: ObjectRef, report: StatusReport, since: str, program: str) -> ConflictEvent:
    counts = f"{len(report.contested)} fields are contested"
    words = f"{counts}, of which status.contested lists {len(report.listed)}"
    return _many(owner, str(owner), words, since, program)


def _many(owner: ObjectRef, target: str, words: str, since: str, program: str) -> ConflictEvent:
    note = f"{words}; left as they are. {_overview(owner, target, program)}"
    return ConflictEvent(target, Notice("FieldConflict", note, "Warning"), since, words)


def _since(fields: Iterable[ContestedField], dated: Callable[[ContestedField], bool]) -> str:
    held = (field.since for field in fields if field.since and field.manager and dated(field))
    since = min(held, default=None)
    return since.isoformat() if since else ""


def _overview(owner: ObjectRef, target: str, program: str) -> str:
    if target == str(owner):
        return f"What to do: `{overview(own(owner), owner.namespace, program)}`"
    return f"What to do: `{overview(target, owner.home, program)}`"


def claimed(ref: ObjectRef, leaf: Leaf) -> Notice:
    """Return the notice that a field was taken by force: from whom, and why."""
    note = f"{ref}: {leaf.path} was taken from {holders(leaf)} by force, as {CLAIM} asks"
    return Notice("FieldClaimed", note, "Warning")


def holders(leaf: Leaf) -> str:
    """Return the names of the field managers that hold a field, each once."""
    return ", ".join(dict.fromkeys(holder.manager for holder in leaf.holders))


def restored(ref: ObjectRef, leaf: Leaf) -> Notice:
    """Return the notice that a field that nobody held was set again."""
    if leaf.live is None:
        note = f"{ref}: {leaf.path} had been removed; it was put back"
    else:
        live, want = (
            shown(ref.api.kind, leaf.field_path, value) for value in (leaf.live, leaf.want)
        )
        note = f"{ref}: {leaf.path} had no holder and was {live}; it was set to {want} again"
    return Notice("FieldRestored", note, "Warning")


def taken_over(ref: ObjectRef, paths: Sequence[str]) -> Notice:
    """Return the notice that fields without holder were taken over, because they must go."""
    named = ", ".join(cut(path, LONGEST_NOTE // 8) for path in paths[:_NAMED])
    told = named if len(paths) <= _NAMED else f"{named} and {len(paths) - _NAMED} more"
    note = (
        f"{ref}: nobody held {told}, and the API server refuses what is declared beside it; it was"
        " taken over, to be removed"
    )
    return Notice(TAKEN_OVER, note)


def many_restored(ref: ObjectRef, leaves: Sequence[Leaf]) -> Notice:
    """Return the notice that several fields that nobody held were set again."""
    note = f"{ref}: {len(leaves)} fields had no holder; they were set again: {_first(leaves)}"
    return Notice("FieldRestored", note, "Warning")


def many_claimed(ref: ObjectRef, leaves: Sequence[Leaf]) -> Notice:
    """Return the notice that several fields were taken by force: from whom, and why."""
    names = ", ".join(dict.fromkeys(map(holders, leaves)))
    note = (
        f"{ref}: {len(leaves)} fields were taken from {names} by force, as {CLAIM} asks:"
        f" {_first(leaves)}"
    )
    return Notice("FieldClaimed", note, "Warning")


def of_each(
    ref: ObjectRef,
    leaves: Sequence[Leaf],
    single: Callable[[ObjectRef, Leaf], Notice],
    many: Callable[[ObjectRef, Sequence[Leaf]], Notice],
) -> tuple[Notice, ...]:
    """Return a notice for each field, or one for all if there are more than ten."""
    if len(leaves) > MOST_SINGLE:
        return (many(ref, leaves),)
    return tuple(single(ref, leaf) for leaf in leaves)


def _first(leaves: Sequence[Leaf]) -> str:
    return ", ".join(cut(leaf.path, LONGEST_NOTE // 8) for leaf in leaves[:_NAMED]) + ", …"
