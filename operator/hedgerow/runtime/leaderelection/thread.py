"""Thread: an event loop in a thread of its own, which runs even if the caller's loop is blocked."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import anyio
import anyio.lowlevel
import structlog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import TaskGroup

T = TypeVar("T")

STOP_TIMEOUT: Final = 2.0
"""Seconds that the thread has to end a cancelled call; if it takes longer, it hangs."""
LEAVE: Final = 5.0
"""Seconds for leaving a context manager that was entered there."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def own_thread(name: str) -> AsyncGenerator[OwnThread]:
    """Run such a thread while the context lasts; if it hangs at the end, it is left behind.

    Raises RuntimeError or OSError if the system has no thread or no descriptors left.
    """
    thread = OwnThread(name)
    await thread.start()
    try:
        yield thread
    finally:
        await thread.stop()


class OwnThread:
    """Runs calls on the thread's loop, and reports their outcome on the caller's loop.

    It uses asyncio's functions, because with anyio's one loop would wait for the other to turn.
    The thread is a daemon, and so are those that it starts: none keeps the process from ending.
    """

    def __init__(self, name: str) -> None:
        self._here = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._began: Future[_There] = Future()
        self._up, self._ended = anyio.Event(), anyio.Event()
        self._hangs = False

    async def start(self) -> None:
        """Start the thread; raises the error if its loop cannot start."""
        self._thread.start()
        with anyio.CancelScope(shield=True):
            await self._up.wait()
        self._began.result(0)

    async def stop(self) -> None:
        """End the thread, within STOP_TIMEOUT seconds."""
        self._there(self._began.result(0).over.set)
        await self._patiently(self._ended, "its end")

    async def run(self, act: Callable[[], Awaitable[T]]) -> T:
        """Run `act` on the thread's loop; return what it returns, or raise what it raises.

        If the caller is cancelled, `act` is cancelled too and has STOP_TIMEOUT seconds to end. If
        the caller was cancelled before, `act` does not start.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        call = _Call(act, self.posting)
        tasks = self._began.result(0).tasks
        self._there(partial(tasks.start_soon, call.carry_out))
        try:
            await call.over.wait()
        except anyio.get_cancelled_exc_class():
            self._there(call.scope.cancel)
            await self._patiently(call.over, "a call")
            if call.outcome.done() and (error := call.outcome.exception(0)):
                raise error from None
            raise
        return call.outcome.result(0)

    @asynccontextmanager
    async def entered(self, manager: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
        """Enter a context manager on the thread's loop, and leave it there, within LEAVE seconds.

        It must not keep a cancel scope open, because another task leaves it than entered it.
        Exceptions raised in the body are not passed to it.
        """
        value = await self.run(manager.__aenter__)
        try:
            yield value
        finally:
            if not (self._hangs or self._ended.is_set()):
                with anyio.move_on_after(LEAVE, shield=True):
                    await self.run(partial(manager.__aexit__, None, None, None))

    def posting(self, act: Callable[[], object]) -> Callable[[], None]:
        """Return a function for the thread that makes the caller's loop call `act`."""
        return partial(_post, self._here, act)

    def _there(self, act: Callable[[], object]) -> None:
        _post(self._began.result(0).loop, act)

    async def _patiently(self, event: anyio.Event, what: str) -> None:
        """Wait STOP_TIMEOUT for an event from the thread, even if the caller is cancelled."""
        with anyio.move_on_after(0 if self._hangs else STOP_TIMEOUT, shield=True):
            await event.wait()
        if not (event.is_set() or self._hangs):
            self._hangs = True
            log.warning("thread hangs, left behind", thread=self._thread.name, waited_for=what)

    def _main(self) -> None:
        try:
            anyio.run(self._turn)
        except BaseException as error:  # noqa: BLE001 - a thread has nobody to raise it to
            if not self._began.done():
                self._began.set_exception(error)
        self.posting(self._up.set)()
        self.posting(self._ended.set)()

    async def _turn(self) -> None:
        async with anyio.create_task_group() as tasks:
            there = _There(tasks)
            self._began.set_result(there)
            self.posting(self._up.set)()
            await there.over.wait()
            tasks.cancel_scope.cancel()


class _There:
    """The thread's loop, and the tasks that run on it."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.loop = asyncio.get_running_loop()
        self.tasks = tasks
        self.over = anyio.Event()


class _Call(Generic[T]):
    """A call to run on the thread's loop; `over` is set on the caller's loop."""

    def __init__(
        self,
        act: Callable[[], Awaitable[T]],
        posting: Callable[[Callable[[], object]], Callable[[], None]],
    ) -> None:
        self._act = act
        self.over = anyio.Event()
        self._post_end = posting(self.over.set)
        self.scope = anyio.CancelScope()
        self.outcome: Future[T] = Future()

    async def carry_out(self) -> None:
        """Run the call and keep its outcome; an exception is raised on the caller's loop."""
        try:
            with self.scope:
                self.outcome.set_result(await self._act())
        except BaseException as error:
            self.outcome.set_exception(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._post_end()


def _post(loop: asyncio.AbstractEventLoop, act: Callable[[], object]) -> None:
    """Make a loop call `act`; do nothing if the loop has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(act)
