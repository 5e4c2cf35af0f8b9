"""Player: runs `hedgerow run` as a process of its own, from start to end."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from hedgerow.encoding import decode
from hedgerow_testing.demo.errors import DemoError
from hedgerow_testing.sandbox import processes
from hedgerow_testing.sandbox.pauses import until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from hedgerow_testing.demo.stage import Stage
    from hedgerow_testing.sandbox.processes import Started

LOG = "operator.log"
STEP_TIMEOUT = 30.0


@asynccontextmanager
async def operator(stage: Stage) -> AsyncGenerator[Started]:
    """Start the operator and wait until its caches are filled; stop it at the end.

    It keeps running if the demo is to be kept and nothing failed.
    """
    page = stage.page
    page.act("The operator")
    page.typed(f"hedgerow run > {LOG} 2>&1 &")
    log = stage.directory / LOG
    started = processes.launch(
        [sys.executable, "-m", "hedgerow", "run"],
        record=stage.directory / "operator.pid",
        log=log,
        environment=stage.environment,
    )
    finished = False
    try:
        with page.waiting("waiting until it has read everything it watches"):
            await _ready(started, log)
        page.checked(f"it runs as process {started.pid} and has read everything it watches")
        yield started
        finished = True
    finally:
        if not (finished and stage.keep):
            await _stop(stage, started, log, said=finished)


async def _ready(started: Started, log: Path) -> None:
    async def filled() -> bool:
        if not processes.alive(started):
            raise DemoError("the operator ended", f"its last words: {_last(log)}")
        return any(entry.get("event") == "caches are filled" for entry in _entries(log))

    if not await until(filled, seconds=STEP_TIMEOUT):
        raise DemoError(f"the operator is not ready after {STEP_TIMEOUT:.0f} s", f"see {log}")


async def _stop(stage: Stage, started: Started, log: Path, *, said: bool) -> None:
    with anyio.CancelScope(shield=True):
        stage.page.typed(f"kill {started.pid}")
        await processes.end(started)
        if not said:
            return
        if _last(log) != "stopped":
            raise DemoError("the operator did not stop in good order", f"it said: {_last(log)}")
        stage.page.checked("the operator stopped in good order")


def _entries(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [decode(line.encode()) for line in lines if line.startswith("{") and line.endswith("}")]


def _last(log: Path) -> str:
    """Return the operator's last log event, or the last line of its log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or ["nothing"]
    entries = _entries(log)
    return str(entries[-1].get("event")) if lines[-1].startswith("{") and entries else lines[-1]
