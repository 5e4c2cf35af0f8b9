"""How the image is built, where it cannot be; and what its wheel can do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

from support.code.sources import ROOT
from support.programs import wheels

OWN = {"install", "uninstall", "manifests", "run", "completion", "version"}
"""The commands that the operator needs."""


def copy_for_image(tree: Path) -> None:
    """Copy what .dockerignore leaves, which is what the Containerfile builds from."""
    rules = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    left_out = {ROOT / rule for rule in rules if rule and rule[0] not in "!#*"}

    def ignored(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in left_out or name == "__pycache__"]

    for name in (rule[1:] for rule in rules if rule.startswith("!")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's wheel, as it is installed there."""
    folder = tmp_path_factory.mktemp("image")
    copy_for_image(folder / "tree")
    (wheel,) = wheels.hedgerow(folder / "dist", folder / "tree").glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def ran(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run hedgerow as in the image: without this checkout, which `site` would add to the path."""
    path = [str(installed), sysconfig.get_path("purelib")]
    program = f"import sys; sys.path += {path}; from hedgerow.cli import main; main()"
    command = (sys.executable, "-I", "-S", "-c", program, *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


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


class TestWheel:
    def test_help_lists_the_operators_own_commands_and_names_no_other(self, installed: Path):
        done = ran(installed, "--help")

        assert set(re.findall(r"^  ([a-z]+) {2,}", done.stdout, re.MULTILINE)) == OWN
        assert set(re.findall(r"hedgerow ([a-z]+)", done.stdout)) <= OWN

    @pytest.mark.parametrize("words", [("run", "--help"), ("install", "--help"), ("manifests",)])
    def test_its_own_commands_work(self, installed: Path, words: tuple[str, ...]):
        done = ran(installed, *words)

        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) > 20

    @pytest.mark.parametrize("command", ["owners", "sandbox"])
    def test_of_another_command_it_says_where_it_is(self, installed: Path, command: str):
        done = ran(installed, command, "x")

        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"hedgerow: `hedgerow {command}` is not part of the operator's image: run it where"
            " hedgerow's wheel is installed, or from a checkout\n"
        )
