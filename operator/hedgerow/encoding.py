"""Encoding: JSON values as bytes, and back, quickly where that is safe.

msgspec takes half of pydantic's time, but follows JSON of any depth until the interpreter's stack
ends, and does not know every class that pydantic does.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.json import Decoder, Encoder
from pydantic_core import from_json, to_json, to_jsonable_python

OPENINGS: Final = 200
"""The most maps and lists of a text that msgspec reads, and so the deepest one. pydantic reads the
others: deeper ones it refuses."""
_decoder: Final = Decoder[Any]()
_encoder: Final = Encoder(enc_hook=to_jsonable_python)


def decode(content: bytes) -> Any:
    """Return decoded JSON; raises ValueError. Equal keys share one string; values do not."""
    if content.count(b"{") + content.count(b"[") > OPENINGS:
        return from_json(content, cache_strings="keys", allow_inf_nan=False)
    return _decoder.decode(content)


def encode(value: Any) -> bytes:
    """Return a value as JSON, the same bytes for the same value within one process.

    Besides JSON's own values it may have dates, enumerations, models, dataclasses and the like, and
    whatever pydantic makes a key of. Raises ValueError for all else, and for a lone surrogate.
    """
    try:
        return _encoder.encode(value)
    except (TypeError, RecursionError):
        return to_json(value)
