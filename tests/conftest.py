"""Conftest: the Hypothesis profiles and the async backend of the whole suite."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Generator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from support.code import covered

NODE = "tests/e2e"
ARCHITECTURE = "tests/architecture"
MACHINE = "tests/faults/test_machine.py"

# The machine's load decides how long an example takes: no deadline, no complaint about slow data.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **_CALM)
# Fewer, for their time; HYPOTHESIS_PROFILE=nightly looks further.
settings.register_profile(
    "ci", **_CALM, max_examples=50, derandomize=True, database=None, print_blob=True
)
settings.register_profile("nightly", **_CALM, max_examples=2000, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "dev")
)

_COVERED = covered.start()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of tests/cluster run on any pinned Kubernetes."""
    parser.addoption(
        "--kubernetes",
        metavar="VERSION",
        default="",
        help="what tests/cluster runs on, such as 1.35 or oldest; without it the newest",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker that goes with that option."""
    if _COVERED:
        config.pluginmanager.register(_COVERED)
    config.addinivalue_line("markers", "late: runs alone when all others have ended")
    config.addinivalue_line("markers", "apart: has a task of its own, and is no part of task test")
    config.addinivalue_line("markers", "oldest: runs on the oldest pinned Kubernetes as well")


LONGEST = (
    NODE,
    MACHINE,
    "tests/cluster/test_first_operator.py",
    "tests/cluster/test_audit_guide.py",
    "tests/cluster/test_audit.py",
    "tests/cluster/test_conflicts.py",
    "tests/cluster/test_demo.py",
    "tests/cluster/test_conformance.py",
    "tests/cluster/test_lease.py",
    "tests/cluster/test_memory.py",
    "tests/cluster/test_odd_objects.py",
    "tests/cluster/test_library.py",
    "tests/fields/test_ownership_on_model.py",
    "tests/faults/test_model_faults.py",
    "tests/controllers/test_properties.py",
    "tests/cluster/test_manifests.py",
    "tests/cluster/test_manifests_rights.py",
    "tests/testing/sandbox/test_cluster.py",
)
"""What takes a minute or more on a busy machine: begun late, one worker would end alone with it."""


def _rank(path: str) -> int:
    return next((n for n, long in enumerate(LONGEST) if path.startswith(long)), len(LONGEST))


class ByFile(LoadFileScheduling):
    """A file goes to one worker, to one that has the API server up which it wants.

    All of tests/e2e goes to one, for they share a node, and all of tests/architecture, for they
    share the trees of all modules. To start a server takes as much as many tests do, and one that
    is up takes part of the machine until its worker ends.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._root = config.rootpath
        self._wanted: dict[str, str] = {}
        self._up: dict[object, set[str]] = {}

    def _split_scope(self, nodeid: str) -> str:
        rooms = (room for room in (NODE, ARCHITECTURE) if nodeid.startswith(f"{room}/"))
        return next(rooms, "") or super()._split_scope(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        scope = self._next(self._up.setdefault(node, set()))
        self.workqueue.move_to_end(scope, last=False)
        self._up[node].add(self._server(scope))
        super()._assign_work_unit(node)

    def _next(self, up: set[str]) -> str:
        """Return the scope for a worker that has these servers up: the longest that fits."""
        waiting: dict[str, list[str]] = {}
        for scope in self.workqueue:
            waiting.setdefault(self._server(scope), []).append(scope)
        needless = waiting.pop("", [])
        ours = [scopes[0] for server, scopes in waiting.items() if server in up]
        untouched = [scopes[0] for server, scopes in waiting.items() if not self._count(server)]
        if up:
            chosen = [*ours, *untouched, *needless][:1]
        else:
            # What has a server of its own takes long as well.
            alone = [scope for scope in (NODE, MACHINE) if scope in self.workqueue]
            chosen = alone or needless[: not waiting]
        # One more of the server of which there are fewest for what waits for it.
        fewest = min(waiting, key=lambda s: (self._count(s) + 1) / len(waiting[s]), default="")
        return chosen[0] if chosen else waiting[fewest][0]

    def _count(self, server: str) -> int:
        return sum(server in up for up in self._up.values())

    def _server(self, scope: str) -> str:
        """Return which of the servers that the tests of a worker share a scope wants, if any."""
        if scope not in self._wanted:
            is_cluster = scope.startswith("tests/cluster/")
            text = (self._root / scope).read_text("utf-8") if is_cluster else ""
            found = re.search(r"\b(nodes|bare)_sandbox\b", text)
            usual = "sandbox" if is_cluster else NODE if scope == NODE else ""
            self._wanted[scope] = found[0] if found else usual
        return self._wanted[scope]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Have it distribute the tests."""
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    items.sort(key=lambda item: _rank(item.nodeid))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what is loaded by now out of collections of garbage, of which there are many."""
    gc.collect()
    gc.freeze()
    # As seldom as in the operator, but for the oldest: a twentieth of all time went into it.
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(autouse=True)
def _logs() -> Generator[None]:
    """Whatever a test does to the logs ends with it."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
