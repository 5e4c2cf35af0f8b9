"""Encoding: JSON values as bytes or text, and back.

All of hedgerow reads and writes JSON by this module, so that one place says what is refused, how
deep a text may be nested, and how a value is spelled. `tests/architecture/test_encoding.py` lists
the exceptions. msgspec follows JSON of any depth until the interpreter's stack ends, so the levels
are counted first where there may be too many.

An API server stores managed fields that no decoder accepts: 9,990 levels deep, and with names that
are no UTF-8. With `shallow` such an object is named, and its neighbours in a list are decoded.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import to_builtins
from msgspec.json import Decoder, Encoder
from msgspec.json import format as indented

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from msgspec import Raw

DEEPEST: Final = 190
"""The most levels of maps and lists that are decoded: what walks over a value is recursive."""
_TOO_DEEP: Final = f"it is nested more than {DEEPEST} levels deep"
_STEPS: Final = bytes(1 if char in b"[{" else 255 for char in range(256))
"""A table for `bytes.translate`: a bracket becomes the step, as a signed byte, that it is."""
_NO_BRACKETS: Final = bytes(char for char in range(256) if char not in b"[]{}")
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|(?P<opens>[\[{])|(?P<closes>[\]}])', re.DOTALL)
T = TypeVar("T")
_decoder: Final = Decoder[Any]()


def decode(content: bytes) -> Any:
    """Return decoded JSON; raises ValueError. Equal keys share one string; values do not."""
    if content.count(b"{") + content.count(b"[") > DEEPEST and _levels(content) > DEEPEST:
        raise ValueError(_TOO_DEEP)
    return _decoder.decode(content)


def _levels(content: bytes) -> int:
    """Return how deep JSON is nested."""
    unescaped = content.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.split(b'"')[::2])  # strings are every other part between quotes
    steps = memoryview(outside.translate(_STEPS, _NO_BRACKETS)).cast("b")
    return max(accumulate(steps), default=0)


def read_json(text: str) -> Any:
    """Return the value of a JSON text, such as an annotation; raises ValueError."""
    return decode(text.encode())


def reader(kind: type[T]) -> Callable[[bytes | Raw], T]:
    """Return a function that reads the members of JSON that a type names; it raises ValueError.

    Other members, and `Raw` ones, are passed over: they are neither decoded nor checked.
    """
    decoder = Decoder(kind)

    def decoded(content: bytes | Raw) -> T:
        try:
            return decoder.decode(content)
        except RecursionError as error:
            raise ValueError(_TOO_DEEP) from error

    return decoded


def shallow(content: bytes) -> bytes:
    """Return JSON with a number that `decode` refuses for each part that is nested too deep.

    So a `reader` can pass over it. It takes linear time and no recursion: a quarter of a second for
    1.5 MB of brackets.
    """
    parts, level, begin, end = list[bytes](), 0, 0, 0
    for token in _TOKEN.finditer(content):
        if token["opens"]:
            level += 1
            begin = token.start() if level == DEEPEST + 1 else begin
        elif token["closes"]:
            if level == DEEPEST + 1:
                parts += [content[end:begin], b"1e999"]
                end = token.end()
            level -= 1
    return b"".join((*parts, content[end:]))


def encode(value: Any, *, indent: int = 0) -> bytes:
    """Return a value as JSON, the same bytes for the same value within one process.

    Besides JSON's own values it may have dates, enumerations, models, dataclasses and the like. A
    number that is none becomes null. Raises ValueError for all else, and for a lone surrogate.
    """
    try:
        content = _encoder.encode(value)
    except (RecursionError, TypeError) as error:
        raise ValueError(f"it cannot be written as JSON: {error}") from error
    return indented(content, indent=indent) if indent else content


def builtins(value: Any) -> Any:
    """Return a value as what JSON is made of: maps, lists, texts, numbers, and None."""
    return to_builtins(value, enc_hook=_jsonable)


def _jsonable(value: Any) -> Any:
    if wire := getattr(value, "wire", None):
        return wire()
    # pydantic takes 30 ms to import, and a command that prints its help needs none of it.
    from pydantic_core import to_jsonable_python  # noqa: PLC0415

    return to_jsonable_python(value)


_encoder: Final = Encoder(enc_hook=_jsonable)


def json_text(value: Any) -> str:
    """Return a value as compact JSON, such as an annotation; raises ValueError."""
    return encode(value).decode()


def to_ascii(
    value: Any,
    *,
    ordered: bool = False,
    compact: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Return a value as JSON in one line of ASCII: a literal of CEL, a line of a log.

    `ordered`: the keys of maps are sorted. `compact`: without blanks. `default` returns a JSON
    value for one of another class. Raises TypeError.
    """
    separators = (",", ":") if compact else None
    return json.dumps(value, sort_keys=ordered, separators=separators, default=default)


def canonical_json(value: Any) -> str:
    """Return the one text of a value as JSON: compact, keys sorted, nothing escaped in vain."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pieces(value: Any) -> Iterator[str]:
    """Yield a value as JSON piece by piece, for whoever needs but its beginning."""
    return json.JSONEncoder(ensure_ascii=False).iterencode(value)
