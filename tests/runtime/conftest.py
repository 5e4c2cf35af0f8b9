"""Conftest: the runtime's tests run on a loop where waiting takes no time."""

from __future__ import annotations

from typing import Any

import pytest

from hedgerow_testing.virtual import BACKEND
from runtime.world import World


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND


@pytest.fixture
def world() -> World:
    return World()
