"""Downloading release binaries: those with the right digest, and what is said of the others."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from hedgerow_testing.sandbox import downloads as module
from hedgerow_testing.sandbox import fetch
from hedgerow_testing.sandbox.cache import BinaryCache
from hedgerow_testing.sandbox.downloads import Downloads
from hedgerow_testing.sandbox.locks import LockNotice
from hedgerow_testing.sandbox.pauses import until
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandbox.published import Origins
from support.programs.projects import (
    BINARIES,
    CUT,
    HELD,
    WRONG,
    Projects,
    archive,
    nowhere,
    script,
    sha256,
)

pytestmark = pytest.mark.anyio

RELEASE = pick("")
OTHER = "cd" * 32


@dataclass
class World:
    """The projects' server, a cache, and what was said."""

    projects: Projects
    root: Path
    told: list[str] = field(default_factory=list)

    @property
    def cache(self) -> BinaryCache:
        return BinaryCache(self.root / "cache")

    def downloads(self, origins: Origins | None = None) -> Downloads:
        return Downloads(self.cache, self.told.append, origins or self.projects.origins)

    async def fetch(self, *binaries: str, origins: Origins | None = None) -> list[str]:
        """Fetch, and give what is there afterwards."""
        downloads = self.downloads(origins)
        await downloads.fetch((RELEASE.module(binary), [binary]) for binary in binaries)
        return [b for b in binaries if downloads.cache.find(RELEASE.module(b), b)]

    def binary(self, name: str) -> Path:
        return self.cache.downloads(RELEASE.module(name)) / name

    def notices(self, part: str) -> list[str]:
        """Return the lines that stay with this in them."""
        return [line for line in self.told if isinstance(line, LockNotice) and part in line]

    def nothing_half_done(self) -> bool:
        return not list(self.cache.root.rglob("*.partial"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "PAUSE", 0.01)
    with Projects(RELEASE) as projects:
        yield World(projects, tmp_path)


class TestFetch:
    async def test_all_of_a_sandbox_is_had_and_can_be_run(self, world: World) -> None:
        assert await world.fetch(*BINARIES) == list(BINARIES)

        for name in BINARIES:
            ran = await anyio.run_process([world.binary(name)])
            assert ran.stdout.decode() == f"{name} as published\n"
        assert world.nothing_half_done()

    async def test_it_says_what_comes_from_where(self, world: World) -> None:
        world.projects.publish("kubectl", script("kubectl") + b"#" * 2_000_000)
        await world.fetch("kubectl")

        digest = world.projects.digest("kubectl")[:12]
        host = world.projects.host
        (line,) = world.told
        assert line == (
            f"fetching kubectl {RELEASE.version} from {host}, 2 MB, sha256 {digest}… (as"
            f" {host} publishes beside it)"
        )
        assert isinstance(world.told[0], LockNotice)

    async def test_it_says_now_and_then_how_far_it_is(self, world: World, monkeypatch) -> None:
        monkeypatch.setattr(module, "TELL_EVERY", 0.0)

        await world.fetch("kubectl")

        assert re.fullmatch(r"fetching: 0 of 0 MB, \d+ s", world.told[-1])
        assert not isinstance(world.told[-1], LockNotice)

    async def test_what_is_there_is_not_asked_for_again(self, world: World) -> None:
        await world.fetch("kwok")
        await world.fetch("kwok")

        assert world.projects.downloads("kwok") == 1

    async def test_for_a_platform_without_releases_nothing_is_asked(
        self, world: World, monkeypatch
    ) -> None:
        monkeypatch.setattr(module, "platform_name", lambda: "darwin-arm64")

        assert await world.fetch("etcd") == []
        assert world.projects.asked == world.told == []

    async def test_not_all_come_at_once(self, world: World) -> None:
        for name in BINARIES:
            world.projects.wish(world.projects.asset(name).url, HELD)

        async def three() -> bool:
            return len(world.notices("fetching")) == 3

        async with anyio.create_task_group() as group:
            group.start_soon(world.fetch, *BINARIES)
            assert await until(three, seconds=20)
            assert sum(map(world.projects.downloads, BINARIES)) == 3
            world.projects.go_on.set()

        assert sum(map(world.projects.downloads, BINARIES)) == len(BINARIES)


class TestRefused:
    async def test_a_wrong_digest_is_told_and_the_file_discarded(self, world: World) -> None:
        asset = world.projects.asset("kube-apiserver")
        world.projects.wish(asset.url, WRONG)

        assert await world.fetch("kube-apiserver", "kubectl") == ["kubectl"]

        content = script("kube-apiserver")
        half = len(content) // 2
        came = sha256(content[:half] + b"!" * (len(content) - half))
        [line] = world.notices("wrong SHA-256")
        assert line == (
            f"{asset.url} has the wrong SHA-256: {sha256(content)} is published in {asset.digests},"
            f" {came} came; the file is discarded;"
            f" kube-apiserver {RELEASE.version} is built from source instead"
        )
        assert not world.binary("kube-apiserver").exists()
        assert world.projects.downloads("kube-apiserver") == 1
        assert world.nothing_half_done()

    @pytest.mark.parametrize("binary", BINARIES)
    async def test_no_project_s_file_is_taken_with_a_wrong_digest(self, world, binary) -> None:
        content = world.projects.files[f"/{world.projects.asset(binary).url.split('/', 3)[3]}"]
        world.projects.publish(binary, content, digest=OTHER)

        assert await world.fetch(binary) == []
        assert world.notices(f"{OTHER} is published in")
        assert world.nothing_half_done()

    async def test_what_is_cut_once_is_tried_once_more(self, world: World) -> None:
        world.projects.wish(world.projects.asset("etcd").url, CUT)

        assert await world.fetch("etcd") == ["etcd"]
        assert world.projects.downloads("etcd") == 2
        assert len(world.notices("trying once more")) == 1

    async def test_what_is_cut_twice_is_given_up(self, world: World) -> None:
        world.projects.wish(world.projects.asset("etcd").url, CUT, CUT)

        assert await world.fetch("etcd") == []
        assert world.projects.downloads("etcd") == 2
        assert len(world.notices("etcd 3.6.8 is built from source instead")) == 1
        assert world.nothing_half_done()

    async def test_a_digest_that_is_cut_is_tried_once_more(self, world: World) -> None:
        world.projects.wish(world.projects.asset("kubectl").digests, CUT)

        assert await world.fetch("kubectl") == ["kubectl"]

    @pytest.mark.parametrize("part", ["url", "digests"])
    async def test_what_is_not_there_is_told_and_not_tried_again(self, world: World, part) -> None:
        address = getattr(world.projects.asset("kwok"), part)
        world.projects.unpublish(address)

        assert await world.fetch("kwok") == []
        assert world.notices(f"{address.rpartition('/')[2]} answers 404")
        assert world.projects.downloads("kwok") == (part == "url")

    async def test_without_a_digest_nothing_is_downloaded(self, world: World) -> None:
        world.projects.publish("etcd", b"x", digest="unknown")

        assert await world.fetch("etcd") == []
        assert world.notices("has no SHA-256 of etcd-v3.6.8-")
        assert world.projects.downloads("etcd") == 0

    async def test_hosts_that_are_not_there_are_told_in_one_line(self, world: World) -> None:
        assert await world.fetch(*BINARIES, origins=nowhere()) == []

        [line] = world.told
        assert line.startswith("cannot reach 127.0.0.1:")
        assert line.endswith("; what is lacking is built from source instead")

    async def test_a_proxy_that_cannot_be_used_is_told_in_one_line(
        self, world: World, monkeypatch
    ) -> None:
        monkeypatch.setenv("ALL_PROXY", "nonsense://x")

        assert await world.fetch(*BINARIES) == []
        [line] = world.told
        assert line.startswith("the proxy cannot be reached")

    async def test_what_takes_longer_than_a_build_is_given_up(self, world, monkeypatch) -> None:
        monkeypatch.setattr(module, "LONGEST", 0.5)
        world.projects.wish(world.projects.asset("etcd").url, HELD)

        assert await world.fetch("etcd") == []
        assert world.notices("fetching took")
        assert world.nothing_half_done()

    async def test_a_full_disk_is_told(self, world: World, monkeypatch) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(module, "publish", full)

        assert await world.fetch("kwok") == []
        assert world.notices("No space left on device; kwok 0.8.0 is built")


MEMBER = f"etcd-v3.6.8-{module.platform_name()}/etcd"


class TestArchive:
    @pytest.mark.parametrize(
        ("members", "told"),
        [
            ({"etcd-v3.6.8/etcd": b"x"}, "has no file etcd-v3.6.8-"),
            ({f"../{MEMBER}": b"x", f"/{MEMBER}": b"x"}, "has no file etcd-v3.6.8-"),
            ({MEMBER: None}, "has no file etcd-v3.6.8-"),
            ({}, "has no file etcd-v3.6.8-"),
        ],
        ids=["another name", "names that lead elsewhere", "a link", "nothing"],
    )
    async def test_only_a_file_of_the_very_name_is_taken(self, world, members, told) -> None:
        world.projects.publish("etcd", archive(members))

        assert await world.fetch("etcd") == []
        assert world.notices(told)
        assert world.nothing_half_done()

    async def test_nothing_else_of_it_is_unpacked(self, world: World) -> None:
        others = {"../../outside": b"x", f"{MEMBER}ctl": b"x", "etcd": None}
        world.projects.publish("etcd", archive({**others, MEMBER: script("etcd")}))

        assert await world.fetch("etcd") == ["etcd"]

        there = {path.name for path in world.root.rglob("*") if path.is_file()}
        assert there == {"etcd", f"{world.binary('etcd').parent.name}.lock"}

    @pytest.mark.parametrize("cut", [0, 20, 150])
    async def test_what_is_no_whole_archive_is_told(self, world: World, cut) -> None:
        world.projects.publish("etcd", archive({MEMBER: script("etcd")})[:cut])

        assert await world.fetch("etcd") == []
        assert world.notices("etcd 3.6.8 is built from source instead")

    async def test_a_member_that_is_too_large_is_not_unpacked(self, world, monkeypatch) -> None:
        monkeypatch.setattr(fetch, "LARGEST", 10_000)

        assert await world.fetch("etcd") == []
        assert world.notices("of a usual size")


class TestUnreachable:
    async def test_a_host_that_is_not_there_is_asked_once(self, world: World) -> None:
        assert await world.fetch("kubectl", origins=nowhere()) == []
        [line] = world.told
        assert line.startswith("cannot reach")


FETCHER = """
import sys, anyio
from pathlib import Path
from hedgerow_testing.sandbox.cache import BinaryCache
from hedgerow_testing.sandbox.downloads import Downloads
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandbox.published import Origins

downloads = Downloads(BinaryCache(Path(sys.argv[1])), print, Origins(*sys.argv[2:]))
anyio.run(downloads.fetch, [(pick("").etcd, ["etcd"])])
"""


class TestSeveral:
    async def test_another_process_is_waited_for_and_what_it_fetched_is_taken(
        self, world: World
    ) -> None:
        ours = world.projects.origins
        world.projects.wish(world.projects.asset("etcd").url, HELD)
        arguments = [world.cache.root, ours.kubernetes, ours.github, ours.api]

        async def asked() -> bool:
            return world.projects.downloads("etcd") == 1

        async def waiting() -> bool:
            return any(line.startswith("waiting for process") for line in world.told)

        command = [sys.executable, "-c", FETCHER, *arguments]
        async with await anyio.open_process(command, stdout=None, stderr=None) as other:
            async with anyio.create_task_group() as group:
                assert await until(asked, seconds=30)
                group.start_soon(world.fetch, "etcd")
                assert await until(waiting, seconds=30)
                world.projects.go_on.set()
            assert await other.wait() == 0

        assert world.projects.downloads("etcd") == 1
        assert world.told == [
            f"waiting for process {other.pid}, which fetches {world.binary('etcd').parent.name}"
        ]
        assert world.cache.find(RELEASE.etcd, "etcd")

    async def test_what_a_killed_one_left_is_not_mistaken_for_a_binary(self, world: World) -> None:
        entry = world.binary("kwok").parent
        left = entry.with_name(f"{entry.name}.partial") / "kwok"
        left.parent.mkdir(parents=True)
        left.write_text("half")

        assert world.cache.find(RELEASE.kwok, "kwok") is None
        assert await world.fetch("kwok") == ["kwok"]
        assert world.binary("kwok").read_bytes() == script("kwok")

    async def test_cancelled_it_leaves_nothing(self, world: World) -> None:
        world.projects.wish(world.projects.asset("kwok").url, HELD)

        async def asked() -> bool:
            return world.projects.downloads("kwok") == 1

        async with anyio.create_task_group() as group:
            group.start_soon(world.fetch, "kwok")
            assert await until(asked, seconds=30)
            group.cancel_scope.cancel()

        assert world.nothing_half_done()
        assert world.cache.find(RELEASE.kwok, "kwok") is None
