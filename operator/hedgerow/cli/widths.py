"""Widths: how wide a line may be where nobody looks at a terminal."""

from __future__ import annotations

import os
import sys
from typing import Final

ENDLESS: Final = 10_000
"""Columns where no terminal sets a width: what is read by a program is not to be cut."""


def is_limited() -> bool:
    """Return whether there is a terminal, or COLUMNS stands for one."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))
