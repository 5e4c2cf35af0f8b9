"""Drawing: what the pictures of docs/pictures have in common: two papers, text, boxes, arrows."""

from __future__ import annotations

from html import escape
from xml.etree import ElementTree as ET

from hedgerow.cli.colours import FONT

PAPERS = {
    "light": {
        "paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "frame": "#d1d9e0",
        "alarm": "#c3201f", "good": "#1a7f37", "typed": "#0550ae",
        "ours": "#1f6fd0", "theirs": "#bc5f00",
        "ours-tint": "#e3effc", "theirs-tint": "#fdeedc", "plain-tint": "#f3f5f7",
    },
    "dark": {
        "paper": "#0d1117", "ink": "#e6edf3", "faint": "#9198a1", "frame": "#3d444d",
        "alarm": "#ff7b72", "good": "#4cc46a", "typed": "#79c0ff",
        "ours": "#4c9bff", "theirs": "#f0883e",
        "ours-tint": "#14283f", "theirs-tint": "#38260f", "plain-tint": "#1a2029",
    },
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
_HEADS = "".join(
    f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    f' orient="auto-start-reverse"><path class="{kind}" d="M0 0L8 4L0 8z"/></marker>'
    for kind in ("faint", "ours", "theirs")
)


def picture(
    size: tuple[int, int],
    title: str,
    told: str,
    parts: list[str],
    *,
    paper: str = "",
    own: str = "",
) -> str:
    """Return an SVG document that refers to nothing outside, on the paper named or on either.

    `told` is for those who do not see it; `own` are style rules of its own.
    """
    (width, height), title = size, escape(title)
    style = (
        f"text{{font:15px {SANS}}}.m{{font-family:{FONT};white-space:pre}}.b{{font-weight:600}}"
        ".s{font-size:13px}.l{font-size:17px}path.line{fill:none;stroke-width:2}"
        f"{_style(paper)}{own}"
    )
    sized = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {sized} role="img" aria-label="{title}">',
            f"<title>{title}</title><desc>{escape(told)}</desc>",
            f"<style>{style}</style>",
            f"<defs>{_HEADS}</defs>",
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
            *parts,
            "</svg>\n",
        )
    )


def _style(paper: str) -> str:
    if paper:
        return _rules(PAPERS[paper])
    dark = _rules(PAPERS["dark"])
    return f"{_rules(PAPERS['light'])}@media (prefers-color-scheme:dark){{{dark}}}"


def _rules(colours: dict[str, str]) -> str:
    fills = "".join(f".{name}{{fill:{code}}}" for name, code in colours.items())
    lines = "".join(
        f".line-{name}{{stroke:{colours[name]}}}"
        for name in ("frame", "faint", "ours", "theirs", "alarm", "good")
    )
    return fills + lines


def text(x: float, y: float, words: str, kind: str = "ink", anchor: str = "") -> str:
    """Return a line of text; `kind` is its classes."""
    placed = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{placed}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, line: str) -> str:
    """Return a rectangle with a tint and a border."""
    return (
        f'<rect class="{fill} line-{line}" x="{x:g}" y="{y:g}" width="{width:g}"'
        f' height="{height:g}" rx="6" stroke-width="1.5"/>'
    )


def arrow(path: str, kind: str = "faint", *, both: bool = False) -> str:
    """Return a line with a head at its end, or with one at each."""
    start = f' marker-start="url(#{kind})"' if both else ""
    return f'<path class="line line-{kind}" d="{path}" marker-end="url(#{kind})"{start}/>'


def parsed(svg: str) -> ET.Element:
    """Return a picture's elements."""
    return ET.fromstring(svg)  # noqa: S314 - our own file


def lines(svg: str) -> list[str]:
    """Return the text of a picture, line by line."""
    return ["".join(found.itertext()) for found in parsed(svg).iter(f"{SVG}text")]
