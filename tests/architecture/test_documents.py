"""What the documents say, as far as a program can tell whether it is so."""

from __future__ import annotations

import re
import shlex
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hedgerow_testing.audit.inputs import read_inputs
from support.code.documents import anchors, links
from support.code.sources import ROOT, committed
from support.programs.tutorial import blocks

README = (ROOT / "README.md").read_text("utf-8")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
CI = (ROOT / ".ci/run").read_text("utf-8")
LOCKS = [ROOT / ".ci" / name for name in ("constraints.txt", "image.txt", "build.txt")]
DOCUMENTS = committed(".md")
DECISIONS = sorted((ROOT / "docs/adr").glob("*.md"))
DEFINED = re.compile(r"^\s*(?:class|(?:async )?def) (\w+)", re.MULTILINE)
SOURCE = re.compile(r"`((?:[\w.-]+/)+\w+\.py)`")
PACKAGES = (
    "", "operator", "operator/hedgerow", "operator/hedgerow_testing", "operator/hedgerow_tools",
    "schemas", "schemas/hedgerow_schemas",
)  # fmt: skip
ABSENT = {"operator/__init__.py"}
"""The paths that are cited because no such file may be there."""
"""The names that a line of a list begins with, in the docstring of a package."""
HOSTS = re.compile(r"https?://(?:[\w-]+\.)*(?:pypi|pythonhosted|npmjs|golang|docker)\.\w+")


@cache
def names() -> set[str]:
    """Return the names of the tests' files, classes and functions."""
    files = [*(ROOT / "tests").rglob("*.py")]
    defined = (DEFINED.findall(file.read_text("utf-8")) for file in files)
    return {file.name for file in files}.union(*defined)


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def lines(lock: Path) -> list[str]:
    """Return a lock file's lines, each with its hashes."""
    return lock.read_text("utf-8").replace("\\\n", "").splitlines()


def pins(lock: Path = LOCKS[0]) -> dict[str, Requirement]:
    """Return what a lock file pins, by name."""
    found = [Requirement(line.partition("--hash")[0]) for line in lines(lock)]
    return {requirement.name.lower().replace("_", "-"): requirement for requirement in found}


class TestLockFile:
    @pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
    def test_every_line_is_one_exact_version_with_its_hashes(self, lock):
        loose = [
            line
            for line in lines(lock)
            if not re.fullmatch(r"[\w.-]+==[\w.]+ [^@]*(--hash=sha256:[0-9a-f]{64}\s*)+", line)
        ]

        assert lines(lock)
        assert loose == []

    @pytest.mark.parametrize("lock", LOCKS[1:], ids=lambda lock: lock.name)
    def test_the_image_is_made_of_the_versions_that_are_tested(self, lock):
        tested = pins()

        assert {name: str(pin.specifier) for name, pin in pins(lock).items()} == {
            name: str(tested[name].specifier) for name in pins(lock)
        }
        assert pins(lock).keys() < tested.keys()

    def test_it_covers_what_pyproject_asks_for_within_its_bounds(self):
        asked = [*project()["dependencies"], *project()["optional-dependencies"]["dev"]]
        missing = []
        for wanted in map(Requirement, asked):
            pin = pins().get(wanted.name.lower())
            version = str(pin.specifier).removeprefix("==") if pin else ""
            if not version or not wanted.specifier.contains(version):
                missing.append(str(wanted))

        assert missing == []

    @pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
    def test_it_names_no_host(self, lock):
        text = lock.read_text("utf-8").replace("--hash", "")

        assert "/" not in text
        assert "--" not in text


class TestReadme:
    def test_its_two_commands_are_tasks_and_ci_runs_the_second(self):
        assert readme_block("two commands") == ["./task demo", "./task test"]
        assert "./task test" in CI

    def test_its_pictures_are_files_of_the_repository(self):
        named = re.findall(r'\b(?:src|srcset)="([^"]+)"', README)

        assert len(named) == 2
        assert [name for name in named if not (ROOT / name).is_file()] == []

    def test_it_is_short_and_has_its_parts_in_this_order(self):
        assert re.findall(r"^## (.+)$", README, re.MULTILINE) == [
            "Try it",
            "A conflict",
            "The kinds",
            "Fields on any cluster",
            "Your own operator",
            "In a cluster",
            "More",
        ]
        assert len(README.split()) <= 750

    @pytest.mark.parametrize(("name", "guide"), [("audit", "helm-4.md"), ("compose", "library.md")])
    def test_what_it_shows_is_what_a_guide_shows_that_is_run(self, name, guide):
        page = iter((ROOT / "docs/guides" / guide).read_text("utf-8").splitlines())
        found = re.search(rf"<!-- {name} -->\n+```\w+\n(.*?)```", README, re.DOTALL)
        assert found

        # What is typed in a clone names the files that the guide lets its reader write.
        shown = [line for line in found[1].splitlines() if not line.startswith(("…", "$ "))]
        assert [line for line in shown if line not in page] == []

    def test_its_audit_runs_as_typed_in_a_clone(self):
        """`tests/cluster/test_audit_guide.py` audits the same files."""
        found = re.search(r"<!-- audit -->\n+```console\n\$ (.*)\n", README)
        assert found
        words = shlex.split(found[1])
        crds, samples, program = words[3], words[5], words[words.index("python") + 1]

        inputs = read_inputs(["python", program], ROOT / crds, ROOT / samples)
        assert [one["kind"] for one in inputs.samples] == ["Backup"]
        assert [one["metadata"]["name"] for one in inputs.definitions] == ["backups.example.com"]
        assert (ROOT / program).is_file()

    def test_its_example_is_that_of_the_guide(self):
        written = {one.file: one.text for one in blocks(ROOT / "docs/guides/helm-4.md") if one.file}
        files = sorted((ROOT / "examples/audit").iterdir())

        assert [one.name for one in files] == ["careless.py", "crds.yaml", "samples.yaml"]
        assert all(one.read_text("utf-8") == written[one.name] for one in files)


