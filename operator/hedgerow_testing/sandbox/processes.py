"""Processes: detached servers that are reliably found again by their pid file."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen

from pydantic import TypeAdapter

from hedgerow.encoding import decode, encode
from hedgerow.files import opened
from hedgerow_testing.sandbox.files import write
from hedgerow_testing.sandbox.leash import kill
from hedgerow_testing.sandbox.pauses import until

PROC = Path("/proc")
GRACE = 20.0

_children: set[int] = set()
"""The pids that this program started: a dead child stays a zombie until its parent reaps it."""


@dataclass(frozen=True, slots=True)
class Started:
    """A started process; `birth` distinguishes it from a later one with the same pid."""

    pid: int
    birth: str


_STARTED = TypeAdapter(Started)


def launch(
    command: Sequence[str | Path], *, record: Path, log: Path, environment: Mapping[str, str]
) -> Started:
    """Start a program in a session of its own, with its output in `log` and its pid in `record`.

    It does not inherit open files, so nobody waits for it to close them. The log of the previous
    start is kept next to the new one.
    """
    if log.exists():
        log.replace(log.with_suffix(f".previous{log.suffix}"))
    with opened(log, "ab") as output:
        child = Popen(
            [str(part) for part in command],
            stdin=DEVNULL,
            stdout=output,
            stderr=STDOUT,
            env=dict(environment),
            cwd=log.parent,
            start_new_session=True,
        )
    # The process outlives this object; without a return code the object would warn about that.
    child.returncode = 0
    _children.add(child.pid)
    started = Started(child.pid, birth(child.pid))
    write(record, encode(started))
    return started


def recorded(record: Path) -> Started | None:
    """Return the process of a pid file; None if it is missing or incomplete."""
    try:
        return _STARTED.validate_python(decode(record.read_bytes()))
    except (OSError, ValueError):
        return None


def alive(started: Started | None) -> bool:
    """Return whether exactly this process still runs, not a zombie or another one with its pid."""
    if started is None:
        return False
    _bury(started.pid)
    return started.birth != "" and birth(started.pid) == started.birth


def send(started: Started | None, number: int) -> bool:
    """Send a signal to exactly this process; return False if it is gone."""
    return alive(started) and started is not None and kill(started.pid, number)


async def end(started: Started | None, grace: float = GRACE) -> None:
    """Stop the process, kill it if it has not ended after `grace` seconds, wait for its end."""

    async def gone() -> bool:
        return not alive(started)

    send(started, signal.SIGTERM)
    send(started, signal.SIGCONT)  # a suspended process handles SIGTERM only once it continues
    if not await until(gone, seconds=grace):
        send(started, signal.SIGKILL)
        await until(gone, seconds=GRACE)


def birth(pid: int) -> str:
    """Return boot id and start time, which no later process with this pid has; "" if gone."""
    try:
        # The command's name, in parentheses, may itself contain spaces and parentheses.
        fields = PROC.joinpath(str(pid), "stat").read_text(errors="replace").rpartition(")")[2]
        boot = PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    status, *others = fields.split()
    return "" if status in "ZX" else f"{boot}/{others[18]}"


def _bury(pid: int) -> None:
    if pid not in _children:
        return
    try:
        ended = os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        ended = True
    if ended:
        _children.discard(pid)


def memory(started: Started | None) -> int:
    """Return the resident memory in bytes, 0 if it is unknown."""
    if started is None:
        return 0
    try:
        resident = PROC.joinpath(str(started.pid), "statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(resident) * os.sysconf("SC_PAGE_SIZE")
