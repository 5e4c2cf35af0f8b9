"""Versions: what is supported says so everywhere, and what is needed is a range that is tested."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.code.sources import ROOT, modules
from versions.__main__ import PROJECT, PYTHONS

NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
TESTING = [Requirement(text) for text in PROJECT["optional-dependencies"]["testing"]]
PARTS_OF_PYDANTIC = {"annotated-types", "pydantic-core"}
LOCKED = dict(
    re.findall(r"^([\w.-]+)==([^\s\\;]+)", (ROOT / ".ci/constraints.txt").read_text(), re.MULTILINE)
)


class TestRanges:
    @pytest.mark.parametrize("needed", [*NEEDED, *TESTING], ids=lambda needed: needed.name)
    def test_each_begins_somewhere_ends_nowhere_exactly_and_has_what_ci_runs(self, needed):
        signs = {one.operator for one in needed.specifier}

        assert ">=" in signs, "without a beginning `task versions` would try the first release"
        assert signs <= {">=", "<"}, "beside other libraries"
        assert needed.specifier.contains(LOCKED[canonicalize_name(needed.name)])

    def test_every_package_that_is_imported_is_named(self):
        """Only the test kit needs more: what its extra names."""
        named = {canonicalize_name(needed.name) for needed in NEEDED} | PARTS_OF_PYDANTIC
        testing = named | {canonicalize_name(needed.name) for needed in TESTING}
        missing = {
            (module.name, name)
            for module in modules()
            for name in _imported(module.nodes)
            if not _distributions(name)
            <= (testing if module.name.startswith("hedgerow_testing/") else named)
        }

        assert missing == set()


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the top-level packages of others that a module imports."""
    statements = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        name.partition(".")[0]
        for node in statements
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    return {name for name in names - sys.stdlib_module_names if not name.startswith("hedgerow")}


def _distributions(package: str) -> set[str]:
    return {canonicalize_name(name) for name in _installed().get(package, [package])}


_installed = cache(packages_distributions)


class TestPythons:
    def test_the_project_names_those_that_are_tried(self):
        named = [line.rpartition(" :: ")[2] for line in PROJECT["classifiers"]]

        assert [name for name in named if re.fullmatch(r"3\.\d+", name)] == [*PYTHONS]
        assert PROJECT["requires-python"] == f">={PYTHONS[0]}"

    def test_the_set_up_takes_any_of_them(self):
        text = (ROOT / "task").read_text()

        assert " ".join(f"python{version}" for version in reversed(PYTHONS)) in text
        assert f"no Python {PYTHONS[0]} or newer" in text
