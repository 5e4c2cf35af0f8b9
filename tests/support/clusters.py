"""Clusters: a sandbox for as long as a test session lasts, and not a moment longer."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from hedgerow.sandbox.cluster import Options, Sandbox


@contextmanager
def cluster(directory: Path, options: Options) -> Generator[Sandbox]:
    """Bring a sandbox up and take it down again; even a killed test run leaves nothing running."""
    sandbox = Sandbox(directory)
    anyio.run(sandbox.up, options)
    leash = sandbox.leash()
    try:
        yield sandbox
    finally:
        anyio.run(sandbox.down)
        leash.release()
