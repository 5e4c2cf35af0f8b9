"""Encoding: JSON values as bytes or text, and back, quickly where that is safe.

All of hedgerow reads and writes JSON by this module, so that one place says what is refused, how
deep a text may be nested, and how a value is spelled. `tests/architecture/test_encoding.py` lists
the exceptions. msgspec takes half of pydantic's time, but follows JSON of any depth until the
interpreter's stack ends, and does not know every class that pydantic does. pydantic itself takes
30 ms to import, so only the functions that need it do: a command that prints its help does not.

An API server stores managed fields that no strict decoder accepts: 9,990 levels deep, and with
names that are no UTF-8. `salvage` reads such an object, so that it does not cost its neighbours
their list or watch.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OPENINGS: Final = 200
"""The most maps and lists of a text that msgspec reads, and so the deepest one. pydantic reads the
others: deeper ones it refuses."""
DEEPEST: Final = 190
"""The levels of nesting that `salvage` keeps; what is deeper becomes `{}`. pydantic reads 200."""
LONGEST_NUMBER: Final = sys.int_info.default_max_str_digits
"""The most characters of a number; Python reads no longer integer, as that takes quadratic time."""
_TOKEN: Final = re.compile(
    rb'"(?:[^"\\]++|\\.)*+"?+|(?P<opens>[\[{])|(?P<closes>[\]}])|(?P<number>[-0-9][0-9.eE+-]*+)',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_SPACES: Final = bytes(max(code, 32) for code in range(256))
"""A table for `bytes.translate`: control characters become spaces, which JSON has everywhere."""
S = TypeVar("S", bound=Struct)
_decoder: Final = Decoder[Any]()
_members: Final = Decoder(dict[str, Raw])


def decode(content: bytes) -> Any:
    """Return decoded JSON; raises ValueError. Equal keys share one string; values do not."""
    if content.count(b"{") + content.count(b"[") > OPENINGS:
        from pydantic_core import from_json  # noqa: PLC0415 - see above

        return from_json(content, cache_strings="keys", allow_inf_nan=False)
    return _decoder.decode(content)


def read_json(text: str) -> Any:
    """Return the value of a JSON text, such as an annotation; raises ValueError."""
    return decode(text.encode())


def members(content: bytes) -> dict[str, bytes]:
    """Return the members of a JSON object, each as JSON; raises ValueError.

    What is in them is neither decoded nor checked, which takes a few milliseconds for 5 MB.
    """
    try:
        return {name: bytes(value) for name, value in _members.decode(content).items()}
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def struct_reader(kind: type[S]) -> Callable[[bytes | Raw], S]:
    """Return a function that reads of JSON what a Struct names; it raises ValueError.

    What is in the other members is passed over: no objects are made of it.
    """
    decoder = Decoder(kind)

    def read(content: bytes | Raw) -> S:
        try:
            return decoder.decode(content)
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error

    return read


def salvage(content: bytes) -> Any:
    """Return JSON that `decode` refuses, with what it refuses replaced; raises ValueError."""
    return decode(replaced(content))


def replaced(content: bytes) -> bytes:
    """Return a JSON text with what `decode` refuses replaced.

    Maps and lists below `DEEPEST` become `{}`, numbers over `LONGEST_NUMBER` null, bytes that are
    no UTF-8 and lone surrogates U+FFFD, control characters spaces. It takes linear time and no
    recursion: a fifth of a second for 1.5 MB of brackets. Raises ValueError for other faults.
    """
    text = _joined(content, nested(content, DEEPEST + 1), b"{}")
    text = text.decode("utf-8", "replace").encode().translate(_SPACES)
    text = _ESCAPE.sub(lambda found: rb"\ufffd" if found["lone"] else found[0], text)
    numbers = (found.span() for found in _TOKEN.finditer(text) if found["number"])
    long = (span for span in numbers if span[1] - span[0] > LONGEST_NUMBER)
    return _joined(text, long, b"null")


def nested(content: bytes, depth: int) -> Iterator[tuple[int, int]]:
    """Yield where each map and list of a JSON text begins and ends that is nested this deep.

    The outermost one has depth 1. Raises ValueError if the text ends within one.
    """
    level = begin = 0
    for found in _TOKEN.finditer(content):
        if found["opens"]:
            level += 1
            if level == depth:
                begin = found.start()
        elif found["closes"]:
            if level == depth:
                yield begin, found.end()
            level -= 1
    if level > 0:
        raise ValueError("the text ends within a map or a list")


def _joined(content: bytes, spans: Iterator[tuple[int, int]], instead: bytes) -> bytes:
    """Return a text with `instead` in the place of each span."""
    parts, end = list[bytes](), 0
    for span in spans:
        parts += [content[end : span[0]], instead]
        end = span[1]
    return b"".join((*parts, content[end:])) if parts else content


def encode(value: Any) -> bytes:
    """Return a value as JSON, the same bytes for the same value within one process.

    Besides JSON's own values it may have dates, enumerations, models, dataclasses and the like, and
    whatever pydantic makes a key of. Raises ValueError for all else, and for a lone surrogate.
    """
    try:
        return _encoder.encode(value)
    except (TypeError, RecursionError):
        return to_json(value)


def _jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - see above

    return to_jsonable_python(value)


_encoder: Final = Encoder(enc_hook=_jsonable)


def to_json(value: Any, *, indent: int | None = None) -> bytes:
    """Return a value as JSON that leaves this process: for an API server, a program or a person.

    It takes what `encode` takes, but writes a number that is none as `NaN`, which the reader
    refuses, where `encode` writes null. Raises ValueError.
    """
    from pydantic_core import to_json as written  # noqa: PLC0415 - see above

    return written(value, indent=indent)


def json_text(value: Any) -> str:
    """Return a value as compact JSON, such as an annotation; raises ValueError."""
    return to_json(value).decode()


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


def canonical(value: Any) -> str:
    """Return the one text of a value as JSON: compact, keys sorted, nothing escaped in vain."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pieces(value: Any) -> Iterator[str]:
    """Yield a value as JSON piece by piece, for whoever needs but its beginning."""
    return json.JSONEncoder(ensure_ascii=False).iterencode(value)
