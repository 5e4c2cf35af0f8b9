"""Where binaries come from, and in what order."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from hedgerow_testing.sandbox import binaries as module
from hedgerow_testing.sandbox.binaries import Binaries
from hedgerow_testing.sandbox.cache import BinaryCache
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandbox.published import Origins
from support.programs.fakes import SERVERS, Fakes
from support.programs.projects import WRONG, Projects, nowhere

pytestmark = pytest.mark.anyio

RELEASE = pick("")
CONTROL_PLANE = SERVERS[1:4]


@dataclass
class World:
    """A machine: KUBEBUILDER_ASSETS, a cache, a PATH, and what was said."""

    root: Path
    told: list[str]

    @property
    def assets(self) -> Path:
        return self.root / "assets"

    @property
    def path(self) -> Path:
        return self.root / "path"

    @property
    def cache(self) -> BinaryCache:
        return BinaryCache(self.root / "cache")

    def cached(self, *names: str) -> None:
        for name in names:
            entry = self.cache.entry(RELEASE.module(name))
            Fakes(entry, names=[name])

    def downloaded(self) -> list[str]:
        """Return the names of what was downloaded into the cache."""
        entries = self.cache.root.glob("*-downloaded")
        return sorted(p.name for e in entries for p in e.iterdir() if not p.suffix)

    async def find(
        self, *names: str, exact: bool = False, origins: Origins | None = None
    ) -> dict[str, str]:
        """Return for each name the part of the world it was found in; no project answers."""
        search = Binaries(
            *(RELEASE, self.told.append),
            exact=exact,
            cache=self.cache,
            origins=origins or nowhere(),
        )
        found = await search.find(names)
        assert list(found) == list(names)
        return {n: p.relative_to(self.root).parts[0] for n, p in found.items()}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = World(tmp_path, [])
    made.path.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(made.assets))
    monkeypatch.setenv("PATH", str(made.path))
    # No Go beside the Python that runs either: a build must find the fake one.
    monkeypatch.setattr(module.toolchain, "candidates", lambda: iter([made.path / "go"]))
    return made


class TestServers:
    async def test_the_named_directory_comes_before_the_cache(self, world: World) -> None:
        Fakes(world.assets)
        world.cached(*SERVERS)

        assert await world.find(*SERVERS) == dict.fromkeys(SERVERS, "assets")

    async def test_the_cache_comes_before_a_build(self, world: World) -> None:
        world.cached("etcd")
        go = Fakes(world.path, names=["go"])

        found = await world.find("etcd", "kwok")

        assert found == {"etcd": "cache", "kwok": "cache"}
        assert [asked["package"] for asked in go.builds()] == ["sigs.k8s.io/kwok/cmd/kwok"]

    async def test_without_the_variable_only_the_cache_is_searched(
        self, world: World, monkeypatch
    ) -> None:
        monkeypatch.delenv("KUBEBUILDER_ASSETS")
        Fakes(world.assets)
        world.cached(*SERVERS)

        assert await world.find(*SERVERS) == dict.fromkeys(SERVERS, "cache")

    async def test_the_control_plane_comes_from_one_place(self, world: World) -> None:
        Fakes(world.assets, names=["etcd", "kube-apiserver"])
        world.cached(*SERVERS)

        found = await world.find(*SERVERS)

        expected = {**dict.fromkeys(SERVERS, "cache"), "etcd": "assets"}
        assert found == expected
        assert any("has no kube-controller-manager, kube-scheduler" in line for line in world.told)

    async def test_a_file_that_cannot_be_run_is_not_there(self, world: World) -> None:
        Fakes(world.assets)
        (world.assets / "etcd").chmod(0o644)
        world.cached("etcd")

        assert await world.find("etcd") == {"etcd": "cache"}

    @pytest.mark.parametrize(
        ("version", "exact", "place"),
        [
            ("Kubernetes v1.30.1", False, "assets"),
            ("Kubernetes v1.30.1", True, "cache"),
            (f"Kubernetes v{RELEASE.version}", True, "assets"),
        ],
    )
    async def test_another_version_will_do_unless_one_was_asked_for(
        self, world: World, version, exact, place
    ) -> None:
        Fakes(world.assets).wish("kube-apiserver", version=version)
        world.cached(*CONTROL_PLANE)

        found = await world.find(*CONTROL_PLANE, exact=exact)

        assert found == dict.fromkeys(CONTROL_PLANE, place)

    async def test_without_go_it_is_told_once_what_is_lacking(self, world: World) -> None:
        with pytest.raises(SandboxError, match=r"no Go 1\.26\.0 or newer"):
            await world.find(*SERVERS)


class TestDownloads:
    @pytest.fixture
    def projects(self):
        with Projects(RELEASE) as made:
            yield made

    @pytest.fixture
    def go(self, world: World) -> Fakes:
        return Fakes(world.path, names=["go"])

    async def test_they_come_before_a_build(self, world: World, projects, go) -> None:
        await world.find(*SERVERS, "kubectl", origins=projects.origins)

        assert go.builds() == []
        assert world.downloaded() == sorted([*SERVERS, "kubectl"])

    async def test_what_cannot_be_had_is_built(self, world: World, projects, go) -> None:
        projects.wish(projects.asset("kube-scheduler").url, WRONG)

        await world.find(*SERVERS, origins=projects.origins)

        [built] = go.builds()
        assert built["package"] == "k8s.io/kubernetes/cmd/kube-scheduler"
        assert "kube-scheduler" not in world.downloaded()
        assert any("has the wrong SHA-256" in line for line in world.told)

    async def test_where_no_project_answers_all_is_built(self, world: World, go) -> None:
        await world.find(*SERVERS)

        assert len(go.builds()) == len(SERVERS)
        begun = [line.split()[:5] for line in world.told if "takes minutes" in line]
        count = str(len(SERVERS))
        assert begun == [
            [str(number), "of", f"{count}:", "building", name]
            for number, name in enumerate(SERVERS, 1)
        ]
        assert len([line for line in world.told if "cannot reach" in line]) == 1

    async def test_later_they_are_in_the_cache_without_asking(self, world, projects) -> None:
        await world.find("etcd", origins=projects.origins)
        asked = len(projects.asked)

        assert await world.find("etcd", origins=projects.origins) == {"etcd": "cache"}
        assert len(projects.asked) == asked

    async def test_what_was_built_comes_before_them(self, world: World, projects) -> None:
        world.cached("etcd")

        await world.find("etcd", origins=projects.origins)

        assert projects.asked == []


class TestKubectl:
    async def test_the_machine_s_own_comes_first(self, world: World) -> None:
        Fakes(world.path, names=["kubectl"])
        Fakes(world.assets)

        assert await world.find("kubectl") == {"kubectl": "path"}

    async def test_one_that_does_not_work_is_passed_over(self, world: World) -> None:
        Fakes(world.path, names=["kubectl"]).wish("kubectl", exit=1)
        world.cached("kubectl")

        assert await world.find("kubectl") == {"kubectl": "cache"}

    async def test_a_link_of_a_sandbox_is_taken_for_the_cached_binary(self, world: World) -> None:
        world.cached("kubectl")
        target = world.cache.entry(RELEASE.kubernetes) / "kubectl"
        (world.path / "kubectl").symlink_to(target)

        assert await world.find("kubectl") == {"kubectl": "cache"}
