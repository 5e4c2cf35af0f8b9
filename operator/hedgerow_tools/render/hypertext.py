"""Hypertext: an HTML document in one file, for phones and in the dark, and trees that fold."""

from __future__ import annotations

from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from hedgerow_tools.render.colours import FONT, style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_STYLE: Final = (
    "*{box-sizing:border-box}"
    f"body{{margin:0;padding:1.5rem;font:13px/1.6 {FONT}}}"
    "h1{font-size:1.3rem;margin:0}h2{font-size:1rem;margin:1.5rem 0 .3rem}p{margin:.2rem 0}"
    # What is not to be cut is broken anywhere rather than run off a narrow page; a command that was
    # broken by the browser is copied as one line.
    "h1,p,li{overflow-wrap:anywhere}"
    "p.command{margin:.1rem 0 .5rem;padding:.1rem .5rem;border-left:2px solid;user-select:all}"
    "ul{list-style:none;padding:0;margin:.8rem 0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}"
    "i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .5em}"
    ".row,.held{display:grid;column-gap:.5rem}"
    ".row{border-bottom:1px solid}"
    ".row>*,.held>*{overflow:hidden;text-overflow:ellipsis;white-space:pre}"
    ".name{grid-row:1/span 99;grid-column:1;padding-left:var(--indent,0)}.b{font-weight:600}"
    ".value{white-space:pre-wrap;overflow-wrap:anywhere}"
    "summary{cursor:pointer;list-style:none}summary::-webkit-details-marker{display:none}"
    "summary .name::before{content:'▾ '}details:not([open])>summary .name::before{content:'▸ '}"
    ".leaf .name::before{content:'  '}"
    "@media(max-width:55rem){.row{grid-template-columns:minmax(0,1fr)}.name{grid-row:auto}"
    ".row>.name{white-space:pre-wrap;overflow-wrap:anywhere}"
    ".held>*{white-space:normal;overflow-wrap:anywhere}.top .held{display:none}}"
    "@media(max-width:30rem){body{padding:.8rem}}"
)


class Nested(Protocol):
    """A row of a tree, which is below the row before it that has a smaller depth."""

    @property
    def depth(self) -> int:
        """How deep the row is."""
        ...


R = TypeVar("R", bound=Nested)


def document(title: str, own: str, parts: Iterable[str]) -> str:
    """Return a document that refers to nothing outside, with style rules of its `own`."""
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_STYLE}{own}{style()}</style></head>\n"
        f'<body class="paper ink"><h1>{escape(title)}</h1>'
    )
    return "".join((head, *parts, "</body></html>\n"))


def paragraph(text: str, kind: str = "faint") -> str:
    """Return a paragraph: `faint`, `alarm`, or `command ink` for what is copied as a whole."""
    return f'<p class="{kind}">{escape(text)}</p>\n'


def legend(managers: Mapping[str, int], named: Mapping[str, str]) -> str:
    """Return the field managers, each with its colour and its number of fields."""
    items = (
        f'<li><i class="{named[name]}"></i>{escape(name)} ({count})</li>'
        for name, count in managers.items()
    )
    return f"<ul>{''.join(items)}</ul>\n"


def header(name: str, *columns: str) -> str:
    """Return the names of a tree's columns, which a narrow page does without."""
    cells = "".join(f"<span>{column}</span>" for column in columns)
    return (
        f'<div class="row rule top faint b"><span class="name">{name}</span>'
        f'<span class="held">{cells}</span></div>\n'
    )


def tree_row(depth: int, title: str, field: str, cells: str) -> str:
    """Return a row of a tree; its `title` is what is shown of a field that is cut."""
    indent = f"--indent:{depth * 1.1:.1f}rem"
    name = f'<span class="name" title="{escape(title)}">{field}</span>'
    return f'<div class="row rule" style="{indent}">{name}{cells}</div>'


def folded(name: str, value: str) -> str:
    """Return a long value that is shown when its name is clicked, such as a whole manifest."""
    return f'<details class="value"><summary>{name} …</summary>{value}</details>'


def folding(
    rows: Sequence[R],
    draw: Callable[[R], str],
    is_open: Callable[[R], bool] = lambda _: True,
) -> Iterator[str]:
    """Yield the rows nested by depth; rows with others below them can be folded."""
    unfolded: list[int] = []
    for row, after in zip_longest(rows, rows[1:]):
        while unfolded and unfolded[-1] >= row.depth:
            unfolded.pop()
            yield "</details>\n"
        if after is not None and after.depth > row.depth:
            unfolded.append(row.depth)
            yield f"<details{' open' * is_open(row)}><summary>{draw(row)}</summary>\n"
        else:
            yield f'<div class="leaf">{draw(row)}</div>\n'
    yield "</details>\n" * len(unfolded)
