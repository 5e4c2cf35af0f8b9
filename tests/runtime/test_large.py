"""Large: work on a large resource leaves the event loop, work on others stays on it."""

from __future__ import annotations

import threading

import pytest

from hedgerow.runtime.large import LARGE, USUAL, PassLimits

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """A loop on real time: a virtual one cannot wait for threads."""
    return "asyncio"


@pytest.mark.parametrize("limits", [USUAL, LARGE])
async def test_only_work_on_what_is_large_is_done_in_a_thread(limits: PassLimits):
    stays = await limits.compute(threading.get_ident) == threading.get_ident()

    assert stays is not limits.is_large
