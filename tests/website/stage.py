"""Stage: every page of the site as Markdown, before the generator makes HTML of it.

What a page links to in the repository belongs to the site as well: a Markdown file becomes a page,
a directory a list of its files, a program or manifest a page with its text; the rest is copied.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hedgerow.registry import ours
from support.code.documents import aimed, anchor, headings, links, relinked
from support.code.sources import IGNORED, ROOT
from website import api, commands, resources
from website.markdown import code, definitions, first_sentence, indented, unlisted

DOCS = ROOT / "docs"
CONFIGURATION = "zensical.toml"
PROJECT = "project"
"""Where what is not below docs has its pages."""
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
_COPIED = {".json", ".svg", ".png", ".css"}
_ALWAYS = ("CHANGELOG.md", "CONTRIBUTING.md")
_INDEX = "index.md"
_GENERATED = (commands.DIRECTORY, resources.DIRECTORY, api.DIRECTORY)
"""Where an index lists what it is about itself."""
_PICTURE = re.compile(
    r"""<picture>\s*<source [^>]*dark[^>]*srcset="([^"]+)"[^>]*>"""
    r"""\s*<img (?=[^>]*src="([^"]+)")(?=[^>]*alt="([^"]*)")[^>]*>\s*</picture>"""
)
"""A picture for light screens and one for dark ones."""


@dataclass
class Stage:
    """The pages by their places in the site, and the files that are copied to theirs."""

    pages: dict[str, str] = field(default_factory=dict[str, str])
    copied: dict[str, Path] = field(default_factory=dict[str, Path])
    nav: list[Any] = field(default_factory=list[Any])

    def write(self, directory: Path) -> Path:
        """Write everything below a directory; return the path of the configuration."""
        for place, text in self.pages.items():
            self._path(directory, place).write_text(text, "utf-8")
        for place, source in self.copied.items():
            self._path(directory, place).write_bytes(source.read_bytes())
        configuration = directory / CONFIGURATION
        settings = settings_of_site() | {"nav": self.nav}
        configuration.write_text(f"project = {_toml(settings)}\n", "utf-8")
        return configuration

    def _path(self, directory: Path, place: str) -> Path:
        path = directory / "docs" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def stage() -> Stage:
    """Return the site's pages, those that are generated among them."""
    made = Stage()
    for path in _sources():
        _add(made, path)
    made.pages |= commands.pages() | resources.pages() | api.pages()
    _relate(made)
    link_tables(made)
    named = set(places(settings_of_site()["nav"]))
    made.nav = [_entry(made, entry, named) for entry in settings_of_site()["nav"]]
    return made


def settings_of_site() -> Any:
    """Return the generator's settings as they are written."""
    return tomllib.loads((DOCS / CONFIGURATION).read_text("utf-8"))["project"]


def place_of(path: Path) -> str:
    """Return the place in the site of a file or directory of the repository."""
    if path.is_dir():
        return f"{place_of(path / _INDEX).lower()}"
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    place = f"{PROJECT}/{path.relative_to(ROOT).as_posix().lstrip('.')}"
    if path.suffix == ".md":
        return place.lower()  # a README.md would be its directory's index
    return place if path.suffix in _COPIED else f"{place}.md"


def _sources() -> list[Path]:
    """Return what is in docs, and what is reached from there by links."""
    found: dict[Path, None] = {}
    waiting = [path for path in sorted(DOCS.rglob("*")) if path.suffix in {".md", *_COPIED}]
    waiting += [ROOT / name for name in _ALWAYS]
    while waiting:
        path = waiting.pop(0)
        if path in found or (path.is_relative_to(DOCS) and path.is_dir()):
            continue
        found[path] = None
        if path.suffix == ".md":
            waiting += [ROOT / place for place, _ in links(path)]
        elif path.is_dir():
            waiting += _listed(path)
    return list(found)


def _listed(directory: Path) -> list[Path]:
    """Return what a directory's page lists: no packages of code, and nothing that is ignored."""
    return [
        path
        for path in sorted(directory.iterdir())
        if path.name not in IGNORED and not (path / "__init__.py").exists()
    ]


def _add(made: Stage, path: Path) -> None:
    place = place_of(path)
    name = code(path.relative_to(ROOT).as_posix())
    if path.is_dir():
        entries = "\n".join(f"- [{each.name}]({_to(each, place)})" for each in _listed(path))
        made.pages[place] = unlisted(f"# {name}\n\n{entries}\n")
    elif path.suffix == ".md":
        text = _linked(path, place)
        made.pages[place] = unlisted(text) if path == ROOT / "README.md" else text
    elif path.suffix in _COPIED:
        made.copied[place] = path
    else:
        language = _LANGUAGES.get(path.suffix, "text")
        text = path.read_text("utf-8").replace("```", "` ` `")
        made.pages[place] = unlisted(f"# {name}\n\n```{language}\n{text}```\n")


def _linked(path: Path, place: str) -> str:
    """Return the text of a Markdown file with links as they are in the site."""

    def picture(found: re.Match[str]) -> str:
        shades = zip(found.group(2, 1), ("light", "dark"), strict=True)
        return "\n".join(
            f'<img alt="{found[3]}" src="{_relinked(path, target, place)}#only-{shade}">'
            for target, shade in shades
        )

    text = indented(path.read_text("utf-8")).replace("<details>", '<details markdown="1">')
    return relinked(_PICTURE.sub(picture, text), lambda target: _relinked(path, target, place))


