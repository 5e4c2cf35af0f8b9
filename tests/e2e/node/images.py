"""Images: what the node's pods are made of."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from e2e.node.buildah import Buildah
from e2e.node.configuration import PAUSE_IMAGE
from hedgerow_testing.sandbox.cache import default_cache
from hedgerow_testing.sandbox.locks import Progress

PYTHON = "localhost/python:e2e"
"""Stands in for python:slim; of use for clients and Jobs as well."""
MEMCACHED = "localhost/memcached:e2e"
BUSYBOX = "docker.io/library/busybox:1.37"
OPERATOR = "localhost/hedgerow:e2e"
ALL = (PYTHON, PAUSE_IMAGE, MEMCACHED, BUSYBOX, OPERATOR)

ROOT = Path(__file__).parents[3]
CACHE = default_cache().root.parent / "e2e"

_MANIFEST = "manifest.json"
_RECIPES = Path(__file__).parent / "recipes"
_PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"
_UNREAD = ("doc", "info", "locale", "man")
_SOURCES = ("sources.list.d/debian.sources", "sources.list.d/ubuntu.sources", "sources.list")


@dataclass(frozen=True, slots=True)
class Images:
    """Builds into the storage of `buildah`; whoever calls it holds the cache's lock."""

    buildah: Buildah
    progress: Progress

    @classmethod
    @contextmanager
    def on(cls, progress: Progress, root: Path = CACHE) -> Generator["Images"]:
        """Open the storage below `root`."""
        with Buildah.on(root) as buildah:
            yield cls(buildah, progress)

    def all(self) -> Path:
        """Build what has changed, and give the archive of all."""
        self._python()
        self._recipe(PAUSE_IMAGE, "pause")
        self._recipe(MEMCACHED, "memcached")
        self._recipe(BUSYBOX, "busybox")
        self.operator()
        return self._together([self.archive(tag) for tag in ALL])

    def operator(self, tag: str = OPERATOR, *more: str) -> str:
        """Build the operator's image as `task image` does, and give its id."""
        self.progress(f"building {tag} from the Containerfile")
        mounts = self.buildah.mounts()
        self.buildah.run(ROOT / ".ci/image", "--tag", tag, "--base", PYTHON, *mounts, *more)
        return self.buildah.identity(tag)

    def config(self, tag: str) -> dict[str, Any]:
        """Return an image's configuration as the OCI specifies it."""
        return from_json(self.buildah("inspect", "--type", "image", tag))["OCIv1"]["config"]

    def digest(self, tag: str) -> str:
        """Return the digest of an image's manifest."""
        return from_json(self.buildah("inspect", "--type", "image", tag))["FromImageDigest"]

    def _python(self) -> None:
        """Make a root file system of the machine's own distribution, unless there is the same."""
        sources = next(p for name in _SOURCES if (p := Path("/etc/apt") / name).exists())
        recipe = (_RECIPES / "python.Containerfile").read_bytes()
        key = hashlib.sha256(b"\0".join([recipe, sources.read_bytes(), _PACKAGES.encode()]))
        label = f"made-of={key.hexdigest()}"
        if self.buildah("images", "--quiet", "--filter", f"label={label}"):
            return
        self.progress(f"building {PYTHON}, which takes a minute or two the first time")
        context = self.buildah.scratch / "python"
        context.mkdir()
        self.buildah.run(
            *("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", f"--include={_PACKAGES}"),
            *("--skip=output/dev", *(f"--dpkgopt=path-exclude=/usr/share/{d}/*" for d in _UNREAD)),
            *(_suite(), context / "python.tar", sources),
        )
        shutil.copy(_RECIPES / "python.Containerfile", context)
        self._build(PYTHON, context / "python.Containerfile", context, "--label", label)
        shutil.rmtree(context)

    def _recipe(self, tag: str, name: str) -> None:
        recipe = _RECIPES / f"{name}.Containerfile"
        self._build(tag, recipe, _RECIPES, "--build-arg", f"BASE={PYTHON}")

    def _build(self, tag: str, recipe: Path, context: Path, *more: str) -> None:
        fixed = ("--quiet", "--layers", "--pull=never", *self.buildah.mounts())
        self.buildah("build", *fixed, "--tag", tag, "--file", recipe, *more, context)

    def _together(self, archives: list[Path]) -> Path:
        """Join archives to one that has each layer once: the greatest is the same in all."""
        digest = hashlib.sha256("\n".join(sorted(p.name for p in archives)).encode()).hexdigest()
        joined = self.buildah.root / "archives" / f"all-{digest[:16]}.tar"
        if joined.exists():
            return joined
        for old in joined.parent.glob("all-*.tar"):
            old.unlink()
        partial = self.buildah.scratch / joined.name
        listed: list[Any] = []
        seen: set[str] = set()
        with tarfile.open(partial, "w") as target:
            for archive in archives:
                with tarfile.open(archive) as source:
                    listed += from_json(_content(source, _MANIFEST))
                    for name in {listed[-1]["Config"], *listed[-1]["Layers"]} - seen:
                        target.addfile(source.getmember(name), source.extractfile(name))
                        seen.add(name)
            text = json.dumps(listed).encode()
            member = tarfile.TarInfo(_MANIFEST)
            member.size = len(text)
            target.addfile(member, io.BytesIO(text))
        shutil.move(partial, joined)
        return joined

    def archive(self, tag: str) -> Path:
        """Pack an image for the node, unless it is there from before."""
        directory = self.buildah.root / "archives"
        name = tag.rpartition("/")[2].replace(":", "-")
        archive = directory / f"{name}-{self.buildah.identity(tag).partition(':')[2][:16]}.tar"
        if not archive.exists():
            self.progress(f"packing {tag} for the node")
            directory.mkdir(exist_ok=True)
            for old in directory.glob(f"{name}-*.tar"):
                old.unlink()
            partial = self.buildah.scratch / archive.name
            self.buildah("push", "--quiet", tag, f"docker-archive:{partial}:{tag}")
            shutil.move(partial, archive)
        return archive


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    found = archive.extractfile(name)
    assert found is not None
    return found.read()


def _suite() -> str:
    lines = Path("/etc/os-release").read_text("utf-8").splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("VERSION_CODENAME="))
