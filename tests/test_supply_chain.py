"""How the image is built, where it cannot be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support.code.sources import ROOT


class TestBuilding:
    def test_without_an_engine_it_says_so_in_one_line(self, tmp_path: Path):
        for tool in ("bash", "dirname", "sed"):
            (tmp_path / tool).symlink_to(Path("/usr/bin") / tool)
        done = subprocess.run(
            [ROOT / ".ci/image"],
            env={**os.environ, "PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 2
        assert done.stderr == (
            "task image: there is no buildah, podman or docker on this machine;"
            " install one of them\n"
        )
