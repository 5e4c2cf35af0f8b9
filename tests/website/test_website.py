"""The site: it is built without a fault, and nothing of the code is missing from it."""

from __future__ import annotations

import re

import pytest
import yaml

import hedgerow
import hedgerow_testing
from support.code.sources import ROOT
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


class TestCommands:
    def test_every_command_has_a_section_with_its_options(self):
        pages = commands.pages()
        text = "".join(pages.values())
        missing = {path for path in commands.commands() if f"# `{path}`\n" not in text}

        assert missing == {commands.ROOT}
        assert "\n* `-o, --output <text|json>`: " in pages["reference/commands/plan.md"]


class TestResources:
    @pytest.mark.parametrize(
        "crd",
        sorted((ROOT / "manifests/chart/definitions").glob("*_*.yaml")),
        ids=lambda path: path.stem,
    )
    def test_every_field_of_the_definition_is_on_its_page(self, crd):
        spec = yaml.load(crd.read_text("utf-8"), yaml.CSafeLoader)["spec"]
        page = resources.pages()[f"{resources.DIRECTORY}/{spec['names']['singular']}.md"]
        schema = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        ours = {
            path: field
            for part in ("spec", "status")
            for path, field, _ in resources.fields(schema[part], part)
            if not below_kubernetes(path, page)
        }

        assert [path for path in ours if f"\n### `{path}`\n" not in page] == []
        assert len(ours) >= 5
        for path, field in ours.items():
            said = page.partition(f"\n### `{path}`\n")[2].partition("\n### ")[0]
            assert all(f"`{value}`" in said for value in field.get("enum", ()))


def below_kubernetes(path: str, page: str) -> bool:
    """Return whether a field belongs to a type of Kubernetes's own that the page names."""
    parts = path.split(".")
    above = [".".join(parts[:length]).removesuffix("[*]") for length in range(2, len(parts))]
    sections = [page.partition(f"\n### `{each}`\n")[2].partition("\n### ")[0] for each in above]
    return any("Kubernetes's " in section for section in sections)


class TestApi:
    @pytest.mark.parametrize("module", [hedgerow, hedgerow_testing], ids=lambda one: one.__name__)
    def test_every_public_name_has_a_section(self, module):
        text = "".join(api.pages().values())
        listed = api.public(module.__name__)

        assert sorted(listed) == sorted(module.__all__)
        for name in module.__all__:
            assert f"\n## `{name}`\n" in text

    def test_a_class_is_shown_as_it_is_written_and_its_methods_with_their_docstrings(self):
        page = api.pages()["reference/api/controllers.md"]

        assert "class Apply:\n    kind: type[View]\n    name: str\n    fields: Object\n" in page
        assert "### `Controller.names_of`\n\n```python\ndef names_of(" in page
