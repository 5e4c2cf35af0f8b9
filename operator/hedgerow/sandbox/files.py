"""Files: written privately and atomically; a reader sees either the old or the new text."""

import os
from pathlib import Path


def write(path: Path, content: str | bytes, mode: int = 0o600) -> Path:
    """Write a file atomically, with this mode from the start, and return its path."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return path


def tail(path: Path, lines: int = 20, limit: int = 65536) -> list[str]:
    """Return the last lines of a log that may be large or missing; reads at most `limit`."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            text = file.read(limit).decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
