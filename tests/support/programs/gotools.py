"""Gotools: programs in Go that tests run, built once from pinned modules and kept in the cache."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import anyio

from hedgerow_testing.sandbox import toolchain
from hedgerow_testing.sandbox.build import build
from hedgerow_testing.sandbox.cache import default_cache
from hedgerow_testing.sandbox.leash import MARK, Leash
from hedgerow_testing.sandbox.locks import Progress
from hedgerow_testing.sandbox.pins import Module

MODULES = Path(__file__).parent / "modules"


def tool(name: str) -> Path:
    """Return the program of the module of that name, which is pinned as the only `tool` of it.

    Raises SandboxError if it is not there and cannot be built.
    """
    return anyio.run(prepared, pinned(MODULES / name, name), print)[name]


async def prepared(module: Module, progress: Progress) -> dict[str, Path]:
    """Return the paths of a module's programs, building what is not in the cache.

    Raises SandboxError.
    """
    cache = default_cache()
    missing = [name for name in module.packages if cache.find(module, name) is None]
    if missing:
        mark = secrets.token_hex(16)
        with Leash(mark):
            go = await toolchain.find(module.go)
            await build(cache, module, missing, go, progress=progress, mark={MARK: mark})
    return {name: cache.entry(module) / name for name in module.packages}


def pinned(directory: Path, name: str) -> Module:
    """Return a module with its version, which is that of the module that has the tool."""
    text = (directory / "go.mod").read_text("utf-8")
    (package,) = re.findall(r"^tool (\S+)$", text, re.MULTILINE)
    versions = re.findall(r"^\t(\S+) v(\S+)", text, re.MULTILINE)
    version = next(version for path, version in versions if f"{package}/".startswith(f"{path}/"))
    (go,) = re.findall(r"^go (\S+)$", text, re.MULTILINE)
    return Module(directory, version, {name: package}, "-s -w", go)
