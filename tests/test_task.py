"""`./task`: the environment is made before the first use, and anew when the pins change."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.code.sources import ROOT

PYTHON = """#!/bin/sh
case "$1" in
  -V) echo "Python 3.12.1" ;;
  -c) exit ${FITS:-0} ;;
  -m)
    mkdir -p "$3/bin"
    printf '#!/bin/sh\\necho "pip $*" >>"$LOG"\\nexit ${PIP:-0}\\n' >"$3/bin/pip"
    printf '#!/bin/sh\\necho "ran $* with $VIRTUAL_ENV"\\n' >"$3/bin/task"
    chmod +x "$3/bin/pip" "$3/bin/task"
    echo "venv" >>"$LOG"
    ;;
esac
"""


@dataclass
class Checkout:
    """A checkout with nothing but what `./task` reads, and a Python that only notes its calls."""

    root: Path

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        python = self.root.parent / "python"
        given = {"PATH": os.environ["PATH"], "LOG": str(self.log), "PYTHON": str(python)}
        return subprocess.run(
            [self.root / "task", *words],
            env=given | environment,
            cwd=self.root.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    @property
    def log(self) -> Path:
        return self.root.parent / "log"

    @property
    def made(self) -> int:
        """How many environments were made."""
        return self.log.read_text().count("venv\n") if self.log.exists() else 0


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    root = tmp_path / "a clone"
    (root / ".ci").mkdir(parents=True)
    for name in ("task", "Taskfile.yml", "pyproject.toml", ".ci/constraints.txt"):
        shutil.copy(ROOT / name, root / name)
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return Checkout(root)


class TestFirstUse:
    def test_it_makes_the_environment_with_every_hash_checked_and_hands_over(self, checkout):
        done = checkout.run("demo", "--", "--keep")

        environment = checkout.root / ".venv"
        told = f"ran --taskfile {checkout.root}/Taskfile.yml demo -- --keep with {environment}\n"
        assert (done.returncode, done.stdout) == (0, told)
        installed = checkout.log.read_text()
        assert "--require-hashes" in installed
        # A newer release of a dependency with extras is looked at otherwise, and has no hash.
        assert all("--no-deps" in line for line in installed.splitlines() if "install" in line)
        assert "--no-deps --no-build-isolation -e" in installed

    def test_a_set_up_that_failed_is_made_again(self, checkout):
        failed = checkout.run("demo", PIP="1")
        done = checkout.run("demo")

        assert (failed.returncode, failed.stdout) == (1, "")
        assert done.returncode == 0
        assert checkout.made == 2

    def test_without_a_python_it_says_what_to_install(self, checkout):
        done = checkout.run("demo", FITS="1")

        assert done.returncode == 1
        assert "no Python 3.11 or newer with venv" in done.stderr
        assert "apt install python3 python3-venv" in done.stderr
        assert not (checkout.root / ".venv").exists()


class TestLaterUse:
    def test_it_makes_nothing_anew(self, checkout):
        checkout.run("demo")
        done = checkout.run("test")

        assert done.stderr == ""
        assert checkout.made == 1

    @pytest.mark.parametrize("name", ["pyproject.toml", ".ci/constraints.txt"])
    def test_what_is_pinned_has_changed(self, checkout, name):
        checkout.run("demo")
        with (checkout.root / name).open("a") as file:
            file.write("# another\n")
        checkout.run("demo")

        assert checkout.made == 2

    def test_the_checkout_has_moved(self, checkout):
        checkout.run("demo")
        moved = Checkout(checkout.root.rename(checkout.root.with_name("moved")))
        moved.run("demo")

        assert moved.made == 2
