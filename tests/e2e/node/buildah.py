"""Buildah: image builds without an engine, in a storage of our own."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

_LONGEST = 900.0
_MANY = 300
_TRUST = Path("/etc/ssl/certs/ca-certificates.crt")
_STORAGE = """[storage]
driver = "overlay"
graphroot = "{graph}"
runroot = "{run}"
"""


@dataclass(frozen=True, slots=True)
class Buildah:
    """Runs buildah on the storage below `root`; `scratch` holds what does not outlive it."""

    root: Path
    scratch: Path

    @classmethod
    @contextmanager
    def on(cls, root: Path) -> Generator["Buildah"]:
        """Prepare the storage; old intermediate images go once there are many."""
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="hedgerow-e2e-") as scratch:
            opened = cls(root, Path(scratch))
            mine = hashlib.sha256(str(root).encode()).hexdigest()[:12]
            text = _STORAGE.format(graph=root / "storage", run=f"/run/hedgerow-e2e-{mine}")
            opened.storage.write_text(text, "utf-8")
            if len(opened("images", "--all", "--quiet").split()) > _MANY:
                opened("rmi", "--prune", "--force")
            yield opened

    @property
    def storage(self) -> Path:
        """The file that tells buildah where its storage is."""
        return self.scratch / "storage.conf"

    def __call__(self, *arguments: str | Path) -> str:
        """Run buildah, and give what it says."""
        return self.run("buildah", *arguments)

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        """Run anything that runs buildah; its whole output is in the error when it fails."""
        environment = {
            "CONTAINERS_STORAGE_CONF": str(self.storage),
            # The others leave a bridge and firewall rules on the machine.
            "BUILDAH_ISOLATION": "chroot",
            "TMPDIR": str(self.scratch),
        }
        done = subprocess.run(
            ["nice", *map(str, command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST,
            stdin=subprocess.DEVNULL,
            cwd=cwd,
            env={**os.environ, **environment},
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def identity(self, tag: str) -> str:
        """Return an image's id; "" when there is none."""
        return self("images", "--quiet", "--no-trunc", "--filter", f"reference={tag}")

    def mounts(self) -> list[str]:
        """Return a build the machine's own way to packages: trust and pip's configuration.

        They are there while a RUN step runs, and never part of an image.
        """
        configured = self.scratch / "pip.conf"
        pip = [sys.executable, "-m", "pip", "config", "list"]
        told = subprocess.run(pip, capture_output=True, text=True, check=True, timeout=60).stdout
        lines = [line.partition("=") for line in told.splitlines()]
        known = {name.rpartition(".")[2]: value.strip("'") for name, _, value in lines}
        text = "".join(f"{name} = {value}\n" for name, value in known.items())
        configured.write_text(f"[global]\n{text}", "utf-8")
        paths = {Path(value) for value in known.values() if value.startswith("/")}
        shared = [str(p) for p in sorted({*paths, _TRUST}) if p.exists()]
        volumes = [*(f"{path}:{path}:ro" for path in shared), f"{configured}:/etc/pip.conf:ro"]
        return [word for volume in volumes for word in ("--volume", volume)]
