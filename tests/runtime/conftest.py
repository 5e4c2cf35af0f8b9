"""Conftest: the runtime's tests run on a loop where waiting takes no time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from runtime.virtual import BACKEND
from runtime.world import World


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    """Worlds catch what is logged; what comes after a test logs as ever."""
    yield
    structlog.reset_defaults()
