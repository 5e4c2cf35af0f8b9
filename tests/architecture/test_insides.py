"""The tests see what an outsider sees: they read nothing private and build no part of a pass.

So that the runtime can be rebuilt behind them. `Life` and `InMemory` of the test kit run the
operator in memory, step by step or by itself; what has a test of its own has a public name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
RUNTIME = "hedgerow.runtime"
PUBLIC = (
    *("clock", "logs", "meters", "metric_names", "namespaces", "passes.turns"),
    *("workqueue", "cache.door", "cache.store"),
    *("events.recorder", "events.notices"),
)
"""The modules of the runtime that have tests of their own, or that tests use as they are."""
OF_TUPLES = {"_replace", "_asdict", "_fields", "_exit"}
"""Public names that begin like private ones: those of named tuples, and `os._exit`."""
PATCHING = {"setattr", "delattr", "getattr"}

GOING = {
    "manifests/test_monitoring.py": "_labelnames _names_to_collectors",
    "runtime/cache/test_caches.py": "Cache Source build",
    "runtime/cache/test_packing.py": "Packing",
    "runtime/cache/test_store.py": "_indices",
    "runtime/shop.py": "insides",
    "runtime/test_effort.py": "ResourcePlanner _pass _reconciler insides",
    "runtime/passes/test_reconciler.py": "_reconciler insides",
    "runtime/passes/test_refusals.py": (
        "Reaction RefusalKind RefusalRule RequestKind TABLE refusals"
    ),
    "runtime/passes/test_slow_compose.py": "_loop",
    "runtime/passes/test_state.py": "MOST_ONCE ResourceState",
    "runtime/test_store_histories.py": "_indices",
    "runtime/world.py": "ControllerRunner",
}
"""What is tested by its parts."""
FOREIGN = {
    "cluster/conftest.py": "_get_local_constants",
}
"""What other packages have no public name for."""
ALLOWED = {file: set(names.split()) for file, names in (GOING | FOREIGN).items()}


def nodes(text: str) -> list[ast.AST]:
    """Return all nodes of a file, walked through once."""
    return list(ast.walk(ast.parse(text)))


def insides(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names of what is imported of the runtime's inside, or read of an operator's."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and _is_inside(node.module or ""):
            yield from (alias.name for alias in node.names if not _is_public(node, alias))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_inside(alias.name))
        elif isinstance(node, ast.Attribute) and node.attr == "insides":
            yield node.attr


def _is_inside(module: str) -> bool:
    within = module.removeprefix(f"{RUNTIME}.")
    public = any(f"{within}.".startswith(f"{name}.") for name in PUBLIC)
    return f"{module}.".startswith(f"{RUNTIME}.") and not public


def _is_public(node: ast.ImportFrom, alias: ast.alias) -> bool:
    """Return whether a name is imported of a public module, or is one."""
    return not _is_inside(f"{node.module}.{alias.name}")


def private(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the private names that are read or replaced, but for those of the file's own."""
    own = {name for node in nodes if (name := _defined(node))}
    for node in nodes:
        if isinstance(node, ast.Attribute) and not _is_self(node.value):
            name = node.attr
        elif isinstance(node, ast.Call) and _called(node.func) in PATCHING:
            texts = (each.value for each in node.args if isinstance(each, ast.Constant))
            name = next((str(text).rpartition(".")[2] for text in texts), "")
        else:
            continue
        is_private = name.startswith("_") and not name.endswith("__")
        if is_private and name not in OF_TUPLES and name not in own:
            yield name


def _defined(node: ast.AST) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.Attribute(value=value, attr=name, ctx=ast.Store()) if _is_self(value):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _is_self(node: ast.expr) -> bool:
    is_super = isinstance(node, ast.Call) and _called(node.func) == "super"
    return is_super or (isinstance(node, ast.Name) and node.id in {"self", "cls"})


def _called(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


FILES = [
    str(path.relative_to(TESTS)) for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)
]


@pytest.mark.parametrize("room", sorted({file.partition("/")[0] for file in FILES}))
def test_no_test_looks_inside_but_the_exceptions_which_are_all_needed(room: str):
    for file in FILES:
        if file.partition("/")[0] == room:
            found = nodes((TESTS / file).read_text("utf-8"))
            names, allowed = {*insides(found), *private(found)}, ALLOWED.get(file, set())
            more, unused = sorted(names - allowed), sorted(allowed - names)
            assert not more, f"{file} reads {more}: see what an outsider sees instead"
            assert not unused, f"{file} no longer reads {unused}: take them off the list"


def test_each_exception_is_for_a_file_that_is_there():
    assert ALLOWED.keys() - set(FILES) == set()


def test_what_is_inside_is_seen():
    found = nodes("from hedgerow.runtime import reads, logs\nself._mine = world.server._objects")

    assert (set(insides(found)), set(private(found))) == ({"reads"}, {"_objects"})
