"""Binaries: found in KUBEBUILDER_ASSETS, else in the cache, else downloaded, else built.

Their versions are those of `pins`.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hedgerow_testing.sandbox import toolchain
from hedgerow_testing.sandbox.build import build
from hedgerow_testing.sandbox.cache import BinaryCache, default_cache
from hedgerow_testing.sandbox.downloads import Downloads
from hedgerow_testing.sandbox.locks import Progress
from hedgerow_testing.sandbox.pins import CONTROL_PLANE, Module, PinnedRelease, numbers
from hedgerow_testing.sandbox.published import Origins

ASSETS = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where to look for a release's binaries; `mark` is added to a build's environment."""

    release: PinnedRelease
    progress: Progress
    exact: bool = False
    """Use only this release; otherwise any version in KUBEBUILDER_ASSETS."""
    mark: Mapping[str, str] = field(default_factory=dict[str, str])
    cache: BinaryCache = field(default_factory=default_cache)
    origins: Origins = field(default_factory=Origins)

    async def find(self, wanted: Collection[str]) -> dict[str, Path]:
        """Return the path of every wanted binary; missing ones are downloaded, or else built.

        If the machine has a working kubectl, that one is used. Raises SandboxError if a binary must
        be built but cannot be, or if others can write to the cache.
        """
        self.cache.check()
        paths = await self._ready_made(wanted)
        paths |= self._cached(name for name in wanted if name not in paths)
        missing = [name for name in wanted if name not in paths]
        if missing:
            downloads = Downloads(self.cache, self.progress, self.origins)
            await downloads.fetch(self._by_module(missing))
            paths |= self._cached(missing)
            missing = [name for name in wanted if name not in paths]
        if missing:
            await self._build(missing)
            paths |= self._cached(missing)
        return {name: paths[name] for name in wanted}

    def _cached(self, names: Iterable[str]) -> dict[str, Path]:
        paths = {name: self.cache.find(self.release.module(name), name) for name in names}
        return {name: path for name, path in paths.items() if path}

    async def _ready_made(self, wanted: Collection[str]) -> dict[str, Path]:
        paths: dict[str, Path] = {}
        kubectl = await self._machine_kubectl() if "kubectl" in wanted else None
        if kubectl is not None:
            paths["kubectl"] = kubectl
        assets = Path(os.environ[ASSETS]) if os.environ.get(ASSETS) else None
        if assets is not None:
            control_plane = [name for name in wanted if name in CONTROL_PLANE]
            others = [name for name in wanted if name not in (*CONTROL_PLANE, *paths)]
            if await self._fits(assets, control_plane):
                others += control_plane
            paths |= {name: assets / name for name in others if _runnable(assets / name)}
        return paths

    async def _fits(self, assets: Path, control_plane: Iterable[str]) -> bool:
        """Return whether the whole control plane is there, because it must have one version."""
        lacking = [name for name in control_plane if not _runnable(assets / name)]
        if lacking:
            self.progress(f"{ASSETS}={assets} has no {', '.join(lacking)}: passed over")
            return False
        server = assets / "kube-apiserver"
        version = await toolchain.answer(server, "--version") if self.exact else None
        if version is not None and numbers(version) != numbers(self.release.version):
            self.progress(f"{ASSETS}={assets} is {version}: passed over")
            return False
        return True

    async def _machine_kubectl(self) -> Path | None:
        on_path = shutil.which("kubectl")
        if on_path is None or await toolchain.answer(Path(on_path), "version", "--client") is None:
            return None
        return self.cache.origin(Path(on_path))

    def _by_module(self, names: Iterable[str]) -> Collection[tuple[Module, list[str]]]:
        modules: dict[Path, tuple[Module, list[str]]] = {}
        for name in names:
            module = self.release.module(name)
            modules.setdefault(module.directory, (module, []))[1].append(name)
        return modules.values()

    async def _build(self, missing: Collection[str]) -> None:
        modules = self._by_module(missing)
        go = await toolchain.find(max((module.go for module, _ in modules), key=numbers))
        left = [(module, name) for module, names in modules for name in names]
        for number, (module, name) in enumerate(left, 1):

            def progress(text: str, place: str = f"{number} of {len(left)}") -> None:
                self.progress(type(text)(f"{place}: {text}"))

            await build(self.cache, module, [name], go, progress=progress, mark=self.mark)


def _runnable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
