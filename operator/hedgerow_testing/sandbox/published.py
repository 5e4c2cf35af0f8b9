"""Published: where Kubernetes, etcd and kwok publish their binaries and the SHA-256 of each."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel

from hedgerow.encoding import decode
from hedgerow_testing.sandbox.pins import Module

PLATFORMS = ("linux-amd64", "linux-arm64")
"""The platforms for which all three projects publish the needed binaries."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Origins:
    """The projects' own hosts."""

    kubernetes: str = "https://dl.k8s.io"
    github: str = "https://github.com"
    api: str = "https://api.github.com"


@dataclass(frozen=True, slots=True)
class Asset:
    """One published file: a binary, or, with `member`, an archive that contains it by this name.

    `digests` is the address where its digest is published.
    """

    binary: str
    version: str
    url: str
    digests: str
    read: Callable[[bytes, str], str]
    member: str = ""

    @property
    def title(self) -> str:
        """The binary and its version, such as "etcd 3.6.8"."""
        return f"{self.binary} {self.version}"

    @property
    def file(self) -> str:
        """The name of the published file."""
        return self.url.rpartition("/")[2]

    def digest_in(self, content: bytes) -> str:
        """Return the file's SHA-256 from the content at `digests`, "" if it is not there."""
        digest = self.read(content, self.file).lower()
        return digest if is_digest(digest) else ""


def is_digest(text: str) -> bool:
    """Return whether a text is a SHA-256 in lower-case hexadecimal digits."""
    return _SHA256.fullmatch(text) is not None


def published(module: Module, binary: str, platform: str, origins: Origins) -> Asset | None:
    """Return where a module's binary is published; None if its project publishes none for it."""
    if module.project not in _PROJECTS or platform not in PLATFORMS:
        return None
    return _PROJECTS[module.project](module, binary, platform, origins)


def _kubernetes(module: Module, binary: str, platform: str, origins: Origins) -> Asset:
    # As https://kubernetes.io/releases/download says.
    folder = f"v{module.version}/bin/{platform.replace('-', '/')}"
    url = f"{origins.kubernetes}/release/{folder}/{binary}"
    return Asset(binary, module.version, url, f"{url}.sha256", _alone)


def _etcd(module: Module, binary: str, platform: str, origins: Origins) -> Asset:
    release = f"{origins.github}/etcd-io/etcd/releases/download/v{module.version}"
    name = f"etcd-v{module.version}-{platform}"
    return Asset(
        binary=binary,
        version=module.version,
        url=f"{release}/{name}.tar.gz",
        digests=f"{release}/SHA256SUMS",
        read=_listed,
        member=f"{name}/{binary}",
    )


def _kwok(module: Module, binary: str, platform: str, origins: Origins) -> Asset:
    # It publishes no checksums itself, but GitHub provides the digest of every asset.
    repository, tag = "kubernetes-sigs/kwok", f"v{module.version}"
    return Asset(
        binary=binary,
        version=module.version,
        url=f"{origins.github}/{repository}/releases/download/{tag}/{binary}-{platform}",
        digests=f"{origins.api}/repos/{repository}/releases/tags/{tag}",
        read=_told_by_github,
    )


_PROJECTS = {"kubernetes": _kubernetes, "etcd": _etcd, "kwok": _kwok}


def _alone(content: bytes, _: str) -> str:
    return content.decode(errors="replace").strip()


def _listed(content: bytes, file: str) -> str:
    """Return a file's digest from sha256sum's output: digest and name, "*" before binary names."""
    lines = [line.split() for line in content.decode(errors="replace").splitlines()]
    named = {line[1].removeprefix("*"): line[0] for line in lines if len(line) == len(("sum", "x"))}
    return named.get(file, "")


class _GitHubAsset(BaseModel):
    name: str
    digest: str | None = None


class _GitHubRelease(BaseModel):
    assets: list[_GitHubAsset]


def _told_by_github(content: bytes, file: str) -> str:
    try:
        release = _GitHubRelease.model_validate(decode(content))
    except ValueError:
        return ""
    digests = {asset.name: asset.digest or "" for asset in release.assets}
    return digests.get(file, "").removeprefix("sha256:")
