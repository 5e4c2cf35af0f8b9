"""Scaffold: the files of a new operator, made from the templates beside this module.

A template is the file itself, with `$name` and the like to be filled in. Lines between
`#@ Deployment Service` and `#@` are there if one of these kinds is a child; those after
`#@ !Deployment`, if it is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from hedgerow.version import version
from hedgerow_tools.new.names import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MARK = "#@"
_TEMPLATES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "Taskfile.yml": "Taskfile.yml",
    "Containerfile": "Containerfile",
    "gitignore": ".gitignore",
    "dockerignore": ".dockerignore",
    "ci.yml": ".github/workflows/ci.yml",
    "package.py": "{name}/__init__.py",
    "main.py": "{name}/__main__.py",
    "model.py": "{name}/model.py",
    "controller.py": "{name}/controller.py",
    "py.typed": "{name}/py.typed",
    "sample.yaml": "manifests/sample.yaml",
    "conftest.py": "tests/conftest.py",
    "test_cluster.py": "tests/test_cluster.py",
    "test_controller.py": "tests/test_controller.py",
    "test_manifests.py": "tests/test_manifests.py",
}
"""Where each template's file is to be; `{name}` stands for the package."""
FUNCTIONS = {"ConfigMap": "config_map", "Deployment": "deployment", "Service": "service"}
"""The function of the template `controller.py` that returns a child of each kind."""


@dataclass(frozen=True, slots=True)
class NewOperator:
    """What the templates are filled in with."""

    name: str
    group: str
    kind: str
    children: tuple[str, ...]

    @property
    def image(self) -> str:
        """The image that the manifests name until there is another one."""
        return f"{self.name}:0.1.0"

    @property
    def words(self) -> dict[str, str]:
        """What stands for what in a template."""
        return {
            "name": self.name,
            "group": self.group,
            "kind": self.kind,
            "plural": plural(self.kind),
            "image": self.image,
            "owns": _items(self.children),
            "made": _items(f"{FUNCTIONS[kind]}(resource)" for kind in self.children),
            "hedgerow": compatible(version()),
        }


def _items(items: Iterable[str]) -> str:
    """Return the items of a tuple as the formatter writes them, without the parentheses."""
    written = tuple(items)
    return f"{written[0]}," if len(written) == 1 else ", ".join(written)


def files(operator: NewOperator) -> dict[str, str]:
    """Return the text of every file by its path in the new folder."""
    folder = resources.files("hedgerow_tools.new") / "templates"
    return {
        target.format(name=operator.name): _filled(
            (folder / f"{source}.txt").read_text("utf-8"), operator
        )
        for source, target in _TEMPLATES.items()
    }


def _filled(template: str, operator: NewOperator) -> str:
    kept = "".join(_kept(template.splitlines(keepends=True), operator.children))
    return Template(kept).substitute(operator.words)


def _kept(lines: list[str], children: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines that are for these children."""
    kept = True
    for line in lines:
        if line.startswith(_MARK):
            wanted = line.removeprefix(_MARK).split()
            kept = not wanted or any(_is_met(word, children) for word in wanted)
        elif kept:
            yield line


def _is_met(word: str, children: tuple[str, ...]) -> bool:
    return (word.removeprefix("!") in children) != word.startswith("!")


def compatible(version: str) -> str:
    """Return the versions of the library that have what this one has: `>=0.1.0,<0.2`."""
    major, minor, *_ = version.split(".")
    following = f"0.{int(minor) + 1}" if major == "0" else f"{int(major) + 1}"
    return f">={version},<{following}"
