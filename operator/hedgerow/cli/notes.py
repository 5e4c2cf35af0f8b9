"""Notes: the lines below a page or an object, some of which are commands that are to be pasted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence; `alarm`: somebody should act on it.

    A command is never broken into lines, and never cut, so that it can be pasted.
    """

    text: str
    alarm: bool = False
    is_command: bool = False
