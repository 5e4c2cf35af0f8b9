"""Measured: generated runs stay out of the coverage, which is for named ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coverage import Coverage


@contextmanager
def unmeasured() -> Iterator[None]:
    """Measure nothing meanwhile: it would take twice the time."""
    coverage = Coverage.current()
    if coverage is None:
        yield
        return
    coverage.stop()
    try:
        yield
    finally:
        coverage.start()
