"""Digests that are remembered beside a binary."""

from pathlib import Path

import pytest

from hedgerow_testing.sandbox.digests import remember, remembered
from hedgerow_testing.sandbox.pins import pick
from hedgerow_testing.sandbox.published import Origins, published

DIGEST = "ab" * 32
ETCD = published(pick("").etcd, "etcd", "linux-amd64", Origins())


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
