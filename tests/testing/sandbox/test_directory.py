"""The directory of a sandbox, and other people's directories."""

from pathlib import Path

import pytest

from hedgerow_testing.sandbox.directory import Directory, default_directory
from hedgerow_testing.sandbox.errors import SandboxError


class TestPrepare:
    def test_a_new_one_is_made_for_its_owner_alone(self, tmp_path: Path) -> None:
        Directory(tmp_path / "a/b").prepare()

        assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700

    def test_other_people_s_directory_is_refused_and_left_as_it_is(self, tmp_path: Path) -> None:
        (tmp_path / "letters.txt").write_text("dear")

        with pytest.raises(SandboxError, match=r"not a sandbox, and holds letters.txt; choose"):
            Directory(tmp_path).prepare()

        assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]

    @pytest.mark.parametrize("left", [[], ["lock"], ["..hedgerow-sandbox.12.partial", "lock"]])
    def test_what_a_killed_up_left_at_any_moment_is_a_sandbox_s(self, tmp_path: Path, left) -> None:
        for name in left:
            (tmp_path / name).touch()

        directory = Directory(tmp_path)
        directory.prepare()
        directory.furnish()
        directory.erase()

        assert not tmp_path.exists()

    def test_a_place_that_cannot_be_made_is_told_in_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        with pytest.raises(SandboxError, match=r"cannot be made: .*; choose another with --dir"):
            Directory(tmp_path / "file" / "in").prepare()


class TestFurnish:
    def test_its_mark_is_random_and_stays(self, tmp_path: Path) -> None:
        one, other = Directory(tmp_path / "one"), Directory(tmp_path / "other")
        for directory in (one, other):
            directory.prepare()
            assert directory.mark == ""
            directory.furnish()
        first = one.mark

        one.furnish()

        assert one.mark == first != other.mark
        assert len(first) == 32


class TestErase:
    def test_it_removes_what_a_sandbox_makes_and_the_directory(self, tmp_path: Path) -> None:
        directory = Directory(tmp_path / "it")
        directory.prepare()
        directory.furnish()
        directory.lock.touch()
        directory.kubeconfig.touch()
        (directory.etcd / "member").mkdir()

        directory.erase()

        assert not directory.path.exists()

    def test_what_others_put_there_stays(self, tmp_path: Path) -> None:
        directory = Directory(tmp_path / "it")
        directory.prepare()
        directory.furnish()
        (directory.path / "audit.log").write_text("kept")

        directory.erase()

        assert [path.name for path in directory.path.iterdir()] == ["audit.log"]

    def test_it_follows_no_link_out_of_the_directory(self, tmp_path: Path) -> None:
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside/kept").touch()
        directory = Directory(tmp_path / "it")
        directory.prepare()
        directory.etcd.symlink_to(tmp_path / "outside")

        directory.erase()

        assert (tmp_path / "outside/kept").exists()
        assert not directory.path.exists()


class TestDefaultDirectory:
    def test_it_is_the_user_s_own_state(self, monkeypatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        assert default_directory() == tmp_path / ".local/state/hedgerow/sandbox"

        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
        assert default_directory() == tmp_path / "x/hedgerow/sandbox"
