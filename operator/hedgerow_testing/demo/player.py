"""Player: runs `hedgerow run` as a process of its own, from start to end."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from functools import partial
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

import anyio.to_thread

from hedgerow_testing.demo.errors import DemoError
from hedgerow_testing.process import OperatorProcess

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from hedgerow_testing.demo.stage import Stage

COMMAND = (sys.executable, "-m", "hedgerow", "run")
LOG = "operator.log"
STEP_TIMEOUT = 30.0


@asynccontextmanager
async def operator(stage: Stage) -> AsyncGenerator[OperatorProcess]:
    """Start the operator and wait until its caches are filled; stop it at the end.

    It keeps running if the demo is to be kept and nothing failed.
    """
    page, log = stage.page, stage.directory / LOG
    page.act("The operator")
    page.typed(f"hedgerow run > {LOG} 2>&1 &")
    process = OperatorProcess(
        COMMAND,
        kubeconfig=stage.sandbox.kubeconfig,
        log=log,
        env=stage.environment,
        cwd=stage.directory,
    )
    try:
        with page.waiting("waiting until it has read everything it watches"):
            begin = partial(process.start, "caches are filled", within=STEP_TIMEOUT)
            try:
                await anyio.to_thread.run_sync(begin, abandon_on_cancel=True)
            except AssertionError:
                said = (process.output.splitlines() or ["nothing"])[-1]
                raise DemoError("the operator is not ready", f"its last words: {said}") from None
        page.checked(f"it runs as process {process.pid} and has read everything it watches")
        yield process
        if stage.keep:
            process.release()
            return
        page.typed(f"kill {process.pid}")
        try:
            code = await anyio.to_thread.run_sync(process.stop)
        except TimeoutExpired:
            code = None
        if code != 0:
            raise DemoError("the operator did not stop in good order", f"see {log}")
        page.checked("the operator stopped in good order")
    finally:
        process.kill()
