"""Documents: links, headings, sections and commands of Markdown pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from support.code.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s]+)", re.MULTILINE)
GUIDES = ROOT / "docs/guides"
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def links(path: Path) -> list[tuple[str, str]]:
    """Return where a document's links lead in the repository: paths below its root, anchors."""
    text = _FENCED.sub("", path.read_text("utf-8"))
    targets = [found[2] for found in _LINK.finditer(text)]
    return [aim for aim in (aimed(path, target) for target in targets) if aim]


def aimed(path: Path, target: str) -> tuple[str, str] | None:
    """Return where a link of a document leads in the repository; None if it leads out of it."""
    if re.match(r"[a-z]+:", target):
        return None
    place, _, anchor = target.partition("#")
    there = (path.parent / place).resolve() if place else path
    return str(there.relative_to(ROOT)), anchor


def relinked(text: str, change: Callable[[str], str]) -> str:
    """Return a document's text with each link's target changed; what is in fences stays."""
    parts: list[str] = []
    end = 0
    for fenced in _FENCED.finditer(text):
        parts += [_changed(text[end : fenced.start()], change), fenced[0]]
        end = fenced.end()
    return "".join([*parts, _changed(text[end:], change)])


def _changed(text: str, change: Callable[[str], str]) -> str:
    return _LINK.sub(lambda found: found[1] + change(found[2]), text)


def headings(text: str) -> list[str]:
    """Return the texts of a document's headings, from the first."""
    return _HEADING.findall(_FENCED.sub("", text))


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as Git hosts make them."""
    return {anchor(heading) for heading in headings(path.read_text("utf-8"))}


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as Git hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def guide(name: str) -> str:
    """Return a guide's text."""
    return (GUIDES / f"{name}.md").read_text("utf-8")


def section(heading: str, text: str) -> str:
    """Return the text below a heading, up to the next one of its level or above."""
    level = heading.partition(" ")[0]
    _, found, below = text.partition(f"\n{heading}\n")
    assert found, heading
    return re.split(rf"\n#{{1,{len(level)}}} ", below)[0]


def commands(text: str) -> str:
    """Return what is in blocks of commands, with continued lines joined."""
    return "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", "")
