"""Owners as SVG: one self-contained picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rich.cells import cell_len

from hedgerow.cli.colours import FONT, classes, style
from hedgerow.cli.owners.report import CONTESTED, UNOWNED
from hedgerow.cli.widths import broken, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hedgerow.cli.owners.report import Holding, OwnersPage, OwnersRow
    from hedgerow.cli.widths import Note

_WIDTH, _MARGIN, _LINE, _INDENT = 1080, 24, 20, 15
_MANAGER, _OPERATION, _AGE = 600, 840, 1000
"""Pixels at which the columns begin."""
_CELL = 7.4
"""The most pixels of a 12-pixel character in common fixed-width fonts."""
_CELLS = 135
"""Characters of a line that has no columns."""


def draw(page: OwnersPage) -> str:
    """Return a page as an SVG document; long paths and values are cut, but complete in titles."""
    named = classes(page.managers)
    top: list[str] = []
    bottom = 0
    for part in (*_heading(page), *_legend(page, named), *_rows(page, named)):
        top.append(part(bottom))
        bottom += part.height
    height = bottom + _MARGIN
    title = escape(page.title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}" font-size="12">'
        f"<title>{title}</title><style>text{{font-family:{FONT};white-space:pre}}"
        f".guide{{fill:none;shape-rendering:crispEdges}}.b{{font-weight:600}}{style('fill')}</style>"
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>{"".join(top)}</svg>\n'
    )


class _Part:
    """A part of the picture, `height` pixels high, drawn once its position is known."""

    __slots__ = ("_marks", "height")

    def __init__(self, height: int, *marks: str) -> None:
        self.height = height
        self._marks = marks

    def __call__(self, top: int) -> str:
        return f'<g transform="translate(0 {top})">{"".join(self._marks)}</g>\n'


def _heading(page: OwnersPage) -> Iterator[_Part]:
    yield _Part(46, _text(_MARGIN, page.title, "ink b", y=36, cells=110, size=16))
    yield _Part(26, _text(_MARGIN, f"{page.facts}; as of {page.asof}", "faint", cells=_CELLS))
    yield from (part for note in page.notes for part in _note(note))


def _note(note: Note) -> Iterator[_Part]:
    """Yield a note in as many lines as it needs; in the document each note is one text."""
    kind = "alarm" if note.alarm else "ink" if note.is_command else "faint"
    lines = broken(note.text.strip(), _CELLS)
    x = _MARGIN + (_INDENT if note.is_command else 0)
    spans = (
        f'<tspan x="{x}" y="{14 + _LINE * number}">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    yield _Part(_LINE * len(lines), f'<text class="{kind}">{"".join(spans)}</text>')


def _legend(page: OwnersPage, named: dict[str, str]) -> Iterator[_Part]:
    """Yield the lines of the legend, with as many managers in each as fit."""
    x, marks = _MARGIN, list[str]()
    for name, count in page.managers.items():
        label = f"{shortened(name, 60)} ({count})"
        wide = 18 + round(cell_len(label) * _CELL) + 18
        if marks and x + wide > _WIDTH - _MARGIN:
            yield _Part(_LINE, *marks)
            x, marks = _MARGIN, []
        marks += [_swatch(x, named[name]), _text(x + 18, label, "ink")]
        x += wide
    yield _Part(_LINE + 10, *marks)


def _rows(page: OwnersPage, named: dict[str, str]) -> Iterator[_Part]:
    headers = ((_MARGIN, "FIELD"), (_MANAGER, "MANAGER"), (_OPERATION, "OPERATION"), (_AGE, "AGE"))
    yield _Part(_LINE + 4, *(_text(x, name, "faint b") for x, name in headers))
    yield from (_row(row, named) for row in page.rows)
    if page.absent:
        yield _Part(_LINE * 2, _text(_MARGIN, "Not in the object", "ink b", y=30))
        yield from (_row(row, named) for row in page.absent)


def _row(row: OwnersRow, named: dict[str, str]) -> _Part:
    lines = [*(_held(one, named) for one in row.holdings), *_marked(row)] or [""]
    told = row.path if row.value is None else f"{row.path} = {row.value}"
    title = f"<title>{escape(told)}</title>"
    shifted = (
        f'<g transform="translate(0 {i * _LINE})">{line}</g>' for i, line in enumerate(lines)
    )
    return _Part(_LINE * len(lines), title, *shifted, _guides(row, len(lines)), _field(row))


def _field(row: OwnersRow) -> str:
    x = _MARGIN + row.depth * _INDENT
    cells = int((_MANAGER - x - 12) / _CELL)
    name = shortened(row.name, cells)
    branch = row.value is None
    kind = "alarm b" if row.contested else "ink b" if branch else "faint" if row.unowned else "ink"
    left = cells - cell_len(name) - 2
    if branch or left < 1:
        return _text(x, name, kind)
    text = escape(shortened(row.value or "", left))
    value = f'<tspan class="{"faint" if row.unowned else "ink"}">: {text}'
    return (
        f'<text x="{x}" y="14"><tspan class="{kind}">{escape(name)}</tspan>{value}</tspan></text>'
    )


def _held(holding: Holding, named: dict[str, str]) -> str:
    kind = named.get(holding.manager, "")
    wide = _WIDTH - 2 * _MARGIN + 12
    return (
        f'<rect class="tint-{kind}" x="{_MARGIN - 6}" width="{wide}" height="{_LINE - 1}"/>'
        f"{_swatch(_MANAGER - 4, kind)}{_text(_MANAGER + 12, holding.manager, 'ink', cells=29)}"
        f"{_text(_OPERATION, holding.operation, 'ink', cells=20)}"
        f"{_text(_AGE, holding.age, 'ink', title=holding.since)}"
    )


def _marked(row: OwnersRow) -> Iterator[str]:
    if row.unowned:
        yield _text(_MANAGER + 12, UNOWNED, "faint")
    if row.contested:
        yield _text(_MANAGER + 12, f"✗ {CONTESTED}: {row.contested}", "alarm b", cells=55)


def _guides(row: OwnersRow, lines: int) -> str:
    """Return the tree's lines at a row: those that pass it, and the one that leads to its name."""
    strokes: list[str] = []
    for level in range(row.depth):
        x = _MARGIN + level * _INDENT + 4
        mark = row.guide[2 * level : 2 * level + 1]
        if mark in {"│", "├"}:
            strokes.append(f"M{x} 0V{lines * _LINE}")
        if mark == "└":
            strokes.append(f"M{x} 0V10")
        if mark in {"├", "└"}:
            strokes.append(f"M{x} 10h7")
    return f'<path class="guide" d="{"".join(strokes)}"/>' if strokes else ""


def _swatch(x: int, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="5" width="10" height="10" rx="2"/>'


def _text(
    x: int, text: str, kind: str, *, y: int = 14, cells: int = 140, size: int = 0, title: str = ""
) -> str:
    larger = f' font-size="{size}"' if size else ""
    whole = f"<title>{escape(title)}</title>" if title else ""
    shown = escape(shortened(text, cells))
    return f'<text class="{kind}" x="{x}" y="{y}"{larger}>{shown}{whole}</text>'
