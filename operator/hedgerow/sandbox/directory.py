"""Directory: the files of one sandbox, and the certainty that they are a sandbox's."""

import os
import secrets
import shlex
import shutil
import sys
from pathlib import Path

from hedgerow.sandbox.errors import SandboxError
from hedgerow.sandbox.files import write

_SIGN = ".hedgerow-sandbox"
_OURS = (_SIGN, f".{_SIGN}.")
"""The second is a file that a killed program was about to call by the first name."""
_LOCK = "lock"
_FOLDERS = ("pki", "configuration", "kubeconfigs", "bin", "logs", "run", "etcd")
_FILES = ("kubeconfig", "blueprint.json")


class Directory:
    """Where one sandbox lives; a directory that holds anything else is refused."""

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
        """Return the identity that every process of this sandbox bears, "" before the first up."""
        try:
            return (self.path / _SIGN).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    def prepare(self) -> None:
        """Make the directory; SandboxError when there are other things in it."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SandboxError(
                f"{self.path} cannot be made: {error.strerror}", "choose another with --dir"
            ) from error
        self.check()

    def check(self) -> None:
        """Raise SandboxError unless this is a sandbox, or empty; FileNotFoundError if missing."""
        present = {path.name for path in self.path.iterdir()} - {_LOCK}
        foreign = {name for name in present if not name.startswith(_OURS)}
        if _SIGN in present or not foreign:
            return
        raise SandboxError(
            f"{self.path} is not a sandbox, and holds {', '.join(sorted(foreign)[:3])}",
            "choose an empty or a new directory with --dir",
        )

    def furnish(self) -> None:
        """Give the sandbox its identity and its folders; to be called under the lock."""
        if not self.mark:
            write(self.path / _SIGN, secrets.token_hex(16))
        for name in _FOLDERS:
            (self.path / name).mkdir(mode=0o700, exist_ok=True)

    def clear(self) -> None:
        """Remove all that a cluster left."""
        for name in (*_FILES, *_FOLDERS):
            _remove(self.path / name)
        for partial in self.path.glob(".*.partial"):
            _remove(partial)

    def erase(self) -> None:
        """Remove what a sandbox makes, then the directory if nothing else is in it."""
        self.clear()
        # The sign goes last: half erased is still known as a sandbox.
        for name in (_SIGN, _LOCK):
            _remove(self.path / name)
        try:
            self.path.rmdir()
        except OSError:
            return


def default_directory() -> Path:
    """Return the user's own sandbox: $XDG_STATE_HOME (~/.local/state) /hedgerow/sandbox."""
    fallback = Path.home() / (
        "Library/Application Support" if sys.platform == "darwin" else ".local/state"
    )
    return Path(os.environ.get("XDG_STATE_HOME") or fallback) / "hedgerow" / "sandbox"


def option(directory: Path) -> str:
    """Return the --dir that a command needs for a directory, so that its line can be pasted."""
    given = directory.absolute()
    return "" if given == default_directory() else f" --dir {shlex.quote(str(given))}"


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
