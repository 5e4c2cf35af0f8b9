"""Mounted: certificates in a directory that somebody else keeps."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from hedgerow.runtime.clock import SystemClock
from hedgerow.serving.certificates.material import create
from hedgerow.serving.certificates.mounted import MountedCertificates
from hedgerow.x509 import Pair, key_pem, pem
from serving.certs import NAMES, shown

pytestmark = pytest.mark.anyio


def made() -> Pair:
    return create(NAMES, SystemClock().now(), timedelta(hours=1))


def put(directory: Path, leaf: Pair) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "tls.crt").write_bytes(pem([leaf.certificate]))
    (directory / "tls.key").write_bytes(key_pem(leaf.key))


class Volume:
    """A Secret's volume as the kubelet lays it out: files, `..data`, and a directory behind it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._count = 0

    def change(self, leaf: Pair) -> None:
        self._count += 1
        behind = self.root / f"..2026_{self._count}"
        put(behind, leaf)
        link = self.root / "..data_tmp"
        link.symlink_to(behind.name)
        link.rename(self.root / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (self.root / name).is_symlink():
                (self.root / name).symlink_to(f"..data/{name}")


class TestReloading:
    async def test_plain_files_are_read_again(self, tmp_path: Path):
        mounted = MountedCertificates(SystemClock(), tmp_path)
        for leaf in (made(), made()):
            put(tmp_path, leaf)
            await mounted.prepare()

            assert shown(mounted.context) == leaf.certificate
            assert mounted.check() == ""

    async def test_a_volume_changes_by_its_link(self, tmp_path: Path):
        volume, mounted = Volume(tmp_path), MountedCertificates(SystemClock(), tmp_path)
        for leaf in (made(), made()):
            volume.change(leaf)
            await mounted.prepare()

            assert shown(mounted.context) == leaf.certificate

    async def test_a_key_that_lies_elsewhere_is_found(self, tmp_path: Path):
        leaf = made()
        put(tmp_path / "behind", leaf)
        put(tmp_path / "front", leaf)
        (tmp_path / "front" / "tls.crt").unlink()
        (tmp_path / "front" / "tls.crt").symlink_to(tmp_path / "behind" / "tls.crt")
        (tmp_path / "behind" / "tls.key").unlink()
        mounted = MountedCertificates(SystemClock(), tmp_path / "front")
        await mounted.prepare()

        assert mounted.check() == ""


class TestTrouble:
    async def test_nothing_there_is_the_reason(self, tmp_path: Path):
        mounted = MountedCertificates(SystemClock(), tmp_path)
        await mounted.prepare()

        assert mounted.check() == f"{tmp_path}: No such file or directory"

    async def test_half_a_change_leaves_what_was_served(self, tmp_path: Path, logged):
        leaf, other = made(), made()
        put(tmp_path, leaf)
        mounted = MountedCertificates(SystemClock(), tmp_path)
        await mounted.prepare()
        (tmp_path / "tls.crt").write_bytes(pem([other.certificate]))
        await mounted.prepare()

        assert shown(mounted.context) == leaf.certificate
        assert mounted.check() == ""
        assert logged[-1]["trouble"] == f"{tmp_path}: the certificate and its key cannot be used"
        (tmp_path / "tls.key").write_bytes(key_pem(other.key))
        await mounted.prepare()
        assert shown(mounted.context) == other.certificate

    @pytest.mark.parametrize("content", [b"", b"nonsense", b"x" * 300_000])
    async def test_garbage_is_told(self, tmp_path: Path, content: bytes):
        put(tmp_path, made())
        (tmp_path / "tls.crt").write_bytes(content)
        mounted = MountedCertificates(SystemClock(), tmp_path)
        await mounted.prepare()

        assert mounted.check().startswith(f"{tmp_path}: tls.crt ")

    async def test_what_goes_away_is_served_on(self, tmp_path: Path, logged):
        put(tmp_path / "v", made())
        mounted = MountedCertificates(SystemClock(), tmp_path / "v")
        await mounted.prepare()
        shutil.rmtree(tmp_path / "v")
        await mounted.prepare()

        assert mounted.check() == ""
        assert logged[-1]["trouble"].endswith("No such file or directory")
