"""`task pictures`: the pictures of the demo in docs/pictures, from a run of it."""

from __future__ import annotations

import os
import subprocess
import sys

from pictures import recording
from pictures.drawing import PAPERS
from support.code.sources import ROOT

PICTURES = ROOT / "docs/pictures"


def record() -> str:
    """Run the demo in a terminal's width, and return what it printed."""
    command = [sys.executable, "-m", "hedgerow", "demo"]
    env = {**os.environ, "COLUMNS": str(recording.COLUMNS)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env)
    return done.stdout


def main() -> None:
    """Draw the demo anew, for light screens and for dark ones."""
    printed = record()
    for paper in PAPERS:
        path = PICTURES / f"demo-{paper}.svg"
        path.write_text(recording.draw(printed, paper), encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
