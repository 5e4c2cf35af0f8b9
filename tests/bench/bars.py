"""Bars: a picture of ratios, each beside a line at 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, BAR, LEFT = 720, 22, 250
GOOD, POOR = "#2a7f3f", "#b5651d"


class Bar(NamedTuple):
    """A ratio, and whether it is as good as is wanted."""

    title: str
    value: float
    is_good: bool


def bars(title: str, rows: Sequence[Bar], *, least: float = 1.0) -> str:
    """Return an SVG with a bar for each row; the line at 1 is in it, and `least` at the right."""
    most = max(least, *(row.value for row in rows))
    scale = (WIDTH - LEFT - 60) / most
    height = BAR * len(rows) + 50
    line = LEFT + scale
    size, font = f'viewBox="0 0 {WIDTH} {height}"', 'font-size="12" font-family="sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
        f'<text x="8" y="18">{title}</text>',
    ]
    for number, row in enumerate(rows):
        y = 30 + BAR * number
        wide, colour = scale * row.value, GOOD if row.is_good else POOR
        bar = f'width="{wide:.1f}" height="{BAR - 6}" fill="{colour}"'
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{row.title}</text>',
            f'<rect x="{LEFT}" y="{y + 3}" {bar}/>',
            f'<text x="{LEFT + wide + 6:.1f}" y="{y + 14}">{row.value:.2f}</text>',
        ]
    parts.append(
        f'<line x1="{line:.1f}" y1="26" x2="{line:.1f}" y2="{height - 16}" stroke="#333"'
        ' stroke-dasharray="4 3"/>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
