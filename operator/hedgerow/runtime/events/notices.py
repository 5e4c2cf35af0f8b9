"""Notices: which Events a pass sends, besides those that compose returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from hedgerow.contract import Desired, Notice, SourceNotice
from hedgerow.fields.redaction import shown
from hedgerow.objects import PROGRAM, metadata
from hedgerow.plan.conditions import IGNORED, REWRITTEN, Problem, conclude
from hedgerow.plan.conflict_messages import sentence
from hedgerow.plan.remedies import overview, own, remedies
from hedgerow.plan.yield_and_claim import CLAIM
from hedgerow.runtime.events.recorder import LONGEST_NOTE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hedgerow.fields.ownership import Leaf
    from hedgerow.objects import ObjectRef
    from hedgerow.plan.status import StatusReport
    from hedgerow_schemas.base import ContestedField, Object, Status

TOLD = ("Stalled", REWRITTEN, IGNORED)
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

    The status serves as memory, also after a restart: an Event in it was already sent. An empty
    occurrence stands for the resource's generation. Where compose warns for the same reason by an
    Event of its own, the condition has none.
    """
    known = {(condition.type, condition.message) for condition in before.conditions}
    composed = desired.status.conditions if desired.status else ()
    conditions = conclude(
        composed, (), tuple(problems), rewritten, ignored=ignored, before=before.conditions
    )
    of_resource = (n for n in desired.events if not isinstance(n, SourceNotice))
    own = {notice.reason for notice in of_resource if notice.type == "Warning"}
    for condition in conditions:
        reason = condition.reason if condition.type == "Stalled" else condition.type
        is_new = (condition.type, condition.message) not in known
        if condition.type in TOLD and is_new and reason not in own:
            yield Notice(reason, condition.message, "Warning"), ""
    for notice in desired.events:
        yield notice, ""


class ConflictEvent(Struct, frozen=True):
    """The newly contested fields of one object: the object, the Event, and since when.

    `since` is empty if the live object has no time for them: nobody holds the fields, or their
    holders' entries have no time. `words` are for the log: the same text without remedies.
    """

    object: str
    notice: Notice
    since: str
    words: str


def conflicts(
    resource: ObjectRef,
    report: StatusReport,
    live: Object,
    before: Status,
    dated: Callable[[ContestedField], bool],
    *,
    program: str = PROGRAM,
) -> Iterator[ConflictEvent]:
    """Yield one Event for each object with listed fields that the status `before` does not list.

    `dated` returns whether the holder of a field has a time. Fields that the status only counts
    have no Event.
    """
    known = {(old.object, old.path, old.manager) for old in before.contested}
    fresh: dict[str, list[ContestedField]] = {}
    for field in report.listed:
        if (field.object, field.path, field.manager) not in known:
            fresh.setdefault(field.object, []).append(field)
    annotations: dict[str, str] = metadata(live).get("annotations") or {}
    for target, fields in fresh.items():
        texts = [f"{field.path}: {sentence(field, program)}" for field in fields]
        left = "left as it is" if len(fields) == 1 else "left as they are"
        begin = f"{target}: "
        note = _note(begin, texts, f"; {left}. {_overview(resource, target, program)}")
        if len(fields) == 1:
            offered = remedies(resource, annotations, fields[0], program=program)
            single = ". ".join((f"{begin}{texts[0]}; {left}", *map(str, offered)))
            note = single if offered and _size(single) <= LONGEST_NOTE else note
        words = _note(begin, texts, f"; {left}")
        yield ConflictEvent(
            target, Notice("FieldConflict", note, "Warning"), _since(fields, dated), words
        )


def settled(contested: Iterable[ContestedField], before: Status) -> tuple[ContestedField, ...]:
    """Return the fields that the status `before` lists as contested and that no longer are."""
    still = {(field.object, field.path) for field in contested}
    return tuple(old for old in before.contested if (old.object, old.path) not in still)


def _note(begin: str, fields: Sequence[str], ending: str = "") -> str:
    """Return a note with as many of the fields as it has room for.

    `fields` has a text for each; one that is too long alone is cut.
    """
    room = LONGEST_NOTE - _size(begin + ending + _and_more(len(fields)))
    shown: list[str] = []
    left = room
    for text in fields:
        left -= _size(f"; {text}")
        if left < 0:
            break
        shown.append(text)
    if not shown:
        shown = [fields[0].encode()[: room - _size("…")].decode(errors="ignore") + "…"]
    more = len(fields) - len(shown)
    return f"{begin}{'; '.join(shown)}{_and_more(more) if more else ''}{ending}"


def _and_more(number: int) -> str:
    return f"; and {number} more"


def _size(text: str) -> int:
    return len(text.encode())


def _since(fields: Iterable[ContestedField], dated: Callable[[ContestedField], bool]) -> str:
    held = (field.since for field in fields if field.since and field.manager and dated(field))
    since = min(held, default=None)
    return since.isoformat() if since else ""


def _overview(resource: ObjectRef, target: str, program: str) -> str:
    if target == str(resource):
        return f"What to do: `{overview(own(resource), resource.namespace, program)}`"
    return f"What to do: `{overview(target, resource.home, program)}`"


def claimed(ref: ObjectRef, leaves: Sequence[Leaf]) -> Notice:
    """Return the notice that fields were taken by force: from whom, and why."""
    texts = [f"{leaf.path} was taken from {holders(leaf)} by force" for leaf in leaves]
    return Notice("FieldClaimed", _note(f"{ref}: ", texts, f", as {CLAIM} asks"), "Warning")


def holders(leaf: Leaf) -> str:
    """Return the names of the field managers that hold a field, each once."""
    return ", ".join(dict.fromkeys(holder.manager for holder in leaf.holders))


def restored(ref: ObjectRef, leaves: Sequence[Leaf]) -> Notice:
    """Return the notice that fields that nobody held were set again."""
    texts = [_restored(ref, leaf) for leaf in leaves]
    return Notice("FieldRestored", _note(f"{ref}: ", texts), "Warning")


def _restored(ref: ObjectRef, leaf: Leaf) -> str:
    if leaf.live is None:
        return f"{leaf.path} had been removed; it was put back"
    live, want = (shown(ref.api.kind, leaf.field_path, value) for value in (leaf.live, leaf.want))
    return f"{leaf.path} had no holder and was {live}; it was set to {want} again"


def taken_over(ref: ObjectRef, paths: Sequence[str]) -> Notice:
    """Return the notice that fields without holder were taken over, because they must go."""
    why = (
        ", and the API server refuses what is declared beside it; it was taken over, to be removed"
    )
    return Notice(TAKEN_OVER, _note(f"{ref}: nobody held ", paths, why))