def _relinked(path: Path, target: str, place: str) -> str:
    """Return a link of a file of the repository as it is written in the site."""
    aim = aimed(path, target)
    if aim is None or target.startswith("#"):
        return target
    there, fragment = aim
    return _to(ROOT / there, place) + (f"#{fragment}" if fragment else "")


def _to(path: Path, place: str) -> str:
    """Return the link from one place to a file or directory of the repository."""
    return relative(place_of(path), place)


def relative(target: str, place: str) -> str:
    """Return the link from one place of the site to another."""
    return posixpath.relpath(target, posixpath.dirname(place))


def _relate(made: Stage) -> None:
    """Let generated pages lead to those that are about the same, and back.

    A page is about a command that its beginning or a heading names, and about a custom resource
    that it is called after.
    """
    subjects = [
        *((place, f"`{one}(?: [^`]*)?`") for one, place in commands.places().items()),
        *((resources.place(one), f"^# {one.api.kind}$") for one in ours().resources),
    ]
    written = {
        place: text
        for place, text in sorted(made.pages.items())
        if not place.startswith((*_GENERATED, PROJECT, "reference/", "adr/", _INDEX))
    }
    for place, text in written.items():
        title, *below = headings(text)
        beginning = text.partition("\n## ")[0]
        for about, pattern in subjects:
            told = [title] if re.search(pattern, beginning, re.MULTILINE) else []
            told += [one for one in below if re.search(pattern, one)]
            if told:
                back = relative(place, about)
                more = "".join(f"- [{one}]({back}#{anchor(one)})\n" for one in told)
                _append(made, about, "Read more", more)
                named = headings(made.pages[about])[0]
                _append(made, place, "Reference", f"- [{named}]({relative(about, place)})\n")


def link_tables(made: Stage) -> None:
    """Let a row of a table that begins with a command lead to the page of that command."""
    known = sorted(commands.commands().keys() - {commands.ROOT}, key=len, reverse=True)

    def linked(found: re.Match[str]) -> str:
        command = next((one for one in known if f"{found[1]} ".startswith(f"{one} ")), None)
        target = command and relative(commands.place(command), place)
        return f"| [`{found[1]}`]({target})" if target else found[0]

    for place, text in made.pages.items():
        made.pages[place] = re.sub(
            rf"^\| `({commands.ROOT} [^`]+)`", linked, text, flags=re.MULTILINE
        )


def _append(made: Stage, place: str, heading: str, line: str) -> None:
    """Add lines below the last heading of a page, which is made before the first of them."""
    text = made.pages[place].rstrip("\n")
    start = "" if f"\n## {heading}\n" in text else f"\n\n## {heading}\n"
    made.pages[place] = f"{text}{start}\n{line}"


def places(entries: Any) -> list[str]:
    """Return the pages that are named in a navigation, and its patterns."""
    if isinstance(entries, str):
        return [entries]
    parts = entries.values() if isinstance(entries, dict) else entries
    return [place for part in parts for place in places(part)]


def _entry(made: Stage, entry: Any, named: set[str]) -> Any:
    """Return an entry of the navigation with patterns written out, and make its index page."""
    if not isinstance(entry, dict):
        return entry
    (title, below), *_ = entry.items()
    if isinstance(below, str):
        return entry
    filled: list[Any] = []
    for each in below:
        filled += _matching(made, each, named) if "*" in each else [_entry(made, each, named)]
    index = filled[0] if isinstance(filled[0], str) else ""
    if Path(index).name == _INDEX and not index.startswith(_GENERATED):
        head = made.pages.get(index, f"# {title}")
        made.pages[index] = f"{head}\n\n{_overview(made, filled)}"
    return {title: filled}


def _matching(made: Stage, pattern: str, named: set[str]) -> list[str]:
    found = [
        place
        for place in made.pages
        if place not in named
        and fnmatchcase(place, pattern)
        and place.count("/") == pattern.count("/")
    ]
    return sorted(found, key=lambda place: place.removesuffix(".md"))


def _overview(made: Stage, entries: list[Any]) -> str:
    """Return what the first page of a section lists: its pages, each with its first sentence."""
    parts: list[str] = []
    for entry in entries[1:]:
        below = next(iter(entry.values())) if isinstance(entry, dict) else entry
        listed = places(below)
        is_section = isinstance(below, list)
        if is_section and Path(listed[0]).name == _INDEX:
            told = [_told(made, listed[0], entries[0], f"{len(listed) - 1} pages.")]
        else:
            told = [_told(made, place, entries[0]) for place in listed]
            parts += [f"## {next(iter(entry))}"] * is_section
        parts.append(definitions(told))
    return "\n".join(parts)


def _told(made: Stage, place: str, index: str, otherwise: str = "\u2014") -> tuple[str, str]:
    text = made.pages[place]
    title = f"[{headings(text)[0]}]({relative(place, index)})"
    return title, first_sentence(text) or otherwise


def _toml(value: Any) -> str:
    """Return a value in TOML, all of it in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
