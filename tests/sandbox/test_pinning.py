"""`task pin`, against a server that looks like the projects'."""

from pathlib import Path

import pytest

from hedgerow.sandbox import pinning
from hedgerow.sandbox.cache import BinaryCache
from hedgerow.sandbox.digests import pin, pinned
from hedgerow.sandbox.downloads import Downloads
from hedgerow.sandbox.pins import pick, releases
from hedgerow.sandbox.published import Origins
from support.programs.projects import BINARIES, Projects, nowhere

pytestmark = pytest.mark.anyio

OTHER = "cd" * 32


@pytest.fixture
def projects(monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    # Only what the server has: the newest release, for this machine.
    monkeypatch.setattr(pinning, "releases", lambda: releases()[:1])
    with Projects(pick("")) as made:
        monkeypatch.setattr(pinning, "PLATFORMS", (made.platform,))
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pin({}, tmp_path / "pins")
    return tmp_path / "pins"


async def test_what_is_published_is_pinned(projects: Projects, path: Path, capsys) -> None:
    assert await pinning.main(projects.origins, path) == 0

    assert pinned(path) == {projects.asset(b).key: projects.digest(b) for b in BINARIES}
    assert capsys.readouterr().out == "6 digests are pinned, 6 new, 0 dropped\n"


async def test_what_is_pinned_is_then_fetched_by_its_pin(
    projects: Projects, path: Path, tmp_path: Path
) -> None:
    await pinning.main(projects.origins, path)
    told: list[str] = []
    downloads = Downloads(
        BinaryCache(tmp_path / "cache"), told.append, projects.origins, pinned(path)
    )
    module = pick("").module("kwok")
    await downloads.fetch([(module, ["kwok"])])

    assert [line for line in told if line.endswith("… (pinned)")] == told
    assert downloads.find(module, "kwok")

    projects.publish("kubectl", b"another file under the same name")
    await downloads.fetch([(pick("").module("kubectl"), ["kubectl"])])

    assert "has the wrong SHA-256" in told[-1]
    assert downloads.find(pick("").module("kubectl"), "kubectl") is None


async def test_what_is_pinned_stays_and_another_published_digest_is_told(
    projects: Projects, path: Path, capsys
) -> None:
    key = projects.asset("kwok").key
    pin({key: OTHER}, path)

    assert await pinning.main(projects.origins, path) == 1

    assert pinned(path)[key] == OTHER
    digest = projects.digest("kwok")
    assert capsys.readouterr().err == f"pin: {key}: {OTHER} is pinned, {digest} is published\n"


async def test_what_is_not_published_is_told_and_the_others_are_pinned(
    projects: Projects, path: Path, capsys
) -> None:
    projects.unpublish(projects.asset("kwok").digests)
    projects.publish("kubectl", b"x", digest="unknown")

    assert await pinning.main(projects.origins, path) == 1

    assert len(pinned(path)) == 4
    told = capsys.readouterr().err
    assert "answers 404" in told
    assert "has no SHA-256 of kubectl" in told


async def test_what_no_release_needs_is_dropped(projects: Projects, path: Path, capsys) -> None:
    pin({"etcd-3.5.0-linux-amd64/etcd": OTHER}, path)

    assert await pinning.main(projects.origins, path) == 0

    assert "etcd-3.5.0-linux-amd64/etcd" not in pinned(path)
    assert "6 new, 1 dropped" in capsys.readouterr().out


@pytest.mark.usefixtures("projects")
async def test_where_a_host_does_not_answer_nothing_changes(path: Path, capsys) -> None:
    pin({"etcd-3.5.0-linux-amd64/etcd": OTHER}, path)

    assert await pinning.main(nowhere(), path) == 1

    assert pinned(path) == {"etcd-3.5.0-linux-amd64/etcd": OTHER}
    assert "nothing is changed" in capsys.readouterr().err


def test_both_platforms_of_all_releases_are_asked_for() -> None:
    keys = [asset.key for asset in pinning.assets(Origins())]

    assert len(keys) == len(set(keys)) == 2 * (4 * len(releases()) + 2)
