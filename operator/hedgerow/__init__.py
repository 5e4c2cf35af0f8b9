"""hedgerow: a Kubernetes operator that writes by server-side apply only."""

from __future__ import annotations


def __getattr__(name: str) -> str:
    """Return `__version__`, read when somebody asks: that takes longer than all of `--help`."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415

    return version("hedgerow")
