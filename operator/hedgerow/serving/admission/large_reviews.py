"""Large reviews: each is judged in a process with limits for memory and time."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
import structlog
from pydantic_core import from_json

from hedgerow.registry import reference
from hedgerow.serving.admission.answering import MEMORY
from hedgerow.serving.admission.configuration import TIMEOUT
from hedgerow.serving.admission.review import LONGEST_UID, refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import Process

    from hedgerow.contract import Controller
    from hedgerow.serving.admission.answering import Verb
    from hedgerow_schemas.base import Object

COMMAND: Final = (sys.executable, "-P", "-m", "hedgerow.serving.admission.judge")
SECONDS: Final = TIMEOUT - 0.5
"""For one review, including the wait for its turn: the API server waits for `TIMEOUT`."""
WAITING: Final = 8
"""The most reviews that are being judged or wait; any more are refused at once."""
LARGEST: Final = 1024 * 1024
"""The most bytes of an answer; the errors in it are bounded too."""
_PIECE: Final = 64 * 1024
_HEAD: Final = 4096
_UID: Final = re.compile(rb'"request":\s*\{\s*"uid":\s*"([0-9A-Za-z-]{1,%d})"' % LONGEST_UID)
_BUSY: Final = "too many large reviews at a time; try again in a moment"
_BEYOND: Final = (
    "it is too large to be judged: no more than {seconds:g} s and {memory} MiB are spent on it;"
    " make it smaller"
)

log = structlog.get_logger(__name__)


class _UnjudgedError(Exception):
    """A review could not be judged; the text says why, and what to do."""


class Judge:
    """Judges large reviews one after another, so that they never take the memory of several.

    A review of some megabytes can be made so that parsing it takes a hundred times as much memory,
    and blocks the interpreter with all its threads for seconds. So it is judged in a process with
    limits. If that process exceeds them, it is ended, and the review is refused with a reason.
    """

    def __init__(self, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> None:
        self._command = command
        self._seconds = seconds
        self._turn = anyio.Lock()
        self._waiting = 0

    async def __call__(
        self, body: bytes, controller: Controller[Any], verb: Verb
    ) -> tuple[HTTPStatus, Object]:
        """Return what `answered` returns, or a refusal if the review could not be judged."""
        if self._waiting >= WAITING:
            return _refused(body, controller, _BUSY)
        self._waiting += 1
        try:
            return await self._in_turn(body, controller, verb)
        except _UnjudgedError as error:
            return _refused(body, controller, str(error))
        finally:
            self._waiting -= 1

    async def _in_turn(
        self, body: bytes, controller: Controller[Any], verb: Verb
    ) -> tuple[HTTPStatus, Object]:
        why = _BUSY
        with anyio.move_on_after(self._seconds):
            async with self._turn:
                why = self._beyond()
                return await self._judged(body, controller, verb)
        raise _UnjudgedError(why)

    async def _judged(
        self, body: bytes, controller: Controller[Any], verb: Verb
    ) -> tuple[HTTPStatus, Object]:
        try:
            command = [*self._command, reference(controller), verb]
        except LookupError as error:
            raise _UnjudgedError(f"it is too large to be judged here: {error}") from error
        try:
            async with await anyio.open_process(
                command, stderr=subprocess.DEVNULL, start_new_session=True, env=_environment()
            ) as process:
                said = await _exchanged(process, body)
        except OSError as error:
            raise _UnjudgedError(f"no process can be started to judge it: {error}") from error
        if process.returncode or len(said) > LARGEST:
            raise _UnjudgedError(self._beyond())
        answer: Object = from_json(said)
        return HTTPStatus(answer["code"]), answer["answer"]

    def _beyond(self) -> str:
        return _BEYOND.format(seconds=self._seconds, memory=MEMORY // 1024**2)


async def _exchanged(process: Process, body: bytes) -> bytes:
    """Write the body to a process in pieces, and return its output, at most a little too long."""
    into, out = process.stdin, process.stdout
    if into is None or out is None:  # never: both are pipes
        raise RuntimeError("the process has no pipes")
    view, said = memoryview(body), bytearray()
    try:
        for begin in range(0, len(view), _PIECE):
            await into.send(bytes(view[begin : begin + _PIECE]))
    except anyio.BrokenResourceError:
        pass  # the process ended before it had read everything; see its exit code
    await into.aclose()
    async for piece in out:
        said += piece
        if len(said) > LARGEST:
            process.kill()
            break
    await process.wait()
    return bytes(said)


def _environment() -> dict[str, str]:
    """Return our environment without backtraces, which never end if there is no memory left."""
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "RUST_BACKTRACE": "0", "PYTHONPATH": path}


def _refused(body: bytes, controller: Controller[Any], why: str) -> tuple[HTTPStatus, Object]:
    """Return the refusal of a review that was not parsed.

    The API server writes the uid at the beginning of a review. If there is none, the answer is an
    HTTP error, which refuses the write as well.
    """
    # Not a warning if busy: anyone who reaches the port can cause many of these.
    level = logging.DEBUG if why == _BUSY else logging.WARNING
    log.log(level, "review refused unjudged", why=why, bytes=len(body))
    found = _UID.search(body[:_HEAD])
    if found is None:
        return HTTPStatus.SERVICE_UNAVAILABLE, {"message": why}
    return HTTPStatus.OK, refusal(found[1].decode(), controller.resource.api, why)
