"""Keeper: ends a node and removes all it left, once the one who holds its input is gone.

Run as a program of its own it outlives a SIGKILL of the test run. It needs nothing but the
standard library. The node's first process holds on to the keeper in the same way, so nothing runs
on even when the keeper itself is killed.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

NAMESPACES = ("--mount", "--net", "--pid", "--ipc", "--uts")

_CGROUPS = Path("/sys/fs/cgroup")
_INIT = Path(__file__).with_name("init.py")
_TRIES, _PAUSE, _PATIENCE = 100, 0.05, 5.0


def hierarchies() -> Iterator[Path]:
    """Yield where cgroups are made: each controller's own hierarchy, or the one of version 2."""
    if (_CGROUPS / "cgroup.controllers").exists():
        yield _CGROUPS
        return
    for path in _CGROUPS.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield path


def make_cgroups(name: str) -> None:
    """Make the node's cgroup in every hierarchy; a kubelet insists on each."""
    for hierarchy in hierarchies():
        ours = hierarchy / name
        ours.mkdir(exist_ok=True)
        # Of version 1, nothing may live in a cpuset whose masks are empty.
        for mask in ("cpuset.cpus", "cpuset.mems"):
            if hierarchy != _CGROUPS and (ours / mask).exists():
                (ours / mask).write_bytes((hierarchy / mask).read_bytes())


def remove_cgroups(name: str) -> None:
    """Remove them with all below, waiting for the last of the killed to leave."""
    for hierarchy in hierarchies():
        for _ in range(_TRIES):
            for path, _, _ in os.walk(hierarchy / name, topdown=False):
                with suppress(OSError):
                    Path(path).rmdir()
            if not (hierarchy / name).exists():
                break
            time.sleep(_PAUSE)


def main(directory: Path) -> None:
    """Bring the namespaces up, say so with the pid of their first process, wait, clean up."""
    name = f"hedgerow-e2e-{os.getpid()}"
    python = (sys.executable, "-I", "-S", str(_INIT), str(directory))
    # The keeper is not told by Ctrl-C: what it waits for is the end of its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    init: Popen[bytes] | None = None
    try:
        make_cgroups(name)
        command = ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", *python]
        init = Popen(command, stdin=PIPE, stdout=PIPE)
        assert init.stdout is not None
        if init.stdout.readline():
            children = Path(f"/proc/{init.pid}/task/{init.pid}/children").read_text("ascii")
            print(children.strip(), name, flush=True)
            sys.stdin.buffer.read()
    finally:
        if init is not None:
            _end(init)
        remove_cgroups(name)
        # Nobody waits for this: a busy disk takes a minute for a node's files.
        Popen(["rm", "-rf", directory], stdin=DEVNULL, stdout=DEVNULL)


def _end(init: Popen[bytes]) -> None:
    """Let the first process go, which takes every other of its pid namespace along."""
    assert init.stdin is not None
    init.stdin.close()
    try:
        init.wait(_PATIENCE)
    except TimeoutExpired:
        init.kill()
        init.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
