"""Checks: what is wrong with a site that was built, as far as a program can tell."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "srcset",
    "link": "href",
    "object": "data",
}
_RELATIONS = {"stylesheet", "preload", "preconnect", "dns-prefetch", "icon", "modulepreload"}
_ELSEWHERE = re.compile(r"(?:https?:)?//")
_UNMADE = re.compile(r"^[ \t]*(?:[-*] \S.*|\d+\. \S.*|```.*|\|.+\|)|\]\(", re.MULTILINE)
"""Markdown that stayed as it was, at the beginning of a line, or a link."""
_ENTRY = "index.html"


class Page(HTMLParser):
    """One page: its anchors, where its links lead, what it loads, and the text of its prose."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors = set[str]()
        self.links: list[str] = []
        self.content: list[str] = []
        self.loads: list[str] = []
        self.prose: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in {"article", "p", "code", "pre", "li"}:
            self._inside.append(tag)
        if "id" in given:
            self.anchors.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if "article" in self._inside:
                self.content.append(given["href"])
        is_loaded = tag != "link" or _RELATIONS & set(given.get("rel", "").split())
        if is_loaded and _LOADS.get(tag) in given:
            self.loads.append(given[_LOADS[tag]].split(" ")[0])

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if "p" in self._inside and not {"code", "pre"} & set(self._inside):
            self.prose.append(data)


def faults(directory: Path) -> list[str]:
    """Return a sentence for each fault of the site below a directory."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(directory.rglob("*.html"))}
    found = [
        f"{path.relative_to(directory)} {fault}"
        for path, page in pages.items()
        for fault in (*_lost(path, page, pages), *_unmade(page), *_foreign(page))
    ]
    led = _led(directory / _ENTRY, pages)
    found += [
        f"{path.relative_to(directory)} is a page that no text leads to"
        for path in pages
        if path not in led and path.name != "404.html"
    ]
    for path in directory.rglob("*.css"):
        loaded = re.findall(r"(?:url\(|@import )\s*['\"]?(?:https?:)?//[^)'\"]+", path.read_text())
        found += [f"{path.relative_to(directory)} loads {what}" for what in loaded]
    return found


def _lost(path: Path, page: Page, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield what is wrong with the links of a page, and with the files that it loads."""
    if path.name == "404.html":
        return  # it is served at any address, so its links are from the root
    for link in [*page.links, *page.loads]:
        if re.match(r"[a-z]+:|//", link):
            continue
        place, _, anchor = unquote(link).partition("#")
        target = _aimed(path, place.partition("?")[0])
        if not target.exists():
            yield f"links to {link}, which is not there"
        elif anchor and target in pages and anchor not in pages[target].anchors:
            yield f"links to {link}, a heading that is not there"


def _aimed(path: Path, place: str) -> Path:
    """Return the file that a link without its anchor leads to; the page itself if it is empty."""
    if not place:
        return path
    target = Path(normpath(path.parent / place))
    return target / _ENTRY if target.suffix == "" and target.is_dir() else target


def _unmade(page: Page) -> Iterator[str]:
    if left := _UNMADE.search("".join(page.prose)):
        yield f"shows Markdown: {left[0].strip()!r}"


def _foreign(page: Page) -> Iterator[str]:
    yield from (f"loads {what}" for what in page.loads if _ELSEWHERE.match(what))


def _led(entry: Path, pages: dict[Path, Page]) -> set[Path]:
    """Return the pages that are reached from the first one by links in the text alone."""
    found, waiting = {entry}, [entry]
    while waiting:
        path = waiting.pop()
        for link in pages[path].content:
            target = _aimed(path, unquote(link).partition("#")[0])
            if target in pages and target not in found:
                found.add(target)
                waiting.append(target)
    return found
