"""Version: which hedgerow this is."""

from __future__ import annotations

from functools import cache

LIBRARY = "hedgerow"
"""The package, whatever the program is called that uses it."""


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
