"""Binaries: found in KUBEBUILDER_ASSETS, else in the cache, else built from the pinned modules."""

import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio

from hedgerow.sandbox import toolchain
from hedgerow.sandbox.build import Cache, build, default_cache
from hedgerow.sandbox.locks import Progress
from hedgerow.sandbox.pins import CONTROL_PLANE, Module, Release, numbers

ASSETS = "KUBEBUILDER_ASSETS"
_PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where to look for a release's binaries; `mark` is added to a build's environment."""

    release: Release
    progress: Progress
    exact: bool = False
    """Only this release will do; else whatever version KUBEBUILDER_ASSETS holds."""
    mark: Mapping[str, str] = field(default_factory=dict[str, str])
    cache: Cache = field(default_factory=default_cache)

    async def find(self, wanted: Collection[str]) -> dict[str, Path]:
        """Give the path of every wanted binary, building what is nowhere.

        Raises SandboxError when something must be built and cannot be. kubectl is the machine's
        own if it has one that works.
        """
        found = await self._ready_made(wanted)
        for name in wanted:
            path = found.get(name) or self.cache.find(self.release.module(name), name)
            if path is not None:
                found[name] = path
        missing = [name for name in wanted if name not in found]
        if missing:
            await self._build(missing)
            found |= {name: self.cache.entry(self.release.module(name)) / name for name in missing}
        return {name: found[name] for name in wanted}

    async def _ready_made(self, wanted: Collection[str]) -> dict[str, Path]:
        found: dict[str, Path] = {}
        kubectl = await self._machine_kubectl() if "kubectl" in wanted else None
        if kubectl is not None:
            found["kubectl"] = kubectl
        assets = Path(os.environ[ASSETS]) if os.environ.get(ASSETS) else None
        if assets is not None:
            control_plane = [name for name in wanted if name in CONTROL_PLANE]
            others = [name for name in wanted if name not in (*CONTROL_PLANE, *found)]
            if await self._fits(assets, control_plane):
                others += control_plane
            found |= {name: assets / name for name in others if _runnable(assets / name)}
        return found

    async def _fits(self, assets: Path, control_plane: Iterable[str]) -> bool:
        """Tell whether all of the control plane is there, as it must be of one version."""
        lacking = [name for name in control_plane if not _runnable(assets / name)]
        if lacking:
            self.progress(f"{ASSETS}={assets} has no {', '.join(lacking)}: passed over")
            return False
        version = await _answer(assets / "kube-apiserver", "--version") if self.exact else None
        if version is not None and numbers(version) != numbers(self.release.version):
            self.progress(f"{ASSETS}={assets} is {version}: passed over")
            return False
        return True

    async def _machine_kubectl(self) -> Path | None:
        on_path = shutil.which("kubectl")
        if on_path is None or await _answer(Path(on_path), "version", "--client") is None:
            return None
        return self.cache.origin(Path(on_path))

    async def _build(self, missing: Collection[str]) -> None:
        modules: dict[Path, tuple[Module, list[str]]] = {}
        for name in missing:
            module = self.release.module(name)
            modules.setdefault(module.directory, (module, []))[1].append(name)
        needed = max((module.go for module, _ in modules.values()), key=numbers)
        go = await toolchain.find(needed)
        for module, names in modules.values():
            await build(self.cache, module, names, go, progress=self.progress, mark=self.mark)


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


async def _answer(command: Path, *arguments: str) -> str | None:
    """Run a command that answers at once; None when it cannot."""
    with anyio.move_on_after(_PATIENCE):
        try:
            answer = await anyio.run_process(
                [command, *arguments], stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, check=False
            )
        except OSError:
            return None
        return answer.stdout.decode(errors="replace").strip() if answer.returncode == 0 else None
    return None
