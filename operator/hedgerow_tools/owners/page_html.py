"""Owners as HTML: one self-contained page with branches that can be folded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hedgerow.texts import printable
from hedgerow_tools.owners.report import (
    CONTESTED,
    UNOWNED,
    absent,
    facts,
    holding,
    title,
    value_of,
    visible,
)
from hedgerow_tools.render.colours import classes
from hedgerow_tools.render.hypertext import (
    document,
    folded,
    folding,
    header,
    legend,
    paragraph,
    tree_row,
)
from hedgerow_tools.render.times import utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from hedgerow.fields.managed_fields import Holder
    from hedgerow_tools.owners.view import OwnedField, OwnersView
    from hedgerow_tools.render.widths import Note

_STYLE = (
    ".row{grid-template-columns:minmax(0,1fr) 17rem 9rem 4rem}"
    ".held{grid-column:2/5;grid-template-columns:17rem 9rem 4rem}"
    "@media(max-width:55rem){.row{grid-template-columns:minmax(0,1fr)}"
    ".held{grid-column:1;margin-left:calc(var(--indent,0rem) + 2rem);"
    "grid-template-columns:minmax(0,1fr) 8rem 4rem}"
    ".held:has(>:only-child){display:block}}"
    "@media(max-width:30rem){.held{margin-left:calc(var(--indent,0rem) + 1rem);"
    "grid-template-columns:minmax(0,1fr) 6.5rem 3.5rem}}"
)

_LONGEST = 240
"""The most characters of a value that is not folded: the last applied manifest is longer."""


def draw(view: OwnersView, notes: Iterable[Note], now: datetime) -> str:
    """Return a view as an HTML document; a text that is cut has a title."""
    page = _Page(view, now)
    managers = {printable(name) or "?": count for name, count in view.managers.items()}
    parts = (
        paragraph(f"{facts(view)}; as of {utc(now)}"),
        *map(_note, notes),
        legend(managers, dict(zip(managers, page.colours.values(), strict=False))),
        header("FIELD", "MANAGER", "OPERATION", "AGE"),
        *page.tree(visible(view.fields)),
        *page.absent(),
    )
    return document(title(view), _STYLE, parts)


def _note(note: Note) -> str:
    kind = "alarm" if note.alarm else "command ink" if note.is_command else "faint"
    return paragraph(note.text.strip(), kind)


class _Page:
    """The rows of one view; ages are those of `now`."""

    def __init__(self, view: OwnersView, now: datetime) -> None:
        self._view, self._now = view, now
        self.colours = classes(view.managers)

    def absent(self) -> Iterator[str]:
        if rows := absent(self._view):
            yield "<h2>Not in the object</h2>\n"
            yield from self.tree(rows)

    def tree(self, rows: Sequence[OwnedField]) -> Iterator[str]:
        return folding(rows, self._row)

    def _row(self, field: OwnedField) -> str:
        held = "".join((*map(self._held, field.managers), *_marked(field)))
        value, path = value_of(field, self._view), printable(field.path)
        words = path if value is None else f"{path} = {value}"
        return tree_row(field.depth, words, _field(field, value), held)

    def _held(self, holder: Holder) -> str:
        kind = self.colours.get(holder.manager, "")
        name, operation, age = map(escape, holding(holder, self._now))
        since = escape(printable(holder.time))
        timed = f'<time datetime="{since}" title="{since}">{age}</time>'
        return (
            f'<span class="held tint-{kind}"><span title="{name}"><i class="{kind}"></i>'
            f"{name}</span><span>{operation}</span>{timed if since else f'<span>{age}</span>'}"
            "</span>"
        )


def _field(row: OwnedField, value: str | None) -> str:
    is_unowned = row.state == UNOWNED
    kind = "alarm b" if row.contested else "b" if value is None else "faint" if is_unowned else ""
    name = f'<span class="{kind}">{escape(printable(row.name))}</span>'
    if value is None:
        return name
    if len(value) > _LONGEST:
        return folded(name, escape(value))
    value = escape(value)
    return f'{name}: <span class="faint">{value}</span>' if is_unowned else f"{name}: {value}"


def _marked(row: OwnedField) -> Iterator[str]:
    if row.state == UNOWNED:
        yield f'<span class="held faint"><span><i></i>{UNOWNED}</span></span>'
    if row.contested:
        name = escape(printable(row.contested))
        yield (
            f'<span class="held alarm b"><span title="{name} declares another value">'
            f"<i></i>✗ {CONTESTED}: {name}</span></span>"
        )
