"""Build: builds one pinned Go module into the cache, with only complete binaries."""

import os
import signal
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from hedgerow.files import overwrite
from hedgerow_testing.sandbox.cache import BinaryCache, publish, workplace
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.locks import Progress
from hedgerow_testing.sandbox.pins import Module
from hedgerow_testing.sandbox.toolchain import Go
from hedgerow_tools import subprocesses

TELL_EVERY = 5.0
_LONGEST_LINE = 1 << 20
"""The most bytes of an output line; a compiler's lines are much shorter."""


async def build(
    cache: BinaryCache,
    module: Module,
    binaries: Collection[str],
    go: Go,
    *,
    progress: Progress,
    mark: Mapping[str, str],
) -> None:
    """Build what the cache still lacks; if another program builds the same, wait for it.

    `mark` is added to the build's environment. Raises SandboxError if the build fails; if it is
    cancelled, the compiler is ended. A binary gets its name in the cache only once it is complete.
    """
    entry = cache.entry(module)
    async with workplace(entry, progress, what=f"builds {entry.name}") as place:
        await anyio.to_thread.run_sync(_prepare, place, module)
        for name in binaries:
            if cache.find(module, name) is None:
                await _compile(Compilation(module, name, go, place, mark), progress)
                await anyio.to_thread.run_sync(publish, place / "out" / name, entry)


@dataclass(frozen=True, slots=True)
class Compilation:
    """One run of `go build`."""

    module: Module
    binary: str
    go: Go
    workplace: Path
    mark: Mapping[str, str]

    @property
    def command(self) -> list[str | Path]:
        """Return the command line; -v names each package as it is compiled."""
        output = ["-o", self.workplace / "out" / self.binary]
        flags = ["-v", "-ldflags", self.module.ldflags]
        return [self.go.command, "build", *flags, *output, self.module.packages[self.binary]]

    @property
    def title(self) -> str:
        """The words for the binaries that are built."""
        return f"building {self.binary} {self.module.version}"


async def _compile(compilation: Compilation, progress: Progress) -> None:
    process = await subprocesses.start(
        compilation.command,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        cwd=compilation.workplace,
        env={**compilation.go.environment(), **compilation.mark},
        start_new_session=True,
    )
    async with process:
        try:
            last = await _follow(process, compilation.title, progress)
            code = await process.wait()
        finally:
            _end_group(process)
    if code:
        raise SandboxError(
            f"{compilation.title} failed: {last[-1] if last else f'exit code {code}'}",
            "see the lines before it, or let KUBEBUILDER_ASSETS name ready-made binaries",
            log=last,
        )


async def _follow(process: Process, title: str, progress: Progress) -> list[str]:
    """Report the progress of the build, and return its last lines."""
    assert process.stderr is not None  # noqa: S101 -- it was opened as a pipe
    stream, last = BufferedByteReceiveStream(process.stderr), deque[str](maxlen=20)
    started = reported = anyio.current_time()
    compiled, fetched = 0, 0
    progress(f"{title}, which takes minutes the first time")
    with suppress(anyio.EndOfStream, anyio.IncompleteRead):
        while True:
            line = (await stream.receive_until(b"\n", _LONGEST_LINE)).decode(errors="replace")
            last.append(line)
            fetched += line.startswith("go: downloading")
            compiled += " " not in line
            now = anyio.current_time()
            if now - reported >= TELL_EVERY:
                reported = now
                count = f"{compiled} packages" if compiled else f"{fetched} modules fetched"
                progress(f"{title}: {count}, {now - started:.0f} s")
    return [*last]


def _end_group(process: Process) -> None:
    """Kill the compilers too; `go` alone would leave them running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _prepare(workplace: Path, module: Module) -> None:
    """Copy the module, because an installed package may be in a read-only directory."""
    (workplace / "out").mkdir()
    for name in ("go.mod", "go.sum"):
        overwrite(workplace / name, (module.directory / name).read_bytes())
