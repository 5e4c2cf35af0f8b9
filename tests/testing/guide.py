"""Guide: the blocks of docs/guides/testing.md as files, and pytest on some of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import library.greeter
from support.code.sources import ROOT

TEXT = (ROOT / "docs/guides/testing.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- (\w+\.py) -->\n\n```python\n(.*?)```\n", TEXT, re.DOTALL))
"""Every block of Python, by the name of its file."""


def laid_out(folder: Path) -> Path:
    """Write all blocks, and the operator that they are about."""
    for name, text in BLOCKS.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(str(library.greeter.__file__), folder)
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    return folder


def run_pytest(folder: Path, *names: str, **more: str) -> str:
    """Run some of the files as their reader does; return the output, once all have passed."""
    command = [sys.executable, "-m", "pytest", "-p", "hedgerow_testing.plugin", *names]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
