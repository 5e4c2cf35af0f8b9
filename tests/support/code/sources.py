"""Sources: the modules under `operator/` and `schemas/`, read and parsed once."""

from __future__ import annotations

import ast
import gc
import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Module:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """The path below the source root, which is what a person calls it."""
        return "/".join(self.path.relative_to(ROOT).parts[1:])

    @property
    def dotted(self) -> str:
        """The name by which it is imported."""
        return self.name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree, walked through once."""
        return tuple(ast.walk(self.tree))


@cache
def modules() -> tuple[Module, ...]:
    paths = sorted([*(ROOT / "operator").rglob("*.py"), *(ROOT / "schemas").rglob("*.py")])
    found = tuple(
        Module(path, text := path.read_text("utf-8"), ast.parse(text, str(path))) for path in paths
    )
    # 400,000 objects that live as long as the worker: they would be looked through, a second each
    # time, wherever a later test collects garbage.
    gc.freeze()
    return found


COMMANDS = tuple(
    f"hedgerow_testing/{room}" for room in ("audit/cli/", "demo/", "generate.py", "sandbox/")
)


def running() -> list[Module]:
    """Return all but the test kit, which plays other people and is imported by no operator."""
    kit = [module for module in modules() if module.name.startswith("hedgerow_testing/")]
    return [one for one in modules() if one not in kit or one.name.startswith(COMMANDS)]


def spelled(node: ast.expr) -> str:
    """Return an expression as it is written; a dotted name without a walk by `ast.unparse`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{spelled(value)}.{name}"
    return ast.unparse(node)


def committed(*suffixes: str) -> list[Path]:
    """Return the files that belong in the repository; a machine that tests it may have no git."""
    found: list[Path] = []
    for directory, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in IGNORED]
        # In a worktree, .git is a file.
        found += [Path(directory, name) for name in files if name not in IGNORED]
    return sorted(path for path in found if not suffixes or path.suffix in suffixes)


IGNORED = {
    ".coverage", ".git", ".venv", ".hypothesis", ".import_linter_cache", ".pytest_cache",
    ".ruff_cache", "__pycache__", "dist",
}  # fmt: skip
