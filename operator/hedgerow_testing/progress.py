"""Progress: the present step of a long command, on standard error."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedgerow.cli.terminal import Terminal, one_line
from hedgerow_testing.sandbox.locks import LockNotice

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@contextmanager
def progress_shown() -> Generator[Callable[[str], None]]:
    """Show the latest line and notices on a terminal, every line where there is none."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield lambda line: console.print(one_line(line), soft_wrap=True)
        return
    with console.status("") as spinner:

        def show(line: str) -> None:
            if isinstance(line, LockNotice):
                console.print(one_line(line), soft_wrap=True)
            else:
                spinner.update(one_line(line))

        yield show
