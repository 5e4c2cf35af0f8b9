"""Mounted: certificates in files that somebody else maintains, such as cert-manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from hedgerow.serving.certificates.material import (
    CERTIFICATE,
    KEY,
    Served,
    UnusableError,
    certificates,
)
from hedgerow.serving.certificates.served import Certificates

if TYPE_CHECKING:
    from pathlib import Path

    from hedgerow.runtime.clock import Clock

_LARGEST: Final = 256 * 1024


class MountedCertificates(Certificates):
    """`tls.crt` and `tls.key` of a directory, read periodically.

    A Secret's volume changes by replacing one symbolic link, so both files are read from the
    directory that it points to. If they cannot be used, the last good certificate stays. Whoever
    makes the certificates must also set `caBundle`.
    """

    def __init__(self, clock: Clock, directory: Path) -> None:
        super().__init__(clock)
        self._directory = anyio.Path(directory)

    async def _refresh(self) -> str:
        try:
            self._serve(await self._read_directory())
        except (OSError, UnusableError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise UnusableError(f"{self._directory}: {said}") from error
        return ""

    async def _read_directory(self) -> Served:
        place = (await (self._directory / CERTIFICATE).resolve()).parent
        if not await (place / KEY).exists():
            place = self._directory
        chain, key = await _read_file(place / CERTIFICATE), await _read_file(place / KEY)
        return Served.by(certificates(chain, CERTIFICATE)[0], chain, key)


async def _read_file(path: anyio.Path) -> bytes:
    async with await path.open("rb") as file:
        content = await file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise UnusableError(f"{path.name} is too long")
    return content
