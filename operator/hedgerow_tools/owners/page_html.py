"""Owners as HTML: one self-contained page with branches that can be folded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hedgerow_tools.owners.report import CONTESTED, UNOWNED
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hedgerow_tools.owners.report import Holding, OwnersPage, OwnersRow
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


def draw(page: OwnersPage) -> str:
    """Return a page as an HTML document; a text that is cut has a title."""
    named = classes(page.managers)
    parts = (
        paragraph(f"{page.facts}; as of {page.asof}"),
        *map(_note, page.notes),
        legend(page.managers, named),
        header("FIELD", "MANAGER", "OPERATION", "AGE"),
        *_tree(page.rows, named),
        *_absent(page, named),
    )
    return document(page.title, _STYLE, parts)


def _note(note: Note) -> str:
    kind = "alarm" if note.alarm else "command ink" if note.is_command else "faint"
    return paragraph(note.text.strip(), kind)


def _absent(page: OwnersPage, named: dict[str, str]) -> Iterator[str]:
    if page.absent:
        yield "<h2>Not in the object</h2>\n"
        yield from _tree(page.absent, named)


def _tree(rows: Sequence[OwnersRow], named: dict[str, str]) -> Iterator[str]:
    return folding(rows, lambda one: _row(one, named))


def _row(one: OwnersRow, named: dict[str, str]) -> str:
    held = "".join((*(_held(holding, named) for holding in one.holdings), *_marked(one)))
    told = one.path if one.value is None else f"{one.path} = {one.value}"
    return tree_row(one.depth, told, _field(one), held)


def _field(row: OwnersRow) -> str:
    branch = row.value is None
    kind = "alarm b" if row.contested else "b" if branch else "faint" if row.unowned else ""
    name = f'<span class="{kind}">{escape(row.name)}</span>'
    if row.value is None:
        return name
    value = escape(row.value)
    if len(row.value) > _LONGEST:
        return folded(name, value)
    return f'{name}: <span class="faint">{value}</span>' if row.unowned else f"{name}: {value}"


def _held(holding: Holding, named: dict[str, str]) -> str:
    kind = named.get(holding.manager, "")
    name = escape(holding.manager)
    return (
        f'<span class="held tint-{kind}"><span title="{name}"><i class="{kind}"></i>{name}</span>'
        f"<span>{escape(holding.operation)}</span>"
        f"{_aged(holding)}</span>"
    )


def _aged(holding: Holding) -> str:
    age, since = escape(holding.age), escape(holding.since)
    return (
        f'<time datetime="{since}" title="{since}">{age}</time>' if since else f"<span>{age}</span>"
    )


def _marked(row: OwnersRow) -> Iterator[str]:
    if row.unowned:
        yield f'<span class="held faint"><span><i></i>{UNOWNED}</span></span>'
    if row.contested:
        name = escape(row.contested)
        yield (
            f'<span class="held alarm b"><span title="{name} declares another value">'
            f"<i></i>✗ {CONTESTED}: {name}</span></span>"
        )
