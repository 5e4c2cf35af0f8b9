"""Version: which hedgerow this is."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY = "hedgerow"
"""The package, whatever the program is called that uses it."""
OLDEST_KUBERNETES = (1, 35)
"""The oldest minor version that is tested: the oldest one that Kubernetes supports."""


@cache
def version() -> str:
    """Return the version that is installed; read when asked for: it takes longer than `--help`."""
    from importlib import metadata  # noqa: PLC0415

    return metadata.version(LIBRARY)


def user_agent(program: str, purpose: str = "") -> str:
    """Return how a program calls itself at the API server: its name, the library, its purpose."""
    product = f"{LIBRARY}/{version()}"
    named = product if program == LIBRARY else f"{program} {product}"
    return f"{named} ({purpose})" if purpose else named


def untested(answer: Mapping[str, Any]) -> str:
    """Return one sentence if an answer to GET /version is of too old a Kubernetes, "" otherwise."""
    match = re.match(r"v?(\d{1,4})\.(\d{1,4})", str(answer.get("gitVersion", "")))
    if not match or (int(match[1]), int(match[2])) >= OLDEST_KUBERNETES:
        return ""
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    return f"Kubernetes {match[1]}.{match[2]} is not supported: {oldest} is the oldest that is"
