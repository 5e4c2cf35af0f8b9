"""Packing: objects of one kind as few bytes, JSON compressed with one of them as example."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from hedgerow.encoding import decode, encode

if TYPE_CHECKING:
    from hedgerow_schemas.base import Object

_FASTEST: Final = 1
_RAW: Final = -zlib.MAX_WBITS
"""Without zlib's header and checksum: nothing leaves the process."""


class Packing:
    """Packs objects of one kind, which have most of their text in common."""

    def __init__(self) -> None:
        self._example = b""

    def pack(self, obj: Object) -> bytes:
        """Return an object as bytes; the first one becomes the example."""
        text = encode(obj)
        self._example = self._example or text
        deflater = zlib.compressobj(_FASTEST, wbits=_RAW, zdict=self._example)
        return deflater.compress(text) + deflater.flush()

    def unpack(self, packed: bytes) -> Object:
        """Return the object that was packed."""
        inflater = zlib.decompressobj(_RAW, zdict=self._example)
        return decode(inflater.decompress(packed))
