"""Wire: requests and answers as values, and the bytes that the API server reads and writes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from hedgerow.encoding import encode as to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hedgerow_schemas.base import ApiResource

APPLY = "application/apply-patch+yaml"
JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""The media type of an answer with no more of an object than its metadata."""
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body; for more, the API server answers 413 and cuts the connection meanwhile."""
LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one watch event; etcd stores much smaller objects, so a longer line is not an event."""
ANSWER_LIMIT = 32 * 1024 * 1024
"""Bytes of one answer, unpacked."""
PAGE_LIMIT = 2 * 1024 * 1024
"""Bytes of a page of a list. All its objects are in memory together, which takes up to 24 times as
much, unless they are reduced."""

_PLAIN_STEP = re.compile(r"[\w-][\w.~-]*", re.ASCII).fullmatch
_UNPRINTABLE = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]")
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `repeatable`: it may be sent again some seconds later.

    It may not if it follows from what was read before: whoever has read that must look again. With
    a `permit` (see `hedgerow.kube.fence`), its bytes are sent only while the permit lasts. At most
    `most` bytes of the answer are read; 0 means `ANSWER_LIMIT`. `accept` is the form of the answer.
    """

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b""
    content_type: str = ""
    repeatable: bool = True
    most: int = 0
    accept: str = JSON
    permit: Callable[[], float] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Return method and path."""
        return f"{self.method} {self.path}"

    @property
    def verb(self) -> str:
        """The verb: get (also for lists), watch, apply, patch, delete or post."""
        if self.content_type == APPLY:
            return "apply"
        return "watch" if self.params.get("watch") else self.method.lower()

    @property
    def is_write(self) -> bool:
        """Whether it is a write or the dry run of one, which a webhook may hold up."""
        return self.verb in ("apply", "patch", "delete")


class Response(NamedTuple):
    """An answer, completely read and unpacked; the names of its headers are in any case."""

    code: int
    headers: Sequence[tuple[bytes, bytes]]
    content: bytes

    def header(self, name: bytes) -> str:
        """Return the values of a header, with commas between them; `name` is in lower case."""
        return ", ".join(self._values(name))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of `Warning` headers, each once, as the server wrote them (RFC 7234)."""
        texts = (text for value in self._values(b"warning") for text in _WARNING.findall(value))
        return tuple(dict.fromkeys(re.sub(r"\\(.)", r"\1", text) for text in texts))

    def _values(self, name: bytes) -> list[str]:
        return [
            value.decode("utf-8", "replace") for key, value in self.headers if key.lower() == name
        ]


def encode(body: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """Return a body as JSON that the server's YAML parser reads as the same text.

    Apply bodies are parsed as YAML. Unescaped U+007F to U+009F, U+FFFE and U+FFFF are refused,
    U+0085 silently becomes a blank, and escaped surrogate pairs are refused (seen on 1.36). So only
    these few characters are escaped. Raises ValueError for a lone surrogate.
    """
    return _UNPRINTABLE.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), to_json(body))


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


def date(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return the `Date` of an answer; empty without one."""
    value = next((text for name, text in headers if name.lower() == b"date"), b"")
    return value.decode("ascii", "replace")


def seconds(header: str | None) -> float:
    """Return the seconds of `Retry-After`; 0 if it is missing, a date, or invalid."""
    return float(header) if header and header.strip().isdecimal() else 0.0


class LineError(ValueError):
    """A line of a stream is too long."""


class LineSplitter:
    """Splits a stream at line feeds only: objects may contain other line ends (U+0085)."""

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
    if _PLAIN_STEP(text):  # the usual case: to ask takes a fifth of quoting
        return text
    if text in {".", ".."}:
        raise ValueError(f"{text!r} is no name")
    return quote(text, safe="")
