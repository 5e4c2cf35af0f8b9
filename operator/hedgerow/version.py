"""Version: which hedgerow this is."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """Return the version that is installed; read when asked for: it takes longer than `--help`."""
    from importlib import metadata  # noqa: PLC0415

    return metadata.version("hedgerow")
