"""Archives: compressed tar archives with the same bytes each time."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def packed(contents: Mapping[str, Path], epoch: int = 0) -> bytes:
    """Return files as an archive in which they have these names and this order.

    It depends on nothing but the contents, whether they can be executed, the time, and zlib.
    """
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = file.stat().st_size, epoch
            entry.mode = 0o755 if os.access(file, os.X_OK) else 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)
    return _compressed(plain.getvalue(), epoch)


def _compressed(plain: bytes, epoch: int) -> bytes:
    """Return the bytes as gzip has them.

    Its module writes another header on Python 3.13 than before: the byte of the operating system.
    """
    header = struct.pack("<4BL2B", 0x1F, 0x8B, zlib.DEFLATED, 0, epoch, 2, 255)
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    body = deflate.compress(plain) + deflate.flush()
    return header + body + struct.pack("<2L", zlib.crc32(plain), len(plain) & 0xFFFFFFFF)
