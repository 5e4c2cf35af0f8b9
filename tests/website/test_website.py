"""The site: it is built without a fault, and nothing of the code is missing from it."""

from __future__ import annotations

import re

import pytest

import hedgerow
import hedgerow_testing
from support.operator.registered import ALL
from website import api, commands, resources
from website.__main__ import build
from website.stage import PROJECT, places, stage

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc(?:set)?="(?:https?:)?//[^"]+"""
    r"""|<link\b(?=[^>]*rel="(?:stylesheet|preload|preconnect|icon))[^>]*href="(?:https?:)?//[^"]+"""
    r"""|(?:url\(|@import )\s*['"]?(?:https?:)?//[^)'"]+"""
)
"""What a page or a stylesheet would ask another host for."""

pytestmark = pytest.mark.untraced  # it loads the whole command line, and asserts nothing of it


class TestSite:
    def test_it_is_built_without_a_lost_link_and_asks_no_other_host_for_anything(self, tmp_path):
        build(tmp_path)
        front = (tmp_path / "index.html").read_text("utf-8")
        files = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]
        loaded = {path.name: LOADED.findall(path.read_text("utf-8")) for path in files}

        assert "pictures/demo-light.svg#only-light" in front
        assert "pictures/demo-dark.svg#only-dark" in front
        assert "spec.routeTo" in (tmp_path / "search.json").read_text("utf-8")
        assert {name: found for name, found in loaded.items() if found} == {}
        assert LOADED.search('<script src="https://cdn.example/x.js">')

    def test_every_page_is_in_the_navigation_but_sources(self):
        made = stage()
        named = places(made.nav)

        assert len(named) == len(set(named))
        assert {place for place in made.pages if not place.startswith(PROJECT)} <= set(named)


def test_each_command_kind_and_public_name_has_its_place():
    text = "".join({**commands.pages(), **api.pages()}.values())
    names = (*hedgerow.__all__, *hedgerow_testing.__all__)

    assert {path for path in commands.commands() if f"# `{path}`\n" not in text} == {commands.ROOT}
    assert [name for name in names if f"\n## `{name}`\n" not in text] == []
    kinds = {f"{resources.DIRECTORY}/{one.api.kind.lower()}.md" for one in ALL.resources}
    assert kinds <= resources.pages().keys()
