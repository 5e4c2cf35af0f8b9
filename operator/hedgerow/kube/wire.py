"""Wire: requests and answers as values, and the bytes that the API server takes and gives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hedgerow_schemas.base import ApiResource

APPLY = "application/apply-patch+yaml"
JSON = "application/json"
BODY_LIMIT = 3 * 1024 * 1024
"""Bytes; above it the API server answers 413 and cuts the connection while we are sending."""
LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one watch event; etcd holds far less, so a longer line is no event."""
ANSWER_LIMIT = 32 * 1024 * 1024
"""Bytes of one answer, unpacked."""
PAGE_LIMIT = 2 * 1024 * 1024
"""Bytes of a page of a list that may be smaller: all of it is decoded at once, which takes up to
24 times as much memory, and the event loop for some 50 ms."""

_UNPRINTABLE = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]")
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `repeatable` when sending it twice does no more than sending it once.

    With a `permit`, see `hedgerow.kube.fence`, its bytes leave only while that gives seconds. No
    more than `most` bytes of the answer are read; 0 stands for `ANSWER_LIMIT`.
    """

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b""
    content_type: str = ""
    repeatable: bool = True
    most: int = 0
    permit: Callable[[], float] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Name it as a person would: method and path."""
        return f"{self.method} {self.path}"

    @property
    def verb(self) -> str:
        """What is done: get, which lists too, watch, apply, patch, delete or post."""
        if self.content_type == APPLY:
            return "apply"
        return "watch" if self.params.get("watch") else self.method.lower()


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer, read to its end."""

    code: int
    content: bytes
    content_type: str = JSON
    warnings: tuple[str, ...] = ()


def encode(body: Mapping[str, Any]) -> bytes:
    """Write a body as JSON that the server's YAML reader takes for the same text.

    Apply bodies are read as YAML: U+007F to U+009F, U+FFFE and U+FFFF are refused raw, U+0085
    becomes a blank in silence, and surrogate pairs are refused when escaped (tried on 1.36). So
    those few are escaped and all else stays raw. Raises ValueError for a lone surrogate.
    """
    return _UNPRINTABLE.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), to_json(body))


def decode(content: bytes) -> Any:
    """Read JSON; raises ValueError. Equal keys become one string, values are not shared."""
    return from_json(content, cache_strings="keys")


def path(api: ApiResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the URL path of a collection, an object or its subresource.

    Raises ValueError for an object of a namespaced kind without its namespace.
    """
    if api.namespaced and name and not namespace:
        raise ValueError(f"{api.kind} {name}: a namespaced object needs its namespace")
    root = f"/apis/{api.group_version}" if api.group else f"/api/{api.group_version}"
    place = ("namespaces", namespace) if api.namespaced and namespace else ()
    steps = (*place, api.plural, *(step for step in (name, subresource) if step))
    return "/".join((root, *(_step(step) for step in steps)))


def warnings(headers: Iterable[str]) -> tuple[str, ...]:
    """Return the texts of `Warning` headers, each once, as the server wrote them (RFC 7234)."""
    texts = (text for header in headers for text in _WARNING.findall(header))
    return tuple(dict.fromkeys(re.sub(r"\\(.)", r"\1", text) for text in texts))


def seconds(header: str | None) -> float:
    """Read `Retry-After`; a date or nonsense counts as not given."""
    return float(header) if header and header.strip().isdecimal() else 0.0


class LineError(ValueError):
    """A line of a stream that is too long."""


class Lines:
    """A stream cut at line feeds only: an object may hold any other line end (U+0085)."""

    __slots__ = ("_held", "_size")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes; raises LineError past `LINE_LIMIT`."""
        *whole, rest = chunk.split(b"\n")
        if whole:
            whole[0] = b"".join((*self._held, whole[0]))
            self._held, self._size = [], 0
        if rest:
            self._held.append(rest)
            self._size += len(rest)
        if self._size > LINE_LIMIT:
            raise LineError(
                f"a line of more than {LINE_LIMIT // 1024**2} MiB, and no more of one is read"
            )
        return [line for line in whole if line]


def _step(text: str) -> str:
    if text in {".", ".."}:
        raise ValueError(f"{text!r} is no name")
    return quote(text, safe="")
