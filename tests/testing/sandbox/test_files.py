"""Files that are private and whole."""

import os
from pathlib import Path

import pytest

from hedgerow_testing.sandbox.files import tail, write


class TestWrite:
    def test_it_is_readable_by_its_owner_alone_whatever_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            path = write(tmp_path / "secret", "text")
        finally:
            os.umask(before)

        assert path.read_text() == "text"
        assert path.stat().st_mode & 0o777 == 0o600

    def test_a_failure_keeps_the_old_content_and_leaves_nothing_beside_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(tmp_path / "kept", "old")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(path, "new")

        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_what_a_killed_writer_left_is_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / f".kept.{os.getpid()}.partial").write_text("half")

        assert write(tmp_path / "kept", b"whole").read_text() == "whole"


class TestTail:
    def test_a_missing_log_has_no_lines(self, tmp_path: Path) -> None:
        assert tail(tmp_path / "none") == []

    def test_it_gives_the_last_lines_that_say_something(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("first\n\nsecond\nthird  \n")

        assert tail(log, lines=2) == ["second", "third"]

    def test_it_reads_only_the_end_of_a_large_log(self, tmp_path: Path) -> None:
        log = tmp_path / "log"
        log.write_text("long ago\n" + "x" * 100 + "\nlast\n")

        assert tail(log, limit=50) == ["x" * 44, "last"]
