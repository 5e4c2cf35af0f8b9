"""Subprocesses: commands of others, started so that a cancellation loses none of them."""

from __future__ import annotations

from subprocess import DEVNULL, PIPE, CompletedProcess
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from anyio.abc import ByteReceiveStream, Process


async def start(command: Sequence[str | PathLike[str]], **options: Any) -> Process:
    """Return a started process; the options are those of `anyio.open_process`. Raises OSError.

    The start is shielded, and short: asyncio loses a process, and the pipes to it, whose start is
    cancelled.
    """
    with anyio.CancelScope(shield=True):
        return await anyio.open_process(command, **options)
    raise AssertionError("nothing leaves a shielded start early")


async def run(
    command: Sequence[str | PathLike[str]],
    *,
    stderr: int = PIPE,
    cwd: str | PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> CompletedProcess[bytes]:
    """Return how a command ended, and what it printed; it reads nothing. Raises OSError.

    A command that is cancelled is killed.
    """
    code, printed = 0, {"stdout": b"", "stderr": b""}

    async def drain(name: str, stream: ByteReceiveStream) -> None:
        printed[name] = b"".join([piece async for piece in stream])

    options = {"stdin": DEVNULL, "stdout": PIPE, "stderr": stderr, "cwd": cwd, "env": env}
    async with await start(command, **options) as process:
        try:
            async with anyio.create_task_group() as group:
                for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
                    if stream is not None:
                        group.start_soon(drain, name, stream)
                code = await process.wait()
        except BaseException:
            process.kill()
            raise
    return CompletedProcess(command, code, printed["stdout"], printed["stderr"])
