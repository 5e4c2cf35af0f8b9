"""Archives: compressed tar archives with the same bytes each time."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def packed(contents: Mapping[str, Path], epoch: int = 0) -> bytes:
    """Return files as an archive in which they have these names and this order.

    It depends on nothing but the contents, whether they can be executed, the time, and Python.
    """
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, file in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = file.stat().st_size, epoch
            entry.mode = 0o755 if os.access(file, os.X_OK) else 0o644
            with file.open("rb") as content:
                archive.addfile(entry, content)
    return gzip.compress(plain.getvalue(), mtime=epoch)
