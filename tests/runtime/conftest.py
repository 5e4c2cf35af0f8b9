"""Conftest: the runtime's tests run on a loop where waiting takes no time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hedgerow.runtime import large
from hedgerow.testing.virtual import BACKEND
from runtime.world import World


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return BACKEND


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do heavy work on the loop: where time is virtual, no thread is waited for."""

    async def here(work: Callable[[], Any]) -> Any:
        return work()

    monkeypatch.setattr(large.PASSES, "run", here)
