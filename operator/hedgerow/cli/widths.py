"""Widths: how wide a line may be if there is no terminal."""

from __future__ import annotations

import os
import sys
from typing import Final

ENDLESS: Final = 10_000
"""Columns without a terminal: lines for programs must not be cut."""


def is_limited() -> bool:
    """Return whether there is a terminal, or COLUMNS is set."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))
