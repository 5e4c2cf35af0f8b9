"""Page: what the demo prints, in 80 columns, with colour and motion only on a terminal."""

from __future__ import annotations

from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING

import anyio
from rich.console import Console
from rich.text import Text

from hedgerow.demo.errors import UnheardError
from hedgerow.sandbox.locks import Notice

if TYPE_CHECKING:
    from collections.abc import Generator

    from hedgerow.sandbox.locks import Progress

WIDTH = 80
INDENT = 4
TELL_EVERY = 30.0
"""Seconds between two lines about the same step, where lines stay."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """End the demo as any failure does, so that it cleans up, and print no more."""
        try:
            super().on_broken_pipe()
        except SystemExit:
            raise UnheardError("nobody reads on", "let the pipe take all that it says") from None


class Page:
    """Headings, typed commands, their output, and claims that were held against the server."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or _Console(highlight=False)
        self._acts = 0

    def title(self, text: str) -> None:
        """Say what this is."""
        self._console.print(Text(text, "bold"))

    def act(self, title: str) -> None:
        """Begin the next part."""
        self._acts += 1
        self._console.print()
        self._console.print(Text.assemble((f"{self._acts:2}  ", "bold cyan"), (title, "bold")))

    def say(self, text: str) -> None:
        """Explain."""
        self._wrapped(text)

    def typed(self, line: str) -> None:
        """Show a command as it is typed: never wrapped, so that it can be copied."""
        for number, part in enumerate(folded(line).splitlines()):
            sign = "$ " if number == 0 else "  "
            text = Text.assemble(" " * INDENT, (sign, "dim"), (part, "green"))
            self._console.print(text, soft_wrap=True)

    def output(self, text: str) -> None:
        """Show what a command printed."""
        for line in text.splitlines():
            self._wrapped(line.rstrip(), "dim")

    def claim(self, text: str) -> None:
        """Show a statement that the API server bore out."""
        self._wrapped(text, "bold green", mark="✓ ")

    def broken(self, text: str) -> None:
        """Show a statement that the API server did not bear out."""
        self._wrapped(text, "bold red", mark="✗ ")

    @contextmanager
    def waiting(self, text: str) -> Generator[Progress]:
        """Show what is waited for; where there is no terminal, a line for each step."""
        if not self._console.is_terminal:
            yield self._now_and_then()
            return
        with self._console.status(text) as status:
            yield (
                lambda line: (
                    self.say(line) if isinstance(line, Notice) else status.update(Text(line))
                )
            )

    @property
    def lively(self) -> bool:
        """Whether lines can be shown for a moment and replaced."""
        return self._console.is_terminal

    def _now_and_then(self) -> Progress:
        """Return what says each step once, and how far it is twice a minute."""
        told: dict[str, float] = {}

        def tell(line: str) -> None:
            step, now = line.partition(":")[0], anyio.current_time()
            if isinstance(line, Notice) or now - told.get(step, -TELL_EVERY) >= TELL_EVERY:
                told[step] = now
                self.say(line)

        return tell

    def _wrapped(self, text: str, style: str = "", mark: str = "") -> None:
        """Print between the indent and the edge; what does not fit hangs below by two.

        Words stay whole, a path that is too long as well.
        """
        lines = wrap(
            f"{mark}{text}",
            max(WIDTH // 2, self._console.width),
            initial_indent=" " * INDENT,
            subsequent_indent=" " * (INDENT + 2),
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        )
        for number, line in enumerate(lines or [""]):
            shown = Text(line, "" if mark else style)
            if mark and number == 0:
                shown.stylize(style, INDENT, INDENT + len(mark))
            self._console.print(shown, soft_wrap=True)


def folded(line: str) -> str:
    """Break a command that is too long for the page before a flag, as a shell lets one do."""
    room = WIDTH - INDENT - len("$ ") - len(" \\")
    cut = line.rfind(" -", 0, room + 1)
    if len(line) <= room or "\n" in line or cut <= 0:
        return line
    return f"{line[:cut]} \\\n    {line[cut + 1 :]}"
