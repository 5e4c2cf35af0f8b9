"""`task pictures`: the pictures of docs/pictures, two of them from a run of the demo."""

from __future__ import annotations

import os
import subprocess
import sys

from pictures import architecture, conflict, recording
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
    """Draw all pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    printed = record()
    drawn = {f"demo-{paper}": recording.draw(printed, paper) for paper in PAPERS}
    drawn |= {"conflict": conflict.draw(), "architecture": architecture.draw()}
    for name, svg in drawn.items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
