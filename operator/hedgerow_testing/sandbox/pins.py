"""Pins: the pinned versions of Kubernetes, etcd and kwok, read from their go.mod.

`binaries` finds, downloads or builds their binaries.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hedgerow_testing.sandbox.errors import SandboxError

MODULES = Path(__file__).parent / "modules"
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")

_KUBERNETES = {name: f"k8s.io/kubernetes/cmd/{name}" for name in (*CONTROL_PLANE, "kubectl")}
_ETCD = {"etcd": "go.etcd.io/etcd/server/v3"}
_KWOK = {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}


@dataclass(frozen=True, slots=True)
class Module:
    """A pinned Go module: `packages` maps binaries to main packages, `go` is the least version."""

    directory: Path
    version: str
    packages: Mapping[str, str]
    ldflags: str
    go: str

    @property
    def project(self) -> str:
        """The project, such as "kubernetes"."""
        return self.directory.name.partition("-")[0]

    @property
    def title(self) -> str:
        """The project and its version, such as "kubernetes-1.37.2"."""
        return f"{self.project}-{self.version}"

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that change with anything that changes the binaries."""
        pinned = [(self.directory / name).read_bytes() for name in ("go.mod", "go.sum")]
        return hashlib.sha256(b"\0".join([*pinned, self.ldflags.encode()])).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class PinnedRelease:
    """A pinned Kubernetes, and the modules that build a whole sandbox around it."""

    version: str
    kubernetes: Module
    etcd: Module
    kwok: Module

    def module(self, binary: str) -> Module:
        """Return the module that builds this binary."""
        modules = (self.kubernetes, self.etcd, self.kwok)
        return next(module for module in modules if binary in module.packages)


def releases(modules: Path = MODULES) -> tuple[PinnedRelease, ...]:
    """Return every pinned Kubernetes, newest first."""
    etcd = _module(modules / "etcd", _ETCD, "go.etcd.io/etcd/server/v3")
    kwok = _module(modules / "kwok", _KWOK, "sigs.k8s.io/kwok")
    versions = [
        _module(directory, _KUBERNETES, "k8s.io/kubernetes")
        for directory in modules.glob("kubernetes-*")
    ]
    newest_first = sorted(versions, key=lambda module: numbers(module.version), reverse=True)
    return tuple(PinnedRelease(module.version, module, etcd, kwok) for module in newest_first)


def pick(wanted: str, modules: Path = MODULES) -> PinnedRelease:
    """Return the release for "1.37", "1.37.2" or "v1.37.2", the newest for "".

    Raises SandboxError, which lists the pinned ones, for any other version.
    """
    choice = releases(modules)
    named = re.fullmatch(r"v?(\d+\.\d+(?:\.\d+)?)", wanted or choice[0].version)
    for release in choice:
        if named and f"{release.version}.".startswith(f"{named[1]}."):
            return release
    pinned = ", ".join(release.version for release in choice)
    raise SandboxError(f"Kubernetes {wanted!r} is not pinned", f"choose one of {pinned}")


def numbers(version: str) -> tuple[int, ...]:
    """Return a version as numbers that sort: "1.37.2" is (1, 37, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _module(directory: Path, packages: Mapping[str, str], path: str) -> Module:
    text = (directory / "go.mod").read_text(encoding="utf-8")
    version = _after(path, text).removeprefix("v")
    return Module(directory, version, packages, _ldflags(path, version), _after("go", text))


def _after(word: str, text: str) -> str:
    lines = (line.split() for line in text.splitlines())
    value = next((words[1] for words in lines if words[:1] == [word] and words[1:]), None)
    if value is None:
        raise ValueError(f"no {word!r} in a pinned go.mod")
    return value


def _ldflags(path: str, version: str) -> str:
    """Return the linker flags with the version; without them the API server is v0.0.0-master."""
    if path != "k8s.io/kubernetes":
        return "-s -w"
    major, minor, *_ = version.split(".")
    stamp = "-X k8s.io/component-base/version"
    return f"-s -w {stamp}.gitVersion=v{version} {stamp}.gitMajor={major} {stamp}.gitMinor={minor}"
