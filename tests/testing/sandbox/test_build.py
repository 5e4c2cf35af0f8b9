"""Building into the cache: whole binaries or none, and one builder at a time."""

import re
from pathlib import Path

import anyio
import pytest

from hedgerow_testing.sandbox import build as module
from hedgerow_testing.sandbox.build import build
from hedgerow_testing.sandbox.cache import BinaryCache
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.pauses import until
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandbox.toolchain import Go
from support.programs.fakes import Fakes
from support.programs.killed import killed
from support.programs.leftovers import leftovers, nothing_left

RELEASE = pick("1.37")
MARK = {"HEDGEROW_SANDBOX": "of-this-test"}


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    return Fakes(tmp_path / "go", names=["go"])


@pytest.fixture
def cache(tmp_path: Path) -> BinaryCache:
    return BinaryCache(tmp_path / "cache")


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def make(fakes: Fakes, cache: BinaryCache, told: list[str]):
    async def run(*binaries: str, progress=None) -> None:
        go = Go(fakes.directory / "go", (1, 26, 8))
        tell = progress or told.append
        await build(cache, RELEASE.module(binaries[0]), binaries, go, progress=tell, mark=MARK)

    return run


def compiling(fakes: Fakes):
    async def both() -> bool:
        return len(leftovers(fakes.directory)) >= 2

    return both


def partials(cache: BinaryCache) -> list[Path]:
    return list(cache.root.glob("*.partial"))


@pytest.mark.anyio
class TestBuild:
    async def test_binaries_are_cached_under_version_platform_and_digest(
        self, make, cache: BinaryCache
    ) -> None:
        await make("kube-apiserver", "kubectl")

        found = cache.find(RELEASE.kubernetes, "kube-apiserver")
        assert found is not None
        assert found.parent.name.startswith("kubernetes-1.37.2-linux-")
        assert found.parent.name.endswith(RELEASE.kubernetes.digest)
        assert sorted(path.name for path in found.parent.iterdir()) == ["kube-apiserver", "kubectl"]
        assert partials(cache) == []

    async def test_go_is_told_to_change_nothing_and_to_fetch_no_toolchain(
        self, make, fakes: Fakes, cache: BinaryCache
    ) -> None:
        await make("etcd")

        (asked,) = fakes.builds()
        assert asked["package"] == "go.etcd.io/etcd/server/v3"
        assert asked["env"]["GOFLAGS"] == "-mod=readonly -trimpath"
        assert asked["env"]["GOTOOLCHAIN"] == "local"
        assert Path(asked["cwd"]).parent == cache.root

    async def test_what_is_there_is_not_built_again(self, make, fakes: Fakes) -> None:
        await make("kube-apiserver")
        await make("kube-apiserver", "kube-scheduler")

        built = [str(asked["package"]).rpartition("/")[2] for asked in fakes.builds()]
        assert built == ["kube-apiserver", "kube-scheduler"]

    async def test_it_tells_how_far_it_is(self, make, fakes: Fakes, told, monkeypatch) -> None:
        monkeypatch.setattr(module, "TELL_EVERY", 0.02)
        fakes.wish("go", chatty=20)

        await make("kwok")

        assert told[0] == "building kwok 0.8.0, which takes minutes the first time"
        assert any(
            re.fullmatch(r"building kwok 0\.8\.0: \d+ packages, \d s", line) for line in told
        )

    async def test_a_failed_build_is_one_line_and_leaves_nothing(
        self, make, fakes: Fakes, cache: BinaryCache
    ) -> None:
        fakes.wish("go", fail="main.go:1: no space left on device")

        with pytest.raises(
            SandboxError, match=r"building kwok 0\.8\.0 failed: main\.go:1: no"
        ) as raised:
            await make("kwok")

        assert "\n" not in str(raised.value)
        assert "sigs.k8s.io/kwok/cmd/kwok" in raised.value.__notes__
        assert partials(cache) == []
        assert cache.find(RELEASE.kwok, "kwok") is None

    async def test_a_build_that_fails_silently_gives_its_exit_code(
        self, make, fakes: Fakes
    ) -> None:
        (fakes.directory / "go").write_text("#!/bin/sh\nexit 3\n")

        with pytest.raises(SandboxError, match="failed: exit code 3"):
            await make("kwok")

    async def test_what_a_killed_build_left_is_not_mistaken_for_a_binary(
        self, make, cache: BinaryCache
    ) -> None:
        entry = cache.entry(RELEASE.kwok)
        left = entry.with_name(f"{entry.name}.partial") / "out/kwok"
        left.parent.mkdir(parents=True)
        left.write_text("half")
        assert cache.find(RELEASE.kwok, "kwok") is None

        await make("kwok")

        assert (entry / "kwok").read_text() != "half"
        assert partials(cache) == []

    async def test_two_at_once_build_once_and_the_second_says_that_it_waits(
        self, make, fakes: Fakes, told
    ) -> None:
        fakes.wish("go", chatty=30)

        async with anyio.create_task_group() as group:
            group.start_soon(make, "etcd")
            group.start_soon(make, "etcd")

        assert len(fakes.builds()) == 1
        assert any(line.startswith("waiting for process") for line in told)

    async def test_cancelled_it_ends_the_compilers_and_leaves_nothing(
        self, make, fakes: Fakes, cache: BinaryCache, tmp_path: Path
    ) -> None:
        fakes.wish("go", slow=True)

        async with anyio.create_task_group() as group:
            group.start_soon(make, "etcd")
            assert await until(compiling(fakes), seconds=20)
            group.cancel_scope.cancel()

        nothing_left(tmp_path)
        assert partials(cache) == []
        fakes.wish("go")
        await make("etcd")
        assert cache.find(RELEASE.etcd, "etcd")


class TestKilled:
    def test_a_killed_builder_takes_its_compilers_with_it(
        self, fakes: Fakes, cache: BinaryCache, tmp_path: Path
    ) -> None:
        fakes.wish("go", slow=True)
        killed(BUILDER, tmp_path, once=lambda: len(leftovers(fakes.directory)) >= 2)

        nothing_left(tmp_path)
        assert cache.find(RELEASE.etcd, "etcd") is None


BUILDER = """
import sys, anyio
from pathlib import Path
from hedgerow_testing.sandbox.build import build
from hedgerow_testing.sandbox.cache import BinaryCache
from hedgerow_testing.sandbox.leash import MARK, Leash
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandbox.toolchain import Go

async def main():
    root, mark = Path(sys.argv[1]), "a-builder-to-be-killed"
    go, cache = Go(root / "go/go", (1, 26)), BinaryCache(root / "cache")
    with Leash(mark):
        await build(cache, pick("").etcd, ["etcd"], go, progress=print, mark={MARK: mark})

anyio.run(main)
"""
