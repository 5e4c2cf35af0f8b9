"""Owners report: what is said of an object's owners, on a terminal and as a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from hedgerow.cli.program import program_name, typed
from hedgerow.fields.redaction import worded
from hedgerow.plan.conflict_messages import sentence
from hedgerow.texts import command_line, escaped, numbered, printable, within
from hedgerow_tools.render.holders import way
from hedgerow_tools.render.times import age
from hedgerow_tools.render.widths import Note

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from hedgerow.fields.managed_fields import Holder
    from hedgerow.plan.remedies import Remedy
    from hedgerow_tools.owners.view import OwnedField, OwnersView

FIRST: Final = 3
"""The most contested fields with remedies if the user did not ask for contested ones."""
UNOWNED: Final = "unowned"
CONTESTED: Final = "contested"
_NUMBERED: Final = re.compile(r"\[\d+\]")
"""The name of a list item without a key that a manager holds."""


def title(view: OwnersView) -> str:
    """Return which object it is."""
    obj = view.object
    return printable(f"{obj.kind} {'/'.join(filter(None, (obj.namespace, obj.name)))}")


def facts(view: OwnersView) -> str:
    """Return the numbers of the whole object's fields."""
    counts = view.summary
    text = (
        f"{view.object.api_version}: {numbered(counts.fields, 'field')}, {counts.unowned} {UNOWNED}"
    )
    return f"{text}, {counts.contested} {CONTESTED}" if counts.contested else text


def visible(fields: Sequence[OwnedField]) -> list[OwnedField]:
    """Return the places without those in the title, and those that only the server sets."""
    rows: list[OwnedField] = []
    for field in reversed(fields):
        is_bare = field.state == "branch" and not (field.managers or field.contested)
        leads = bool(rows) and rows[-1].depth > field.depth
        if field.state != "identity" and (leads or not is_bare):
            rows.append(field)
    return rows[::-1]


def absent(view: OwnersView) -> tuple[OwnedField, ...]:
    """Return the places that are held or contested, and not there."""
    return (*view.gone, *view.missing)


def value_of(field: OwnedField, view: OwnersView) -> str | None:
    """Return a place's value in words; None for a branch, and what else has none."""
    if field.state == "gone" and field.api_version not in {"", view.object.api_version}:
        return f"written as {printable(field.api_version)}"
    return None if field.value is UNSET else worded(field.value)


def declared(field: OwnedField, view: OwnersView) -> str:
    """Return the value that the contesting resource declares for a place; it may be empty."""
    fields = (dispute.field for dispute in view.contested if dispute.field.path == field.path)
    value = next(fields, None) if field.contested else None
    return printable(value.declared or "") if value else ""


def holding(holder: Holder, now: datetime) -> tuple[str, str, str]:
    """Return a holder in words: who, how, and how long ago."""
    return printable(holder.manager) or "?", way(holder), age(holder.time, now)


def notes(view: OwnersView, nothing: str, *, all_told: bool) -> Iterator[Note]:
    """Yield what there is to know and to do; `nothing` is said if no field is chosen."""
    yield from _unserved(view)
    places = (*view.fields, *view.missing)
    for owner in sorted({place.contested for place in places if place.contested}):
        yield Note(
            f"{CONTESTED}: {printable(owner)} declares another value, and forces nothing", True
        )
    if not view.managers:
        yield Note(
            "the object has no managed fields: somebody emptied them, or the API server keeps none"
            " for this kind"
        )
    elif any(_NUMBERED.fullmatch(field.name) for field in view.fields):
        yield Note(
            "a list item shown as a number has no key that a manager holds; in a field path,"
            " write [*] for it"
        )
    if not (view.fields or absent(view)):
        yield Note(printable(nothing))
    yield from _settling(view, all_told=all_told)


def _unserved(view: OwnersView) -> Iterator[Note]:
    if view.unserved:
        obj = view.object
        group = obj.api_version.rpartition("/")[0]
        kind = ".".join(filter(None, (obj.kind.lower(), group)))
        words = ("adopt", "--repair", f"{kind}/{obj.name}", *within(obj.namespace))
        command = escaped(command_line(typed(), *words, "--yes"))
        yield Note(
            f"fields are recorded in {printable(', '.join(view.unserved))}, which the server does"
            f" not serve, and which may block every apply: `{command}`",
            alarm=True,
        )


def _settling(view: OwnersView, *, all_told: bool) -> Iterator[Note]:
    """Yield what settles contested fields; each command has a line of its own, for pasting."""
    shown = view.contested if all_told else view.contested[:FIRST]
    for dispute in shown:
        text = f"{dispute.field.path}: {sentence(dispute.field, program_name())}"
        yield Note(printable(text), alarm=True)
        for remedy in dispute.remedies:
            yield from _offered(remedy, f"  {remedy.effect}:")
    for remedy in view.together:
        yield from _offered(remedy, f"{remedy.effect}, in one command:")
    if len(view.contested) > len(shown):
        yield Note(f"--contested shows {len(view.contested) - len(shown)} more contested fields")


def _offered(remedy: Remedy, effect: str) -> Iterator[Note]:
    yield Note(effect)
    yield Note(f"  {escaped(remedy.command)}", is_command=True)
