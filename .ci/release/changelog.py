"""Changelog: what CHANGELOG.md says of a version, and what a release makes of what has changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

UNRELEASED, NEXT = "unreleased", "Next"
MARK = "<!-- changes -->"
"""Where towncrier puts what the files in changes say (pyproject.toml)."""
_HEADING = re.compile(rf"^## \[([^]\n]+)\] - ({UNRELEASED}|\d{{4}}-\d\d-\d\d)$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """What CHANGELOG.md says of one version; `day` may be `unreleased`."""

    name: str
    day: str
    text: str


def sections(changelog: str) -> dict[str, Section]:
    """Return the sections of a changelog by the names of their versions."""
    found = list(_HEADING.finditer(changelog))
    ends = [*(heading.start() for heading in found[1:]), len(changelog)]
    return {
        heading[1]: Section(*heading.groups(), _text(changelog[heading.end() : end]))
        for heading, end in zip(found, ends, strict=True)
    }


def fragments(root: Path) -> list[Path]:
    """Return the files with one change each, which no release has yet."""
    return sorted((root / "changes").glob("*.*.md"))


def dated(changelog: str, version: str, day: str) -> str:
    """Return the changelog in which the unreleased section is a version of that day.

    The next section begins above it, with nothing in it.
    """
    unreleased = next(one for one in sections(changelog).values() if one.day == UNRELEASED)
    before, heading, rest = changelog.partition(f"## [{unreleased.name}] - {UNRELEASED}\n")
    _, _, older = rest.partition("\n## ")
    begun = heading.replace(unreleased.name, NEXT)
    section = f"## [{version}] - {day}\n\n{unreleased.text}\n"
    return f"{before}{begun}\n{MARK}\n\n{section}" + (f"\n## {older}" if older else "")


def _text(section: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", section.replace(MARK, "")).strip()
