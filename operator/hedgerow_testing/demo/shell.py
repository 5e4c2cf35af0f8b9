"""Shell: runs the very lines that the demo shows, in one directory and environment."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from subprocess import STDOUT
from typing import TYPE_CHECKING

import anyio

from hedgerow.files import overwrite
from hedgerow_testing.demo.errors import DemoError
from hedgerow_tools import subprocesses

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hedgerow_testing.demo.page import Page

COMMAND_TIMEOUT = 180.0
"""Seconds for one command; deleting a namespace waits for all that is in it."""
ENVIRONMENT = "env"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code and all that it printed."""

    code: int
    printed: str


@dataclass(frozen=True, slots=True)
class Shell:
    """Where commands run; `exports` is what they find beyond the user's own environment."""

    page: Page
    directory: Path
    exports: Mapping[str, str]
    inherited: Mapping[str, str]

    def __post_init__(self) -> None:
        """Write the file that puts another terminal into the same place."""
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in self.exports.items()]
        overwrite(self.directory / ENVIRONMENT, "".join(lines))

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a command."""
        return {**self.inherited, **self.exports}

    async def run(self, line: str) -> str:
        """Show a line, run it, show what it printed, and give that.

        Raises DemoError, with the last of what it printed, when it fails or takes too long.
        """
        ended = await self.attempt(line)
        if ended.code:
            last = ended.printed.splitlines()[-1] if ended.printed else "it printed nothing"
            raise DemoError(f"`{line}` exits with {ended.code}", last)
        return ended.printed

    async def attempt(self, line: str) -> Ended:
        """Show a line that may fail, run it, show what it printed, and give how it ended.

        Raises DemoError when it takes too long.
        """
        self.page.typed(line)
        with anyio.move_on_after(COMMAND_TIMEOUT):
            answer = await subprocesses.run(
                ["sh", "-c", line],
                stderr=STDOUT,
                cwd=self.directory,
                env={**self.environment, "COLUMNS": str(self.page.room)},
            )
            ended = Ended(answer.returncode, answer.stdout.decode(errors="replace").rstrip())
            self.page.output(ended.printed)
            return ended
        raise DemoError(
            f"`{line}` does not end within {COMMAND_TIMEOUT:.0f} s", "look at the cluster"
        )
