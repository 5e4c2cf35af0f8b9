"""Pinned digests in the repository, and remembered ones beside a binary."""

from pathlib import Path

import pytest

from hedgerow.sandbox.digests import PINNED, pin, pinned, remember, remembered
from hedgerow.sandbox.pinning import assets
from hedgerow.sandbox.pins import pick
from hedgerow.sandbox.published import Origins, published

DIGEST = "ab" * 32
ETCD = published(pick("").etcd, "etcd", "linux-amd64", Origins())


class TestPinned:
    def test_what_is_committed_is_of_releases_that_are_pinned(self) -> None:
        assert pinned().keys() <= {asset.key for asset in assets(Origins())}
        assert PINNED.read_text().startswith("# ")

    def test_what_is_pinned_is_read_back(self, tmp_path: Path) -> None:
        path, digests = tmp_path / "pins", {"b/c": DIGEST, "a/b": "0" * 64}

        pin(digests, path)

        assert pinned(path) == digests
        assert path.read_text().splitlines()[-2:] == [f"{'0' * 64}  a/b", f"{DIGEST}  b/c"]
        assert path.stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize(
        "line", ["x  a/b", f"{DIGEST} a/b", f"{DIGEST}  ", f"{DIGEST}  a/b\n{DIGEST}  a/b"]
    )
    def test_a_line_that_pins_nothing_is_an_error(self, tmp_path: Path, line) -> None:
        (tmp_path / "pins").write_text(f"# head\n\n{line}\n")

        with pytest.raises(ValueError, match="pins nothing"):
            pinned(tmp_path / "pins")


class TestRemembered:
    def test_what_was_downloaded_and_from_where_lies_beside_it(self, tmp_path: Path) -> None:
        remember(tmp_path / "entry", ETCD, DIGEST)

        assert remembered(tmp_path / "entry", "etcd") == DIGEST
        assert (tmp_path / "entry/etcd.sha256").read_text() == f"{DIGEST}  {ETCD.url}\n"

    @pytest.mark.parametrize("content", [None, b"", b"\xff", b"short  url"])
    def test_what_is_not_there_or_damaged_is_nothing(self, tmp_path: Path, content) -> None:
        if content is not None:
            (tmp_path / "etcd.sha256").write_bytes(content)

        assert remembered(tmp_path, "etcd") == ""
