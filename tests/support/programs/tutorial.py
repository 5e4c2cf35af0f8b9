"""Tutorial: the blocks of a page for readers, done in order as a reader does them.

A comment before a block says what it is: `write FILE`, `append FILE`, `second terminal`, or what
it `needs`. Without one, `sh` is typed in the first terminal, and of `console` what follows a `$` is
typed, and what is shown has to be what follows; there `…` stands for any text.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_BLOCK = re.compile(r"(?:<!-- ([^\n]+) -->\n)?```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DONE = "--- the command has ended:"


@dataclass(frozen=True)
class Block:
    """A block of code, its language, and the comment before it."""

    comment: str
    language: str
    text: str

    @property
    def file(self) -> str:
        """The file that it is written or appended to; empty for commands."""
        word, _, name = self.comment.partition(" ")
        return name if word in ("write", "append") else ""

    @property
    def needs(self) -> str:
        """What a machine must have for it; empty if any will do."""
        return self.comment.removeprefix("needs ") if self.comment.startswith("needs ") else ""

    def write(self, folder: Path) -> None:
        """Do what it says about its file."""
        with (folder / self.file).open("a" if self.comment.startswith("append") else "x") as file:
            file.write(self.text)

    def commands(self) -> list[tuple[str, str | None]]:
        """Return the commands; each with what it has to show, or None where nothing is said."""
        if self.language == "sh":
            return [(line, None) for line in self.text.replace("\\\n", "").splitlines()]
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(command, shown) for command, _, shown in (p.partition("\n") for p in parts)]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    found = _BLOCK.findall(page.read_text("utf-8"))
    assert len(found) == page.read_text("utf-8").count("\n```") / 2, "each block is found"
    return [Block(*each) for each in found]


def matches(shown: str, output: str) -> bool:
    """Return whether an output is what a page shows of it."""
    wanted = ".*?".join(map(re.escape, _trimmed(shown).split("…")))
    return re.fullmatch(wanted, _trimmed(output), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


class Terminal:
    """A shell in which one command is typed after the other; each must succeed."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.interrupt()
        assert self._shell.stdin
        assert self._shell.stdout
        self._shell.stdin.close()
        try:
            self._shell.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait(10)
        self._shell.stdout.close()

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        if self._shell.poll() is None:
            os.killpg(self._shell.pid, signal.SIGINT)

    def type(self, command: str) -> None:
        """Type a command and do not wait for its end."""
        assert self._shell.stdin
        # In braces it is the shell's own: what it exports stays. Its input is not ours.
        self._shell.stdin.write(
            f"{{ {command}\n}} </dev/null; code=$?; echo\necho '{_DONE}' $code\n"
        )
        self._shell.stdin.flush()

    def run(self, command: str, within: float = 240.0) -> str:
        """Type a command, and return what it shows."""
        self.type(command)
        assert self._shell.stdout
        watch = threading.Timer(within, os.killpg, (self._shell.pid, signal.SIGKILL))
        watch.start()
        shown: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(_DONE):
                break
            shown.append(line)
        watch.cancel()
        text = "".join(shown)
        assert shown, f"{command}: the shell has ended"
        assert line == f"{_DONE} 0\n", f"{command}\n{text}"
        return text
