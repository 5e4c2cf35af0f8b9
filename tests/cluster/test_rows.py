"""Rows of the runtime's tables on a real API server: those that name what they prove there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults.doings import calm
from faults.real import World, around
from faults.scenario import Scenario
from hedgerow_testing.api import Api
from hedgerow_testing.sandbox.cluster import Sandbox
from runtime.real import REAL

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

LANES = 4


@pytest.fixture
def world(api: Api, sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with around(sandbox, tmp_path_factory.mktemp("rows")) as world:
        yield world


def problems(world: World, row: Scenario) -> list[str]:
    """Play a row, and return what is not as it is in memory, or must not be at all."""
    try:
        calm(world, row)
    except AssertionError as error:
        return [str(error)]
    return []


def test_the_rows_of_facts_go_as_in_memory(world: World):
    """Fact: of each row what it names as `real`, on the server that people and operator share."""
    with ThreadPoolExecutor(LANES) as pool:
        found = pool.map(lambda row: (str(row), problems(world, row)), REAL)

    assert {name: lines for name, lines in found if lines} == {}
