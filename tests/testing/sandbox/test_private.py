"""Directories of somebody else: neither written to nor believed."""

import os
import shutil
from pathlib import Path

import pytest

from hedgerow_testing.sandbox.binaries import Binaries
from hedgerow_testing.sandbox.cache import BinaryCache, workplace
from hedgerow_testing.sandbox.cluster import Options, Sandbox
from hedgerow_testing.sandbox.directory import Directory
from hedgerow_testing.sandbox.errors import SandboxError
from hedgerow_testing.sandbox.pins import pick

pytestmark = pytest.mark.anyio

OTHER = 54321
ROOT = os.geteuid() == 0


@pytest.fixture
def made(tmp_path: Path) -> Directory:
    directory = Directory(tmp_path / "up" / "it")
    directory.prepare()
    directory.furnish()
    for file in (directory.lock, directory.kubeconfig, directory.blueprint):
        file.touch(mode=0o600)
    directory.check()
    return directory


def refused(directory: Directory, words: str) -> None:
    with pytest.raises(SandboxError, match=f"{words}.*; choose with --dir a directory that you"):
        directory.check()
    assert "\n" not in words


class TestDirectory:
    @pytest.mark.parametrize("mode", [0o777, 0o702, 0o1777])
    def test_one_that_others_can_write_to_is_refused(self, made, mode):
        made.path.chmod(mode)

        refused(made, "it can be written by other users")

    @pytest.mark.parametrize("name", ["kubeconfig", "blueprint.json", "lock", "bin", "pki", "run"])
    def test_so_is_one_with_a_file_that_others_can_write(self, made, name):
        (made.path / name).chmod(0o606)

        refused(made, f"{name} can be written by other users")

    @pytest.mark.parametrize("name", ["kubeconfig", "blueprint.json", "lock", "bin", "etcd"])
    def test_so_is_one_with_a_symbolic_link(self, made, name, tmp_path):
        place = made.path / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        place.symlink_to(tmp_path)

        refused(made, f"{name} is a symbolic link")

    def test_so_is_a_symbolic_link_to_one(self, made, tmp_path):
        (tmp_path / "link").symlink_to(made.path)

        refused(Directory(tmp_path / "link"), "link is a symbolic link")

    def test_so_is_one_of_another_user(self, made, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)

        refused(made, f"it belongs to user {os.getuid()}")

    def test_so_is_one_in_a_directory_where_others_could_replace_it(self, made):
        made.path.parent.chmod(0o707)

        refused(made, "up can be written by other users")

    def test_so_is_one_that_a_link_leads_to_from_such_a_directory(self, made, tmp_path):
        (tmp_path / "open").mkdir()
        (tmp_path / "open/link").symlink_to(made.path.parent)
        (tmp_path / "open").chmod(0o707)

        refused(Directory(tmp_path / "open/link/it"), "open can be written by other users")

    @pytest.mark.skipif(not ROOT, reason="only root can give a directory to somebody else")
    def test_so_is_one_in_a_directory_of_another_user(self, made):
        os.chown(made.path.parent, OTHER, OTHER)

        refused(made, f"up belongs to user {OTHER}")

    @pytest.mark.skipif(not ROOT, reason="only root can give a directory to another group")
    def test_the_group_of_the_users_own_number_is_nobody_else(self, made, monkeypatch):
        for path in (made.path, made.path.parent):
            os.chown(path, -1, OTHER)
            path.chmod(0o770)
        refused(made, "can be written by other users")

        for path in (made.path, made.path.parent):
            os.chown(path, -1, os.geteuid())
        made.check()

    def test_where_others_can_only_add_to_the_directory_above_it_is_taken(self, made):
        made.path.parent.chmod(0o1777)

        made.check()

    def test_the_directories_above_it_are_made_for_the_user_alone(self, tmp_path):
        before = os.umask(0)
        try:
            Directory(tmp_path / "a/b/c").prepare()
        finally:
            os.umask(before)

        assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700] * 2


class TestSandbox:
    async def test_a_lock_that_leads_elsewhere_overwrites_nothing(self, tmp_path, fakes):
        assert fakes.directory
        place, letter = tmp_path / "theirs", tmp_path / "letter"
        letter.write_text("dear")
        place.mkdir()
        (place / "lock").symlink_to(letter)

        for act in (lambda s: s.up(Options()), lambda s: s.down(), lambda s: s.status()):
            with pytest.raises(SandboxError, match="lock is a symbolic link"):
                await act(Sandbox(place))

        assert letter.read_text() == "dear"

    async def test_a_kubeconfig_that_others_may_have_put_there_is_not_handed_out(self, sandbox):
        await sandbox.up(Options())
        sandbox.directory.chmod(0o777)

        for ask in (sandbox.environment, lambda: sandbox.server, lambda: sandbox.kill("etcd")):
            with pytest.raises(SandboxError, match="can be written by other users"):
                ask()

        sandbox.directory.chmod(0o700)
        await sandbox.down()


class TestCache:
    @pytest.mark.parametrize("name", ["", "etcd-1"])
    async def test_binaries_that_others_could_have_put_there_are_not_run(self, tmp_path, name):
        cache = BinaryCache(tmp_path / "cache")
        (cache.root / "etcd-1").mkdir(parents=True)
        (cache.root / name).chmod(0o777)

        with pytest.raises(SandboxError, match=r"can be written by other users.*; set XDG_CACHE"):
            await Binaries(pick(""), print, cache=cache).find(["etcd"])

    async def test_nor_is_anything_put_where_others_could_replace_it(self, tmp_path):
        tmp_path.chmod(0o777)

        with pytest.raises(SandboxError, match="can be written by other users"):
            async with workplace(tmp_path / "cache/etcd-1", print, what="fetches"):
                raise AssertionError

        assert not (tmp_path / "cache/etcd-1.lock").exists()

    def test_one_that_is_missing_is_made_later(self, tmp_path):
        BinaryCache(tmp_path / "cache").check()
