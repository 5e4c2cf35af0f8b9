"""Conftest: the Hypothesis profiles and the async backend of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
import structlog
from coverage import Coverage
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

NODE = "tests/e2e"

# The machine's load decides how long an example takes: no deadline, no complaint about slow data.
_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", **_CALM)
settings.register_profile("ci", **_CALM, derandomize=True, database=None, print_blob=True)
settings.register_profile("nightly", **_CALM, max_examples=2000, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if "CI" in os.environ else "dev")
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of tests/cluster run on any pinned Kubernetes."""
    parser.addoption(
        "--kubernetes",
        metavar="VERSION",
        default="",
        help="what tests/cluster runs on, such as 1.34 or oldest; without it the newest",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker that goes with that option."""
    config.addinivalue_line("markers", "oldest: runs on the oldest pinned Kubernetes as well")


class ByFile(LoadFileScheduling):
    """A file goes to one worker; all of tests/e2e to one, for they share a node."""

    def _split_scope(self, nodeid: str) -> str:
        return NODE if nodeid.startswith(f"{NODE}/") else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFile:
    """Have it distribute the tests."""
    return ByFile(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest on a worker of its own."""
    items.sort(key=lambda item: not item.nodeid.startswith(f"{NODE}/"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Keep drawn examples out of the coverage: it is for named ones, and doubles the time."""
    untraced = item.get_closest_marker("hypothesis") or item.get_closest_marker("untraced")
    measured = Coverage.current() if untraced else None
    if measured is None:
        return (yield)
    measured.stop()
    try:
        return (yield)
    finally:
        measured.start()


@pytest.fixture(autouse=True)
def _logs() -> Generator[None]:
    """Whatever a test does to the logs ends with it."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
