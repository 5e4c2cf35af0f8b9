"""Preparing: the commit of a release, made in a clone, so that the checkout stays as it is."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from changelog import dated
from commands import StepError, run
from parts import imported
from repository import REMOTE, Repository

if TYPE_CHECKING:
    from pathlib import Path

_OWN = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
"""The line of pyproject.toml."""


def clone(repository: Repository, place: Path, at: str) -> Repository:
    """Return a clone at a branch or tag, which pushes to where the checkout does."""
    made = Repository(place / "hedgerow")
    asked = ("--quiet", "--branch", at)
    run(*("git", "clone", *asked, repository.root, made.root), cwd=repository.root)
    if url := repository.found("remote", "get-url", "--push", REMOTE):
        made.git("remote", "set-url", REMOTE, url)
    for name in ("user.name", "user.email"):
        if value := repository.found("config", name):
            made.git("config", name, value)
    return made


def commit(source: Repository, version: str, day: str) -> None:
    """Write the version and its day where they belong, commit that, and tag the commit."""
    before = source.version
    _replace(source, "pyproject.toml", _OWN.sub(f'version = "{version}"', _text(source), count=1))
    _collect(source, version, day)
    for name in _documents(source):
        text = source.read(name)
        _replace(source, name, renamed(text, before, version))
    _generate(source)
    source.git("add", "--all")
    source.git("commit", "--quiet", "--message", f"release: {version}")
    source.git("tag", "--annotate", "--message", f"hedgerow {version}", f"v{version}")


def _collect(source: Repository, version: str, day: str) -> None:
    """Move what the files in changes say into the section of the version."""
    command = (sys.executable, "-m", "towncrier", "build", "--yes", "--version", version)
    run(*command, cwd=source.root)
    _replace(source, "CHANGELOG.md", dated(source.read("CHANGELOG.md"), version, day))


def renamed(text: str, before: str, version: str) -> str:
    """Return a text whose commands name the new version; figures stay those of the old one."""
    where = r"(hedgerow:|\?ref=v|newTag: |targetRevision: v|--version )"
    return re.sub(rf"{where}{re.escape(before)}(?![\w.]*\d)", rf"\g<1>{version}", text)


def _documents(source: Repository) -> list[str]:
    named = ("README.md", "docs/*.md", "operator/hedgerow/cli/*.py")
    files = source.git("ls-files", "--", *named).splitlines()
    return [name for name in files if not name.startswith("docs/adr/")]


def _text(source: Repository) -> str:
    text = source.read("pyproject.toml")
    if not _OWN.search(text):
        raise StepError("pyproject.toml has no line with the version")
    return text


def _replace(source: Repository, name: str, text: str) -> None:
    if text != source.read(name):
        (source.root / name).write_text(text, "utf-8")


def _generate(source: Repository) -> None:
    """Write the generated files by the code of the clone, which has the new version."""
    place = source.root.parent / "generating"
    command = (sys.executable, "-m", "hatchling", "build", "--target", "wheel")
    run(*command, "--directory", place, cwd=source.root)
    (wheel,) = place.glob("*.whl")
    environment = imported(wheel, place / "unpacked")
    run(
        *(sys.executable, "-m", "hedgerow_testing.generate", "--root", source.root),
        cwd=source.root,
        env=environment,
    )
