"""Repository: what a release is made of, and what stands in its way."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from changelog import UNRELEASED, fragments, sections
from commands import StepError, run

if TYPE_CHECKING:
    from pathlib import Path

MAIN, REMOTE = "main", "origin"
_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")


@dataclass(frozen=True)
class Repository:
    """A checkout of hedgerow."""

    root: Path

    def git(self, *words: str) -> str:
        """Return what git prints. Raises StepError."""
        return run("git", *words, cwd=self.root).rstrip("\n")

    def found(self, *words: str) -> str:
        """Return what git prints, or nothing if it finds nothing."""
        try:
            return self.git(*words)
        except StepError:
            return ""

    def holds(self, *words: str) -> bool:
        """Return whether git says so by its exit code."""
        try:
            self.git(*words)
        except StepError:
            return False
        return True

    def read(self, name: str) -> str:
        """Return the text of a file."""
        return (self.root / name).read_text("utf-8")

    @property
    def project(self) -> dict:
        """pyproject.toml."""
        return tomllib.loads(self.read("pyproject.toml"))

    @property
    def version(self) -> str:
        """The version that pyproject.toml has."""
        return self.project["project"]["version"]

    @property
    def home(self) -> str:
        """The address of the repository, which a publisher fills in, or nothing."""
        return self.project["project"].get("urls", {}).get("Repository", "").rstrip("/")

    @property
    def registry(self) -> str:
        """Where images and charts go, which a publisher fills in, or nothing."""
        return self.project["tool"]["hedgerow"]["release"]["registry"].rstrip("/")

    @property
    def base(self) -> str:
        """The base of the images, by digest, which a publisher fills in, or nothing."""
        return self.project["tool"]["hedgerow"]["release"]["base"]

    def not_filled_in(self) -> list[str]:
        """Return what a publisher has yet to fill in before anything can be uploaded."""
        wanted = {
            "pyproject.toml has no Repository under [project.urls]": self.home,
            "pyproject.toml has no registry under [tool.hedgerow.release]": self.registry,
            "pyproject.toml has no base by digest under [tool.hedgerow.release]": (
                by_digest(self.base)
            ),
        }
        return [said for said, value in wanted.items() if not value]


def by_digest(image: str) -> bool:
    """Return whether an image is named by its digest, and so can be no other one tomorrow."""
    return bool(re.fullmatch(r"[^@\s]+@sha256:[0-9a-f]{64}", image))


def why_not(repository: Repository, version: str, *, tagged: bool) -> list[str]:
    """Return a line for each thing that forbids the release of a version.

    `tagged` is for what is built again from a tag, whose commit has to say the same version.
    """
    if not _VERSION.fullmatch(version):
        return [f"{version!r} is no version such as 1.2.3"]
    found = _changed(repository)
    if tagged:
        return found + _tag_disagrees(repository, version)
    branch = repository.found("symbolic-ref", "--short", "HEAD") or "no branch"
    if branch != MAIN:
        found.append(f"this checkout is on {branch}; a release is made of {MAIN}")
    return found + _not_next(repository, version) + _changelog_not_ready(repository, version)


def _changed(repository: Repository) -> list[str]:
    changed = [line[3:] for line in repository.git("status", "--porcelain").splitlines()]
    more = f" and {len(changed) - 1} more" if changed[1:] else ""
    return [f"not everything is committed: {changed[0]}{more}"] if changed else []


def _tag_disagrees(repository: Repository, version: str) -> list[str]:
    tag = repository.found("rev-parse", "--verify", "--quiet", f"refs/tags/v{version}^{{commit}}")
    if not tag or tag != repository.git("rev-parse", "HEAD"):
        return [f"this checkout is not at the tag v{version}"]
    if repository.version != version:
        return [f"the tag v{version} has the version {repository.version} in pyproject.toml"]
    if not repository.holds("merge-base", "--is-ancestor", "HEAD", f"{REMOTE}/{MAIN}"):
        return [f"the tag v{version} is not on {REMOTE}/{MAIN}, as far as this checkout knows"]
    section = sections(repository.read("CHANGELOG.md")).get(version)
    told = section and section.day != UNRELEASED
    return [] if told else [f"CHANGELOG.md says nothing of {version} and its day"]


def _not_next(repository: Repository, version: str) -> list[str]:
    tags = repository.git("tag", "--list", "v*").splitlines()
    if f"v{version}" in tags:
        return [f"the tag v{version} exists already"]
    before = [tag[1:] for tag in tags if _VERSION.fullmatch(tag[1:])]
    latest = max(before, key=_numbers, default="")
    if latest and _numbers(version) < _numbers(latest):
        return [f"{version} is older than v{latest}, which is released"]
    if _numbers(version) < _numbers(repository.version):
        return [f"{version} is older than {repository.version}, which pyproject.toml has"]
    return []


def _changelog_not_ready(repository: Repository, version: str) -> list[str]:
    found = sections(repository.read("CHANGELOG.md")).values()
    unreleased = [one for one in found if one.day == UNRELEASED]
    if any(one.name == version and one not in unreleased for one in found):
        return [f"CHANGELOG.md has a section {version} already"]
    if len(unreleased) != 1:
        return [f"CHANGELOG.md has {len(unreleased)} sections that are {UNRELEASED}, not one"]
    if not fragments(repository.root) and not unreleased[0].text:
        return ["changes has no file with a change, so there is nothing to release"]
    return []


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
