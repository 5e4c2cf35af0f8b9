"""Directory: the files of one sandbox, and the check that they belong to a sandbox."""

import os
import secrets
import shlex
import shutil
from contextlib import suppress
from pathlib import Path

from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.files import check_private, make, write

_SIGN = ".hedgerow-sandbox"
_OURS = (_SIGN, f".{_SIGN}.")
"""The second is the temporary file of a program that was killed before it renamed it."""
_LOCK = "lock"
_FOLDERS = ("pki", "configuration", "kubeconfigs", "bin", "logs", "run", "etcd")
_FILES = ("kubeconfig", "blueprint.json")
_REMEDY = "choose with --dir a directory that you alone can write to"


class Directory:
    """The directory of one sandbox; a directory with other files is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.lock = self.path / _LOCK
        self.pki = self.path / "pki"
        self.configuration = self.path / "configuration"
        self.kubeconfigs = self.path / "kubeconfigs"
        self.bin = self.path / "bin"
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self.etcd = self.path / "etcd"
        self.kubeconfig = self.path / "kubeconfig"
        self.blueprint = self.path / "blueprint.json"

    def log(self, component: str) -> Path:
        """Return the file of a component's output."""
        return self.logs / f"{component}.log"

    def record(self, component: str) -> Path:
        """Return the pid file of a component."""
        return self.run / f"{component}.json"

    @property
    def mark(self) -> str:
        """The identity in the environment of all processes of this sandbox; "" before first up."""
        try:
            return (self.path / _SIGN).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    def prepare(self) -> None:
        """Create the directory. Raises SandboxError if other files are in it."""
        try:
            make(self.path)
        except OSError as error:
            raise SandboxError(
                f"{self.path} cannot be made: {error.strerror}", "choose another with --dir"
            ) from error
        self.check()

    def check_private(self) -> None:
        """Raise SandboxError if others may change the directory, which may be missing."""
        with suppress(FileNotFoundError):
            check_private(self.path, (_SIGN, _LOCK, *_FILES, *_FOLDERS), _REMEDY)

    def check(self) -> None:
        """Raise SandboxError unless this is a sandbox of this user's, or empty.

        Raises FileNotFoundError if it is missing.
        """
        self.check_private()
        present = {path.name for path in self.path.iterdir()} - {_LOCK}
        foreign = {name for name in present if not name.startswith(_OURS)}
        if _SIGN in present or not foreign:
            return
        raise SandboxError(
            f"{self.path} is not a sandbox, and holds {', '.join(sorted(foreign)[:3])}",
            "choose an empty or a new directory with --dir",
        )

    def furnish(self) -> None:
        """Create the sandbox's identity and folders; the caller must hold the lock."""
        if not self.mark:
            write(self.path / _SIGN, secrets.token_hex(16))
        for name in _FOLDERS:
            (self.path / name).mkdir(mode=0o700, exist_ok=True)

    def clear(self) -> None:
        """Remove all files of a cluster."""
        for name in (*_FILES, *_FOLDERS):
            _remove(self.path / name)
        for partial in self.path.glob(".*.partial"):
            _remove(partial)

    def erase(self) -> None:
        """Remove all files of a sandbox, then the directory if it is empty."""
        self.clear()
        # The sign is removed last, so that a partly erased sandbox is still recognized.
        for name in (_SIGN, _LOCK):
            _remove(self.path / name)
        try:
            self.path.rmdir()
        except OSError:
            return


def default_directory() -> Path:
    """Return the user's own sandbox: $XDG_STATE_HOME (~/.local/state) /hedgerow/sandbox."""
    states = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    return states / "hedgerow" / "sandbox"


def option(directory: Path) -> str:
    """Return the --dir option that a command needs for a directory; empty for the default."""
    given = directory.absolute()
    return "" if given == default_directory() else f" --dir {shlex.quote(str(given))}"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
