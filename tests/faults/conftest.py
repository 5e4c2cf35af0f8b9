"""Conftest: what the quick share of the runs has in common."""

from collections.abc import Iterator

import pytest

from faults.__main__ import world as brought_up
from faults.real import World
from hedgerow_testing.plugin import line_writer
from hedgerow_testing.sandbox.cluster import Options
from hedgerow_testing.sandboxes import find_binaries


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing now: it takes longer than a test may."""
    names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if "faulty_world" in names and not session.config.option.collectonly:
        find_binaries(Options(), line_writer(session.config))


@pytest.fixture(scope="module")
def faulty_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An API server with a proxy before it, and operators that start at once."""
    with brought_up(tmp_path_factory.mktemp("faults")) as world:
        yield world
