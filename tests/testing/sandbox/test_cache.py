"""The cache of binaries, built ones and downloaded ones."""

from pathlib import Path

import pytest

from hedgerow_testing.sandbox.cache import BinaryCache, default_cache
from hedgerow_testing.sandbox.pins import pick

RELEASE = pick("1.37")


@pytest.fixture
def cache(tmp_path: Path) -> BinaryCache:
    return BinaryCache(tmp_path / "cache")


class TestCache:
    def test_a_binary_that_cannot_be_run_is_no_binary(self, cache: BinaryCache) -> None:
        entry = cache.entry(RELEASE.etcd)
        entry.mkdir(parents=True)
        (entry / "etcd").write_text("")

        assert cache.find(RELEASE.etcd, "etcd") is None

    def test_it_is_the_user_s_own(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        assert default_cache().root == tmp_path / ".cache/hedgerow/sandbox"

        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
        assert default_cache().root == tmp_path / "x/hedgerow/sandbox"

    def test_what_was_downloaded_lies_apart_from_what_was_built(self, cache: BinaryCache) -> None:
        built, fetched = cache.entry(RELEASE.etcd), cache.downloads(RELEASE.etcd)

        assert fetched.name.startswith("etcd-3.6.8-linux-")
        assert fetched.name.endswith("-downloaded")
        assert fetched != built
