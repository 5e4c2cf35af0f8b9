"""Commands: programs of others, each of which ends, and says in one line why it failed."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

_LONGEST = 3600.0


class StepError(Exception):
    """A step of a release that failed; the message is one line."""


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Return what a command prints; it reads nothing. Raises StepError with its last words."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            check=True,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_LONGEST,
        )
    except FileNotFoundError:
        raise StepError(f"there is no {name} on this machine") from None
    except subprocess.TimeoutExpired:
        raise StepError(f"{name} has not ended in {timedelta(seconds=_LONGEST)}") from None
    except subprocess.CalledProcessError as error:
        lines = f"{error.stdout}\n{error.stderr}".split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        raise StepError(f"{name}: {said or f'exit code {error.returncode}'}") from None
    return done.stdout
