"""Changelog: what CHANGELOG.md says of a version, and how what is unreleased becomes one."""

from __future__ import annotations

import re
from dataclasses import dataclass

UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[([^]\n]+)\](?: - (\d{4}-\d\d-\d\d))?[ \t]*$", re.MULTILINE)
_GROUP = re.compile(r"^### .*$", re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """What one version changed; `day` is empty for what is unreleased."""

    name: str
    day: str
    text: str


def sections(changelog: str) -> dict[str, Section]:
    """Return the sections of a changelog by the names of their versions."""
    found = list(_HEADING.finditer(changelog))
    ends = [*(heading.start() for heading in found[1:]), len(changelog)]
    return {
        heading[1]: Section(heading[1], heading[2] or "", _kept(changelog[heading.end() : end]))
        for heading, end in zip(found, ends, strict=True)
    }


def released(changelog: str, version: str, day: str) -> str:
    """Return the changelog in which all that was unreleased is of a version of that day.

    The heading of what is unreleased stays, with nothing under it.
    """
    heading = next(one for one in _HEADING.finditer(changelog) if one[1] == UNRELEASED)
    following = _HEADING.search(changelog, heading.end())
    rest = changelog[following.start() :] if following else ""
    text = sections(changelog)[UNRELEASED].text
    return f"{changelog[: heading.end()]}\n\n## [{version}] - {day}\n\n{text}\n" + (
        f"\n{rest}" if rest else ""
    )


def _kept(text: str) -> str:
    """Return a section without the groups that have no entry."""
    groups = list(_GROUP.finditer(text))
    if not groups:
        return text.strip()
    ends = [*(group.start() for group in groups[1:]), len(text)]
    parts = [text[: groups[0].start()].strip()]
    for group, end in zip(groups, ends, strict=True):
        entries = text[group.end() : end].strip()
        parts += [f"{group[0]}\n\n{entries}"] if entries else []
    return "\n\n".join(part for part in parts if part)
