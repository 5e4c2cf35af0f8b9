"""Owners as HTML: one self-contained page with branches that can be folded."""

from __future__ import annotations

from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING

from hedgerow.cli.owners.colours import FONT, classes, style
from hedgerow.cli.owners.report import CONTESTED, UNOWNED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hedgerow.cli.owners.report import Holding, OwnersPage, OwnersRow
    from hedgerow.cli.widths import Note

_STYLE = (
    "*{box-sizing:border-box}"
    f"body{{margin:0;padding:1.5rem;font:13px/1.6 {FONT}}}"
    "h1{font-size:1.3rem;margin:0}h2{font-size:1rem;margin:1.5rem 0 .3rem}p{margin:.2rem 0}"
    # What is not to be cut is broken anywhere rather than run off a narrow page; a command that was
    # broken by the browser is copied as one line.
    "h1,p,li{overflow-wrap:anywhere}"
    "p.command{margin:.1rem 0 .5rem;padding:.1rem .5rem;border-left:2px solid;user-select:all}"
    "ul{list-style:none;padding:0;margin:.8rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}"
    "i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .5em}"
    ".row,.held{display:grid;column-gap:.5rem;grid-template-columns:minmax(0,1fr) 17rem 9rem 4rem}"
    ".row{border-bottom:1px solid}.held{grid-column:2/5;grid-template-columns:17rem 9rem 4rem}"
    ".row>*,.held>*{overflow:hidden;text-overflow:ellipsis;white-space:pre}"
    ".name{grid-row:1/span 99;grid-column:1}.b{font-weight:600}"
    "summary{cursor:pointer;list-style:none}summary::-webkit-details-marker{display:none}"
    "summary .name::before{content:'▾ '}details:not([open])>summary .name::before{content:'▸ '}"
    ".leaf .name::before{content:'  '}"
    "@media(max-width:55rem){.row{grid-template-columns:minmax(0,1fr)}.name{grid-row:auto}"
    ".row>.name{white-space:pre-wrap;overflow-wrap:anywhere}"
    ".held{grid-column:1;margin-left:2rem;grid-template-columns:minmax(0,1fr) 8rem 4rem}"
    ".held>*{white-space:normal;overflow-wrap:anywhere}.held:has(>:only-child){display:block}"
    ".top .held{display:none}}"
    "@media(max-width:30rem){body{padding:.8rem}.held{margin-left:1rem;"
    "grid-template-columns:minmax(0,1fr) 6.5rem 3.5rem}}"
)


def draw(page: OwnersPage) -> str:
    """Return a page as an HTML document; a text that is cut has a title."""
    named = classes(page.managers)
    top = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(page.title)}</title><style>{_STYLE}{style('background')}</style></head>\n"
        f'<body class="paper ink"><h1>{escape(page.title)}</h1>'
        f'<p class="faint">{escape(page.facts)}; as of {escape(page.asof)}</p>\n'
    )
    header = (
        '<div class="row rule top faint b"><span class="name">FIELD</span><span class="held">'
        "<span>MANAGER</span><span>OPERATION</span><span>AGE</span></span></div>\n"
    )
    return "".join((
        top,
        *(_note(note) for note in page.notes),
        *_legend(page, named),
        header,
        *_tree(page.rows, named),
        *_absent(page, named),
        "</body></html>\n",
    ))  # fmt: skip


def _note(note: Note) -> str:
    kind = "alarm" if note.alarm else "command ink" if note.is_command else "faint"
    return f'<p class="{kind}">{escape(note.text.strip())}</p>\n'


def _legend(page: OwnersPage, named: dict[str, str]) -> Iterator[str]:
    yield "<ul>"
    for name, count in page.managers.items():
        yield f'<li><i class="{named[name]}"></i>{escape(name)} ({count})</li>'
    yield "</ul>\n"


def _absent(page: OwnersPage, named: dict[str, str]) -> Iterator[str]:
    if page.absent:
        yield "<h2>Not in the object</h2>\n"
        yield from _tree(page.absent, named)


def _tree(rows: Sequence[OwnersRow], named: dict[str, str]) -> Iterator[str]:
    """Yield the rows nested by depth; rows with others below them can be folded."""
    unfolded: list[int] = []
    for row, after in zip_longest(rows, rows[1:]):
        while unfolded and unfolded[-1] >= row.depth:
            unfolded.pop()
            yield "</details>\n"
        if after is not None and after.depth > row.depth:
            unfolded.append(row.depth)
            yield f"<details open><summary>{_row(row, named)}</summary>\n"
        else:
            yield f'<div class="leaf">{_row(row, named)}</div>\n'
    yield "</details>\n" * len(unfolded)


def _row(row: OwnersRow, named: dict[str, str]) -> str:
    held = "".join((*(_held(one, named) for one in row.holdings), *_marked(row)))
    indent = f"padding-left:{row.depth * 1.1:.1f}rem"
    told = row.path if row.value is None else f"{row.path} = {row.value}"
    field = f'<span class="name" style="{indent}" title="{escape(told)}">{_field(row)}</span>'
    return f'<div class="row rule">{field}{held}</div>'


def _field(row: OwnersRow) -> str:
    branch = row.value is None
    kind = "alarm b" if row.contested else "b" if branch else "faint" if row.unowned else ""
    name = f'<span class="{kind}">{escape(row.name)}</span>'
    if row.value is None:
        return name
    value = escape(row.value)
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
