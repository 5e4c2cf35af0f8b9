"""Processes: detached servers that are found again by their pid file and never mistaken."""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, STDOUT, Popen, run

from pydantic import TypeAdapter, ValidationError

from hedgerow.sandbox.files import write
from hedgerow.sandbox.leash import kill
from hedgerow.sandbox.pauses import until

PROC = Path("/proc")
GRACE = 20.0

_children: set[int] = set()
"""What this program started itself: a dead child stays a zombie until its parent asks for it."""


@dataclass(frozen=True, slots=True)
class Started:
    """A process as it was started: `birth` tells it from a later one under the same pid."""

    pid: int
    birth: str


_STARTED = TypeAdapter(Started)


def launch(
    command: Sequence[str | Path], *, record: Path, log: Path, environment: Mapping[str, str]
) -> Started:
    """Start a program in a session of its own, its output in `log`, its pid in `record`.

    It gets none of this program's open files, so nobody waits for it to close them. The log of the
    start before is kept beside it.
    """
    if log.exists():
        log.replace(log.with_suffix(f".previous{log.suffix}"))
    with log.open("ab") as output:
        child = Popen(
            [str(part) for part in command],
            stdin=DEVNULL,
            stdout=output,
            stderr=STDOUT,
            env=dict(environment),
            cwd=log.parent,
            start_new_session=True,
        )
    # It is meant to outlive the object, which would complain about that if it did not know.
    child.returncode = 0
    _children.add(child.pid)
    started = Started(child.pid, birth(child.pid))
    write(record, _STARTED.dump_json(started))
    return started


def recorded(record: Path) -> Started | None:
    """Read a pid file; None when it is missing or was never finished."""
    try:
        return _STARTED.validate_json(record.read_bytes())
    except (OSError, ValidationError):
        return None


def alive(started: Started | None) -> bool:
    """Return whether this very process still runs: neither a zombie nor a successor of its pid."""
    if started is None:
        return False
    _bury(started.pid)
    return started.birth != "" and birth(started.pid) == started.birth


def send(started: Started | None, number: int) -> bool:
    """Send a signal to this very process; False when it is gone."""
    return alive(started) and started is not None and kill(started.pid, number)


async def end(started: Started | None, grace: float = GRACE) -> None:
    """Ask the process to stop, kill it when it has not within `grace` seconds, wait until gone."""

    async def gone() -> bool:
        return not alive(started)

    send(started, signal.SIGTERM)
    send(started, signal.SIGCONT)  # a suspended process hears of SIGTERM only when it goes on
    if not await until(gone, seconds=grace):
        send(started, signal.SIGKILL)
        await until(gone, seconds=GRACE)


def birth(pid: int) -> str:
    """Return what no later process under this pid shares: boot and start time; "" when gone."""
    if not PROC.joinpath("self/stat").exists():
        return _birth_elsewhere(pid)
    try:
        # The command's name, in parentheses, may hold spaces and parentheses itself.
        fields = PROC.joinpath(str(pid), "stat").read_text(errors="replace").rpartition(")")[2]
        boot = PROC.joinpath("sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    status, *others = fields.split()
    return "" if status in "ZX" else f"{boot}/{others[18]}"


def _birth_elsewhere(pid: int) -> str:
    """Ask ps where there is no /proc."""
    command = ["ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)]
    answer = run(command, capture_output=True, text=True, check=False, timeout=5)
    status, _, start = answer.stdout.strip().partition(" ")
    return "" if status.startswith("Z") else start.strip()


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
    """Return the resident memory in bytes, 0 when it cannot be told."""
    if started is None:
        return 0
    try:
        resident = PROC.joinpath(str(started.pid), "statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(resident) * os.sysconf("SC_PAGE_SIZE")
