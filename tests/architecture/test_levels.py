"""One level for each promise: a controller without an operator, a server for its facts alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.real import REAL
from support.code.sources import ROOT

FILES = sorted(
    path for name in ("cluster", "e2e") for path in (ROOT / "tests" / name).rglob("test_*.py")
)
PURE = sorted((ROOT / "tests/controllers").rglob("*.py"))
OPERATOR = ("hedgerow.runtime.", "hedgerow.process.", "hedgerow.kube.", "runtime.", "faults.")
FACT = re.compile(r"Fact: \w[^\n]{15,}\.(?:\n\n|\Z)")
"""A sentence on the first line: what of a real server, node or program no model can know."""


def without_fact(text: str) -> Iterator[str]:
    """Yield the names of the tests of a file whose docstrings name no fact."""
    for node in ast.walk(ast.parse(text)):
        is_test = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if not is_test or not node.name.startswith("test_"):
            continue
        if not FACT.match(ast.get_docstring(node) or ""):
            yield node.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_each_test_on_a_server_names_the_fact_that_no_model_can_know(path: Path):
    assert list(without_fact(path.read_text("utf-8"))) == []


def of_operator(text: str) -> list[str]:
    """Return what a file imports of the operator, or of what runs one in memory."""
    found = list[str]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            found += [one.name for one in node.names]
    return [name for name in found if f"{name}.".startswith(OPERATOR)]


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.name)
def test_a_controller_is_tested_without_an_operator(path: Path):
    """What needs one stands in `tests/runtime`."""
    assert of_operator(path.read_text("utf-8")) == []


def test_an_import_of_the_operator_is_seen():
    assert of_operator("from hedgerow import Deployment, runtime") == ["hedgerow.runtime"]


def test_each_row_that_a_server_plays_names_its_fact():
    assert REAL
    assert [row.name for row in REAL if not FACT.match(f"Fact: {row.real}")] == []


def test_a_test_without_a_fact_is_seen():
    text = 'async def test_it():\n    """The garbage collector runs."""\n'

    assert list(without_fact(text)) == ["test_it"]
