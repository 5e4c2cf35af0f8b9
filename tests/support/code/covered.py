"""Covered: which lines and branches of ours a test process runs, noted by SlipCover.

SlipCover puts calls of C into the bytecode of what is imported: they take a tenth of a test's time,
where a tracer takes as much again. Its own command finds no branches here, since pytest imports for
itself what has plugins of it.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import pytest
from slipcover import Slipcover
from slipcover.importer import SlipcoverLoader

DIRECTORY = "COVERED_DIRECTORY"
"""The environment variable that has the directory into which each process writes."""
PACKAGES = ("hedgerow", "hedgerow_schemas", "hedgerow_testing", "hedgerow_tools")
NEVER = 2**31 - 1
"""After how many calls SlipCover takes them out: it would look for functions to replace through the
frames of all threads, while these run, and gain nothing."""


class Covered(MetaPathFinder):
    """Has everything of ours instrumented on its way in, and writes in the end what was run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._slipcover = Slipcover(branch=True, d_miss_threshold=NEVER)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and spec.origin is not None:
            spec.loader = SlipcoverLoader(self._slipcover, spec.loader, spec.origin)
        return spec

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._directory.mkdir(exist_ok=True)
        text = json.dumps(self._slipcover.get_coverage())
        (self._directory / f"{os.getpid()}.json").write_text(text, "utf-8")


def start() -> Covered | None:
    """Begin, before anything of ours is imported, if this run is one that counts."""
    if DIRECTORY not in os.environ:
        return None
    # Kept, for a test may stand in another directory.
    covered = Covered(Path(os.environ[DIRECTORY]).absolute())
    sys.meta_path.insert(0, covered)
    return covered
