"""Versions: hedgerow's wheel and its tests with other versions of Python and of what it needs.

`ends` takes the lowest and the highest versions that `pyproject.toml` allows, `pythons` each Python
with what CI has locked. Each case is an environment of its own, as a user has it: the wheel alone
plays the demo and makes an operator whose own tests pass; then this checkout's tests run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The ones that are supported, oldest first."""
HERE = ".".join(map(str, sys.version_info[:2]))
ENDS = {"lowest": "lowest-direct", "highest": "highest"}
"""The ends of each range, and uv's words for them."""
ON_SERVERS = ("tests/cluster", "tests/e2e", "tests/faults/test_machine.py")
DEPENDING = (
    *("tests/cli", "tests/kube", "tests/library", "tests/model", "tests/process"),
    *("tests/runtime", "tests/testing/sandbox", "tests/schemas", "tests/serving", "tests/testing"),
)
"""The tests in memory of what calls other packages."""
CONNECTING = ("tests/cluster/test_kube.py", "-k", "TestRights or TestCluster")
"""Credentials, requests and watches on a real server."""
LINTERS = {"go-task-bin", "import-linter", "pyright"}
"""The tools that no test needs, and that want newer versions of what hedgerow needs."""
LONGEST = 3600.0


class Failed(Exception):
    """A command that failed, or a Python that is not to be had."""


@dataclass(frozen=True, slots=True)
class Case:
    """A Python, and the end of the ranges; without one, what is locked."""

    python: str
    end: str = ""

    def __str__(self) -> str:
        """Return it as people name it."""
        return f"Python {self.python}, {self.end or 'locked'}"


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment for one case, in a folder of its own."""

    folder: Path
    case: Case

    @property
    def _bin(self) -> Path:
        return self.folder / "venv/bin"

    @property
    def _constraints(self) -> Path:
        return self.folder / "constraints.txt"

    def make(self, wheel: Path) -> None:
        """Make it, with the wheel and what that needs."""
        venv = self.folder / "venv"
        run("uv", "venv", "--quiet", "--seed", "--python", interpreter(self.case.python), venv)
        self._constraints.write_text("\n".join(self._versions()) + "\n", "utf-8")
        self._install(f"hedgerow[testing] @ {wheel.as_uri()}")

    def play(self) -> None:
        """Play the demo, and make an operator whose tests pass; with nothing but the wheel."""
        self._run("hedgerow", "demo")
        named = ("--group", "shop.example.com", "--kind", "Shop")
        self._run("hedgerow", "new", "shop", *named, "--children", "ConfigMap,Deployment")
        self._install("--editable", self.folder / "shop")
        self._run("python", "-m", "pytest", "-q", "shop/tests", "-c", "shop/pyproject.toml")

    def test(self) -> None:
        """Run tests of this checkout, with the tools that it pins; pytest is what the case has."""
        fixed = {name_of(line) for line in self._constraints.read_text("utf-8").splitlines()}
        tools = [
            unpinned(line) if name_of(line) in fixed else line
            for line in PROJECT["optional-dependencies"]["dev"]
            if name_of(line) not in LINTERS
        ]
        self._install("--editable", ROOT, *tools)
        tests = DEPENDING
        if not self.case.end:
            tests = (*(f"--ignore={name}" for name in ON_SERVERS), "tests")
        self._run(*("python", "-m", "pytest", "-q", "-n", "2"), *tests, cwd=ROOT)
        if self.case.end:
            self._run("python", "-m", "pytest", "-q", *CONNECTING, cwd=ROOT)

    def _versions(self) -> list[str]:
        """Return the versions of everything, as constraints."""
        if not self.case.end:
            text = (ROOT / ".ci/constraints.txt").read_text("utf-8")
            return re.findall(r"^([\w.-]+==[^\\\n]+)", text, re.MULTILINE)
        compiled = ("uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate")
        wanted = ("--python", self.folder / "venv/bin/python", "--extra", "testing")
        resolved = ("--resolution", ENDS[self.case.end], "--upgrade", ROOT / "pyproject.toml")
        return output(*compiled, *wanted, *resolved).splitlines()

    def _install(self, *what: str | Path) -> None:
        at = ("--python", self._bin / "python", "--constraints", self._constraints)
        run("uv", "pip", "install", "--quiet", *at, *what)

    def _run(self, *command: str, cwd: Path | None = None) -> None:
        kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        path = os.pathsep.join([str(self._bin), kept["PATH"]])
        given = {**kept, "PATH": path, "VIRTUAL_ENV": str(self.folder / "venv")}
        run(self._bin / command[0], *command[1:], cwd=cwd or self.folder, env=given)


def name_of(requirement: str) -> str:
    """Return the name of the package that a requirement is for."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower()


def unpinned(requirement: str) -> str:
    """Return a requirement for any version, with its marker if it has one."""
    return re.sub(r"==[^;]+", "", requirement, count=1)


def interpreter(version: str) -> str:
    """Return a Python of this version for uv, which downloads one where there is none.

    pyenv has a command for each Python that it knows, and most of them only say so.
    """
    if version == HERE:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    for path in filter(None, found):
        asked = subprocess.run([path, "-V"], capture_output=True, check=False, timeout=60)
        if asked.returncode == 0:
            return str(path)
    return version


def run(*command: str | Path, **options: object) -> None:
    """Run a command, whose output is shown; raises Failed."""
    print("$", *command, flush=True)
    ended = subprocess.run(command, check=False, timeout=LONGEST, **options)
    if ended.returncode:
        raise Failed(" ".join(map(str, command)))


def output(*command: str | Path) -> str:
    """Return what a command prints; raises Failed."""
    ended = subprocess.run(command, check=False, timeout=LONGEST, stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        raise Failed(" ".join(map(str, command)))
    return ended.stdout


def attempt(case: Case, wheel: Path) -> str:
    """Go through a case; return what failed, or nothing."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-versions-") as folder:
        environment = Environment(Path(folder), case)
        try:
            environment.make(wheel)
            environment.play()
            environment.test()
        except Failed as error:
            return str(error)
    return ""


def attempt_all(cases: Iterable[Case]) -> int:
    """Go through the cases, print how each ended, and return the exit code."""
    results = dict[Case, str]()
    with tempfile.TemporaryDirectory(prefix="hedgerow-wheel-") as folder:
        build = ("hatchling", "build", "--target", "wheel", "--directory", folder)
        run(sys.executable, "-m", *build, cwd=ROOT)
        [wheel] = Path(folder).glob("*.whl")
        for case in cases:
            print(f"\n--- {case}", flush=True)
            results[case] = attempt(case, wheel)
    print()
    for case, failed in results.items():
        print(f"{case}: {f'failed: {failed}' if failed else 'passed'}")
    return int(any(results.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and go through what it names."""
    parser = argparse.ArgumentParser(prog="python -m versions", description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, values in (("ends", (*ENDS,)), ("pythons", PYTHONS)):
        named = kinds.add_parser(kind)
        named.add_argument("which", nargs="*", metavar="WHICH", help=f"of {', '.join(values)}")
    given = parser.parse_args(arguments)
    known = PYTHONS if given.kind == "pythons" else (*ENDS,)
    if unknown := set(given.which) - set(known):
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(known)}")
    which = given.which or known
    return attempt_all(Case(HERE, name) if name in ENDS else Case(name) for name in which)


if __name__ == "__main__":
    sys.exit(main())
