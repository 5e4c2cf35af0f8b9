"""Plugin: what pytest runs with, to learn which tests run which lines, and then with a mutant.

It is a plugin and not a conftest, for it has to come before anything of ours is imported.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

LINES, MUTANT = "HEDGEROW_MUTANTS_LINES", "HEDGEROW_MUTANTS_MUTANT"
"""Of a file to write, and of one to read."""
PROFILE = "mutants"
"""Drawn examples are the same each time, and few: most mutants are found by the first ones."""

settings.register_profile(
    PROFILE,
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class _Loader(SourceFileLoader):
    """Loads another source than that of the file."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> Any:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, module: str, path: str, source: str) -> None:
        self._module, self._path, self._source = module, path, source

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        loader = _Loader(fullname, self._path, self._source)
        return spec_from_file_location(fullname, self._path, loader=loader)


class _Lines:
    """Notes the lines that each test function runs, and the seconds of CPU that it takes.

    Those are the same on a busy machine, so that a mutant gets the same tests there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._coverage = Coverage(
            data_file=None, config_file=False, source_pkgs=["hedgerow", "hedgerow_schemas"]
        )
        self._coverage.set_option(
            "run:disable_warnings", ["module-not-measured", "module-not-imported"]
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        function, began = function_of(item.nodeid), time.process_time()
        self._coverage.switch_context(function)
        try:
            return (yield)
        finally:
            self._seconds[function] += time.process_time() - began

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(function_of(report.nodeid))

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines = {
            path: {line: sorted({*tests} - {""} - self._failed) for line, tests in found.items()}
            for path in data.measured_files()
            if (found := data.contexts_by_lineno(path))
        }
        self._path.write_text(
            json.dumps({"seconds": self._seconds, "lines": lines, "failed": sorted(self._failed)})
        )


def function_of(nodeid: str) -> str:
    """Return a test's id without its parameters."""
    return nodeid.partition("[")[0]


def pytest_configure(config: pytest.Config) -> None:
    if path := os.environ.get(LINES):
        config.pluginmanager.register(_Lines(Path(path)))


if _path := os.environ.get(MUTANT):
    sys.meta_path.insert(0, _Finder(**json.loads(Path(_path).read_text())))