def readme_block(name: str) -> list[str]:
    """Return the lines of the code block that a comment in the README marks by name."""
    found = re.search(rf"<!-- {name} -->\n+```sh\n(.*?)```", README, re.DOTALL)
    assert found, f"no block marked {name!r}"
    commands = [line.partition("#")[0].strip() for line in found[1].splitlines()]
    return [command for line in commands for command in line.split(" && ") if command]


class TestYourFirstOperator:
    CODE = [
        block.text
        for block in blocks(ROOT / "docs/your-first-operator.md")
        if block.file.endswith(".py")
    ]

    def test_its_code_imports_the_library_alone(self):
        lines = "\n".join(self.CODE).splitlines()
        imported = {line.split()[1] for line in lines if line.startswith("from ")}

        assert imported - {"typing", "datetime", "guestbook"} <= {"hedgerow", "hedgerow_testing"}


class TestDecisions:
    def test_they_are_numbered_in_the_order_in_which_they_are_read(self):
        titles = [path.read_text("utf-8").splitlines()[0] for path in DECISIONS]

        assert [path.name[:4] for path in DECISIONS] == [f"{n:04}" for n, _ in enumerate(titles, 1)]
        assert [int(title.removeprefix("# ").split(".")[0]) for title in titles] == [
            number for number, _ in enumerate(titles, 1)
        ]

    def test_whoever_cites_one_gives_a_number_that_is_there(self):
        known = {f"ADR {path.name[:4]}" for path in DECISIONS}
        cited = {
            name
            for path in committed(".py", ".toml", ".md", ".yml", ".yaml", "")
            for name in re.findall(r"\bADR \d+", path.read_text("utf-8", errors="replace"))
        }

        assert cited
        assert cited - known == set()

    @pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
    def test_the_tests_that_it_cites_are_there(self, path):
        text = path.read_text("utf-8")
        cited = re.findall(r"`(tests/[\w./-]+|test_\w+(?:\.py)?|Test\w+)`", text)
        # In the way of: `tests/a/test_b.py`: "what it shows".
        quoted = re.findall(r'`tests/[\w./]+\.py`\W{0,4}"([a-z][^"]+)"', text)
        cited += ["test_" + re.sub(r"\W+", "_", words) for words in quoted]

        assert [name for name in cited if not (ROOT / name).exists() and name not in names()] == []

    @pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
    def test_the_sources_that_it_cites_are_there(self, path):
        cited = set(SOURCE.findall(path.read_text("utf-8")))

        assert [name for name in sorted(cited - ABSENT) if not is_source(name)] == []

    @pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
    def test_each_has_its_four_parts_on_one_page(self, path):
        text = path.read_text("utf-8")

        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert headings == ["Context", "Decision", "Measured", "Refused"]
        assert len(text.splitlines()) <= 60


def is_source(name: str) -> bool:
    """Return whether a path is one of a source file, from the root or below a package."""
    return any((ROOT / place / name).is_file() for place in PACKAGES)


class TestLinks:
    def test_every_one_outside_of_the_site_leads_to_a_file_and_a_heading(self):
        """To build the site fails for those of its pages."""
        aimed = [
            (path.name, ROOT / place, anchor)
            for path in DOCUMENTS
            if path not in PAGES
            for place, anchor in links(path)
        ]
        lost = [
            (name, place, anchor)
            for name, place, anchor in aimed
            if not place.exists()
            or (anchor and place.suffix == ".md" and anchor not in anchors(place))
        ]

        assert len(aimed) > 20
        assert lost == []


def test_no_file_names_a_package_registry():
    named = [
        str(path.relative_to(ROOT))
        for path in committed(".py", ".toml", ".txt", ".yml", ".yaml", ".md", "")
        if HOSTS.search(path.read_text("utf-8", errors="replace"))
    ]

    assert named == []
