"""Interrupts: runs an action that a signal cancels, but whose cleanup no signal interrupts."""

from __future__ import annotations

import logging
import signal
from typing import TYPE_CHECKING

import anyio
import typer

from hedgerow.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
EXIT_BY_SIGNAL = 128


def run(action: Callable[[], Awaitable[None]]) -> None:
    """Run an action to its end; after a signal, to the end of its cleanup.

    Raises what `action` raises, or Exit with 128 + the signal's number.
    """
    # A cancelled subprocess is ended and reaped at once; asyncio then warns that it is gone.
    logging.getLogger("asyncio").setLevel(logging.ERROR)

    async def work() -> int:
        return await until_signal(
            action, lambda caught: echo(f"interrupted by {caught.name}", err=True)
        )

    if number := anyio.run(work):
        raise typer.Exit(EXIT_BY_SIGNAL + number)


async def until_signal(
    action: Callable[[], Awaitable[None]], tell: Callable[[signal.Signals], None] | None = None
) -> int:
    """Run an action until it ends or a signal cancels it; return the signal's number, or 0.

    `tell` is called with the first signal; without it nothing is printed: of what goes on for ever,
    a signal is the normal end. Later signals do not interrupt the cleanup. Raises what `action`
    raises.
    """
    number = 0
    failed: BaseException | None = None
    with anyio.open_signal_receiver(*SIGNALS) as signals:

        async def listen(scope: anyio.CancelScope) -> None:
            nonlocal number
            async for caught in signals:
                if tell and not number:
                    tell(caught)
                number = number or caught
                scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(listen, group.cancel_scope)
            try:
                await action()
            except (Exception, SystemExit) as error:  # noqa: BLE001 - out of the group, bare
                failed = error
            group.cancel_scope.cancel()
    if failed:
        raise failed
    return number
