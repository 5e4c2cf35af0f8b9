"""Pages: figures written into the docs, between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def fill(page: Path, marks: tuple[str, str], lines: Sequence[str]) -> None:
    """Write lines between two marks of a page."""
    pattern = re.compile(f"{re.escape(marks[0])}.*{re.escape(marks[1])}", re.DOTALL)
    filled = pattern.sub(lambda _: "\n".join([marks[0], *lines, marks[1]]), page.read_text("utf-8"))
    page.write_text(filled, "utf-8")
