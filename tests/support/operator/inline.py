"""Inline: what runs in a thread of its own, on the loop of the test instead, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class Inline:
    """Stands in for `hedgerow.runtime.leaderelection.thread.OwnThread`."""

    async def run(self, act: Callable[[], Awaitable[T]]) -> T:
        return await act()

    @asynccontextmanager
    async def entered(self, manager: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
        async with manager as value:
            yield value

    def posting(self, act: Callable[[], object]) -> Callable[[], object]:
        return act


@asynccontextmanager
async def inline(_name: str) -> AsyncGenerator[Inline]:
    yield Inline()
