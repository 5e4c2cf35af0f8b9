"""The site: it is built without a fault, and nothing of the code is missing from it."""

from __future__ import annotations

import pytest
import yaml

import hedgerow
import hedgerow.testing
from support.code.sources import ROOT
from website import api, commands, resources
from website.__main__ import build
from website.checks import faults
from website.markdown import indented, prose
from website.stage import PROJECT, Stage, link_tables, places, stage

pytestmark = pytest.mark.untraced  # it loads the whole command line, and asserts nothing of it


class TestSite:
    def test_it_is_built_and_no_link_anchor_or_page_is_lost(self, tmp_path):
        assert build(tmp_path / "site") == []
        front = (tmp_path / "site/index.html").read_text("utf-8")
        assert "pictures/demo-light.svg#only-light" in front
        assert "pictures/demo-dark.svg#only-dark" in front
        assert "spec.routeTo" in (tmp_path / "site/search.json").read_text("utf-8")

    def test_a_directory_of_something_else_is_left_as_it_is(self, tmp_path):
        (tmp_path / "letter.txt").write_text("Dear")

        assert build(tmp_path) == [f"{tmp_path} is not empty, and no site: nothing was written"]
        assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]

    def test_a_table_of_commands_leads_to_their_pages(self):
        made = Stage(
            pages={"reference/table.md": "| `hedgerow sandbox up`, `down` | x |\n| `ls` |"}
        )
        link_tables(made)

        assert made.pages["reference/table.md"] == (
            "| [`hedgerow sandbox up`](commands/sandbox-up.md), `down` | x |\n| `ls` |"
        )

    def test_every_page_is_in_the_navigation_but_sources(self):
        made = stage()
        named = places(made.nav)

        assert len(named) == len(set(named))
        assert {place for place in made.pages if not place.startswith(PROJECT)} <= set(named)


class TestCommands:
    def test_every_parameter_is_on_the_page_of_its_command(self):
        pages = commands.pages()
        missing = [
            f"{path} {name}"
            for path, command in commands.commands().items()
            for parameter in commands.shown(command)
            for name in (*parameter.opts, *parameter.secondary_opts)
            if name.startswith("-") and f"`{name}" not in pages[commands.place(path)]
        ]

        assert missing == []
        assert "`-o`, `--output text|json`\n" in pages["reference/commands/plan.md"]
        assert "Environment: `ENABLE_WEBHOOKS`." in pages["reference/commands/run.md"]


class TestResources:
    @pytest.mark.parametrize(
        "crd", sorted((ROOT / "manifests/crds").glob("*_*.yaml")), ids=lambda path: path.stem
    )
    def test_every_field_of_the_definition_is_on_its_page(self, crd):
        spec = yaml.safe_load(crd.read_text("utf-8"))["spec"]
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
    @pytest.mark.parametrize("module", [hedgerow, hedgerow.testing], ids=lambda one: one.__name__)
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


class TestMarkdown:
    @pytest.mark.parametrize(
        ("written", "made"),
        [
            ("1. A\n\n   ```sh\n   ls\n   ```\n2. B", "1. A\n\n    ```sh\n    ls\n    ```\n2. B"),
            ("- A\n  more\n\n  of it\n\nB\n  c", "- A\n    more\n\n    of it\n\nB\n  c"),
            ("```\n- A\n  b\n```", "```\n- A\n  b\n```"),
        ],
    )
    def test_what_belongs_to_an_item_is_four_columns_in(self, written, made):
        assert indented(written) == made

    def test_text_of_the_code_holds_no_html_and_its_options_are_code(self):
        told = prose("- `a<b*c`: <name> is *, as --dry-run says, not -k")

        assert told == "- `a<b*c`: &lt;name> is \\*, as `--dry-run` says, not -k"


GOOD = '<article><h1 id="a">A</h1><p><a href="b.html#b">B</a></p></article>'
OTHER = '<article><h1 id="b">B</h1><p>Text</p></article>'


class TestChecks:
    @pytest.mark.parametrize(
        ("more", "fault"),
        [
            ('<a href="c.html">C</a>', "links to c.html, which is not there"),
            ('<a href="b.html#c">C</a>', "links to b.html#c, a heading that is not there"),
            ('<a href="#c">C</a>', "links to #c, a heading that is not there"),
            ('<img src="c.svg">', "links to c.svg, which is not there"),
            ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
            ('<link rel="stylesheet" href="//cdn.example/x.css">', "loads //cdn.example/x.css"),
            ("<p>Such as:\n- one\n- two</p>", "shows Markdown: '- one'"),
            ("<p>See [this](that.md)</p>", "shows Markdown: ']('"),
        ],
    )
    def test_each_fault_is_found(self, tmp_path, more, fault):
        (tmp_path / "index.html").write_text(GOOD + more)
        (tmp_path / "b.html").write_text(OTHER)

        assert faults(tmp_path) == [f"index.html {fault}"]

    def test_a_page_that_only_the_navigation_leads_to_is_found(self, tmp_path):
        (tmp_path / "index.html").write_text(GOOD + '<nav><a href="c.html">C</a></nav>')
        (tmp_path / "b.html").write_text(OTHER)
        (tmp_path / "c.html").write_text("<article><p>See <code>[a](b)</code></p></article>")

        assert faults(tmp_path) == ["c.html is a page that no text leads to"]

    def test_a_stylesheet_that_asks_another_host_is_found(self, tmp_path):
        (tmp_path / "index.html").write_text(GOOD)
        (tmp_path / "b.html").write_text(OTHER)
        (tmp_path / "a.css").write_text("@font-face{src:url(https://fonts.example/a.woff2)}")

        assert faults(tmp_path) == ["a.css loads url(https://fonts.example/a.woff2"]
