"""Shop: a world whose operator is a running Runner."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from hedgerow.contract import Desired, Key
from hedgerow.runtime.meters import Meters
from hedgerow_testing.memory.inmemory import any_claims
from hedgerow_testing.memory.life import operator
from hedgerow_testing.memory.watched import Watched
from hedgerow_testing.virtual import VirtualClock
from runtime.world import World


class Shop:
    """A world whose operator is a running Runner."""

    def __init__(
        self,
        *namespaces: str,
        compose: Callable[..., Desired] | None = None,
        world: World | None = None,
    ) -> None:
        self.world = world or World()
        self.cluster = Watched(self.world.server)
        self.controller = self.world.controller
        if compose:
            self.controller = dataclasses.replace(self.controller, compose=compose)
        self.meters = Meters()
        self.insides = operator(
            self.cluster,
            self.controller,
            VirtualClock(),
            any_claims,
            namespaces=namespaces,
            meters=self.meters,
            server_time=lambda: None,
        )

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None, None]:
        """Run it for as long as the block lasts, then stop it as a signal does."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.run)
            try:
                yield
            finally:
                self.stop()

    def edit(self, act: Callable[..., Any], *args: Any, **more: Any) -> None:
        act(*args, **more)
        self.cluster.wake()

    async def run(self) -> None:
        await self.insides.run()

    def stop(self) -> None:
        """Stop it as a signal does."""
        self.insides.stop()

    def stop_while_it_begins_anew(self) -> None:
        """Have it stopped in the turns in which it forgets what it had."""
        begin_anew = self.insides.begin_anew

        def stopped() -> Iterator[None]:
            for part in begin_anew():
                self.stop()
                yield part

        self.insides.begin_anew = stopped

    def waiting(self) -> str:
        """Return the caches that are not filled, as a readiness probe is told."""
        return self.insides.watches.waiting()

    def refused(self) -> str:
        """Return why its watches are refused, as a readiness probe is told."""
        return self.insides.watches.refused()

    def look(self, *keys: Key) -> None:
        """Have a pass made over resources."""
        for key in keys:
            self.insides.queue.add(key)

    @property
    def retried(self) -> tuple[Key, ...]:
        """The resources whose last pass is to be tried again."""
        return tuple(self.insides.queue.failures)

    @property
    def writes(self) -> list[str]:
        return [str(sent) for sent in self.cluster.writes]

    def logged(self, event: str) -> list[Any]:
        return [entry for entry in self.world.logs.entries if entry["event"] == event]


async def quiet() -> None:
    """Let everything happen that is about to."""
    await anyio.sleep(0.05)
