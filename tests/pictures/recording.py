"""Recording: the demo's own output as a picture, some of its acts one after the other."""

from __future__ import annotations

import re
from html import escape
from itertools import accumulate, pairwise
from textwrap import wrap
from typing import NamedTuple

from rich.cells import cell_len

from pictures.drawing import lines, picture

COLUMNS = 96
"""The width of the terminal that is recorded."""
_CELL, _LINE, _LEFT, _TOP = 8.4, 18, 16, 64
_TITLE = "hedgerow demo: somebody else takes a field, and nothing is overwritten"
_VARYING = (
    (r"\b\d+m\d+s\b|\b\d+[sm]\b", "TIME"),
    (r"…-[a-z0-9]{5,10}\b", "…-HASH"),
    (r"\b10\.0\.\d+\.\d+", "ADDRESS"),
    (r"^ *\d+ (?=fieldManager)", "COUNT "),
    (r"\b\d+ times: .*", "COUNT times"),
    (r"\s+", " "),
)
"""What differs from run to run, and what stands for it."""


class Frame(NamedTuple):
    """What is shown of an act: the blocks that begin so, for that many seconds."""

    act: str
    seconds: int
    blocks: tuple[str, ...]


FRAMES = (
    Frame(
        "One BlueGreen gives two Deployments and a Service",
        5,
        ("$ kubectl apply", "$ kubectl get bluegreens", "$ kubectl get services", "✓ each was"),
    ),
    Frame(
        "Somebody else takes a field, and nothing is overwritten",
        9,
        ("The BlueGreen", "$ kubectl set image", "$ kubectl get bluegreens", "$ hedgerow tree"),
    ),
    Frame(
        "The fields beside it still follow the spec",
        5,
        ("greeting.yaml", "$ kubectl apply", "$ kubectl set env", "✓ the image", "✓ the field"),
    ),
    Frame(
        "One way to settle it: leave the field to its holder",
        9,
        ("$ hedgerow owners", "$ kubectl annotate", "$ kubectl get bluegreens"),
    ),
    Frame("What the API server itself noted of all this", 5, ("audit.log", "$ grep", "✓")),
)
STILL = 1
"""The frame that is shown where nothing is to move."""


