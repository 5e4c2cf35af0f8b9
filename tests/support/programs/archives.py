"""Archives: unpack a tar archive that a test or this repository made."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack all of it; Python 3.11.2 has no filters, and 3.13 warns if none is chosen."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)  # noqa: S202 - it is ours
