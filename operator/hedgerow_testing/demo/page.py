"""Page: what the demo prints, its words in 80 columns, with colour and motion on a terminal alone.

Commands, and what commands print, are never folded: whoever copies a line can paste it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from rich.text import Text

from hedgerow.cli.terminal import Terminal
from hedgerow.cli.unfolded import folded
from hedgerow_testing.demo.errors import UnheardError
from hedgerow_testing.sandbox.locks import LockNotice

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console

    from hedgerow_testing.sandbox.locks import Progress

WIDTH = 80
INDENT = 4
TELL_EVERY = 30.0
"""Seconds between two lines about the same step, if there is no terminal."""


class _Console(Terminal):
    def on_broken_pipe(self) -> None:
        """End the demo as after a failure, so that it cleans up; print nothing more."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise UnheardError(
                "the reader of the output is gone", "let it read all of the output"
            ) from None


class Page:
    """Prints headings, typed commands, their output, and what was checked against the server."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or _Console()
        self._acts = 0

    def title(self, text: str) -> None:
        """Print the demo's title."""
        self._console.print(Text(text, "bold"))

    def act(self, title: str) -> None:
        """Print the heading of the next part."""
        self._acts += 1
        self._console.print()
        self._console.print(Text.assemble((f"{self._acts:2}  ", "bold cyan"), (title, "bold")))

    def say(self, text: str) -> None:
        """Print an explanation."""
        self._wrapped(text)

    def typed(self, line: str) -> None:
        """Print a command as it is typed."""
        text = Text.assemble(" " * INDENT, ("$ ", "dim"), (line, "green"))
        self._console.print(text, soft_wrap=True)

    def output(self, text: str) -> None:
        """Print a command's output, line by line as it is: there may be commands in it."""
        for line in text.splitlines():
            shown = f"{' ' * INDENT}{line.rstrip()}".rstrip()
            self._console.print(Text(shown, "dim"), soft_wrap=True)

    def checked(self, text: str) -> None:
        """Print a statement that the API server confirmed."""
        self._wrapped(text, "bold green", mark="✓ ")

    def broken(self, text: str) -> None:
        """Print a statement that the API server did not confirm."""
        self._wrapped(text, "bold red", mark="✗ ")

    @contextmanager
    def waiting(self, text: str) -> Generator[Progress]:
        """Show what the demo waits for; without a terminal, print a line for each step."""
        if not self._console.is_terminal:
            yield self._now_and_then()
            return
        with self._console.status(text) as status:
            yield (
                lambda line: (
                    self.say(line) if isinstance(line, LockNotice) else status.update(Text(line))
                )
            )

    @property
    def room(self) -> int:
        """The columns of a command's output."""
        return max(WIDTH // 2, self._console.width) - INDENT

    @property
    def lively(self) -> bool:
        """Whether lines can be shown for a moment and replaced."""
        return self._console.is_terminal

    def _now_and_then(self) -> Progress:
        """Return a function that prints each step once, and its progress twice a minute."""
        times: dict[str, float] = {}

        def tell(line: str) -> None:
            step, now = line.partition(":")[0], anyio.current_time()
            if isinstance(line, LockNotice) or now - times.get(step, -TELL_EVERY) >= TELL_EVERY:
                times[step] = now
                self.say(line)

        return tell

    def _wrapped(self, text: str, style: str = "", mark: str = "") -> None:
        """Print a wrapped text; after the first line, lines are indented by two more.

        Words are never broken, not even long paths, and neither are commands in backticks.
        """
        lines = folded(f"{mark}{text}", self.room + INDENT, " " * INDENT, " " * (INDENT + 2))
        for number, line in enumerate(lines or [""]):
            shown = Text(line, "" if mark else style)
            if mark and number == 0:
                shown.stylize(style, INDENT, INDENT + len(mark))
            self._console.print(shown, soft_wrap=True)
