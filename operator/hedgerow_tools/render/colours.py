"""Colours: one colour per field manager, on light and on dark paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIGHT = (
    "#2a78d6", "#1baf7a", "#eda100", "#4a3aa7", "#e87ba4", "#008300", "#eb6834", "#6b7280",
)  # fmt: skip
_DARK = (
    "#3987e5", "#199e70", "#c98500", "#9085e9", "#d55181", "#38a838", "#d95926", "#9aa1ad",
)  # fmt: skip
"""Distinct also with common kinds of colour blindness; red is reserved for contested fields."""
_PAPER = {
    "light": {"paper": "#ffffff", "ink": "#1c1e22", "faint": "#6a7078", "rule": "#d5d8dd",
              "alarm": "#c3201f"},
    "dark": {"paper": "#16181d", "ink": "#e4e6ea", "faint": "#9aa1ab", "rule": "#3a3f48",
             "alarm": "#ff7b72"},
}  # fmt: skip
_TINT = "26"
"""The alpha of a colour behind text, in hexadecimal."""
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def classes(managers: Iterable[str]) -> dict[str, str]:
    """Return a CSS class for each manager; after the last colour, start again with the first."""
    return {name: f"m{index % len(_LIGHT)}" for index, name in enumerate(managers)}


def style() -> str:
    """Return the style rules of all classes, on light and on dark paper."""
    dark = _rules("dark", _DARK)
    return f"{_rules('light', _LIGHT)}@media (prefers-color-scheme:dark){{{dark}}}"


def _rules(paper: str, colours: Iterable[str]) -> str:
    managers = (
        f".m{index}{{background:{code}}}.tint-m{index}{{background:{code}{_TINT}}}"
        for index, code in enumerate(colours)
    )
    names = _PAPER[paper]
    texts = (f".{name}{{color:{names[name]}}}" for name in ("ink", "faint", "alarm"))
    ground = f".paper{{background:{names['paper']}}}.rule{{border-color:{names['rule']}}}"
    return "".join((*managers, *texts, ground))
