"""Files: the texts of the files that a command is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from hedgerow.deploy.manifest import LONGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDIN: Final = "-"
"""The name of standard input."""
_MOST_BYTES: Final = 4 * (LONGEST + 1)
"""What is read of a file: a character has up to four bytes."""
_ENDINGS: Final = frozenset({".yaml", ".yml", ".json"})


def sources(given: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file; `-` is standard input, a directory the manifests in it.

    Raises OSError.
    """
    for name in given:
        if name == STDIN:
            yield "standard input", _text(sys.stdin.buffer)
        else:
            yield from texts(Path(name))


def texts(path: Path, *, deep: bool = False) -> Iterator[tuple[str, str]]:
    """Yield name and text of a file, or of each YAML and JSON file in a directory; `deep`: below.

    Raises OSError.
    """
    paths = (path.rglob("*") if deep else path.iterdir()) if path.is_dir() else [path]
    for file in sorted(p for p in paths if p == path or p.suffix in _ENDINGS):
        with file.open("rb") as opened:
            yield str(file), _text(opened)


def _text(file: BinaryIO) -> str:
    """Return the text of a file, at least so much of it that one that is too large is seen to be.

    A file need not have an end. What is no UTF-8 is escaped, and refused when the text is read: one
    such file does not keep the others from being read.
    """
    return file.read(_MOST_BYTES).decode("utf-8", "surrogateescape")
