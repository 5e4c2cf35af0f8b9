"""Drawing: the paper and the lines of text of a picture in docs/pictures."""

from __future__ import annotations

from html import escape
from xml.etree import ElementTree as ET

from hedgerow_tools.render.colours import FONT

PAPERS = {
    "light": {
        "paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "frame": "#d1d9e0",
        "alarm": "#c3201f", "good": "#1a7f37", "typed": "#0550ae", "ours": "#1f6fd0",
    },
    "dark": {
        "paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "frame": "#3d444d",
        "alarm": "#ff7b72", "good": "#4cc46a", "typed": "#79c0ff", "ours": "#4c9bff",
    },
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"
_SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def picture(
    size: tuple[int, int], title: str, told: str, parts: list[str], *, paper: str, own: str
) -> str:
    """Return an SVG document that refers to nothing outside, on the paper named.

    `told` is for those who do not see it; `own` are style rules of its own.
    """
    (width, height), title = size, escape(title)
    colours = PAPERS[paper]
    style = (
        f"text{{font:15px {_SANS}}}.m{{font-family:{FONT};white-space:pre}}.b{{font-weight:600}}"
        ".line-frame{stroke-width:2}"
        + "".join(f".{name}{{fill:{code}}}" for name, code in colours.items())
        + f".line-frame{{stroke:{colours['frame']}}}{own}"
    )
    sized = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {sized} role="img" aria-label="{title}">',
            f"<title>{title}</title><desc>{escape(told)}</desc>",
            f"<style>{style}</style>",
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
            *parts,
            "</svg>\n",
        )
    )


def parsed(svg: str) -> ET.Element:
    """Return a picture's elements."""
    return ET.fromstring(svg)  # noqa: S314 - our own file


def lines(svg: str) -> list[str]:
    """Return the text of a picture, line by line."""
    return ["".join(found.itertext()) for found in parsed(svg).iter(f"{SVG}text")]
