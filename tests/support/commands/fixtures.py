from __future__ import annotations

import inspect
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import pytest

from hedgerow.cli import main
from hedgerow.kube import client
from hedgerow_tools.interrupts import until_signal
from support.commands.gardens import Garden
from support.server.apiserver import ApiServer
from support.server.connected import connect


@pytest.fixture
def typing(capsys) -> Callable[..., tuple[int, str, str]]:
    """Type a line; return the exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def typed(typing: Callable[..., Any], request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Type the words of the module's `COMMAND`, and more."""
    return partial(typing, *request.module.COMMAND)


@pytest.fixture
def garden(monkeypatch: pytest.MonkeyPatch) -> Garden:
    """Return the garden that commands connect to; they wait for nothing long."""
    made = Garden()
    monkeypatch.setattr(client, "connect", made.connect)
    monkeypatch.setattr("hedgerow_tools.objects.writing.LONGEST_PAUSE", 0.01)
    return made


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ApiServer:
    """Return the API server in memory that commands connect to; their context has `shop`."""
    made = ApiServer(latency=0)
    monkeypatch.setattr(client, "connect", connect(made, "shop"))
    return made


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have a module's command act once all it follows is read, and end by Ctrl-C then.

    An act may be awaited; what it has done is `seen` before the next one.
    """

    def prepare(
        module: Any,
        *acts: Callable[[], object],
        seen: Callable[[], Awaitable[None]] = anyio.wait_all_tasks_blocked,
    ) -> None:
        async def meanwhile() -> None:
            for act in (object, *acts):
                done = act()
                if inspect.isawaitable(done):
                    await done
                await seen()
            os.kill(os.getpid(), signal.SIGINT)

        async def accompanied(action: Callable[[], Awaitable[None]]) -> int:
            async def both() -> None:
                failed: Exception | None = None
                async with anyio.create_task_group() as group:
                    group.start_soon(meanwhile)
                    try:
                        await action()
                    except Exception as error:  # noqa: BLE001 - raised outside of the group
                        failed = error
                    group.cancel_scope.cancel()
                if failed:
                    raise failed

            return await until_signal(both)

        monkeypatch.setattr(module, "until_signal", accompanied)

    return prepare
