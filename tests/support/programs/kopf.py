"""Kopf: a Python with kopf, for the tests and measurements that run an operator of kopf."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hedgerow_testing.sandbox.cache import default_cache

REQUIREMENTS = Path(__file__).parents[2] / "bench/neutral/peer-kopf/requirements.txt"


def cache(name: str, sources: Sequence[Path]) -> Path:
    """Return where to keep what is built from these files."""
    content = b"".join(path.read_bytes() for path in sorted(sources))
    root = default_cache().root.parent / "bench"
    return root / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"


def kopf_python() -> Path:
    """Return the Python of an environment with the pinned kopf, made once for each Python.

    Raises CalledProcessError where it cannot be installed.
    """
    made = cache(f"kopf-{platform.python_version()}", [REQUIREMENTS])
    python = made / "bin" / "python"
    if not python.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix="kopf-", dir=made.parent))
        subprocess.run([sys.executable, "-m", "venv", new], check=True)
        pip = [new / "bin" / "python", "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]
        subprocess.run(pip, check=True)
        if not made.exists():  # of two at once, the first
            new.rename(made)
    return python
