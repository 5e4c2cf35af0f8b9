"""What an operator process imports: each library costs time at every start, and memory."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from support.code.sources import modules

COSTLY = ("kr8s", "cryptography", "httpx_ws")


def imported(statement: str) -> set[str]:
    """Return the modules of a fresh process after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", COSTLY)
def test_an_operator_without_webhooks_and_plugins_does_without(name):
    assert name not in _operator()


def test_the_command_line_imports_no_command_before_it_is_called():
    assert not {"pydantic", "httpx", "yaml", "anyio"} & imported("import hedgerow.cli")


def _operator() -> set[str]:
    if not _MODULES:
        _MODULES.update(imported("import hedgerow.app"))
    return _MODULES


_MODULES: set[str] = set()


def test_a_class_of_the_client_is_imported_from_the_module_that_defines_it():
    defined = {
        (module.dotted, node.name)
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }
    named = {name for where, name in defined if where.startswith("hedgerow.kube.")}
    found = {
        f"{module.name}: {node.module}.{alias.name}"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hedgerow.kube.")
        for alias in node.names
        if alias.name in named and (node.module, alias.name) not in defined
    }

    assert len(named) > 50
    assert found == set()
