"""Inline: what runs in a thread of its own, on the loop of the test instead, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def inline(
    _name: str, turn: Callable[[], Coroutine[Any, Any, None]], ended: Callable[[], None]
) -> asyncio.AbstractEventLoop:
    """Stand in for `hedgerow.process.leaderelection.thread.start`."""
    loop = asyncio.get_running_loop()
    loop.create_task(turn()).add_done_callback(lambda _: ended())
    return loop