def blocks(printed: str, act: str) -> list[list[str]]:
    """Return what a demo printed in an act: each command with its output, each check."""
    heading = re.search(rf"^ ?\d+  {re.escape(act)}$", printed, re.MULTILINE)
    assert heading, f"no act of the demo is called {act!r}"
    shown = re.split(r"^ ?\d+  \S", printed[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    found = re.split(r"^(?=    [$✓] )", shown.strip("\n"), flags=re.MULTILINE)
    return [block.rstrip().splitlines() for block in found if block.strip()]


def chosen(printed: str, frame: Frame) -> list[list[str]]:
    """Return the blocks that a frame names, each of which has to be there."""
    found = [
        block for block in blocks(printed, frame.act) if block[0].strip().startswith(frame.blocks)
    ]
    begun = [block[0].strip() for block in found]
    missing = [start for start in frame.blocks if not any(line.startswith(start) for line in begun)]
    assert missing == [], f"in the act {frame.act!r} nothing begins with {missing}"
    return [[part for line in block for part in _broken(line)] for block in found]


def draw(printed: str, paper: str) -> str:
    """Return what a demo printed in COLUMNS columns as a picture that plays by itself."""
    shown = [chosen(printed, frame) for frame in FRAMES]
    rows = max(sum(len(block) for block in found) for found in shown)
    width = round(COLUMNS * _CELL) + 2 * _LEFT
    height = _TOP + (rows + 1) * _LINE
    ends = list(accumulate(frame.seconds for frame in FRAMES))
    parts, moves = [_bar(width, height)], list[str]()
    for number, (frame, found) in enumerate(zip(FRAMES, shown, strict=True)):
        begin = ends[number] - frame.seconds
        moves.append(_keyframes(f"f{number}", begin, ends[number], ends[-1]))
        parts.append(f'<g id="f{number}" class="f">\n{_text(0, frame.act, "act")}')
        row = 0
        for index, block in enumerate(found):
            name = f"f{number}b{index}"
            parts.append(f'<g id="{name}">')
            for kind, line in kinds(block):
                row += 1
                indent = len(line) - len(line.lstrip())
                parts.append(_text(row, line.strip(), kind, indent))
            parts.append("</g>")
            # Half of a frame's time goes by until its last block is there.
            starts = begin + frame.seconds * index / len(found) / 2
            moves.append(_keyframes(name, starts, ends[-1], ends[-1]))
        parts.append("</g>")
    told = f"In turn: {'; '.join(frame.act for frame in FRAMES)}."
    own = _style([*moves, f"#bar{{animation:bar {ends[-1]}s linear infinite}}"])
    return picture((width, height), _TITLE, told, parts, paper=paper, own=own)


def kinds(block: list[str]) -> list[tuple[str, str]]:
    """Return the lines of a block, each with what it is."""
    kind = {"$": "typed", "✓": "checked"}.get(block[0].strip()[:1], "said")
    found = [(kind, block[0])]
    for before, line in pairwise(block):
        # A command goes on after a backslash, or where it is too long for a line.
        typed = kind == "typed" and (before.endswith("\\") or line.startswith(_FOLDED))
        kind = kind if typed or kind != "typed" else "output"
        found.append((kind, line.replace(_FOLDED, " " * 6)))
    return found


def plain(words: str) -> str:
    """Return a text without what differs from run to run: times, names, addresses, blanks."""
    for pattern, name in _VARYING:
        words = re.sub(pattern, name, words, flags=re.MULTILINE)
    return words.strip()


def told(svg: str) -> list[str]:
    """Return what a picture says, without what differs from run to run."""
    return [plain(line) for line in lines(svg)]


_FOLDED = "\N{NO-BREAK SPACE}" * 6


def _broken(line: str) -> list[str]:
    """Return a line as a terminal shows it: in several, if it is too long."""
    if cell_len(line) <= COLUMNS:
        return [line]
    return wrap(line, COLUMNS, subsequent_indent=_FOLDED, break_on_hyphens=False)


def _text(row: int, words: str, kind: str, indent: int = 0) -> str:
    """Return a line at its place; its length is set, so that columns stand in any font."""
    x, y = _LEFT + indent * _CELL, _TOP + row * _LINE
    long = cell_len(words) * _CELL
    marked = re.sub(
        r"^(\$|✓) |✗ .*?(?=  |$)",
        lambda found: f'<tspan class="{found[0][0]}">{found[0]}</tspan>',
        escape(words, quote=False),
    )
    for sign, name in (("$", "faint"), ("✓", "good b"), ("✗", "alarm b")):
        marked = marked.replace(f'class="{sign}"', f'class="{name}"')
    name = {"act": "ink b", "typed": "typed", "said": "faint", "output": "ink", "checked": "ink"}
    return (
        f'<text class="m {name[kind]}" x="{x:g}" y="{y:g}" textLength="{long:g}"'
        f' xml:space="preserve">{marked}</text>'
    )


def _keyframes(name: str, begin: float, end: float, whole: float) -> str:
    """Return the rules by which a part is shown from a second to another one."""
    first, last = 100 * begin / whole, 100 * end / whole
    steps = "".join(
        (
            f"0%,{first:.2f}%{{opacity:0}}{first + 0.8:.2f}%," if begin else "0%,",
            f"{last - 0.4:.2f}%{{opacity:1}}{last:.2f}%,100%{{opacity:0}}",
        )
    )
    return f"#{name}{{animation:{name} {whole:g}s infinite}}@keyframes {name}{{{steps}}}"


def _style(moves: list[str]) -> str:
    """Return the rules of the picture: where motion is not wanted, one frame is shown."""
    return (
        f".m{{font-size:14px}}.f{{opacity:0}}#f{STILL}{{opacity:1}}#bar{{transform:scaleX(0)}}"
        "@keyframes bar{from{transform:scaleX(0)}to{transform:scaleX(1)}}"
        f"@media (prefers-reduced-motion:no-preference){{{''.join(moves)}}}"
    )


def _bar(width: int, height: int) -> str:
    """Return a window's upper edge, and a bar that grows with time."""
    dots = "".join(f'<circle class="frame" cx="{20 + 18 * i}" cy="18" r="5.5"/>' for i in range(3))
    return (
        f'<path class="line-frame" fill="none" d="M0 36H{width}"/>{dots}'
        f'<text class="m faint" x="{width / 2:g}" y="23" text-anchor="middle">./task demo</text>'
        f'<rect class="line-frame" fill="none" x="1" y="1" width="{width - 2}"'
        f' height="{height - 2}" rx="8"/>'
        f'<rect id="bar" class="ours" x="0" y="35" width="{width}" height="2"/>'
    )
